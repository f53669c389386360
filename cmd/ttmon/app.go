package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ttmon/ttmon/internal/base/exit"
	"github.com/ttmon/ttmon/internal/cli/console"
	"github.com/ttmon/ttmon/internal/cli/host"
	"github.com/ttmon/ttmon/internal/cli/replay"
	"github.com/ttmon/ttmon/internal/field/words"
)

// app is one run of the program: what it talks to, and the flags that all
// commands share.
type app struct {
	console.Console
	where   host.Options // which host is shown
	ttSMI   bool         // called as tt-smi: Tenstorrent's flags
	ttNvtop bool         // called as tt-nvtop: nvtop's flags
	version bool         // print it and exit
	bare    bool         // called without a command and its flags

	recorded *replay.Recording // what is shown instead of this host; nil: nothing
}

// run executes a command line and returns the exit code.
func (a *app) run(argv []string) int {
	args, name := argv[1:], "ttmon"
	if other := nameOf(argv[0]); other != nil {
		name = other.name
		a.ttSMI, a.ttNvtop = name == "tt-smi", name == "tt-nvtop"
		if err := a.instead(other, args); err != nil {
			return a.exitCode(name, err)
		}
		args = other.commandLine(args)
	}
	args, a.bare = asSMI(args)
	root := newRoot(a, commandIn(args))
	if isCompletion(args) { // only then: it slows the start
		a.registerCompletions(root)
	}
	root.SetArgs(normalize(args, a.ttSMI))
	root.SetOut(a.Stdout)
	root.SetErr(a.Stderr)
	cmd, err := root.ExecuteContextC(context.Background())
	if cmd.Annotations[pluginMark] != "" {
		err = a.unknown(err)
	}
	if err == nil {
		return exit.OK
	}
	code := a.exitCode(name, err)
	if a.bare {
		fmt.Fprintln(a.Stderr, "ttmon --help lists all commands")
	}
	return code
}

// exitCode says why the program that was called by a name failed, and returns the exit
// code.
func (a *app) exitCode(name string, err error) int {
	code := exit.Internal
	if e, ok := errors.AsType[*exit.Error](err); ok {
		code = e.Code
		if e.Err == nil { // the output says what is wrong
			return code
		}
	}
	_ = a.PrintAside(fmt.Appendf(nil, "%s: %s\n", name, words.Escape(err.Error())))
	return code
}

// isCompletion reports whether a shell asks for completions.
func isCompletion(args []string) bool {
	return len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd)
}

// newApp makes a run of the program that prints to these files.
func newApp(stdout, stderr *os.File, getenv func(string) string) *app {
	warn := func(err error) { fmt.Fprintf(stderr, "ttmon: %s\n", words.Escape(err.Error())) }
	return &app{Console: console.Console{Stdout: stdout, Stderr: stderr, Getenv: getenv}, where: host.Options{Getenv: getenv, Warn: warn}}
}

// command is a name and how to make the command: see commandIn.
type command struct {
	name string
	make func(*app) *cobra.Command
	list list
}

// list is the part of the help in which a command stands.
type list string

// The parts, in the order of the help. ttmon help has all of them, ttmon --help not what
// is unlisted: what others have a place for, or a script needs, and no newcomer.
const (
	look     list = "Look"
	program  list = "Your program"
	overTime list = "Over time, many hosts"
	thisHost list = "Host"
	unlisted list = "Also"
)

// commands lists all commands, in the order of the help.
func commands() []command {
	return []command{
		{"smi", newSMI, look},
		{"top", newTop, look},
		{"mem", newMem, look},
		{"topo", newTopo, look},
		{"why", newWhy, look},
		{"ops", newOps, look},
		{"run", newRun, program},
		{"runs", newRuns, program},
		{"diff", newDiff, program},
		{"record", newRecord, program},
		{"replay", newReplay, program},
		{"export", newExport, program},
		{"history", newHistory, overTime},
		{"events", newEvents, overTime},
		{"fleet", newFleet, overTime},
		{"web", newWeb, overTime},
		{"doctor", newDoctor, thisHost},
		{"check", newCheck, thisHost},
		{"selftest", newSelftest, unlisted},
		{"dmon", newDmon, unlisted},
		{"pmon", newPmon, unlisted},
		{"stale", newStale, unlisted},
		{"jobs", newJobs, unlisted},
		{"daemon", newDaemon, unlisted},
		{completion, newCompletion, unlisted},
		{"version", newVersion, unlisted},
	}
}

// completion is the command whose output depends on all others.
const completion = "completion"

// commandIn returns the command that a command line begins with, so that newRoot makes
// only that one: making all takes a third of the start. "": make all, because there is
// no such command, or because it needs the others.
func commandIn(args []string) string {
	if len(args) == 0 || args[0] == completion || !slices.ContainsFunc(commands(), func(c command) bool { return c.name == args[0] }) {
		return ""
	}
	return args[0]
}

// newRoot makes the tree of commands, or, unless only is empty, of that one.
func newRoot(a *app, only string) *cobra.Command {
	root := &cobra.Command{
		Use:   "ttmon",
		Short: "Show Tenstorrent boards, their health, their memory and who uses them",
		Long: `ttmon shows the Tenstorrent boards of this host: their type and health, and who
uses them and their memory. Without a command it prints the table of ttmon smi, whose
flags it takes (ttmon -L, ttmon --json). It reads what the driver and tt-metal publish, works
for any user, and never opens a device. It answers within a second and marks what
did not respond by then; on a slow machine $TTMON_TIMEOUT sets a longer limit (5s).`,
		Example: `  ttmon                     all boards and processes in a table
  ttmon -w                  the same, again every second
  ttmon --json              for scripts`,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if a.version {
				return a.Output("").Write([]byte(versionLine()))
			}
			return cmd.Help()
		},
	}
	f := root.PersistentFlags()
	f.StringVar(&a.where.Root, "root", "", "read the host whose root is mounted at `DIR`, or a tree made by ttmon-sim")
	f.StringVar(&a.where.Daemon, "daemon", "", "use the ttmond at `SOCKET` (default: $TTMON_SOCKET, else one that runs here)")
	f.BoolVar(&a.where.Direct, "direct", false, "read the host directly, even where a ttmond runs")
	f.StringVar(&a.Color, "color", "auto", "`WHEN` to use colours: auto (on a terminal, without NO_COLOR), always, never")
	f.BoolVar(&a.ASCII, "ascii", false, "draw with ASCII only (also where the locale is not UTF-8)")
	root.Flags().BoolVarP(&a.version, "version", "v", false, "print the version and exit")
	for _, c := range commands() {
		if only == "" || only == c.name {
			root.AddCommand(c.make(a))
		}
	}
	root.SetHelpCommand(a.newHelp())
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetHelpFunc(a.helpOf)
	root.SetUsageFunc(func(cmd *cobra.Command) error { return a.usageOf(cmd, a.Stdout) })
	strict(root)
	return root
}
