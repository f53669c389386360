package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/base/exit"
)

// otherName is a name of another program. A link to ttmon that has it does what that
// program did, with its flags; users make such links on purpose.
type otherName struct {
	name string
	// command is the one of ttmon that does it. Its flags are the other program's,
	// unless args translates them, command first.
	command string
	args    func(args []string) []string
	// program is another one of ours that does it instead; it gets the result of args.
	program string
}

// otherNames are the official tool and nvtop's, then those of the prototype that ttmon
// grew out of: docs/tasks/from-the-prototype.md.
var otherNames = []otherName{
	{name: "tt-smi", command: "smi"},
	{name: "tt-nvtop", command: "top"},
	{name: "tt_smi", command: "smi", args: prototypeSMI},
	{name: "tt_smi_umd", command: "smi", args: prototypeScreen},
	{name: "allocation_monitor_client", command: "mem"},
	{name: "memory_monitor_test", command: "mem", args: memoryTest},
	{name: "allocation_server_poc", program: "ttmond", args: oldServer},
}

// nameOf returns what a program name stands for; nil: for ttmon itself.
func nameOf(program string) *otherName {
	base := filepath.Base(program)
	if i := slices.IndexFunc(otherNames, func(n otherName) bool { return n.name == base }); i >= 0 {
		return &otherNames[i]
	}
	return nil
}

// completed lists the names that completions can be made for.
func completed() (list []string) {
	for _, n := range otherNames {
		if n.command != "" {
			list = append(list, n.name)
		}
	}
	return list
}

// commandLine is the command line of ttmon that stands for one of the other program. A
// request for completions stays in front.
func (n *otherName) commandLine(args []string) []string {
	switch {
	case isCompletion(args):
		return append([]string{args[0], n.command}, args[1:]...)
	case n.args != nil:
		return n.args(args)
	}
	return append([]string{n.command}, args...)
}

// prototypeFlags are those of the prototype's viewers.
type prototypeFlags struct {
	watch, details, cleanup, memory, test bool
	refresh                               string // ms; empty: not given
	rest                                  []string
}

func parsePrototype(args []string) (f prototypeFlags) {
	for i := 0; i < len(args); i++ {
		name, value, has := strings.Cut(args[i], "=")
		switch name {
		case "-w", "--watch":
			f.watch = true
		case "-r", "--refresh":
			if !has && i+1 < len(args) {
				i++
				value = args[i]
			}
			f.refresh = value
		case "-d", "--details":
			f.details = true
		case "-c", "--cleanup":
			f.cleanup = true
		case "--shm-only", "--memory-only":
			f.memory = true
		case "-t":
			f.test = true
		case "--sysfs": // which ttmon reads anyway
		default:
			f.rest = append(f.rest, args[i])
		}
	}
	return f
}

// every is the flag of a command for the time between updates, where one was given.
func (f *prototypeFlags) every() []string {
	if f.refresh == "" {
		return nil
	}
	return []string{"--refresh=" + f.refresh}
}

// prototypeSMI: tt_smi -w -r 500 -d -c --shm-only. Without -w it prints once, whatever
// -r is.
func prototypeSMI(args []string) []string {
	f := parsePrototype(args)
	out := []string{"smi"}
	switch {
	case f.cleanup: // it cleared slots of the dead; ttmon lists them, and removes them when asked
		return append([]string{"stale"}, f.rest...)
	case f.memory && !f.watch:
		return append([]string{"mem", "--once"}, f.rest...)
	case f.memory:
		return slices.Concat([]string{"mem"}, f.every(), f.rest)
	case f.details:
		out = append(out, "--query")
	default:
		out = append(out, "--names")
	}
	switch {
	case f.watch && f.refresh == "":
		out = append(out, "--watch")
	case f.watch:
		out = append(out, f.every()...)
	}
	return append(out, f.rest...)
}

// prototypeScreen: tt_smi_umd -w -r 500, a screen with charts; 500 ms are its default.
// The same table as tt_smi's without -w.
func prototypeScreen(args []string) []string {
	f := parsePrototype(args)
	if !f.watch {
		return prototypeSMI(args)
	}
	ms, err := strconv.Atoi(f.refresh)
	switch {
	case f.refresh == "":
		ms = 500
	case err != nil:
		return []string{"top", "--delay=" + f.refresh} // which says what is wrong with it
	}
	return append([]string{"top", fmt.Sprintf("--delay=%g", max(1, float64(ms)/100))}, f.rest...)
}

// memoryTest: memory_monitor_test -t -r 500. With -t there are allocations to look at,
// on a board that ttmon-sim makes up: ttmon uses no real one, and asks no ttmond, which
// watches the real ones.
func memoryTest(args []string) []string {
	f := parsePrototype(args)
	command := []string{"mem"}
	if f.test {
		command = append(command, "--direct")
	}
	return slices.Concat(command, f.every(), f.rest)
}

// oldServer: allocation_server_poc -q. It believed each report for every device.
func oldServer(args []string) []string { return append([]string{"--unopened"}, args...) }

// testHost is the command line of ttmon-sim that has programs allocate and free memory
// beside a command.
func testHost(command []string) []string {
	return append([]string{
		"--boards", "2xp150a",
		"--procs", "name=memory_test,devices=0,kind=metal,dram=2G,l1=20M,moves",
		"--procs", "name=memory_test,devices=1,kind=metal,dram=512M,l1_small=1M,trace=16M,moves", "--",
	}, command...)
}

// instead runs another program of ours in place of this one, where a name stands for
// that. It returns where there is none to run, or it cannot be.
func (a *app) instead(n *otherName, args []string) error {
	program := n.program
	if program != "" && n.args != nil {
		args = n.args(args)
	}
	if n.name == "memory_monitor_test" && parsePrototype(args).test {
		self, err := os.Executable()
		if err != nil {
			return exit.With(exit.Internal, "cannot find ttmon's own file: %w", err)
		}
		fmt.Fprintf(a.Stderr, "%s: allocations on simulated boards, by ttmon-sim; no board of this host is used\n", n.name)
		program, args = "ttmon-sim", testHost(append([]string{self}, n.args(args)...))
	}
	if program == "" {
		return nil
	}
	path, err := besideOurs(program)
	if err == nil {
		err = unix.Exec(path, append([]string{program}, args...), os.Environ())
	}
	return exit.With(exit.Unsupported, "cannot run %s, which %s stands for: %w", program, n.name, err)
}

// besideOurs finds a program of ours: beside this one, or where shells look.
func besideOurs(program string) (string, error) {
	if self, err := os.Executable(); err == nil {
		if path := filepath.Join(filepath.Dir(self), program); isExecutable(path) {
			return path, nil
		}
	}
	return exec.LookPath(program)
}

func isExecutable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}
