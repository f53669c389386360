package daemon

import (
	"os"
	"runtime"
)

// UseFewCores makes Go use two cores: a daemon works for some milliseconds in each
// second, and on a host with many cores Go would search them all for work. Not one: a
// long answer must not keep clients waiting. $GOMAXPROCS takes precedence.
func UseFewCores() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(min(2, runtime.GOMAXPROCS(0)))
	}
}
