package daemon

import (
	"fmt"
	"os"
	"testing"

	"github.com/ttmon/ttmon/internal/hermetic"
)

func TestMain(m *testing.M) {
	if os.Getenv(playTimers) != "" {
		CoarseTimers()
		fmt.Println(os.Getpid(), slackOfAll(), os.Args[1:])
		os.Exit(0)
	}
	hermetic.Main(m)
}
