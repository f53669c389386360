// Command ttmon-sim shows a command a Tenstorrent host that is not there:
// boards, driver files, processes and faults. Everything it prints says
// "simulated".
package main

import (
	"os"

	"github.com/ttmon/ttmon/internal/lab/sim"
	"github.com/ttmon/ttmon/internal/lab/sim/metal"
)

func main() {
	// The simulated host and its workloads are this program, started again: these
	// two calls do not return there.
	metal.Reexec()
	sim.Reexec()
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}
