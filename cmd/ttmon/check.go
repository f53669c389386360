package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ttmon/ttmon/internal/base/exit"
	"github.com/ttmon/ttmon/internal/base/nearest"
	"github.com/ttmon/ttmon/internal/cli/host"
	"github.com/ttmon/ttmon/internal/cli/selection"
	"github.com/ttmon/ttmon/internal/field/metric"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/view/nagios"
)

// checkCmd is the command ttmon check with its flags.
type checkCmd struct {
	*app
	ids            []string
	warn, critical []string
	ignore         []string
	expect         int
	sample         int
}

func newCheck(a *app) *cobra.Command {
	c := &checkCmd{app: a}
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check devices as a Nagios, Icinga or Sensu plugin",
		Long: `Checks the devices once and answers as monitoring plugins do: a line, performance
data behind a bar, and an exit code.

  0 OK        no problem
  1 WARNING   a device is throttled, hot, being reset or has a slow link
  2 CRITICAL  a device is hung or lost, or there are not as many as --expect says
  3 UNKNOWN   no device, no driver, a bad argument, or a threshold on a value
              that is missing, or of which only a lower bound is known that does
              not decide

-w and -c set thresholds on any number of ttmon smi --help-query-device, in its
unit: FIELD=RANGE, where RANGE is 80 (warns above 80), 10: (below 10), 10:20
(outside) or @10:20 (inside).

Performance data has no marks: a line below names each number in it that is not
exact, with its mark (≥: something is not in it, ~: too high or too low).

It takes two samples to see that a heartbeat has stopped: a running ttmond has
taken them; without one, --sample MS takes a second sample.`,
		Example: `  ttmon check
  ttmon check --expect 4 -w temperature.asic=75 -c temperature.asic=90
  ttmon check -i 0 -w memory.used=28000 --ignore link,hot`,
		Annotations: map[string]string{pluginMark: "yes"},
		RunE:        func(*cobra.Command, []string) error { return c.run() },
	}
	f := cmd.Flags()
	f.StringArrayVarP(&c.warn, "warning", "w", nil, "threshold for a warning, as `FIELD=RANGE`; repeatable")
	f.StringArrayVarP(&c.critical, "critical", "c", nil, "threshold for a critical state, as `FIELD=RANGE`; repeatable")
	f.IntVar(&c.expect, "expect", 0, "critical unless the host has this `NUMBER` of devices")
	f.StringSliceVar(&c.ignore, "ignore", nil, "`KINDS` of problems to ignore: "+strings.Join(nagios.Codes(), ", "))
	addDevices(f, &c.ids, theseDevices)
	f.IntVar(&c.sample, "sample", 0, "sample twice, `MS` milliseconds apart (without ttmond: needed to see a hang)")
	return cmd
}

// pluginMark marks a command whose exit codes are those of monitoring plugins.
const pluginMark = "plugin"

// unknown makes of any error what plugins say then: on the standard output, and
// with the code of an unknown state. The code of a bad argument would be an alarm.
func (a *app) unknown(err error) error {
	if e, ok := errors.AsType[*exit.Error](err); err == nil || ok && e.Err == nil {
		return err
	}
	line := "TTMON UNKNOWN - " + strings.ReplaceAll(words.Escape(err.Error()), "|", "/") + "\n"
	if err := a.Output("").Write([]byte(line)); err != nil {
		return err
	}
	return exit.Silent(int(nagios.Unknown))
}

func (c *checkCmd) run() error {
	check, err := c.check()
	if err != nil {
		return err
	}
	sel, err := selection.Parse(c.ids)
	if err != nil {
		return err
	}
	h, err := host.Open(c.where)
	if err != nil {
		return err
	}
	defer h.Close()
	ctx := context.Background()
	if c.sample > 0 {
		if _, err := h.Next(ctx); err != nil {
			return err
		}
		time.Sleep(time.Duration(c.sample) * time.Millisecond)
	}
	s, err := h.Next(ctx)
	if err != nil {
		return err
	}
	if err := h.Absence(s); err != nil && c.expect == 0 {
		return err
	}
	if s, err = sel.From(s); err != nil {
		return err
	}
	r := check.Run(s)
	if err := c.PrintText(r.Append(nil)); err != nil {
		return err
	}
	if r.Status != nagios.OK {
		return exit.Silent(int(r.Status))
	}
	return nil
}

// check is what the flags ask for.
func (c *checkCmd) check() (*nagios.Check, error) {
	switch {
	case c.expect < 0:
		return nil, exit.Usage("--expect: %d is not a number of devices", c.expect)
	case c.sample < 0 || c.sample > 60_000:
		return nil, exit.Usage("--sample: %d ms is not between 0 and a minute", c.sample)
	}
	check := &nagios.Check{Expect: c.expect, Ignore: c.ignore}
	for _, code := range c.ignore {
		if !slices.Contains(nagios.Codes(), code) {
			return nil, exit.Usage("--ignore: unknown kind %q: one of %s", code, strings.Join(nagios.Codes(), ", "))
		}
	}
	for _, list := range []struct {
		flag  string
		level nagios.Status
		args  []string
	}{{"-w", nagios.Warning, c.warn}, {"-c", nagios.Critical, c.critical}} {
		for _, arg := range list.args {
			t, err := threshold(list.flag, arg)
			if err != nil {
				return nil, err
			}
			t.Level = list.level
			check.Thresholds = append(check.Thresholds, t)
		}
	}
	return check, nil
}

func threshold(flag, arg string) (t nagios.Threshold, err error) {
	name, text, ok := strings.Cut(arg, "=")
	if !ok {
		return t, exit.Usage("%s %s: not FIELD=RANGE, such as temperature.asic=80", flag, arg)
	}
	table := metric.Devices()
	if t.Field, ok = metric.Find(table, name); !ok {
		return t, exit.Usage("%s: unknown field %q%s", flag, name, nearest.Suggest(name, metric.Names(table), "ttmon smi --help-query-device lists them"))
	}
	if t.Field.Kind == metric.Text {
		return t, exit.Usage("%s: %s is not a number", flag, name)
	}
	if t.Range, err = nagios.ParseRange(text); err != nil {
		return t, exit.Usage("%s: %w", flag, err)
	}
	return t, nil
}
