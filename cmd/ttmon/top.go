package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/base/config"
	"github.com/ttmon/ttmon/internal/base/exit"
	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/cli/host"
	"github.com/ttmon/ttmon/internal/cli/repeat"
	"github.com/ttmon/ttmon/internal/cli/selection"
	"github.com/ttmon/ttmon/internal/hostfs/proc"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/model/history"
	"github.com/ttmon/ttmon/internal/node/api/remote"
	"github.com/ttmon/ttmon/internal/view/text"
	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/act"
	player "github.com/ttmon/ttmon/internal/view/tui/replay"
	"github.com/ttmon/ttmon/internal/view/tui/top"
)

// topCmd is the command ttmon top with its flags.
type topCmd struct {
	*app
	cmd *cobra.Command
	screens

	tenths              float64
	every               time.Duration
	noPlot, noProcesses bool
	reverse, noColour   bool
	readonly            bool
	filter              string
	snapshot, loop      bool
	version, info       bool
	encodeHide          float64
	ids                 string
	theme               string
	layout              string
}

// screens are the flags that all screens share.
type screens struct {
	config, ssh, remote string
}

func newTop(a *app) *cobra.Command {
	t := &topCmd{app: a}
	t.make()
	return t.cmd
}

func (t *topCmd) make() {
	t.cmd = &cobra.Command{
		Use:   "top",
		Short: "Monitor devices and processes interactively, with charts",
		Long: `Shows the devices, charts of any figure over time, and the processes that use
the devices, on one screen: from one board to a Galaxy of 32, at any size. The
keys are those of nvtop and htop; F1 or ? lists them. F2 changes how it looks,
F12 writes that to the configuration file. It needs a terminal that can place its
cursor: in a pipe, and where TERM is dumb or not set, it exits with 2.

A filter chooses processes by any column:

  user=root dram>1G device=3 cmd~llama
  (user=alice or user=bob) and not time<1h

Called as tt-nvtop it takes nvtop's flags: -d is in tenths of a second there, -s prints
a snapshot in nvtop's form.`,
		Example: `  ttmon top                             this host
  ttmon top --interval 500ms -d 0,1     twice a second, two devices
  ttmon top --filter 'user=root'        only what root runs
  ttmon top --ssh lab-4                 another host, through its own ttmon
  ttmon top --readonly                  signals to processes disabled`,
		RunE: func(*cobra.Command, []string) error { return t.run() },
	}
	f := t.cmd.Flags()
	if t.ttNvtop { // whose -d and -i are others
		f.Float64VarP(&t.tenths, "delay", "d", 0, "`TENTHS` of a second between updates")
		f.BoolVarP(&t.info, "gpu-info", "i", false, "ignored: Enter shows the details of a device")
		f.StringVar(&t.ids, "id", "", theseDevices)
	} else {
		f.StringVarP(&t.ids, "id", "i", "", theseDevices+" (also -d)")
		addHidden(f, "device", "d", f.Lookup("id").Value)
		f.Float64Var(&t.tenths, "delay", 0, "`TENTHS` of a second between updates")
		_ = f.MarkHidden("delay")
	}
	addHidden(f, "devices", "", f.Lookup("id").Value)
	addInterval(f, &t.every, 0, "`TIME` between updates, such as 500ms or 2s")
	f.StringVar(&t.filter, "filter", "", "show only the processes that match this `EXPRESSION`")
	f.StringVar(&t.layout, "layout", "", "the `LAYOUT` of devices: auto, blocks, compact, lines or grid")
	f.StringVar(&t.theme, "theme", "", "colours: a `NAME` (auto, dark, light, mono, dusk, ember, paper, contrast) or the path of a theme file")
	f.BoolVarP(&t.noPlot, "no-plot", "p", false, "hide the charts")
	f.BoolVarP(&t.noProcesses, "no-processes", "P", false, "hide the process table")
	f.BoolVarP(&t.noColour, "no-color", "C", false, "no colours")
	f.BoolVarP(&t.reverse, "reverse-abs", "r", false, "newest values at the left of charts")
	f.BoolVar(&t.readonly, "readonly", false, "disable signals to processes")
	f.BoolVarP(&t.snapshot, "snapshot", "s", false, "print a snapshot as nvtop prints it, in JSON, and exit")
	f.BoolVarP(&t.loop, "loop", "l", false, "with -s: print snapshots repeatedly")
	f.Float64VarP(&t.encodeHide, "encode-hide", "E", 0, "ignored, `SECONDS`: there are no encoders")
	f.BoolVarP(&t.version, "version", "v", false, "print the version and exit")
	t.screens.flags(t.cmd)
	_ = t.cmd.RegisterFlagCompletionFunc("theme", cobra.FixedCompletions(config.OptionAt("display.theme").Choices, cobra.ShellCompDirectiveNoFileComp))
	_ = t.cmd.RegisterFlagCompletionFunc("layout", cobra.FixedCompletions(config.OptionAt("top.devices.layout").Choices, cobra.ShellCompDirectiveNoFileComp))
}

