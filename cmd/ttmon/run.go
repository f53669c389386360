package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ttmon/ttmon/internal/base/exit"
	"github.com/ttmon/ttmon/internal/book/runreport"
	"github.com/ttmon/ttmon/internal/cli/console"
	"github.com/ttmon/ttmon/internal/cli/preload"
	"github.com/ttmon/ttmon/internal/cli/run"
	"github.com/ttmon/ttmon/internal/cli/session"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/runtext"
)

// Exit codes of ttmon run, where the program itself ended well.
const (
	exitLeak = 90 // --fail-on-leak
	exitMax  = 91 // --max
	exitOpen = 92 // either, but the answer is not known
	exitFull = 93 // --fail-on-no-room
)

// runCmd is the command ttmon run with its flags.
type runCmd struct {
	*app
	cmd *cobra.Command

	json, junit, pprof, flame string
	quiet, live, summary      bool
	library                   bool
	stacks                    string
	leak                      string
	noRoom                    bool
	max                       []string
	top                       int
	record                    string
	programs                  bool

	session   *session.Options // what is recorded; nil: nothing
	summarize bool             // print at the end what was recorded
}

func newRun(a *app) *cobra.Command {
	r := &runCmd{app: a}
	r.cmd = &cobra.Command{
		Use:   "run [flags] -- COMMAND [ARGUMENT...]",
		Short: "Run a program and report its device memory: peaks, leaks, failed allocations",
		Long: `Runs a tt-metal program with libttmon preloaded and prints, when it exits, its peak
use of each chip's memory, when that was, and what it had not freed: every allocation
of every thread, exactly, without root and without a daemon. With --stacks it names
the lines of Python code. The program and its children run as they would without
ttmon; input, output, signals and the exit code are passed through.

The summary goes to standard error, as that of time and perf stat does; --quiet prints
none.

Exit code: the program's own, or 128 + N if signal N killed it. Where the program
itself exits with 0: 90 if --fail-on-leak found a leak, 91 if --max was exceeded,
92 if one of these checks could not be made (--max also where only a lower bound of
the peak is known), 93 if --fail-on-no-room saw an allocation fail.

For --fail-on-leak a leak is what a line of code left behind in each quarter of the
run (of its allocations, not of its time). What was allocated once and was still there
when the device was closed is none: weights, the result of the last step, and what
tt-metal keeps for itself, the kernels in its program cache. --fail-on-leak=SIZE counts
all that was not freed: with =0 a single block fails. Without --stacks the program's
lines are judged as one. The summary, --json (grown, grew) and --junit say which is
which.

A failed allocation comes first in the summary: the size, the line of code, the state
of the bank, who held it, and what would have made it fit.

What ran on each chip follows, where tt-metal reports it (0.71 and later): the share
of the time in which a program ran, the operations that took most of it, how long the
chip waited for the host, and the longest gaps.

Where libttmon cannot be used (tt-metal linked statically, unknown functions)
tt-metal's own accounting is read once a second instead; leaks are unknown then.`,
		Example: `  ttmon run -- python train.py
  ttmon run --stacks -- python train.py                 by line of code
  ttmon run --stacks --flame memory.svg -- python train.py
  ttmon run --fail-on-leak --max dram=8G --junit memory.xml -- pytest
  ttmon run --record=run.ttrec -- python train.py       for ttmon replay
  ttmon run --live -- python serve.py`,
		Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error { return r.run(args) },
	}
	f := r.cmd.Flags()
	f.SetInterspersed(false) // what follows the command is its own
	f.StringVar(&r.json, "json", "", "write the full report to `FILE` as JSON (- is standard output)")
	f.StringVar(&r.junit, "junit", "", "write the results of the leak and limit checks to `FILE` as JUnit XML, for CI")
	f.StringVar(&r.pprof, "pprof", "", "write a heap profile to `FILE`, for go tool pprof and others; implies --stacks")
	f.StringVar(&r.flame, "flame", "", "write a flame graph of the peak to `FILE` as SVG (- prints it as text); implies --stacks")
	f.StringVar(&r.stacks, "stacks", "", "record call sites: `WHAT` is python (the default), native or all")
	f.Lookup("stacks").NoOptDefVal = "python"
	f.StringVar(&r.leak, "fail-on-leak", "", "exit with 90 if a line of code grew step by step; with =`SIZE`: if more was not freed")
	f.Lookup("fail-on-leak").NoOptDefVal = " "
	f.BoolVar(&r.noRoom, "fail-on-no-room", false, "exit with 93 if an allocation of device memory failed, even if the program caught it")
	f.StringArrayVar(&r.max, "max", nil, "exit with 91 if the peak on a chip exceeds `POOL=SIZE`, such as dram=8G; repeatable")
	f.StringVar(&r.record, "record", "", "record the run to `FILE`, for ttmon replay, diff and export")
	f.Lookup("record").NoOptDefVal = " "
	f.BoolVar(&r.programs, "programs", false, "with --record: "+programsHelp)
	f.BoolVar(&r.live, "live", false, "show the memory in use on a status line while the program runs")
	f.BoolVar(&r.summary, "summary", false, "the default: print the summary")
	_ = f.MarkHidden("summary")
	f.BoolVarP(&r.quiet, "quiet", "q", false, "print no summary")
	f.BoolVar(&r.library, "library", false, "print the path of libttmon.so, for programs that load it themselves, and exit")
	f.IntVar(&r.top, "top", 10, "list at most `N` call sites")
	return r.cmd
}

