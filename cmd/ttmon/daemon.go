package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/ttmon/ttmon/internal/base/exit"
	"github.com/ttmon/ttmon/internal/cli/host"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model/apitype"
	"github.com/ttmon/ttmon/internal/node/api/client"
	"github.com/ttmon/ttmon/internal/view/text"
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
		Short: "Show the health of ttmond and ttmon-server, or reload their configuration",
		Long: `Commands for the two daemons, ttmond and ttmon-server: their health and their
configuration. Boards and processes are shown by smi, top and mem.`,
		Example: `  ttmon daemon status
  ttmon daemon reload`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var asJSON, alive bool
	status := &cobra.Command{
		Use:   "status",
		Short: "Show the health of ttmond and ttmon-server",
		Long: `Shows the health of ttmond: whether its allocation server and its collector respond in
time, its clients, what it stores, and which users have reached a limit. The state of
ttmon-server follows, if one runs, and the names of other ttmonds, of all users.

Exit codes: 0 healthy, 1 warnings, 2 problems, 3 no ttmond responds.

With --alive it prints nothing and is meant for a liveness probe: it exits with 3 if
ttmond does not respond, with 2 if its allocation server is stuck, and with 0
otherwise. A hung chip or a full disk does not count, since a restart would not
help.`,
		Example: `  ttmon daemon status
  ttmon daemon status --json | jq .alloc_socket`,
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
	status.Flags().BoolVar(&asJSON, "json", false, "print the JSON of ttmond's /v1/health")
	status.Flags().BoolVar(&alive, "alive", false, "liveness probe: print nothing, fail only if a restart of ttmond would help")
	cmd.AddCommand(status, &cobra.Command{
		Use:   "reload",
		Short: "Reload the configuration of ttmond and ttmon-server",
		Long: `Has ttmond executed again, in the same process: its configuration and its program are
read again, no client loses its connection, and nothing of what is known is lost. The
ttmon-server that follows it reads its configuration, too. What has changed is printed,
and what of ttmon-server needs a restart. Only root and the user that ttmond runs as
may do this; SIGHUP does the same. An invalid configuration, or a program that cannot
go on, changes nothing.`,
		Example: `  ttmon daemon reload`,
		RunE:    func(*cobra.Command, []string) error { return a.daemonReload() },
	})
	return cmd
}

// How long ttmond may take to answer, and to be executed again: what answers users ends
// first, and may wait for the driver.
const (
	daemonAnswers = 3 * time.Second
	daemonReloads = time.Minute
)

