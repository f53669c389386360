package recording

import (
	"fmt"
	"os"
	"testing"

	"github.com/ttmon/ttmon/internal/lab/hermetic"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(writesTo); dir != "" {
		if err := writeTo(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	hermetic.Main(m)
}
