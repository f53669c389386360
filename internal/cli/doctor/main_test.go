package doctor

import (
	"testing"

	"github.com/ttmon/ttmon/internal/hermetic"
)

func TestMain(m *testing.M) { hermetic.Main(m) }
