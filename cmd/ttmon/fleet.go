package main

import (
	"context"
	"os"
	"os/signal"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/api/client"
	"github.com/ttmon/ttmon/internal/config"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/text"
	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/fleet"
	"github.com/ttmon/ttmon/internal/view/words"
)

// fleetCmd is the command ttmon fleet with its flags.
type fleetCmd struct {
	*app
	url, label string
	rows       int
	watch      bool
	once       bool
	screens
	interval  time.Duration
	serve     string
	nodeURL   string
	webConfig string
}

func newFleet(a *app) *cobra.Command {
	f := &fleetCmd{app: a}
	cmd := &cobra.Command{
		Use:   "fleet [HOST]",
		Short: "Shows many hosts: their devices, the worst first, through Prometheus or Thanos",
		Long: `Shows many hosts with their devices as cells (■ ok, H hung, X lost, r resetting,
? unknown), totals, alerts, and the worst hosts first, as an engine that scrapes
them or receives their remote write has it: Prometheus, Thanos, Mimir,
VictoriaMetrics. The engine does the adding up, so thousands of devices cost no more
than a few. Enter opens a host, device by device, and so does HOST; / looks for
names, ! shows only hosts in trouble, and w, n, t, p and m sort.

Where the output is no terminal, or with --once, it is printed; with --watch again
and again.

The address may have a user and a password in it; a bearer token is taken from
$TTMON_PROMETHEUS_TOKEN, the address itself from $TTMON_PROMETHEUS.`,
		Example: `  ttmon fleet --prometheus http://prometheus:9090
  ttmon fleet --prometheus https://thanos-query.example.org --once
  ttmon fleet --prometheus http://prometheus:9090 node17
  ttmon fleet --prometheus http://prometheus:9090 --serve 127.0.0.1:9109`,
		Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error { return f.run(args) },
	}
	g := cmd.Flags()
	g.StringVar(&f.url, "prometheus", "", "the engine's `URL`")
	g.StringVar(&f.label, "host-label", "", "the `LABEL` that tells hosts apart (default: host, or instance where there is none)")
	g.IntVarP(&f.rows, "rows", "n", 0, "show `N` hosts (default: what fits, or 50)")
	g.BoolVar(&f.once, "once", false, "print once and end")
	g.BoolVarP(&f.watch, "watch", "w", false, "print again and again, until Ctrl-C")
	g.StringVar(&f.serve, "serve", "", "serve it as a page at `ADDR` (127.0.0.1:9109), until Ctrl-C")
	g.StringVar(&f.nodeURL, "node-url", "", "with --serve: the `URL` of a host's own page, with {instance} and {host} for its labels (default http://{instance}/)")
	g.StringVar(&f.webConfig, "web-config", "", "with --serve: TLS and passwords, a web configuration `FILE`; needed for anything but this machine")
	g.DurationVar(&f.interval, "interval", 5*time.Second, "`TIME` between two questions")
	g.StringVarP(&f.config, "config-file", "c", "", "the configuration `FILE` (default $XDG_CONFIG_HOME/ttmon/config.toml)")
	return cmd
}

