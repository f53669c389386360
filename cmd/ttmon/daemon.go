package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/ttmon/ttmon/internal/api/client"
	"github.com/ttmon/ttmon/internal/exit"
	"github.com/ttmon/ttmon/internal/host"
	"github.com/ttmon/ttmon/internal/view/words"
)

// Exit codes of daemon status: those of every check.
const (
	checkWarning  = 1
	checkCritical = 2
	checkUnknown  = 3
)

// newDaemon makes the commands about ttmond itself.
func newDaemon(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "daemon",
		Short: "Shows how ttmond is doing, and has it read its configuration again",
		Long: `Commands about ttmond itself: how it is doing, and its configuration. What it
knows about boards and processes is shown by smi, top and mem.`,
		Example: `  ttmon daemon status
  ttmon daemon reload`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var asJSON, alive bool
	status := &cobra.Command{
		Use:   "status",
		Short: "Shows how ttmond is doing",
		Long: `Shows how ttmond is doing: whether its loop and its collector answer in time, who
is connected, what it keeps, and who has reached which limit.

Exit codes: 0 all is well, 1 something should be looked at, 2 something is late,
3 no ttmond answers.

With --alive it shows nothing, and ends with 0 unless ttmond does not answer (3),
or the loop that serves programs does not (2): for a probe that would restart it. A
restart mends no chip that hangs and no full disk.`,
		Example: `  ttmon daemon status
  ttmon daemon status --json | jq .loop`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			switch {
			case alive && asJSON:
				return exit.Usage("--alive and --json cannot be used together")
			case alive:
				return a.daemonAlive()
			}
			return a.daemonStatus(asJSON)
		},
	}
	status.Flags().BoolVar(&asJSON, "json", false, "the answer of /v1/health as it is")
	status.Flags().BoolVar(&alive, "alive", false, "show nothing, and only ask whether ttmond needs a restart")
	cmd.AddCommand(status, &cobra.Command{
		Use:   "reload",
		Short: "Has ttmond read its configuration again",
		Long: `Has ttmond read its configuration again, as SIGHUP does, and says what has
changed and what waits for the next start. Root and the user that ttmond runs as
may do this. A configuration with a mistake in it changes nothing.`,
		Example: `  ttmon daemon reload`,
		Args:    cobra.NoArgs,
		RunE:    func(*cobra.Command, []string) error { return a.daemonReload() },
	})
	return cmd
}

