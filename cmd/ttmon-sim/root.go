package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ttmon/ttmon/internal/base/version"
	"github.com/ttmon/ttmon/internal/lab/sim"
)

// Exit codes. A command that ran gives its own instead.
const (
	exitInternal = 1
	exitUsage    = 2
	exitDenied   = 4
)

// exitError exits with a code and without a message.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit %d", int(e)) }

// usageError is a mistake in the arguments.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func run(args []string, stdout, stderr io.Writer) int {
	findOwnPrograms()
	cmd := rootCommand()
	cmd.SetArgs(args)
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	return exitCode(cmd.Execute(), stderr)
}

// findOwnPrograms puts the directory of this program before the others in PATH:
// after make build, ttmon-sim --boards n300 -- ttmon smi finds the ttmon beside it.
func findOwnPrograms() {
	exe, err := os.Executable()
	if err != nil {
		return
	}
	dir, list := filepath.Dir(exe), filepath.SplitList(os.Getenv("PATH"))
	if !slices.Contains(list, dir) {
		os.Setenv("PATH", strings.Join(append([]string{dir}, list...), string(filepath.ListSeparator)))
	}
}

// exitCode prints an error and returns the exit code for it.
func exitCode(err error, stderr io.Writer) int {
	if err == nil {
		return 0
	}
	if code, ok := errors.AsType[exitError](err); ok {
		return int(code)
	}
	fmt.Fprintln(stderr, "ttmon-sim:", err)
	if _, ok := errors.AsType[*sim.NoPrivilegeError](err); ok {
		fmt.Fprintln(stderr, "ttmon-sim: without it, ttmon-sim --root DIR makes a plain simulated tree that ttmon --root DIR reads")
		return exitDenied
	}
	if _, ok := errors.AsType[usageError](err); ok {
		return exitUsage
	}
	return exitInternal
}

const rootLong = `Runs a command on a host with simulated Tenstorrent boards.

The command runs unchanged, in a private mount namespace in which the
driver's files are where a real host has them: /sys/class/tenstorrent,
/sys/class/hwmon, /sys/bus/pci, /sys/module/tenstorrent, /dev/tenstorrent,
/proc/driver/tenstorrent. Everything else is the real host's. The files are
live: values change, and reads can fail or block as the real driver's do.
Real Tenstorrent boards of the host are hidden. /sys/ttmon-sim says that the
host is simulated.

This needs root, or user namespaces and access to /dev/fuse. Without them, use
--root DIR: a plain file tree below DIR, for ttmon --root DIR, without workloads and
ctl.

The simulated host has an empty /dev/shm of its own, unless --share-shm.
A ttnn program in it runs on the boards in tt-metal's mock mode, by the
descriptor in /dev/ttmon-sim that its environment names.
The command's exit code is passed on; SIGINT, SIGTERM and SIGHUP are passed
to it; what it leaves running is killed with the host.`

const rootExample = `  ttmon-sim --boards n150,2xn300,p150a -- ttmon smi
  ttmon-sim --boards galaxy-blackhole --procs name=llama,load=0.8 -- ttmon top
  ttmon-sim --boards p150a --driver 2.4.0 --firmware 18.3,fanless -- bash
  ttmon-sim --boards 2xp150b -- sh -c '(sleep 5; ttmon-sim ctl hang 1) & ttmon smi -l 1'
  ttmon-sim --boards 4xn300 --cables -- python3 model.py     # a T3000, with the real ttnn
  ttmon-sim --boards n300 --keep        # then, in another shell: ttmon-sim exec …
  ttmon-sim --boards n300,p300c --root /tmp/tree && ttmon --root /tmp/tree smi`

// flags of the root command.
type flags struct {
	sim.Options
	root string
	keep bool
}

