package main

import (
	"fmt"
	"os"
	"os/exec"

	"github.com/spf13/cobra"

	"github.com/ttmon/ttmon/internal/lab/sim"
)

// rootEnv tells a command run with --root where the simulated tree is.
const rootEnv = "TTMON_SIM_ROOT"

// plain makes a tree of ordinary files, and runs the command beside it.
func (f *flags) plain(cmd *cobra.Command, args []string) error {
	t, err := sim.NewTree(f.Options, f.root)
	if err != nil {
		return startError(err)
	}
	defer t.Close()
	if len(args) == 0 {
		fmt.Fprintf(cmd.OutOrStdout(), "simulated tree in %s: ttmon --root %s smi\n", t.Dir, t.Dir)
		if f.keep {
			<-stopSignal()
		}
		return nil
	}
	reap := adopt()
	c := exec.Command(args[0], args[1:]...)
	c.Env = append(os.Environ(), rootEnv+"="+t.Dir)
	err = runInside(c, nil)
	reap(os.Getpid())
	return err
}
