// Command ttmon-sim shows a command a Tenstorrent host that is not there.
package main

import (
	"os"

	"github.com/ttmon/ttmon/internal/sim"
)

func main() {
	sim.Reexec()
	os.Exit(run(os.Args[1:]))
}
