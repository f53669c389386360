package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/view/words"
)

// app is one run of the program: what it talks to, and the flags that all
// commands share.
type app struct {
	stdout, stderr *os.File
	getenv         func(string) string
	official       bool // called by the name tt-smi
	nvtop          bool // called by the name tt-nvtop

	rootDir string
	daemon  string // socket of the ttmond to ask
	direct  bool   // ask none
	color   string
	ascii   bool
	version bool // print it and end

	recorded *recorded // what is shown instead of this host; nil: nothing
}

// commandOf is the command that the program runs when it is called by another
// name, which is a symbolic link that somebody made on purpose; "" if it is not.
func commandOf(name string) string {
	switch filepath.Base(name) {
	case "tt-smi":
		return "smi"
	case "tt-nvtop":
		return "top"
	}
	return ""
}

// run is the program: it takes the whole command line and returns the exit
// code.
func (a *app) run(argv []string) int {
	args := argv[1:]
	if command := commandOf(argv[0]); command != "" {
		a.official, a.nvtop = command == "smi", command == "top"
		args = called(command, args)
	}
	root := newRoot(a)
	if asksToComplete(args) {
		a.complete(root) // for the shell alone: it takes its time
	}
	root.SetArgs(normalize(args, a.official))
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	cmd, err := root.ExecuteContextC(context.Background())
	if cmd.Annotations[pluginMark] != "" {
		err = a.unknown(err)
	}
	if err == nil {
		return exitOK
	}
	code := exitInternal
	if e, ok := errors.AsType[*exitError](err); ok {
		code = e.code
		if e.err == nil { // said already, by what was printed
			return code
		}
	}
	name := "ttmon"
	if a.official {
		name = "tt-smi"
	}
	fmt.Fprintf(a.stderr, "%s: %s\n", name, words.Escape(err.Error()))
	return code
}

// called is the command line of somebody who called one command by a name of
// its own. A shell that completes asks first.
func called(command string, args []string) []string {
	if asksToComplete(args) {
		return append([]string{args[0], command}, args[1:]...)
	}
	return append([]string{command}, args...)
}

// asksToComplete tells whether it is a shell that asks.
func asksToComplete(args []string) bool {
	return len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd)
}

// host is the root of the host to read.
func (a *app) host() (hostfs.Root, error) {
	if a.rootDir == "" {
		return hostfs.Root{}, nil
	}
	st, err := os.Stat(a.rootDir)
	if err != nil {
		return hostfs.Root{}, usage("--root: %w", err)
	}
	if !st.IsDir() {
		return hostfs.Root{}, usage("--root: %s is not a directory", a.rootDir)
	}
	return hostfs.At(a.rootDir), nil
}

// newRoot makes the tree of commands.
func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "ttmon",
		Short: "Shows Tenstorrent boards, their health, their memory and who uses them",
		Long: `ttmon shows the Tenstorrent boards of this host: what they are, how they do,
and who uses them and their memory. It reads what the driver and tt-metal
publish, as any user, and never opens a device. It answers within a second: what
has not answered by then is marked. Where everything is slow, $TTMON_PATIENCE
says how long it may take instead (5s).`,
		Example: `  ttmon smi                 all boards and processes in a table
  ttmon smi -w              the same, again every second
  ttmon smi --json          for scripts`,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if a.version {
				return a.output("").write([]byte(versionLine()))
			}
			return cmd.Help()
		},
	}
	f := root.PersistentFlags()
	f.StringVar(&a.rootDir, "root", "", "read the host whose root is mounted at `DIR`, or a tree made by ttmon-sim")
	f.StringVar(&a.daemon, "daemon", "", "ask the ttmond at `SOCKET` (default: $TTMON_SOCKET, else one that runs here, if any)")
	f.BoolVar(&a.direct, "direct", false, "read the host directly, even where a ttmond runs")
	f.StringVar(&a.color, "color", "auto", "`WHEN` to use colours: auto (on a terminal, unless NO_COLOR is set), always or never")
	f.BoolVar(&a.ascii, "ascii", false, "draw with ASCII only (also where the locale is not UTF-8)")
	root.Flags().BoolVarP(&a.version, "version", "v", false, "print the version and end")
	root.AddCommand(
		newSMI(a), newTop(a), newMem(a), newDmon(a), newPmon(a), newTopo(a), newStale(a), newDoctor(a), newCheck(a),
		newRun(a), newRecord(a), newReplay(a), newDiff(a), newExport(a),
		newHistory(a), newEvents(a), newJobs(a), newFleet(a), newWeb(a), newSD(a), newDaemon(a),
		newCompletion(), newVersion(a),
	)
	root.SetHelpCommand(newHelp())
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetHelpFunc(a.helpOf)
	root.SetUsageFunc(func(cmd *cobra.Command) error { return a.usageOf(cmd, a.stdout) })
	strict(root)
	return root
}