func (f *fleetCmd) run(args []string) error {
	if f.url == "" {
		f.url = f.getenv("TTMON_PROMETHEUS")
	}
	switch {
	case f.url == "":
		return usage("which engine? --prometheus URL, or $TTMON_PROMETHEUS")
	case len(args) > 1:
		return usage("one HOST at a time")
	case f.once && f.watch:
		return usage("--once and --watch cannot be used together")
	case f.interval < time.Second:
		return usage("--interval: %v is less than a second", f.interval)
	case f.rows < 0:
		return usage("-n: %d is not a number of hosts", f.rows)
	}
	if f.serve != "" {
		if f.watch || f.once || len(args) > 0 {
			return usage("--serve goes with neither --once, --watch nor a HOST: the page has all of it")
		}
		return f.serveFleet()
	}
	p, err := client.NewPrometheus(f.url, f.getenv("TTMON_PROMETHEUS_TOKEN"))
	if err != nil {
		return usage("--prometheus: %w", err)
	}
	if !f.once && !f.watch && f.rows == 0 && f.needsTerminal("fleet") == nil {
		return f.screen(p, args)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, unix.SIGTERM)
	defer stop()
	for {
		b, err := f.page(ctx, p, args)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil && !f.watch {
			return exitWith(exitInternal, "%w", err)
		}
		if err != nil {
			b = []byte(words.Escape(err.Error()) + "\n")
		}
		if f.watch {
			b = append([]byte("\x1b[H\x1b[2J"), b...)
		}
		if err := f.printText(b); err != nil || !f.watch {
			return err
		}
		if !wait(ctx, time.Now().Add(f.interval)) {
			return nil
		}
	}
}

func (f *fleetCmd) page(ctx context.Context, p *client.Prometheus, args []string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	q := &fleetQuery{ctx: ctx, p: p, label: f.label}
	if err := q.findLabel(); err != nil {
		return nil, err
	}
	if len(args) == 1 {
		h, err := q.host(args[0])
		if err != nil {
			return nil, err
		}
		return text.AppendFleetHost(nil, h), nil
	}
	fleet, err := q.fleet()
	if err != nil {
		return nil, err
	}
	text.SortFleet(fleet.Hosts)
	rows := f.rows
	if rows == 0 {
		rows = 50
		if _, lines, ok := size(f.stdout); ok {
			rows = max(lines-6-len(fleet.Alerts), 5)
		}
	}
	if err := q.cells(fleet.Hosts[:min(rows, len(fleet.Hosts))]); err != nil {
		return nil, err
	}
	return text.AppendFleet(nil, *fleet, rows), nil
}

// screen shows the fleet on the terminal.
func (f *fleetCmd) screen(p *client.Prometheus, args []string) error {
	_, c, err := f.load(f.app)
	if err == nil && f.color == "never" {
		err = config.OptionAt("display.theme").Set(&c, "mono")
	}
	if err != nil {
		return err
	}
	o := fleet.Options{Theme: c.Display.Theme, Mouse: c.Display.Mouse, Round: c.Display.Corners == "round", Engine: p.Host(), Interval: f.interval}
	if len(args) == 1 {
		o.Host = args[0]
	}
	return f.show(source{}, fleet.New(o), tui.Options{Source: beat{}, Interval: f.interval, Do: f.asker(p)})
}

// beat is a source of nothing but the time to ask again.
type beat struct{}

func (beat) Next(context.Context) (*model.Snapshot, error) {
	return &model.Snapshot{Time: time.Now()}, nil
}

// asker carries out what the screen asks for.
func (f *fleetCmd) asker(p *client.Prometheus) func(context.Context, tui.Effect) tui.Event {
	return func(ctx context.Context, e tui.Effect) tui.Event {
		ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		q := &fleetQuery{ctx: ctx, p: p, label: f.label}
		err := q.findLabel()
		switch e := e.(type) {
		case fleet.AskCells:
			hosts := make([]text.FleetHost, len(e.Hosts))
			chips := map[string][]text.FleetChip{}
			for i, name := range e.Hosts {
				hosts[i].Name = name
			}
			if err == nil {
				err = q.cells(hosts)
			}
			for i := range hosts {
				chips[hosts[i].Name] = hosts[i].States
			}
			if err != nil {
				chips = nil
			}
			return fleet.Cells{Chips: chips, Err: err}
		case fleet.AskHost:
			var h *text.FleetHost
			if err == nil {
				h, err = q.host(e.Name)
			}
			return fleet.Host{Name: e.Name, Host: h, Err: err}
		default:
			var all *text.Fleet
			if err == nil {
				all, err = q.fleet()
			}
			return fleet.Answer{Fleet: all, At: time.Now(), Err: err}
		}
	}
}