// askDaemon asks the first ttmond that answers.
func (a *app) askDaemon(limit time.Duration, ask func(context.Context, *client.Client) error) error {
	h, err := host.Open(a.where)
	if err != nil {
		return err
	}
	if len(h.Sockets) == 0 {
		return exit.Usage("--direct and --root cannot be used here: they read the host without a ttmond")
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	for _, path := range h.Sockets {
		c := client.New(path)
		err = ask(ctx, c)
		c.Close()
		if _, away := errors.AsType[*net.OpError](err); !away {
			return err
		}
	}
	return &exit.Error{Code: checkUnknown, Err: fmt.Errorf("no ttmond responds: %w", err)}
}

func (a *app) daemonReload() error {
	return a.askDaemon(daemonReloads, func(ctx context.Context, c *client.Client) error {
		changes, err := c.Reload(ctx)
		switch {
		case errors.Is(err, client.ErrForbidden):
			return &exit.Error{Code: exit.Denied, Err: err}
		case err != nil:
			return err
		case len(changes) == 0:
			changes = []string{"the configuration has not changed"}
		}
		for _, line := range changes {
			if err := a.PrintText([]byte(words.Escape(line) + "\n")); err != nil {
				return err
			}
		}
		return a.reloadServer(ctx, c.Path())
	})
}

// server is the client of the ttmon-server that follows the ttmond at a socket; nil
// where none runs.
func (a *app) server(daemon string) *client.Client {
	h, err := host.Open(a.where)
	if err != nil || h.Server() == h.Socket() || h.Server() == daemon {
		return nil
	}
	return client.New(h.Server())
}

// reloadServer has the ttmon-server read its configuration again, too: it reads
// sections of ttmond's.
func (a *app) reloadServer(ctx context.Context, daemon string) error {
	c := a.server(daemon)
	if c == nil {
		return nil
	}
	defer c.Close()
	changes, err := c.Reload(ctx)
	if err != nil {
		return exit.With(exit.Internal, "ttmon-server: %w", err)
	}
	for _, line := range changes {
		if err := a.PrintText([]byte("ttmon-server: " + words.Escape(line) + "\n")); err != nil {
			return err
		}
	}
	return nil
}

// appendServerStatus appends how the ttmon-server is doing, below ttmond.
func (a *app) appendServerStatus(ctx context.Context, dst []byte, daemon string) (out []byte, problems, warnings int) {
	c := a.server(daemon)
	if c == nil {
		return append(dst, "\nttmon-server is not running: no history, no alerts, no web page\n"...), 0, 0
	}
	defer c.Close()
	h, _, err := c.Health(ctx)
	if err != nil {
		return fmt.Appendf(dst, "\nttmon-server does not respond: %s\n", words.Escape(err.Error())), 1, 0
	}
	dst = fmt.Appendf(dst, "\nttmon-server %s at %s, pid %d: %s\n", words.Escape(h.Version), words.Escape(c.Path()), h.PID, text.HealthState(&h))
	for _, p := range h.Problems {
		dst = fmt.Appendf(dst, "  %s: %s\n", words.Escape(p.Part), words.Escape(p.Reason))
	}
	for _, p := range h.Warnings {
		dst = fmt.Appendf(dst, "  warning: %s: %s\n", words.Escape(p.Part), words.Escape(p.Reason))
	}
	return dst, len(h.Problems), len(h.Warnings)
}

func (a *app) daemonStatus(asJSON bool) error {
	return a.askDaemon(daemonAnswers, func(ctx context.Context, c *client.Client) error {
		h, body, err := c.Health(ctx)
		if err != nil {
			return err
		}
		problems, warnings := len(h.Problems), len(h.Warnings)
		if asJSON {
			_, err = a.Stdout.Write(body)
		} else {
			out, p, w := a.appendServerStatus(ctx, text.AppendHealth(nil, c.Path(), &h), c.Path())
			problems, warnings = problems+p, warnings+w
			err = a.PrintText(appendOtherDaemons(ctx, out, client.SocketPaths(a.Getenv), c.Path(), h.PID))
		}
		switch {
		case err != nil:
			return err
		case problems > 0:
			return exit.Silent(checkCritical)
		case warnings > 0:
			return exit.Silent(checkWarning)
		}
		return nil
	})
}

// appendOtherDaemons names the ttmonds that run beside the one whose figures are shown:
// where ttmon looks for one, and where other users have theirs.
func appendOtherDaemons(ctx context.Context, dst []byte, paths []string, shown string, pid int) []byte {
	listening := host.ListeningDaemons()
	paths = append(paths, listening...)
	slices.Sort(paths)
	for _, path := range slices.Compact(paths) {
		if path == shown {
			continue
		}
		c := client.New(path)
		other, _, err := c.Health(ctx)
		c.Close()
		switch {
		case err == nil && other.PID != pid:
			dst = fmt.Appendf(dst, "\nanother ttmond runs, pid %d; figures are those of the one above, unless you say --daemon %s\n", other.PID, words.Escape(path))
		case err != nil && slices.Contains(listening, path):
			dst = fmt.Appendf(dst, "\nanother ttmond listens at %s and does not answer this user\n", words.Escape(path))
		}
	}
	return dst
}

// daemonAlive asks what a watchdog asks: whether ttmond and its allocation server answer.
func (a *app) daemonAlive() error {
	return a.askDaemon(daemonAnswers, func(ctx context.Context, c *client.Client) error {
		h, _, err := c.Health(ctx)
		if err != nil {
			return err
		}
		for _, p := range h.Problems {
			if p.Part == apitype.PartAllocServer {
				return exit.With(checkCritical, "%s", words.Escape(p.Reason))
			}
		}
		return nil
	})
}
