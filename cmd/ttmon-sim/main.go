// Command ttmon-sim shows a command a Tenstorrent host that is not there:
// boards, driver files, processes and faults. Everything it prints says
// "simulated".
package main

import (
	"os"

	"github.com/ttmon/ttmon/internal/sim"
)

func main() {
	sim.Reexec(kinds())
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}
