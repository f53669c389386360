package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ttmon/ttmon/internal/base/exit"
	"github.com/ttmon/ttmon/internal/cli/host"
	"github.com/ttmon/ttmon/internal/cli/repeat"
	"github.com/ttmon/ttmon/internal/cli/selection"
	"github.com/ttmon/ttmon/internal/field/metric"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/text"
	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/ops"
)

// opsCmd is the command ttmon ops with its flags.
type opsCmd struct {
	*app
	screens
	ids   []string
	every time.Duration
	count int
	once  bool
	json  bool
	which metric.OpChoice
}

func newOps(a *app) *cobra.Command {
	o := &opsCmd{app: a}
	cmd := &cobra.Command{
		Use:   "ops",
		Short: "Show what the chips work on: operations by device time",
		Long: `Shows the operations that run on the chips, by their share of device time, as perf
top does for functions. Names and times come from
tt-metal's real-time profiler (0.71 and later), as the processes receive it:
read by ttmond's probe, or by libttmon (ttmon run). The row "between programs" is
time in which a chip was idle between two programs: the host was late.

On a terminal it is a screen: Space freezes it, / filters by name, < and > change
the column it is sorted by, Enter shows one process, ? lists all keys. Where the
output is no terminal, and with --once, --count or --json, it prints.`,
		Example: `  ttmon ops                       all chips, on a screen, every second
  ttmon ops -p 4242 --sort mean   of one process, the slowest first
  ttmon ops --once --json         for scripts`,
		RunE: func(*cobra.Command, []string) error { return o.run() },
	}
	f := cmd.Flags()
	addDevices(f, &o.ids, theseDevices)
	f.IntVarP(&o.which.PID, "pid", "p", 0, "only the process `PID`")
	f.StringVar(&o.which.Filter, "filter", "", "only operations with `TEXT` in their name")
	f.StringVar(&o.which.Sort, "sort", metric.OpOrders()[0], "sort by `COLUMN`: "+strings.Join(metric.OpOrders(), ", "))
	f.IntVarP(&o.which.Most, "lines", "n", 0, "at most `N` operations")
	addInterval(f, &o.every, time.Second, "`TIME` between two samples, such as 500ms or 5s")
	addHidden(f, "delay", "", f.Lookup("interval").Value)
	f.IntVarP(&o.count, "count", "c", 0, "print `N` samples, then stop")
	f.BoolVar(&o.once, "once", false, "print one sample and exit")
	f.BoolVar(&o.json, "json", false, "print JSON, one line per sample")
	return cmd
}

func (o *opsCmd) run() error {
	switch {
	case o.count < 0:
		return exit.Usage("--count=%d: must not be negative", o.count)
	case o.every < 100*time.Millisecond:
		return exit.Usage("--interval=%v: too short, at least 100ms", o.every)
	case o.which.PID < 0:
		return exit.Usage("--pid=%d: must not be negative", o.which.PID)
	case !slices.Contains(metric.OpOrders(), o.which.Sort):
		return exit.Usage("--sort=%s: one of %s", o.which.Sort, strings.Join(metric.OpOrders(), ", "))
	}
	chosen, err := selection.Parse(o.ids)
	if err != nil {
		return err
	}
	if !o.once && !o.json && o.count == 0 && o.NeedsTerminal("ops") == nil {
		return o.screen(chosen, o.every)
	}
	return o.print(chosen, o.every)
}

// print prints the table or JSON, once or at each interval.
func (o *opsCmd) print(chosen selection.Selection, delay time.Duration) error {
	out := o.Output("")
	j := repeat.Job{
		Out: out, Selection: chosen, Interval: delay, Count: o.count, Sample: delay, InPlace: !o.json,
		Print: func(dst []byte, s *model.Snapshot, t text.Options) []byte {
			if o.json {
				return text.AppendOpsJSON(dst, s, o.which)
			}
			return text.AppendOps(dst, s, o.which, t)
		},
	}
	if o.once {
		j.Interval, j.InPlace = 0, false
	}
	err := repeat.Do(&o.Console, o.where, j)
	if cerr := out.Close(); err == nil {
		err = cerr
	}
	return err
}

// screen shows the table on the terminal.
func (o *opsCmd) screen(chosen selection.Selection, delay time.Duration) error {
	_, c, err := o.load(o.app)
	if err != nil {
		return err
	}
	if err := o.setTheme(&c); err != nil {
		return exit.Usage("%w", err)
	}
	src, err := o.source(o.app, delay)
	if err != nil {
		return err
	}
	defer src.close()
	first, err := src.Next(context.Background())
	if err != nil {
		return err
	}
	if err := host.Absence(first); err != nil {
		return err
	}
	if _, err := chosen.From(first); err != nil {
		return err
	}
	src.Source = &narrowed{Source: &primed{Source: src.Source, first: first}, only: chosen}
	screen := ops.New(ops.Options{
		Theme: c.Display.Theme, Mouse: c.Display.Mouse, Round: c.Display.Corners == "round", Source: src.name, Interval: delay, Which: o.which,
	})
	return o.show(src, screen, tui.Options{Source: src, Interval: delay})
}

// narrowed is a source with the selected devices only.
type narrowed struct {
	tui.Source
	only selection.Selection
}

func (n *narrowed) Next(ctx context.Context) (*model.Snapshot, error) {
	s, err := n.Source.Next(ctx)
	if err == nil && len(n.only) > 0 {
		s = n.only.Present(s)
	}
	return s, err
}