func (s *screens) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVarP(&s.config, "config-file", "c", "", "the configuration `FILE` (default $XDG_CONFIG_HOME/ttmon/config.toml)")
	f.StringVar(&s.ssh, "ssh", "", "show `HOST`, by running ttmon there over ssh")
	f.StringVar(&s.remote, "remote-ttmon", "ttmon", "with --ssh: the `COMMAND` that runs ttmon on the other host")
}

func (t *topCmd) run() error {
	if t.version {
		return t.Output("").Write([]byte(versionLine()))
	}
	path, c, err := t.configure()
	if err != nil {
		return err
	}
	if t.snapshot {
		return t.printSnapshots(c)
	}
	if err := t.NeedsTerminal("top"); err != nil {
		return err
	}
	src, err := t.source(t.app, time.Duration(c.Top.Interval))
	if err != nil {
		return err
	}
	defer src.close()
	if c.Top.Runs {
		src.keepRuns(t.Getenv, time.Duration(c.Top.Interval))
	}
	return t.showTop(src, path, top.Options{Config: c})
}

// showTop shows a source on the screen of ttmon top; its configuration is saved at a path.
func (a *app) showTop(src source, path string, o top.Options) error {
	o.Source, o.NoKill, o.Recorded = src.name, src.noKill, src.recorded
	if src.backfill != nil {
		o.Own = src.backfill(o.Charts())
	}
	state, err := top.New(o)
	if err != nil {
		return exit.Usage("%w", err)
	}
	actions := &act.Actions{Buffers: src.buffers, Blocks: src.blocks, Past: src.past, Save: func(c config.Config) (string, error) { return path, config.Save(path, c) }}
	if src.noKill == "" {
		actions.Kill = func(t act.Target, sig syscall.Signal) error { return proc.Signal(processID(t), sig) }
		actions.Environ = func(t act.Target) ([]string, error) { return proc.EnvironOf(processID(t)) }
	}
	return a.show(src, state, tui.Options{Source: src, Interval: time.Duration(o.Config.Top.Interval), Do: actions.Do})
}

func processID(t act.Target) model.ProcessID {
	return model.ProcessID{PID: t.PID, StartTicks: t.StartTicks}
}

// configure joins the configuration file with the flags.
func (t *topCmd) configure() (path string, c config.Config, err error) {
	path, c, err = t.screens.load(t.app)
	if err != nil {
		return path, c, err
	}
	set := func(name, value string) {
		if err == nil {
			err = config.OptionAt(name).Set(&c, value)
		}
	}
	f := t.cmd.Flags()
	if f.Changed("delay") && t.tenths < 1 {
		return path, c, exit.Usage("--delay takes tenths of a second, at least 1, as nvtop's does: 5 is half a second, 10 one second")
	}
	if f.Changed("delay") {
		t.every = time.Duration(t.tenths * float64(time.Second) / 10)
	}
	if f.Changed("delay") || f.Changed("interval") {
		set("top.interval", t.every.String())
	}
	for flag, option := range map[string]string{
		"filter": "top.processes.filter", "theme": "display.theme", "layout": "top.devices.layout",
		"id": "top.devices.only", "device": "top.devices.only", "devices": "top.devices.only",
	} {
		if f.Changed(flag) {
			set(option, f.Lookup(flag).Value.String())
			if err != nil {
				return path, c, exit.Usage("--%s: %s", flag, strings.TrimPrefix(err.Error(), option+": "))
			}
		}
	}
	for _, o := range []struct {
		on            bool
		option, value string
	}{
		{t.reverse, "top.charts.reverse", "true"},
		{t.readonly, "top.readonly", "true"},
		{t.noPlot, "top.charts.show", "never"},
		{t.noProcesses, "top.processes.show", "false"},
		{t.noColour || t.Color == "never", "display.theme", "mono"},
	} {
		if o.on {
			set(o.option, o.value)
		}
	}
	if err == nil {
		err = tui.CheckTheme(c.Display.Theme, t.Getenv)
	}
	if err != nil {
		return path, c, exit.Usage("%w", err)
	}
	return path, c, nil
}

// load reads the configuration file.
func (s *screens) load(a *app) (path string, c config.Config, err error) {
	if path = s.config; path == "" {
		path = config.Path(a.Getenv)
	} else if _, err := os.Stat(path); err != nil {
		return path, c, exit.Usage("--config-file: %w", err)
	}
	c, err = config.Load(path, a.Getenv)
	if err != nil {
		return path, c, exit.Usage("%w", err)
	}
	return path, c, nil
}

