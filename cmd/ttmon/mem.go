package main

import (
	"context"
	"os"
	"os/signal"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/base/config"
	"github.com/ttmon/ttmon/internal/base/exit"
	"github.com/ttmon/ttmon/internal/cli/console"
	"github.com/ttmon/ttmon/internal/cli/host"
	"github.com/ttmon/ttmon/internal/cli/repeat"
	"github.com/ttmon/ttmon/internal/cli/selection"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/mem"
	"github.com/ttmon/ttmon/internal/view/tui/top"
)

// memCmd is the command ttmon mem with its flags.
type memCmd struct {
	*app
	cmd *cobra.Command
	screens

	ids         []string
	all         bool
	every       time.Duration
	refresh     int // ms
	once, plain bool
	blocks      blockFlags
	showStale   bool
	stale       staleCmd
}

func newMem(a *app) *cobra.Command {
	m := &memCmd{app: a, stale: staleCmd{app: a}}
	m.cmd = &cobra.Command{
		Use:   "mem [--stale [REGION…]]",
		Short: "Show the memory of every chip by pool and who holds it",
		Long: `Shows for every chip how much of its DRAM and L1 is allocated, and in L1_SMALL,
trace, circular buffers and kernel code; who holds it, how fast it changes, the
most it has been, and a chart. Enter opens a chip with its holders, and a holder with
its buffers where they are known.

Where the output is no terminal, or with --plain, it prints a line per chip at
each interval instead, for logs; with --once a block per chip, once.

--stale lists the bytes that processes which died without closing their devices left
in tt-metal's accounting regions (/dev/shm/tt_device_*_memory). The memory itself
is free again; only its accounting was never cleared. ttmon counts none of it as used,
other tools may. REGION selects some, by path or chip id. With --remove the regions
that no live process uses are listed and removed, on a terminal after confirmation.
The next program that opens the chip creates a new one. An ordinary user may not read
other users' regions. A running ttmond provides them; without one, ttmon names what it
could not read.

Exit codes: as ttmon smi; with --stale 0 ok, also if nothing is stale; 4 no permission
to remove one or to read any.`,
		Example: `  ttmon mem                    all chips, on a screen
  ttmon mem -d 0 -d 1          two devices
  ttmon mem -r 200             five times a second
  ttmon mem --once             what is allocated now
  ttmon mem -p 4242            a map of the banks that a process allocates from
  ttmon mem --fits 512M -i 0   would another 512 MiB fit?
  ttmon mem -p 4242 --shape 1,1,4096,4096 --dtype bfloat16 --memory l1
  ttmon mem --plain -r 5000 >> memory.log
  ttmon mem --stale            what dead processes left in tt-metal's accounting
  ttmon mem --stale --remove   remove all of it that is not in use, after confirmation`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case m.showStale:
				m.stale.json = m.blocks.json
				return m.stale.run(args)
			case m.stale.remove || m.stale.yes:
				return exit.Usage("--remove and --yes need --stale")
			case len(args) > 0:
				return noArguments(cmd, args)
			}
			return m.run()
		},
	}
	f := m.cmd.Flags()
	addDevices(f, &m.ids, theseDevices)
	f.BoolVarP(&m.all, "all", "a", false, "all devices (the default)")
	addInterval(f, &m.every, 0, "`TIME` between updates, such as 200ms or 2s")
	f.IntVarP(&m.refresh, "refresh", "r", 0, "the same in `MILLISECONDS`")
	f.BoolVar(&m.once, "once", false, "print once and exit")
	f.BoolVar(&m.plain, "plain", false, "print lines for a log instead of drawing a screen")
	m.blocks.add(m)
	f.BoolVar(&m.showStale, "stale", false, "list what dead processes left in tt-metal's accounting, of all or each REGION")
	m.stale.addRemoval(f, "with --stale: ")
	m.screens.flags(m.cmd)
	return m.cmd
}