func rootCommand() *cobra.Command {
	f := &flags{}
	cmd := &cobra.Command{
		Use:           "ttmon-sim --boards LIST [flags] -- COMMAND [ARG…]",
		Short:         "Run a command on a simulated Tenstorrent host",
		Long:          rootLong,
		Example:       rootExample,
		Version:       version.Long(),
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.ArbitraryArgs,
		RunE:          func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	p := cmd.Flags()
	p.SortFlags = false
	p.StringVar(&f.Boards, "boards", "", "the `BOARDS` to simulate, such as n150,2xn300,galaxy-blackhole (see ttmon-sim boards)")
	p.StringVar(&f.Driver, "driver", "", "the driver's `VERSION`, 1.34 to 2.11.0, or none for a module that is not loaded (default 2.10.0)")
	p.StringVar(&f.Firmware, "firmware", "", "the `FIRMWARE` of all chips: a bundle version, no-telemetry, labels-only, fanless, omit=TAG+TAG (default 19.9)")
	p.StringVar(&f.Dead, "dead", "", "`CHIPS` that are off the bus when the driver binds them, by index or PCI address, separated by commas")
	p.StringArrayVar(&f.Procs, "procs", nil, "start a `WORKLOAD`, name=llama,devices=0+1,… (see ttmon-sim ctl run --help); repeatable")
	p.Float64Var(&f.Load, "load", 0, "the `LOAD` of all chips from the start, 0 to 1")
	p.Uint64Var(&f.Seed, "seed", 0, "random seed, a `NUMBER`: the same seed gives the same serial numbers and values")
	p.BoolVar(&f.Frozen, "frozen", false, "freeze all values except heartbeats")
	p.StringVar(&f.root, "root", "", "write a plain file tree to `DIR` instead; needs no privileges")
	p.BoolVar(&f.keep, "keep", false, "without COMMAND: keep running until SIGINT or SIGTERM; join with ttmon-sim exec")
	p.StringVar(&f.Control, "control", "", "the path of the control `SOCKET` (default: in a directory of its own)")
	p.BoolVar(&f.ShareShm, "share-shm", false, "keep the host's /dev/shm")
	p.BoolVar(&f.Cables, "cables", false, "connect boards with cables where possible (n300, p150): larger meshes, other chip ids")
	p.StringVar(&f.MeshHost, "mesh-host", "", "be host `K/N` of a ring of hosts joined by cables, such as 1/3: start all with the same boards, cables and seed")
	p.BoolVar(&f.UMDDump, "umd-dump", false, "leave UMD's cluster descriptor in /tmp, as a process that opened the boards does")
	p.BoolVar(&f.VM, "vm", false, "do not hide that the host of a Galaxy is a virtual machine")
	p.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "workload" { // what it starts is called that everywhere else
			name = "procs"
		}
		return pflag.NormalizedName(name)
	})
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	cmd.AddCommand(execCommand(), ctlCommand(), boardsCommand(), metalCommand(), openCommand())
	return cmd
}

func (f *flags) run(cmd *cobra.Command, args []string) error {
	switch dash := cmd.ArgsLenAtDash(); {
	case len(args) > 0 && dash != 0:
		return usageError{fmt.Errorf("unknown command %q; to run it on the simulated host, put -- before it", args[0])}
	case f.Boards == "" && len(args) == 0 && !f.keep && f.root == "":
		return cmd.Help()
	case !cmd.Flags().Changed("boards"):
		return usageError{errors.New(`no boards to simulate: give --boards, for instance --boards n150,p150a, or --boards "" for a host without any`)}
	case len(args) == 0 && !f.keep && f.root == "":
		return usageError{errors.New("no command to run on the simulated host: add -- COMMAND, or --keep")}
	}
	if f.root != "" {
		return f.plain(cmd, args)
	}
	f.Stderr = cmd.ErrOrStderr()
	reap := adopt()
	h, err := sim.Start(f.Options)
	if err != nil {
		return startError(err)
	}
	defer h.Close()
	if len(args) == 0 {
		return waitForSignal(cmd, h)
	}
	err = runInside(h.Command(context.Background(), args[0], args[1:]...), h.Done())
	reap(h.PID)
	return err
}

// startError marks errors in the options as errors of usage.
func startError(err error) error {
	if _, ok := errors.AsType[*sim.OptionError](err); ok {
		return usageError{err}
	}
	return err
}

// waitForSignal waits for a signal, or for the end of the simulated host.
func waitForSignal(cmd *cobra.Command, h *sim.Host) error {
	fmt.Fprintf(cmd.OutOrStdout(), "simulated host ready\ncontrol socket: %s\njoin it: ttmon-sim exec --control %s -- COMMAND\n", h.Control, h.Control)
	select {
	case <-stopSignal():
		return nil
	case <-h.Done():
		return fmt.Errorf("the simulated host ended by itself: %w", h.Close())
	}
}
