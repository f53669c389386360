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

	"github.com/ttmon/ttmon/internal/api/client"
	"github.com/ttmon/ttmon/internal/eventlog"
	"github.com/ttmon/ttmon/internal/view/event"
	"github.com/ttmon/ttmon/internal/view/words"
)

// eventsCmd is the command ttmon events with its flags.
type eventsCmd struct {
	*app
	follow bool
	since  string
	limit  int
	ids    []string
	kinds  []string
	json   bool
}

// eventKinds are those that ttmond writes down, in the order of the help.
var eventKinds = []string{
	string(event.Started), string(event.Gone), string(event.Died), string(event.State), string(event.Appeared), string(event.Removed),
	string(event.Throttle), string(event.Tripped), string(event.Link), eventlog.KindAlert, eventlog.KindTTMond,
}

func newEvents(a *app) *cobra.Command {
	e := &eventsCmd{app: a}
	cmd := &cobra.Command{
		Use:   "events",
		Short: "Tells what happened: resets, hung and lost chips, processes, alerts",
		Long: `Tells what happened on this host, as ttmond remembers it: processes that began
to use devices, went, or died and left memory accounted; devices that were reset,
hung, were lost and came back; alerts. With -f it goes on telling.`,
		Example: `  ttmon events                        the last 100
  ttmon events --since 12h -i 0       of one device
  ttmon events -f --kind alert        alerts as they come
  ttmon events --since 1d --json      a JSON document a line, with the figures of the moment`,
		RunE: func(*cobra.Command, []string) error { return e.run() },
	}
	f := cmd.Flags()
	f.BoolVarP(&e.follow, "follow", "f", false, "go on with what happens next")
	f.StringVar(&e.since, "since", "", "from this `TIME` on: a time ago (2h, 7d) or a moment (2026-11-15T03:00)")
	f.IntVarP(&e.limit, "lines", "n", 100, "at most the last `N`")
	f.StringArrayVarP(&e.ids, "id", "i", nil, "only of this `DEVICE`: index, bus id, serial number or ASIC id")
	f.StringSliceVar(&e.kinds, "kind", nil, "only these `KINDS`: "+strings.Join(eventKinds, ", "))
	f.BoolVar(&e.json, "json", false, "JSON: one document a line")
	return cmd
}

func (e *eventsCmd) run() error {
	q := eventlog.Query{Limit: e.limit, Kinds: e.kinds}
	if e.limit < 1 {
		return usage("-n: %d is not a number of lines", e.limit)
	}
	for _, kind := range e.kinds {
		if !slices.Contains(eventKinds, kind) {
			return usage("--kind: there is no %q; the kinds are %s", kind, strings.Join(eventKinds, ", "))
		}
	}
	if e.since != "" {
		var err error
		if q.Since, err = ago("--since", e.since, time.Now()); err != nil {
			return err
		}
	}
	c, err := e.remembering()
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
	out := e.output("")
	for {
		list, err := c.Events(ctx, q)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, client.ErrNotFound):
			return exitWith(exitUnsupported, "this ttmond keeps no events (history.enabled in its configuration)")
		case err != nil && !(e.follow && q.After > 0): // a restart is waited for
			return exitWith(exitInternal, "%w", err)
		}
		var b []byte
		for i := range list {
			b = e.append(b, &list[i])
			q.After = list[i].Seq
		}
		if err := out.write(b); err != nil || !e.follow {
			return err
		}
		q.Limit = 0
		if q.After == 0 && q.Since.IsZero() {
			q.Since = time.Now()
		}
		if !wait(ctx, time.Now().Add(500*time.Millisecond)) {
			return nil
		}
	}
}

// device is the bus id of the one that -i chose.
func (e *eventsCmd) device(ctx context.Context, c *client.Client) (string, error) {
	sel, err := parseSelection(e.ids)
	if err != nil {
		return "", err
	}
	s, err := c.Snapshot(ctx)
	if err != nil {
		return "", exitWith(exitInternal, "%w", err)
	}
	if s, err = sel.from(s); err != nil {
		return "", err
	}
	if len(s.Devices) != 1 {
		return "", usage("-i names %d devices: events are listed for one device, or for all", len(s.Devices))
	}
	return s.Devices[0].BusID, nil
}

func (e *eventsCmd) append(b []byte, x *eventlog.Event) []byte {
	if e.json {
		line, err := json.Marshal(x)
		if err != nil {
			return b
		}
		return append(append(b, line...), '\n')
	}
	mark := map[string]string{eventlog.Critical: "!!", eventlog.Warning: "! "}[x.Level]
	return fmt.Appendf(b, "%s  %2s %-8s  %s\n", x.Time.Local().Format("2006-01-02 15:04:05"), mark, words.Escape(x.Kind), strings.TrimSpace(words.Escape(x.Text)))
}
