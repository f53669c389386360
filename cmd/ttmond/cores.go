package main

import (
	"os"
	"runtime"
)

// maxCores is how many cores the daemon's Go code uses at once. It works for
// some milliseconds in each second: on a host with many more cores, Go would
// wake and search them all for work that one has.
const maxCores = 2

// useFewCores makes Go heed maxCores. A number that was given to Go as it knows
// it (GOMAXPROCS) is the operator's.
func useFewCores() {
	if os.Getenv("GOMAXPROCS") == "" && runtime.GOMAXPROCS(0) > maxCores {
		runtime.GOMAXPROCS(maxCores)
	}
}
