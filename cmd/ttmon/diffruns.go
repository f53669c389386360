package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

// isRun reports whether an argument names a run, and no file.
func isRun(arg string) bool {
	if !strings.HasPrefix(arg, "r") {
		return false
	}
	_, ok := runs.ParseID(arg)
	if _, err := os.Stat(arg); err == nil {
		return false
	}
	return ok
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
	sides := make([]*compare.Side, 2)
	if len(args) == 1 {
		b, err := d.findRun(ctx, args[0])
		if err != nil {
			return err
		}
		sides[0], err = compare.Usual(&b, func(q runs.Query) ([]runs.Run, error) {
			answer, err := d.findRuns(ctx, q)
			if err != nil {
				return nil, err
			}
			return answer.Runs, nil
		})
		if errors.Is(err, compare.ErrFirst) {
			err = exit.With(exit.NoDevice, "%w", err)
		}
		if err != nil {
			return err
		}
		sides[1], _ = compare.NewSide(args[0], b)
	} else {
		for _, i := range []int{1, 0} { // A is chosen to be like B
			if sides[i], err = d.side(ctx, args[i], sides[1]); err != nil {
				return err
			}
		}
	}
	d.addLines(ctx, sides)
	c := compare.Compare(sides[0], sides[1])
	runwords.Complete(c)
	if err := d.printComparison(c); err != nil {
		return err
	}
	return check(c, conditions)
}

// addLines completes sides that are runs with their lines of code.
func (d *diffCmd) addLines(ctx context.Context, sides []*compare.Side) {
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

// withLines calls use with what asks for the lines of code of processes. ttmond keeps
// them for their users, or this user's own ttmon-server where no ttmond runs. Where
// neither answers use is not called: what cannot be asked for is not known.
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

// check fails where a condition holds, or cannot be checked.
func check(c *compare.Comparison, list []compare.Condition) error {
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
		return exit.With(1, "%s", strings.Join(failed, ", "))
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

// side is a run by its number, or the program of a recording: FILE[@MOMENT]. other is
// the other side, if it is known already.
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
	defer d.tellMissing(file, r)
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
			return exit.With(exit.Internal, "%w", fmt.Errorf("encoding the comparison: %w", err))
		}
		return d.Output("").Write(append(b, '\n'))
	}
	o, err := d.TextOptions(d.Stdout)
	if err != nil {
		return err
	}
	return d.PrintText(text.AppendComparison(nil, c, d.all, d.top, o))
}
