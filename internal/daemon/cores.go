package daemon

import (
	"os"
	"runtime"
)

// maxCores is how many cores the daemon's Go code uses at once. It works for
// some milliseconds in each second: on a host with many more cores, Go would
// wake and search them all for work that one has.
const maxCores = 2

// UseFewCores makes Go use at most maxCores. $GOMAXPROCS takes precedence.
func UseFewCores() {
	if os.Getenv("GOMAXPROCS") == "" && runtime.GOMAXPROCS(0) > maxCores {
		runtime.GOMAXPROCS(maxCores)
	}
}