// checked are the flags that decide, in the form they are used.
type checked struct {
	leak   *runreport.LeakLimit // nil: leaks are no failure
	noRoom bool                 // a request that failed is one
	limits map[model.Pool]uint64
	stacks string
}

func (r *runCmd) check(args []string) (c checked, err error) {
	if len(args) == 0 {
		return c, exit.Usage("missing command: ttmon run [flags] -- COMMAND [ARGUMENT...]")
	}
	if err := r.checkEquals(args); err != nil {
		return c, err
	}
	if r.quiet && r.summary {
		return c, exit.Usage("--quiet and --summary cannot be used together")
	}
	if r.programs && !r.cmd.Flags().Changed("record") && r.session == nil {
		return c, exit.Usage("--programs is about a recording: --record=FILE --programs")
	}
	c.stacks = r.stacks
	if c.stacks == "" && (r.pprof != "" || r.flame != "") {
		c.stacks = "python"
	}
	switch c.stacks {
	case "", "python", "native", "all":
	default:
		return c, exit.Usage("--stacks=%s: one of python, native, all", r.stacks)
	}
	if r.cmd.Flags().Changed("fail-on-leak") {
		c.leak = &runreport.LeakLimit{Kept: r.leak == " "}
		if !c.leak.Kept {
			if c.leak.Bytes, err = parseSize(r.leak); err != nil {
				return c, exit.Usage("--fail-on-leak=%s: %w", r.leak, err)
			}
		}
	}
	c.noRoom = r.noRoom
	c.limits = map[model.Pool]uint64{}
	for _, m := range r.max {
		pool, n, err := parseLimit(m)
		if err != nil {
			return c, exit.Usage("--max=%s: %w", m, err)
		}
		c.limits[pool] = n
	}
	return c, nil
}

// checkEquals finds a value that was read as the program: --stacks python -- train.
func (r *runCmd) checkEquals(args []string) error {
	if len(args) < 2 || args[1] != "--" {
		return nil
	}
	for _, name := range []string{"stacks", "fail-on-leak", "record"} {
		f := r.cmd.Flags().Lookup(name)
		if f.Changed && f.Value.String() == f.NoOptDefVal {
			return exit.Usage("--%s takes its value after an equals sign: --%s=%s", name, name, args[0])
		}
	}
	return nil
}

// parseLimit reads "dram=8G".
func parseLimit(s string) (model.Pool, uint64, error) {
	name, size, ok := strings.Cut(s, "=")
	if !ok {
		return 0, 0, fmt.Errorf("not POOL=SIZE, such as dram=8G")
	}
	for _, p := range model.Pools()[:4] {
		if strings.EqualFold(p.String(), name) {
			n, err := parseSize(size)
			return p, n, err
		}
	}
	return 0, 0, fmt.Errorf("unknown pool %q: dram, l1, l1_small or trace", name)
}

// parseSize reads a number of bytes: 512, 64K, 8G, 1.5GiB.
func parseSize(s string) (uint64, error) {
	n, ok := words.ParseBytes(s)
	if !ok {
		return 0, fmt.Errorf("%q is not a size such as 512, 64K or 8G", s)
	}
	return n, nil
}

