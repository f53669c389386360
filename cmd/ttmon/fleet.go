package main

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"os/signal"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/base/config"
	"github.com/ttmon/ttmon/internal/base/exit"
	"github.com/ttmon/ttmon/internal/cli/console"
	"github.com/ttmon/ttmon/internal/cli/repeat"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/node/api/client"
	"github.com/ttmon/ttmon/internal/past/fleet/answer"
	"github.com/ttmon/ttmon/internal/past/fleet/query"
	"github.com/ttmon/ttmon/internal/past/fleet/screen"
	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/fleet"
)

// fleetCmd is the command ttmon fleet with its flags.
type fleetCmd struct {
	*app
	url, label string
	rows       int
	watch      bool
	once       bool
	links      bool
	json       bool
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
		Short: "Show the devices of many hosts, the worst first, through Prometheus or Thanos",
		Long: `Shows many hosts with their devices as cells (■ ok, X lost, H hung, L link down,
? unknown, r resetting, T throttled, t hot, l weak link, s slow link, w stuck, M mem
fault, m mem error, R stalled), totals, alerts, and the worst hosts first, as an
engine that scrapes them or receives their remote write has it: Prometheus, Thanos,
Mimir, VictoriaMetrics. The engine computes the sums, so thousands of
devices cost no more than a few. Enter opens a host, device by device, and so does
HOST; / looks for names, ! shows only hosts in trouble, and w, n, t, p and m sort.

--links lists the Ethernet links between hosts that are cabled to each other, with
what both ends report, and names the host that is the likely cause of those that are
down. Hosts whose ttmond reads firmware ("table" or "full") report them.

Where the output is no terminal, or with --once, it is printed; with --watch
repeatedly.

The address may have a user and a password in it; a bearer token is taken from
$TTMON_PROMETHEUS_TOKEN, the address itself from $TTMON_PROMETHEUS.`,
		Example: `  ttmon fleet --prometheus http://prometheus:9090
  ttmon fleet --prometheus https://thanos-query.example.org --once
  ttmon fleet --prometheus http://prometheus:9090 node17
  ttmon fleet --prometheus http://prometheus:9090 --links
  ttmon fleet --prometheus http://prometheus:9090 --serve 127.0.0.1:9109`,
		Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error { return f.run(args) },
	}
	g := cmd.Flags()
	g.StringVar(&f.url, "prometheus", "", "the `URL` of Prometheus or a compatible engine (default: $TTMON_PROMETHEUS)")
	g.StringVar(&f.label, "host-label", "", "the `LABEL` that tells hosts apart (default: host, or instance where there is none)")
	g.IntVarP(&f.rows, "rows", "n", 0, "show `N` hosts (default: what fits, or 50)")
	g.BoolVar(&f.once, "once", false, "print once and exit")
	g.BoolVar(&f.links, "links", false, "print the links between hosts, those that are down first; with HOST, those of one host")
	g.BoolVar(&f.json, "json", false, "print JSON: ttmon.fleet/2, or ttmon.fleet.links/1 with --links")
	g.BoolVarP(&f.watch, "watch", "w", false, "print repeatedly, until Ctrl-C")
	g.StringVar(&f.serve, "serve", "", "serve it as a web page at `ADDR`, such as 127.0.0.1:9109, until Ctrl-C")
	g.StringVar(&f.nodeURL, "node-url", "", "with --serve: the `URL` of a host's own page, with {instance} and {host} for its labels (default http://{instance}/)")
	g.StringVar(&f.webConfig, "web-config", "", "with --serve: web configuration `FILE` with TLS and passwords; required unless ADDR is a loopback address")
	addInterval(g, &f.interval, 5*time.Second, "`TIME` between queries")
	g.StringVarP(&f.config, "config-file", "c", "", "the configuration `FILE` (default $XDG_CONFIG_HOME/ttmon/config.toml)")
	return cmd
}

