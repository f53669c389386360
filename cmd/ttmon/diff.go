package main

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ttmon/ttmon/internal/exit"
	"github.com/ttmon/ttmon/internal/recording"
	"github.com/ttmon/ttmon/internal/replay"
	"github.com/ttmon/ttmon/internal/rundiff"
	"github.com/ttmon/ttmon/internal/view/text"
)

// diffCmd is the command ttmon diff with its flags.
type diffCmd struct {
	*app
	json   bool
	all    bool
	top    int
	failIf []string
}

func newDiff(a *app) *cobra.Command {
	d := &diffCmd{app: a}
	cmd := &cobra.Command{
		Use:   "diff [A] B",
		Short: "Compare two runs, recordings or moments: peaks, duration, energy, what grew",
		Long: `Compares two runs (r317 r318; see ttmon runs), a run and the program of a
recording, or, with one run, it and the median of the last five of the same user
and command before it. A verdict comes first, then the figures that differ: peaks and
means of memory, duration, energy, heat, throttled time, PCIe bytes, what was left.

With --fail-if it fails where a condition holds: NAME>AMOUNT, where NAME is a figure
(dram.peak, l1.mean, duration, energy, throttled, left, failures; dram.peak@3 is that
of device 3). An amount with a sign or in percent is a change (+5%, +10Wh, +30s), without a
sign it is what B may be (18GiB, 0s). A figure that is not known fails, too.

Of two recordings, or two moments of one, it says how much of each chip's memory was
held at most and is held, which lines of code hold or have allocated more or less,
and which blocks B holds that A does not. A and B are files of ttmon record; with
@MOMENT behind the name it is what was so up to then (see ttmon replay --at).

Blocks of two moments of one recording are compared one by one; blocks of two
runs, by where they were allocated and how large they are.

Exit codes: 0 ok; 1 a condition of --fail-if holds; 2 bad argument; 3 a condition
cannot be checked; 6 no such run.`,
		Example: `  ttmon diff r317 r318
  ttmon diff r318                               against the usual of the same command
  ttmon diff r318 --fail-if 'dram.peak>+5%' --fail-if 'throttled>0s'
  ttmon diff before.ttrec after.ttrec
  ttmon diff run.ttrec@5m run.ttrec@20m         what has grown in a quarter of an hour
  ttmon diff run.ttrec@peak run.ttrec --json`,
		Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error { return d.run(args) },
	}
	f := cmd.Flags()
	f.BoolVar(&d.json, "json", false, "JSON: all of it")
	f.BoolVar(&d.all, "all", false, "also figures that do not differ")
	f.StringArrayVar(&d.failIf, "fail-if", nil, "exit with 1 if this `CONDITION` holds of the runs: dram.peak>+5%; may be given again")
	f.IntVar(&d.top, "top", 15, "list `N` lines and kinds of blocks at most")
	return cmd
}

func (d *diffCmd) run(args []string) error {
	switch {
	case len(args) == 1 && isRun(args[0]), len(args) == 2 && (len(d.failIf) > 0 || slices.ContainsFunc(args, isRun)):
		return d.compareRuns(args)
	case len(args) != 2:
		return exit.Usage("compare which two? ttmon diff A B, or ttmon diff r318")
	}
	files, moments := make([]string, 2), make([]string, 2)
	for i, arg := range args {
		files[i], moments[i] = splitMoment(arg)
	}
	var sides [2]*rundiff.Side
	for i := range sides {
		r, err := replay.OpenFile(files[i])
		if err != nil {
			return err
		}
		sides[i], err = d.sum(r, args[i], moments[i], files[0] == files[1])
		if i == 0 || files[0] != files[1] {
			d.tellMissing(files[i], r)
		}
		r.Close()
		if err != nil {
			return err
		}
	}
	diff := rundiff.Compare(sides[0], sides[1])
	if !d.json {
		return d.PrintText(text.AppendDiff(nil, diff, d.top))
	}
	b, err := json.MarshalIndent(diff, "", "  ")
	if err != nil {
		return exit.With(exit.Internal, "%w", err)
	}
	return d.Output("").Write(append(b, '\n'))
}

// splitMoment parts FILE@MOMENT.
func splitMoment(arg string) (file, moment string) {
	if n := strings.LastIndexByte(arg, '@'); n >= 0 {
		if _, err := os.Stat(arg); err != nil { // no file is called that
			return arg[:n], arg[n+1:]
		}
	}
	return arg, ""
}

func (d *diffCmd) sum(r *recording.Reader, name, at string, same bool) (*rundiff.Side, error) {
	var t time.Time
	if at != "" {
		var err error
		if t, err = replay.Moment(r, name, at); err != nil {
			return nil, err
		}
	}
	s, err := rundiff.Sum(r, rundiff.Options{Name: name, At: t, Same: same})
	if err != nil {
		return nil, exit.With(exit.Internal, "%s: %w", name, err)
	}
	return s, nil
}
