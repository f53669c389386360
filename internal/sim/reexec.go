package sim

import (
	"fmt"
	"os"
)

// Reexec must be called first thing in main, and in TestMain, of every
// program that starts simulated hosts: if this process was started to be a
// part of one, it does that and never returns.
func Reexec() {
	var err error
	switch os.Args[0] {
	case hostName:
		err = serve()
	case joinName:
		err = join(os.Args[1:])
	default:
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "ttmon-sim:", err)
		os.Exit(127)
	}
	os.Exit(0)
}
