package sim

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/ttmon/ttmon/internal/lab/sim/workload"
)

// Reexec must be called first thing in main, and in TestMain, of every
// program that starts simulated hosts: if this process was started to be a
// part of one, it does that and never returns.
func Reexec() {
	var err error
	switch {
	case os.Getenv(workload.Env) != "":
		err = workload.Run()
	case os.Args[0] == hostName:
		err = serve()
	case os.Args[0] == joinName:
		err = join(os.Args[1:])
	default:
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "ttmon-sim:", err)
		if errors.Is(err, fs.ErrPermission) {
			os.Exit(126) // as shells have it: found, but not to be run
		}
		os.Exit(127)
	}
	os.Exit(0)
}