// askDaemon asks the first ttmond that answers.
func (a *app) askDaemon(ask func(context.Context, *client.Client) error) error {
	h, err := host.Open(a.where)
	if err != nil {
		return err
	}
	if len(h.Sockets) == 0 {
		return exit.Usage("--direct and --root ask no ttmond")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	for _, path := range h.Sockets {
		c := client.New(path)
		err = ask(ctx, c)
		c.Close()
		if _, away := errors.AsType[*net.OpError](err); !away {
			return err
		}
	}
	return &exit.Error{Code: checkUnknown, Err: fmt.Errorf("no ttmond answers: %w", err)}
}

func (a *app) daemonReload() error {
	return a.askDaemon(func(ctx context.Context, c *client.Client) error {
		changes, err := c.Reload(ctx)
		switch {
		case errors.Is(err, client.ErrForbidden):
			return &exit.Error{Code: exit.Denied, Err: err}
		case err != nil:
			return err
		case len(changes) == 0:
			fmt.Fprintln(a.Stdout, "the configuration has not changed")
		}
		for _, line := range changes {
			fmt.Fprintln(a.Stdout, words.Escape(line))
		}
		return nil
	})
}

func (a *app) daemonStatus(asJSON bool) error {
	return a.askDaemon(func(ctx context.Context, c *client.Client) error {
		h, body, err := c.Health(ctx)
		if err != nil {
			return err
		}
		if asJSON {
			_, _ = a.Stdout.Write(body)
		} else {
			writeHealth(a.Stdout, c.Path(), &h)
		}
		switch {
		case len(h.Problems) > 0:
			return exit.Silent(checkCritical)
		case len(h.Warnings) > 0:
			return exit.Silent(checkWarning)
		}
		return nil
	})
}

// daemonAlive asks what a watchdog asks: whether ttmond and its loop answer.
func (a *app) daemonAlive() error {
	return a.askDaemon(func(ctx context.Context, c *client.Client) error {
		h, _, err := c.Health(ctx)
		if err != nil {
			return err
		}
		for _, p := range h.Problems {
			if p.Part == client.PartLoop {
				return exit.With(checkCritical, "%s", words.Escape(p.Reason))
			}
		}
		return nil
	})
}

func writeHealth(w io.Writer, path string, h *client.Health) {
	fmt.Fprintf(w, "ttmond %s at %s, pid %d, up %v\n\n", words.Escape(h.Version), words.Escape(path), h.PID, seconds(h.Uptime).Round(time.Second))
	row := func(name, format string, args ...any) {
		fmt.Fprintf(w, "  %-12s %s\n", name, fmt.Sprintf(format, args...))
	}
	row("state", "%s", words.Escape(h.Status))
	for _, p := range h.Problems {
		row("", "%s: %s", words.Escape(p.Part), words.Escape(p.Reason))
	}
	for _, p := range h.Warnings {
		row("warning", "%s: %s", words.Escape(p.Part), words.Escape(p.Reason))
	}
	if h.SnapshotAge != nil {
		row("snapshots", "the latest is %v old", seconds(*h.SnapshotAge).Round(100*time.Millisecond))
	} else {
		row("snapshots", "none yet")
	}
	row("loop", "in the last minutes: longest turn %s; longest for one client %v", turnText(&h.Loop.Longest), seconds(h.Loop.LongestStep).Round(time.Microsecond))
	if b := &h.Loop.Busiest; b.CPU > h.Loop.Longest.CPU {
		row("", "the turn that worked longest %s", turnText(b))
	}
	if len(h.Sources) > 0 {
		row("sources", "%s", sourcesText(h))
	}
	row("account", "%d processes, %d buffers, %d events so far", h.Ledger.Processes, h.Ledger.Buffers, h.Ledger.Events)
	writeWatch(row, h.Uprobe)
	row("clients", "%d report or ask, %d watch", h.AllocSocket.Connections, h.Watchers)
	row("descriptors", "%d of %d", h.Descriptors.Open, h.Descriptors.Limit)
	memory := words.Bytes(h.HeapBytes)
	if h.MemoryLimit > 0 {
		memory += " of " + words.Bytes(h.MemoryLimit)
	}
	row("memory", "%s", memory)
	if h.Pause != nil {
		row("takeover", "clients waited %v", seconds(*h.Pause).Round(time.Microsecond))
	}
	row("left out", "%d replies that nobody read, %d messages that were not understood, %d lines of the log", h.AllocSocket.Dropped, h.AllocSocket.Rejected, h.LostLines)
	writeBudgets(w, h.Budgets)
}

// writeWatch tells how allocators are watched, or why they are not.
func writeWatch(row func(name, format string, args ...any), u *client.Watch) {
	switch {
	case u == nil:
		return
	case u.State != "on":
		row("allocators", "%s: %s", words.Escape(u.State), words.Escape(u.Reason))
		return
	}
	row("allocators", "%d processes watched, %d libraries, %d events so far, %d lost", u.Processes, len(u.Libraries), u.Events, u.Lost)
	if len(u.LetGo) > 0 {
		row("", "not watched any more, they allocate too often: %v", u.LetGo)
	}
	if u.Late != "" {
		row("", "%s", words.Escape(u.Late))
	}
	for _, l := range u.Libraries {
		if l.Reason != "" {
			row("", "%s is not watched: %s", words.Escape(l.Path), words.Escape(l.Reason))
		}
	}
}

// sourcesText says how long each source took.
func sourcesText(h *client.Health) string {
	var list []string
	for _, s := range h.Sources {
		text := fmt.Sprintf("%s %v", words.Escape(s.Name), seconds(s.Took).Round(100*time.Microsecond))
		if s.Late {
			text += " (late)"
		}
		list = append(list, text)
	}
	return strings.Join(list, ", ")
}

// turnText says how long a turn took, and how much of that it had no processor.
func turnText(t *client.Turn) string {
	took, worked := seconds(t.Took).Round(time.Microsecond), seconds(t.CPU).Round(time.Microsecond)
	text := took.String()
	if took-worked > time.Millisecond && worked < took/2 {
		text += fmt.Sprintf(" (worked %v, waited for a processor or a lock)", worked)
	}
	if t.Work != "" {
		text += ", mostly " + words.Escape(t.Work)
	}
	return text
}

func writeBudgets(w io.Writer, budgets []client.Budget) {
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "budget\tused\tlimit\tper user\trefused\tmost by uid\t")
	for _, b := range budgets {
		most := "-"
		if len(b.Users) > 0 && b.Users[0].Used > 0 {
			most = strconv.Itoa(b.Users[0].UID)
		}
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%s\t\n", words.Escape(b.Name), b.Used, b.Limit, b.PerUID, b.Refused, most)
	}
	_ = t.Flush()
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
