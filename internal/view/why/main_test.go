package why

import (
	"os"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	time.Local = time.UTC // times are shown as on the user's own clock
	os.Exit(m.Run())
}
