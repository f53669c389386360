package main

import (
	"github.com/spf13/cobra"

	"github.com/ttmon/ttmon/internal/base/exit"
	"github.com/ttmon/ttmon/internal/cli/find"
)

// diffCmd is the command ttmon diff with its flags.
type diffCmd struct {
	*app
	json   bool
	all    bool
	match  string
	top    int
	failIf []string
}

func newDiff(a *app) *cobra.Command {
	d := &diffCmd{app: a}
	cmd := &cobra.Command{
		Use:   "diff [A] B",
		Short: "Compare two runs, recordings or moments: peaks, duration, energy, what grew",
		Long: `Compares two runs (r317 r318; see ttmon runs), two recordings, two moments of one,
or any two of these; with one run, it and the median of the last five of the same
user and command before it. A verdict comes first, then the figures that differ:
peaks and means of memory, duration, energy, heat, throttled time, PCIe bytes, busy
time, failed allocations, what was left; devices by number and name. The lines of code
that differ follow, and the operations that took longer or shorter, where they are
known of both: lines of recordings with allocations, by the most that each held, and
of your own runs under ttmon run --stacks, by what each held at the peak, which ttmond
keeps for you and root.

A recording (FILE of ttmon record or ttmon run) stands for one program. One of a
command stands for that and nothing else; one of a host for the same command as the
other side, else for the one that held the most DRAM. --match chooses another.
FILE@MOMENT is what was so up to then (see ttmon replay --at).

With --fail-if it fails where a condition holds: NAME>AMOUNT, where NAME is a figure
(dram.peak, l1.mean, duration, energy, throttled, left, failures; dram.peak@3 is that
of device 3). An amount with a sign or in percent is a change (+5%, +10Wh, +30s), without a
sign it is what B may be (18GiB, 0s). A figure that is not known fails, too. One that
is a bound (≥, ~) and within the limit passes, but not for certain: standard error
says so, and --json has the result of each condition (passed, uncertain, failed).

Exit codes: 0 ok; 1 a condition of --fail-if holds; 2 bad argument; 3 a condition
cannot be checked; 6 no such run, or no program in a recording.`,
		Example: `  ttmon diff r317 r318
  ttmon diff r318                               against earlier runs of the same command
  ttmon diff r318 --fail-if 'dram.peak>+5%' --fail-if 'throttled>0s'
  ttmon diff before.ttrec after.ttrec
  ttmon diff run.ttrec@5m run.ttrec@20m         what grew in these 15 minutes
  ttmon diff run.ttrec@peak run.ttrec --json`,
		Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error { return d.run(args) },
	}
	f := cmd.Flags()
	f.BoolVar(&d.json, "json", false, "print all figures as JSON")
	f.BoolVar(&d.all, "all", false, "also list figures that do not differ")
	f.StringArrayVar(&d.failIf, "fail-if", nil, "exit with 1 if `CONDITION` is true, such as dram.peak>+5%; repeatable")
	f.StringVar(&d.match, "match", "", "compare the programs of recordings with this `TEXT` in command, user or job")
	f.IntVar(&d.top, "top", 15, "list `N` lines of code at most")
	return cmd
}

func (d *diffCmd) run(args []string) error {
	if len(args) == 2 || len(args) == 1 && find.IsRun(args[0]) {
		return d.compareRuns(args)
	}
	return exit.Usage("need two runs or recordings, or one run: ttmon diff A B, ttmon diff r318")
}
