package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/api/client"
	"github.com/ttmon/ttmon/internal/exit"
	"github.com/ttmon/ttmon/internal/host"
	"github.com/ttmon/ttmon/internal/recording"
	"github.com/ttmon/ttmon/internal/replay"
	"github.com/ttmon/ttmon/internal/runs"
	"github.com/ttmon/ttmon/internal/runs/compare"
	"github.com/ttmon/ttmon/internal/runs/keep"
	"github.com/ttmon/ttmon/internal/runs/lines"
	"github.com/ttmon/ttmon/internal/view/runwords"
	"github.com/ttmon/ttmon/internal/view/text"
)

// isRun reports whether an argument names a run: r318. A file of that name takes
// precedence.
func isRun(arg string) bool {
	if _, ok := runs.ParseID(arg); !ok || !strings.HasPrefix(arg, "r") {
		return false
	}
	_, err := os.Stat(arg)
	return err != nil
}

// compareRuns compares two runs, a run and the program of a recording, or a run and
// the usual ones of the same command.
func (d *diffCmd) compareRuns(args []string) error {
	conditions, err := d.conditions()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	a, b, err := d.sides(ctx, args)
	if err != nil {
		return err
	}
	d.addLines(ctx, a, b)
	c := compare.Compare(a, b)
	runwords.Complete(c)
	if err := d.printComparison(c); err != nil {
		return err
	}
	return checkConditions(c, conditions)
}

// sides returns what is compared: the two arguments, or the usual run and the one that
// was named.
func (d *diffCmd) sides(ctx context.Context, args []string) (a, b *compare.Side, err error) {
	if len(args) == 1 {
		run, err := d.findRun(ctx, args[0])
		if err != nil {
			return nil, nil, err
		}
		if a, err = d.usualSide(ctx, &run); err != nil {
			return nil, nil, err
		}
		b, err = compare.NewSide(args[0], run)
		return a, b, err
	}
	if b, err = d.side(ctx, args[1], nil); err != nil {
		return nil, nil, err
	}
	a, err = d.side(ctx, args[0], b) // of a recording, the program that is like B
	return a, b, err
}

// usualSide is the median of the runs of the same command before a run.
func (d *diffCmd) usualSide(ctx context.Context, run *runs.Run) (*compare.Side, error) {
	side, err := compare.Usual(run, func(q runs.Query) ([]runs.Run, error) {
		answer, err := d.findRuns(ctx, q)
		if err != nil {
			return nil, err
		}
		return answer.Runs, nil
	})
	if errors.Is(err, compare.ErrFirst) {
		err = exit.With(exit.NoDevice, "%w", err)
	}
	return side, err
}

// addLines adds the lines of code of sides that are runs.
func (d *diffCmd) addLines(ctx context.Context, sides ...*compare.Side) {
	d.withLines(ctx, func(find linesOf) {
		for _, s := range sides {
			if !s.Recorded {
				s.AddLines(find)
			}
		}
	})
}

// linesOf finds the lines of code of a process.
type linesOf = func(*runs.Process) (runs.ProcessLines, bool)

// withLines calls use with a function that finds the lines of code of processes. ttmond
// keeps them for their users, or this user's own ttmon-server where no ttmond runs.
// Without either, use is not called: lines are optional.
func (a *app) withLines(ctx context.Context, use func(linesOf)) {
	if a.where.Direct {
		return
	}
	h, err := host.Open(a.where)
	if err != nil {
		return
	}
	defer h.Close()
	path := cmp.Or(h.Socket(), h.Server())
	if path == "" {
		return
	}
	c := client.New(path)
	defer c.Close()
	use(func(p *runs.Process) (runs.ProcessLines, bool) {
		l, err := c.Lines(ctx, p)
		return l, err == nil
	})
}

func (d *diffCmd) conditions() (list []compare.Condition, err error) {
	for _, text := range d.failIf {
		c, err := compare.ParseCondition(text)
		if err != nil {
			return nil, exit.Usage("--fail-if: %w", err)
		}
		list = append(list, c)
	}
	return list, nil
}

// exitCondition is the exit code of a condition of --fail-if that is true.
const exitCondition = 1

// checkConditions fails if a condition is true, or cannot be checked.
func checkConditions(c *compare.Comparison, list []compare.Condition) error {
	var failed []string
	for _, cond := range list {
		holds, err := c.Check(cond)
		if err != nil {
			return exit.With(exit.Unsupported, "--fail-if %s: %w", cond.Text, err)
		}
		if holds {
			failed = append(failed, cond.Text)
		}
	}
	if len(failed) > 0 {
		return exit.With(exitCondition, "%s", strings.Join(failed, ", "))
	}
	return nil
}

func (d *diffCmd) findRun(ctx context.Context, name string) (runs.Run, error) {
	answer, err := d.findRuns(ctx, runs.Query{Names: []string{name}})
	if err != nil {
		return runs.Run{}, err
	}
	if len(answer.Runs) == 0 {
		return runs.Run{}, exit.With(exit.NoDevice, "no such run: %s; ttmon runs --since 90d lists all", name)
	}
	return answer.Runs[len(answer.Runs)-1], nil
}

// side returns a run by its number, or the program of a recording: FILE[@MOMENT].
// other is the other side, if it is known already: of several programs, the one that
// is like it is chosen.
func (d *diffCmd) side(ctx context.Context, arg string, other *compare.Side) (*compare.Side, error) {
	if isRun(arg) {
		r, err := d.findRun(ctx, arg)
		if err != nil {
			return nil, err
		}
		return compare.NewSide(arg, r)
	}
	file, moment := splitMoment(arg)
	r, err := replay.OpenFile(file)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	defer d.printMissing(file, r)
	var until time.Time
	if moment != "" {
		if until, err = replay.Moment(r, arg, moment); err != nil {
			return nil, err
		}
	}
	return d.recordedSide(r, arg, until, other)
}

func (d *diffCmd) recordedSide(r *recording.Reader, name string, until time.Time, other *compare.Side) (*compare.Side, error) {
	found, err := keep.OfRecording(r, until)
	if err != nil {
		return nil, exit.With(exit.Internal, "%s: %w", name, err)
	}
	if d.match != "" {
		q := runs.Query{Text: d.match}
		found.Runs = slices.DeleteFunc(found.Runs, func(r runs.Run) bool { return !q.Matches(&r) })
	}
	var like *runs.Run
	if other != nil {
		like = other.Last()
	}
	run, ok := found.Program(like)
	if !ok {
		return nil, exit.With(exit.NoDevice, "%s: no program used a device in it", name)
	}
	l, err := lines.Of(r, found.Until, &run, found.Chips)
	if err != nil {
		return nil, exit.With(exit.Internal, "%s: %w", name, err)
	}
	if l != nil {
		lines.Raise(&run, l)
	}
	s, err := compare.NewSide(name, run)
	if err == nil {
		s.Lines, s.Recorded = l, true
	}
	return s, err
}

func (d *diffCmd) printComparison(c *compare.Comparison) error {
	if d.json {
		b, err := json.MarshalIndent(c, "", "  ")
		if err != nil {
			return exit.With(exit.Internal, "encoding the comparison: %w", err)
		}
		return d.Output("").Write(append(b, '\n'))
	}
	o, err := d.TextOptions(d.Stdout)
	if err != nil {
		return err
	}
	return d.PrintText(text.AppendComparison(nil, c, d.all, d.top, o))
}
