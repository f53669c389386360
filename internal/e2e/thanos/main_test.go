//go:build thanos

package thanos

import (
	"os"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/hermetic"
)

// Building Thanos takes minutes.
func TestMain(m *testing.M) {
	hermetic.Enter(hermetic.Options{Limit: 30 * time.Minute})
	os.Exit(m.Run())
}
