package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/base/exit"
	"github.com/ttmon/ttmon/internal/book/runs/compare"
	"github.com/ttmon/ttmon/internal/cli/find"
	"github.com/ttmon/ttmon/internal/view/runwords"
	"github.com/ttmon/ttmon/internal/view/text"
)

// compareRuns compares two runs, a run and the program of a recording, or a run and
// the usual ones of the same command.
func (d *diffCmd) compareRuns(args []string) error {
	conditions, err := d.conditions()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	sides := find.Sides{Finder: d.runs(), Match: d.match, Read: d.printMissing}
	a, b, err := sides.Of(ctx, args)
	if err != nil {
		return err
	}
	c := compare.Compare(a, b)
	var unchecked error
	for _, cond := range conditions {
		x, err := c.Check(cond)
		if err == nil {
			c.Conditions = append(c.Conditions, x)
		} else if unchecked == nil {
			unchecked = exit.With(exit.Unsupported, "--fail-if %s: %w", cond.Source, err)
		}
	}
	runwords.Complete(c)
	if err := d.printComparison(c); err != nil {
		return err
	}
	return d.checkConditions(c, unchecked)
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

// checkConditions fails if a condition is true, or cannot be checked, and says which
// have passed by a figure that is only a bound.
func (d *diffCmd) checkConditions(c *compare.Comparison, unchecked error) error {
	var failed []string
	for _, x := range c.Conditions {
		switch x.Result {
		case compare.Failed:
			failed = append(failed, x.Text)
		case compare.Uncertain:
			if err := d.PrintAside(fmt.Appendf(nil, "ttmon: passed, but not for certain: %s\n", x.Text)); err != nil {
				return err
			}
		case compare.Passed:
		}
	}
	if len(failed) > 0 {
		return exit.With(exitCondition, "failed: %s", strings.Join(failed, "; "))
	}
	return unchecked
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