// check rejects flags that would be ignored.
func (m *memCmd) check() (err error) {
	if m.ids, err = selection.Parse(m.ids); err != nil {
		return err
	}
	switch {
	case m.all && len(m.ids) > 0:
		return exit.Usage("-a and -d cannot be used together")
	case m.blocks.pid < 0:
		return exit.Usage("-p: %d is not a pid", m.blocks.pid)
	case m.blocks.pid != 0 && len(m.ids) > 0:
		return exit.Usage("-p and -d cannot be used together: -p shows all chips of the process")
	case m.blocks.asked() && m.ssh != "":
		return exit.Usage("-p, --fits and --shape work on this host only: ssh %s ttmon mem …", m.ssh)
	case m.blocks.report != "" && m.blocks.pid == 0:
		return exit.Usage("--report needs -p PID")
	case m.blocks.json && !m.blocks.asked():
		return exit.Usage("--json needs -p, --fits, --shape or --stale; ttmon smi --json has the memory of all chips")
	}
	for _, name := range []string{"dtype", "layout"} {
		if m.cmd.Flags().Changed(name) && m.blocks.shape == "" {
			return exit.Usage("--%s needs --shape", name)
		}
	}
	if m.cmd.Flags().Changed("memory") && m.blocks.shape == "" && m.blocks.fits == "" {
		return exit.Usage("--memory needs --fits or --shape")
	}
	return nil
}

func (m *memCmd) run() error {
	if err := m.check(); err != nil {
		return err
	}
	if m.blocks.asked() {
		return m.runBlocks()
	}
	path, c, err := m.configure()
	if err != nil {
		return err
	}
	src, err := m.source(m.app, time.Duration(c.Top.Interval))
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
	if _, err := selection.Selection(m.ids).From(first); err != nil {
		return noDevice(m.cmd, err)
	}
	src.Source = &primed{Source: src.Source, first: first}
	if width, _, terminal := console.Size(m.Stdout); m.once || m.plain || m.NeedsTerminal("mem") != nil {
		return m.print(src, c, mem.Text{Only: m.ids, Bars: terminal, Width: width})
	}
	return m.showTop(src, path, top.Options{Config: c, Memory: true})
}

// configure joins the configuration file with the flags.
func (m *memCmd) configure() (path string, c config.Config, err error) {
	if path, c, err = m.load(m.app); err != nil {
		return path, c, err
	}
	if m.cmd.Flags().Changed("refresh") {
		m.every = time.Duration(m.refresh) * time.Millisecond
	}
	if m.cmd.Flags().Changed("refresh") || m.cmd.Flags().Changed("interval") {
		err = config.OptionAt("top.interval").Set(&c, m.every.String())
	}
	if m.all || len(m.ids) > 0 {
		c.Top.Devices.Only = m.ids
	}
	if err == nil {
		err = m.setTheme(&c)
	}
	if err != nil {
		return path, c, exit.Usage("%w", err)
	}
	return path, c, nil
}

// setTheme applies --color=never, and checks that the theme can be read before a screen
// is drawn.
func (a *app) setTheme(c *config.Config) error {
	if a.Color == "never" {
		if err := config.OptionAt("display.theme").Set(c, "mono"); err != nil {
			return err
		}
	}
	return tui.CheckTheme(c.Display.Theme, a.Getenv)
}

// print prints a block per chip once, or a line per chip at each interval.
func (m *memCmd) print(src source, c config.Config, text mem.Text) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, unix.SIGTERM)
	defer stop()
	next := time.Now()
	for {
		s, err := src.Next(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		write := text.Line
		if m.once {
			write = text.Once
		}
		if err := m.PrintText(write(nil, s)); err != nil {
			return err
		}
		if m.once {
			return troubledAmong(s, m.ids)
		}
		if next = next.Add(time.Duration(c.Top.Interval)); !repeat.Wait(ctx, next) {
			return nil
		}
	}
}

// troubledAmong returns an error if a selected device is hung or lost.
func troubledAmong(s *model.Snapshot, ids []string) error {
	if len(ids) > 0 {
		s = selection.Selection(ids).Present(s)
	}
	return host.Troubled(s)
}