func (f *fleetCmd) check(args []string) error {
	switch {
	case f.url == "":
		return exit.Usage("no address of Prometheus: use --prometheus URL or set $TTMON_PROMETHEUS")
	case len(args) > 1:
		return exit.Usage("only one HOST can be given")
	case f.once && f.watch:
		return exit.Usage("--once and --watch cannot be used together")
	case f.interval < time.Second:
		return exit.Usage("--interval: %v is less than a second", f.interval)
	case f.rows < 0:
		return exit.Usage("-n: %d is not a number of hosts", f.rows)
	case f.serve != "" && (f.watch || f.once || f.links || f.json || len(args) > 0):
		return exit.Usage("--serve cannot be used with --once, --watch, --links, --json or a HOST: the page shows all hosts")
	case f.json && f.watch:
		return exit.Usage("--json and --watch cannot be used together")
	case f.json && !f.links && len(args) > 0:
		return exit.Usage("--json prints all hosts: omit HOST, or add --links")
	}
	return nil
}

func (f *fleetCmd) run(args []string) error {
	f.url = cmp.Or(f.url, f.Getenv("TTMON_PROMETHEUS"))
	if err := f.check(args); err != nil {
		return err
	}
	if f.serve != "" {
		return f.serveFleet()
	}
	engine, err := client.NewPrometheus(f.url, f.Getenv("TTMON_PROMETHEUS_TOKEN"))
	if err != nil {
		return exit.Usage("--prometheus: %w", err)
	}
	page := query.Page{Engine: engine, Label: f.label, Rows: f.room, Links: f.links}
	if len(args) == 1 {
		page.Host = args[0]
	}
	if f.json {
		return f.printJSON(page)
	}
	if !f.once && !f.watch && !f.links && f.rows == 0 && f.NeedsTerminal("fleet") == nil {
		return f.screen(page)
	}
	return f.print(page)
}

// room is how many hosts are printed.
func (f *fleetCmd) room(alerts int) int {
	if f.rows > 0 {
		return f.rows
	}
	if _, lines, ok := console.Size(f.Stdout); ok {
		return max(lines-6-alerts, 5)
	}
	return 50
}

// print prints the page once, or again and again. An engine that fails between
// two pages may come back.
func (f *fleetCmd) print(page query.Page) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, unix.SIGTERM)
	defer stop()
	for {
		b, err := page.Append(ctx, nil)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && !f.watch:
			return exit.With(exit.Internal, "%w", err)
		case err != nil:
			b = []byte(words.Escape(err.Error()) + "\n")
		}
		if f.watch {
			b = append([]byte("\x1b[H\x1b[2J"), b...)
		}
		if err := f.PrintText(b); err != nil || !f.watch {
			return err
		}
		if !repeat.Wait(ctx, time.Now().Add(f.interval)) {
			return nil
		}
	}
}

// printJSON prints the fleet, or the links of its hosts, for programs.
func (f *fleetCmd) printJSON(page query.Page) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, unix.SIGTERM)
	defer stop()
	reply, err := answer.Query(ctx, page)
	if err != nil {
		return exit.With(exit.Internal, "%w", err)
	}
	b, err := json.Marshal(reply)
	if err != nil {
		return exit.With(exit.Internal, "writing the fleet as JSON: %w", err)
	}
	return f.Output("").Write(append(b, '\n'))
}

// screen shows the fleet on the terminal.
func (f *fleetCmd) screen(page query.Page) error {
	_, c, err := f.load(f.app)
	if err == nil && f.Color == "never" {
		err = config.OptionAt("display.theme").Set(&c, "mono")
	}
	if err != nil {
		return err
	}
	o := fleet.Options{Theme: c.Display.Theme, Mouse: c.Display.Mouse, Round: c.Display.Corners == "round", Engine: page.Engine.Host(), Host: page.Host, Interval: f.interval}
	return f.show(source{}, fleet.New(o), tui.Options{Source: beat{}, Interval: f.interval, Do: screen.Do(page.Engine, page.Label)})
}

// beat is a source of nothing but the time to ask again.
type beat struct{}

func (beat) Next(context.Context) (*model.Snapshot, error) {
	return &model.Snapshot{Time: time.Now()}, nil
}
