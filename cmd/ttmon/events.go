package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/base/exit"
	"github.com/ttmon/ttmon/internal/base/when"
	"github.com/ttmon/ttmon/internal/cli/host"
	"github.com/ttmon/ttmon/internal/cli/repeat"
	"github.com/ttmon/ttmon/internal/cli/selection"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/node/api/client"
	"github.com/ttmon/ttmon/internal/node/eventlog"
)

// eventsCmd is the command ttmon events with its flags.
type eventsCmd struct {
	*app
	follow bool
	since  string
	limit  int
	ids    []string
	kinds  []string
	level  string
	json   bool
}

// eventKinds are the kinds in the event log, in the order of the help.
func eventKinds() (list []string) {
	for _, k := range model.EventKinds {
		list = append(list, string(k.Kind))
	}
	return list
}

// eventLevels are those that can be asked for, in the order of the help.
var eventLevels = []string{model.Warning.String(), model.Critical.String()}

func newEvents(a *app) *cobra.Command {
	e := &eventsCmd{app: a}
	cmd := &cobra.Command{
		Use:   "events",
		Short: "List events: resets, hung and lost chips, processes, alerts",
		Long: `Lists the events of this host that ttmond has stored: processes that started to
use devices, exited, or died and left memory accounted; devices that were reset,
hung, were lost and came back; alerts. With -f it waits for new ones.`,
		Example: `  ttmon events                        the last 100
  ttmon events --since 12h -i 0       of one device
  ttmon events --level warning        what is or was wrong, without what is only worth knowing
  ttmon events -f --kind alert        alerts as they fire
  ttmon events --since 1d --json      one JSON document per line, with the figures at that moment`,
		RunE: func(*cobra.Command, []string) error { return e.run() },
	}
	f := cmd.Flags()
	f.BoolVarP(&e.follow, "follow", "f", false, "keep printing new events")
	f.StringVar(&e.since, "since", "", "events since `TIME`: an age (2h, 7d) or a date (2026-11-15T03:00)")
	f.IntVarP(&e.limit, "lines", "n", 100, "print at most the last `N`")
	addDevices(f, &e.ids, "only events of these `DEVICES`: index, bus id, serial number or ASIC id, comma-separated")
	f.StringSliceVar(&e.kinds, "kind", nil, "only these `KINDS`: "+strings.Join(eventKinds(), ", "))
	f.StringVar(&e.level, "level", "", "only events of this `LEVEL` or worse: "+strings.Join(eventLevels, ", "))
	f.BoolVar(&e.json, "json", false, "print JSON, one document per line")
	return cmd
}

func (e *eventsCmd) query() (eventlog.Query, error) {
	q := eventlog.Query{Limit: e.limit}
	if e.limit < 1 {
		return q, exit.Usage("-n: %d is not a number of lines", e.limit)
	}
	for _, kind := range e.kinds {
		if !slices.Contains(eventKinds(), kind) {
			return q, exit.Usage("--kind: unknown kind %q: one of %s", kind, strings.Join(eventKinds(), ", "))
		}
		q.Kinds = append(q.Kinds, model.EventKind(kind))
	}
	if e.level != "" {
		if !slices.Contains(eventLevels, e.level) {
			return q, exit.Usage("--level: unknown level %q: one of %s", e.level, strings.Join(eventLevels, ", "))
		}
		q.Level, _ = model.ParseLevel(e.level)
	}
	if e.since == "" {
		return q, nil
	}
	var err error
	q.Since, err = when.Ago("--since", e.since, time.Now())
	return q, err
}

func (e *eventsCmd) run() error {
	q, err := e.query()
	if err != nil {
		return err
	}
	c, err := host.HistoryClient(e.where)
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, unix.SIGTERM)
	defer stop()
	if len(e.ids) > 0 {
		if q.Device, err = e.device(ctx, c); err != nil {
			return err
		}
	}
	return e.print(ctx, c, q)
}

// print prints the events of a query, and with -f those that follow.
func (e *eventsCmd) print(ctx context.Context, c *client.Client, q eventlog.Query) error {
	for {
		list, err := c.Events(ctx, q)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, client.ErrNotFound):
			return exit.With(exit.Unsupported, "no events are kept here: start ttmon-server, and leave history.enabled in its configuration true")
		case err != nil && !(e.follow && q.After > 0): // with -f it waits for a server that restarts
			return exit.With(exit.Internal, "%w", err)
		}
		var b []byte
		if len(list) == 0 && !e.json && !e.follow {
			b = append(b, e.emptyText()...)
		}
		if len(list) > 0 {
			q.After = list[len(list)-1].Seq
		}
		for _, x := range inOrder(list) {
			b = appendEvent(b, &x, e.json)
		}
		if err := e.Output("").Write(b); err != nil || !e.follow {
			return err
		}
		q.Limit = 0
		if q.After == 0 && q.Since.IsZero() {
			q.Since = time.Now()
		}
		if !repeat.Wait(ctx, time.Now().Add(500*time.Millisecond)) {
			return nil
		}
	}
}

// inOrder sorts events by the time when they happened: a failed request is found after
// what happened meanwhile, and numbered then.
func inOrder(list []model.Event) []model.Event {
	return slices.SortedStableFunc(slices.Values(list), func(a, b model.Event) int { return a.Time.Compare(b.Time) })
}

// emptyText says that there is no event, and whether the filters are why.
func (e *eventsCmd) emptyText() string {
	if e.since != "" || e.level != "" || len(e.kinds) > 0 || len(e.ids) > 0 {
		return "no matching events\n"
	}
	return "no events yet\n"
}

// device returns the bus id of the device of -i.
func (e *eventsCmd) device(ctx context.Context, c *client.Client) (string, error) {
	sel, err := selection.Parse(e.ids)
	if err != nil {
		return "", err
	}
	s, err := c.Snapshot(ctx)
	if err != nil {
		return "", exit.With(exit.Internal, "%w", err)
	}
	if s, err = sel.From(s); err != nil {
		return "", err
	}
	if len(s.Devices) != 1 {
		return "", exit.Usage("-i names %d devices: events are listed for one device, or for all", len(s.Devices))
	}
	return s.Devices[0].BusID, nil
}

// appendEvent appends an event: a line of text, or of JSON.
func appendEvent(b []byte, x *model.Event, asJSON bool) []byte {
	if asJSON {
		line, err := json.Marshal(x)
		if err != nil {
			return b
		}
		return append(append(b, line...), '\n')
	}
	mark := map[model.Level]string{model.Critical: "!!", model.Warning: "! "}[x.Level]
	more := ""
	if x.Failure != "" {
		more = "   (ttmon why " + words.Escape(x.Failure) + ")"
	}
	return fmt.Appendf(b, "%s  %2s %-8s  %s%s\n", x.Time.Local().Format("2006-01-02 15:04:05"), mark, words.Escape(string(x.Kind)), strings.TrimSpace(words.Escape(x.Text)), more)
}
