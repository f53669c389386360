package main

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/exit"
	"github.com/ttmon/ttmon/internal/runs/compare"
	"github.com/ttmon/ttmon/internal/runs/find"
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
	runwords.Complete(c)
	if err := d.printComparison(c); err != nil {
		return err
	}
	return checkConditions(c, conditions)
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
		f, err := c.Check(cond)
		if err != nil {
			return exit.With(exit.Unsupported, "--fail-if %s: %w", cond.Text, err)
		}
		if f != nil {
			failed = append(failed, failedText(f, cond))
		}
	}
	if len(failed) > 0 {
		return exit.With(exitCondition, "failed: %s", strings.Join(failed, "; "))
	}
	return nil
}

// failedText is a figure with what is wrong with it: dram.peak +2.1 GiB (+13 %), limit +5%.
func failedText(f *compare.Figure, cond compare.Condition) string {
	is := f.TextB
	if cond.Relative && f.ChangeText != "" {
		is = f.ChangeText
	}
	limit := strings.TrimLeft(cond.Text[strings.IndexAny(cond.Text, "<>="):], "<>=")
	return f.Name + " " + is + ", limit " + strings.TrimSpace(limit)
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
