package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/ttmon/ttmon/internal/base/exit"
	"github.com/ttmon/ttmon/internal/cli/session"
)

// recordCmd is the command ttmon record with its flags.
type recordCmd struct {
	*app
	cmd *cobra.Command

	file     string
	replace  bool
	interval time.Duration
	duration time.Duration
	stacks   string
	output   bool
	programs bool
	quiet    bool
}

// programsHelp is the help of --programs, of record and run.
const programsHelp = "record every program that runs on a chip, for export --perfetto; takes a ttmond that watches processes"

// minInterval is the least time between two snapshots of a recording.
const minInterval = 50 * time.Millisecond

func newRecord(a *app) *cobra.Command {
	r := &recordCmd{app: a}
	r.cmd = &cobra.Command{
		Use:   "record [flags] [-- COMMAND [ARGUMENT...]]",
		Short: "Record this host, or one run of a program, to a file",
		Long: `Records snapshots of this host and what happens between them into a file, until
Ctrl-C, for --duration, or as long as COMMAND runs. Of a program
that has libttmon in it every allocation and free of device memory is recorded
with its tag and, with --stacks, its line of code: COMMAND is run with libttmon as
ttmon run does; its input, output, signals and exit code are passed through. Of
your programs that ttmond watches through the kernel (for root: all) the same is
recorded, without tags and lines. With --programs every program that ran on their
chips is recorded, too: a slice in a trace. That takes about 5 bytes a program.

The file can be read while it is being written, and stays readable if the recorder is
killed: ttmon replay shows it, ttmon diff compares it, ttmon export converts it for
other viewers. An hour of 32 chips takes about 8 MB at an interval of a second.`,
		Example: `  ttmon record                                   this host, until Ctrl-C
  ttmon record -o night.ttrec --duration 8h
  ttmon record --stacks -- python train.py       a run, with every allocation
  ttmon record --programs -- python serve.py     each program on the chips; then export --perfetto
  ttmon record --interval 100ms --output -- python train.py`,
		Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error { return r.run(args) },
	}
	f := r.cmd.Flags()
	f.SetInterspersed(false)
	f.StringVarP(&r.file, "file", "o", "", "write to `FILE` (default: ttmon-DATE-TIME.ttrec in the current directory)")
	f.BoolVar(&r.replace, "replace", false, "overwrite FILE if it exists")
	addInterval(f, &r.interval, time.Second, "`TIME` between two snapshots")
	f.DurationVar(&r.duration, "duration", 0, "stop after `TIME`, counted from the first snapshot; not with COMMAND")
	f.StringVar(&r.stacks, "stacks", "", "record call sites: `WHAT` is python (the default), native or all")
	f.Lookup("stacks").NoOptDefVal = "python"
	f.BoolVar(&r.output, "output", false, "also record what COMMAND prints; its output is then a pipe, not a terminal")
	f.BoolVar(&r.programs, "programs", false, programsHelp)
	f.BoolVarP(&r.quiet, "quiet", "q", false, "print no summary at the end")
	return r.cmd
}

func (r *recordCmd) run(args []string) error {
	o := session.Options{File: r.file, Replace: r.replace, Interval: r.interval, Output: r.output, Programs: r.programs, Host: r.where}
	switch {
	case r.interval < minInterval:
		return exit.Usage("--interval: must be at least %v", minInterval)
	case r.duration < 0:
		return exit.Usage("--duration: %v is negative", r.duration)
	case len(args) > 0 && r.duration > 0:
		return exit.Usage("--duration cannot be used with a command: the recording ends when the command exits")
	case len(args) == 0 && (r.stacks != "" || r.output):
		return exit.Usage("--stacks and --output need a command: ttmon record [flags] -- COMMAND [ARGUMENT...]")
	}
	if len(args) > 0 {
		run := &runCmd{app: r.app, cmd: newRun(r.app), quiet: true, stacks: r.stacks, session: &o, summarize: !r.quiet}
		return run.run(args)
	}
	s, err := session.Watch(o, r.duration)
	if err != nil {
		return err
	}
	if !r.quiet {
		err = r.PrintAside(s.AppendSummary(nil))
	}
	return err
}