func (r *runCmd) run(args []string) error {
	if r.library {
		return r.printLibrary()
	}
	c, err := r.check(args)
	if err != nil {
		return err
	}
	if r.cmd.Flags().Changed("record") {
		r.session, r.summarize = &session.Options{File: strings.TrimSpace(r.record), Interval: time.Second, Programs: r.programs, Host: r.where}, !r.quiet
	}
	result, err := run.Run(run.Options{
		Command: args, Stdout: r.Stdout, Stderr: r.Stderr, Stacks: c.stacks, Live: r.live, Record: r.session, Host: r.where,
	})
	if err != nil {
		return err
	}
	if result.Recording != nil && r.summarize {
		if err := r.PrintAside(result.Recording.AppendSummary(nil)); err != nil {
			return err
		}
	}
	report := result.Report
	report.Check(c.limits)
	if err := r.write(report, c); err != nil {
		return err
	}
	return c.verdict(report)
}

// verdict is the exit code: the program's own, where it failed.
func (c *checked) verdict(report *runreport.Report) error {
	switch {
	case report.Run.End.ExitCode() != 0:
		return exit.Silent(report.Run.End.ExitCode())
	case len(report.Exceeded) > 0:
		x := &report.Exceeded[0]
		return exit.With(exitMax, "run: failed: %s had %s at its peak, limit %s", words.PoolName(x.Pool), words.Figure(x.Peak.PeakBytes()), words.Bytes(x.Limit))
	case c.leak != nil && report.Leaks(*c.leak):
		return exit.With(exitLeak, "run: failed: %s", runtext.Leaked(report, *c.leak))
	case c.noRoom && len(report.Failures) > 0:
		return exit.Silent(exitFull)
	case !report.Judged() && (c.leak != nil || c.noRoom || len(c.limits) > 0):
		return exit.With(exitOpen, "run: cannot check for leaks, limits and failed allocations: libttmon did not see the program's allocations")
	case report.PerCoreL1() && (c.leak != nil || c.noRoom || c.limits[model.L1] > 0):
		return exit.With(exitOpen, "run: cannot check L1 for leaks, limits and failed allocations: the program's allocator gave it out core by core (HYBRID)")
	case c.leak != nil && !report.LeaksKnown():
		return exit.With(exitOpen, "run: cannot check for leaks: libttmon did not see all of the program's allocations")
	case len(report.Uncertain) > 0:
		x := &report.Uncertain[0]
		return exit.With(exitOpen, "run: cannot check the limit of %s: the peak was %s, which may not be all", x.Name, words.Figure(x.Peak.PeakBytes()))
	}
	return nil
}

// printLibrary puts libttmon.so where it stays, and says where that is.
func (r *runCmd) printLibrary() error {
	l, err := preload.Install()
	if err != nil {
		return exit.With(exit.Unsupported, "run: %w", err)
	}
	defer l.Close()
	if !l.Lasting() {
		return exit.With(exit.Internal, "run: cannot write libttmon.so to the cache directory (XDG_CACHE_HOME)")
	}
	return r.Output("").Write([]byte(l.Path + "\n"))
}

// write prints the summary and the files that were asked for.
func (r *runCmd) write(report *runreport.Report, c checked) error {
	width, _, _ := console.Size(r.Stderr)
	if !r.quiet {
		o, err := r.TextOptions(r.Stderr)
		if err != nil {
			return err
		}
		if err := r.PrintAside(runtext.Append(nil, report, runtext.Options{Width: width, ASCII: o.ASCII, Color: o.Color, Top: r.top})); err != nil {
			return err
		}
	}
	for _, file := range []struct {
		name string
		make func() ([]byte, error)
	}{
		{r.json, func() ([]byte, error) { return runreport.JSON(report) }},
		{r.junit, func() ([]byte, error) {
			return runreport.JUnit(report, runreport.Limits{Leak: c.leak, Pools: c.limits, NoRoom: c.noRoom}), nil
		}},
		{r.pprof, func() ([]byte, error) { return runreport.Profile(&report.Run) }},
		{r.flame, func() ([]byte, error) { return r.flameGraph(report) }},
	} {
		if file.name == "" {
			continue
		}
		b, err := file.make()
		if err != nil {
			return err
		}
		if err := r.Output(file.name).Write(b); err != nil {
			return err
		}
	}
	return nil
}

// flameGraph is a picture for a file, and text for the terminal.
func (r *runCmd) flameGraph(report *runreport.Report) ([]byte, error) {
	if r.flame != "-" {
		return runtext.AppendFlameSVG(nil, &report.Run), nil
	}
	o, err := r.TextOptions(r.Stdout)
	if err != nil {
		return nil, err
	}
	return runtext.AppendFlame(nil, &report.Run, o.Width, o.ASCII), nil
}