// printSnapshots prints what nvtop -s prints. Like it, it takes two samples
// a tenth of a second apart, for what needs two.
func (t *topCmd) printSnapshots(c config.Config) error {
	src, err := t.source(t.app, 100*time.Millisecond)
	if err != nil {
		return err
	}
	defer src.close()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, unix.SIGTERM)
	defer stop()
	only := selection.Selection(c.Top.Devices.Only)
	if _, err := src.Next(ctx); err != nil {
		return err
	}
	next := time.Now().Add(100 * time.Millisecond)
	for repeat.Wait(ctx, next) {
		s, err := src.Next(ctx)
		if err != nil {
			return err
		}
		if len(only) > 0 {
			s = only.Present(s)
		}
		if err := t.Output("").Write(text.AppendNvtop(nil, s)); err != nil || !t.loop {
			return err
		}
		next = next.Add(time.Duration(c.Top.Interval))
	}
	return nil
}

// source is where a screen gets its snapshots from.
type source struct {
	tui.Source
	name   string // empty where the snapshots say it
	noKill string // why processes cannot be signalled from here
	// recorded: it can go back and stand still.
	recorded bool
	close    func()
	// buffers tells what a process holds, one by one; nil if unknown.
	buffers func(context.Context, act.Target) ([]act.Buffer, error)
	// blocks are the allocators of a process; nil if unknown.
	blocks func(context.Context, act.Target) (*blocks.Process, error)
	// past is a snapshot of another time, backfill the charts of before; nil
	// if it was not kept.
	past     func(context.Context, time.Time) (*model.Snapshot, error)
	backfill func(first []string) *history.Store
	// host is this host, which has runs to keep; nil: it is another one, or a
	// recording.
	host *host.Host
}

// source opens this host, or another one through ssh.
func (s *screens) source(a *app, interval time.Duration) (source, error) {
	if a.recorded != nil {
		return recordedSource(a.recorded), nil
	}
	if s.ssh != "" {
		if strings.HasPrefix(s.ssh, "-") {
			return source{}, exit.Usage("--ssh: %q is not a host", s.ssh)
		}
		loop := strconv.FormatInt(max(interval.Milliseconds(), 100), 10)
		run := []string{s.ssh, s.remote + " smi --json --loop-ms " + loop}
		r := &remote.Source{
			// The first time ssh may ask for a password, on a terminal that is
			// still its own; later it must not draw over the screen.
			Command: append([]string{"ssh", "-T"}, run...),
			Again:   append([]string{"ssh", "-T", "-o", "BatchMode=yes"}, run...),
		}
		snap, err := r.Next(context.Background())
		if err != nil {
			return source{}, exit.With(exit.Internal, "asking %s: %w", s.ssh, err)
		}
		return source{
			Source: &primed{Source: r, first: snap}, name: "ssh " + s.ssh, close: r.Close,
			noKill: "processes of another host cannot be signalled from here: ssh " + s.ssh + " ttmon top",
		}, nil
	}
	h, err := host.Open(a.where)
	if err != nil {
		return source{}, err
	}
	out := source{Source: h, close: h.Close, buffers: h.Buffers, blocks: h.Blocks, past: h.Past, backfill: h.Backfill, host: h}
	if a.where.Root != "" {
		out.host = nil
		out.noKill = "this is the host below " + a.where.Root + ": its processes cannot be signalled from here"
	}
	return out, nil
}

// primed is a source whose first answer is known already.
type primed struct {
	tui.Source
	first *model.Snapshot
}

func (p *primed) Next(ctx context.Context) (*model.Snapshot, error) {
	if s := p.first; s != nil {
		p.first = nil
		return s, nil
	}
	return p.Source.Next(ctx)
}

// show runs a screen until it is left or told to end.
func (a *app) show(src source, screen tui.App, o tui.Options) error {
	o.ASCII = a.UseASCII()
	if a.recorded != nil {
		screen = player.New(screen, a.recorded.Player, a.recorded.Charts)
	}
	o.Console = a.Getenv("TERM") == "linux"
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, unix.SIGTERM, unix.SIGHUP)
	defer stop()
	terminal, err := tui.Open()
	if err != nil {
		return exit.With(exit.Internal, "%w", err)
	}
	err = tui.Run(ctx, terminal, screen, o)
	switch {
	case ctx.Err() != nil: // told to end, as good a way as any
		return nil
	case errors.Is(err, tui.ErrTerminalLost):
		return exit.Silent(exit.Internal) // the terminal is gone: there is nothing to print to
	}
	return err
}
