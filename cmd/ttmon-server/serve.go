package main

import (
	"fmt"
	"os"
	"os/user"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/ttmon/ttmon/internal/node/daemon"
	"github.com/ttmon/ttmon/internal/past/server"
)

// fleetCommand is what `ttmon fleet --serve` runs.
func fleetCommand() *cobra.Command {
	c := server.Default(server.DefaultPaths())
	cmd := &cobra.Command{
		Use:   "fleet --prometheus URL",
		Short: "Serve the web page for many hosts from a Prometheus-compatible engine",
		Long: `Serves the page's view of many hosts, as a Prometheus, Thanos, Mimir or
VictoriaMetrics has them, and nothing else: no host is read. ttmon fleet --serve is
the same. A bearer token is taken from $TTMON_PROMETHEUS_TOKEN.`,
		Example: "  ttmon-server fleet --prometheus http://prometheus:9090 --listen 127.0.0.1:9109",
		Args:    usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, logs := daemon.NewLog(c.Log, os.Stderr)
			defer logs.Close()
			return server.ServeFleet(cmd.Context(), &c, os.Stderr, log)
		},
	}
	f := cmd.Flags()
	f.StringVar(&c.Fleet.Prometheus, "prometheus", "", "the `URL` of Prometheus or a compatible engine")
	f.StringVar(&c.Fleet.HostLabel, "host-label", "", "the `LABEL` that tells hosts apart (default: host, or instance where there is none)")
	f.StringVar(&c.Fleet.NodeURL, "node-url", c.Fleet.NodeURL, "the `URL` of a host's own page; {instance} and {host} stand for its labels")
	f.StringVar(&c.Listen.Address, "listen", "127.0.0.1:9109", "`ADDR` of the page")
	f.StringVar(&c.Listen.WebConfig, "web-config", "", "web configuration `FILE` with TLS, client certificates and passwords; required unless ADDR is a loopback address")
	return cmd
}

// replayCommand is what `ttmon replay --serve` runs.
func replayCommand() *cobra.Command {
	var r server.Replay
	cmd := &cobra.Command{
		Use:   "replay FILE",
		Short: "Serve a recording of ttmon record as a web page",
		Args:  oneArgument,
		RunE: func(cmd *cobra.Command, args []string) error {
			return server.ServeRecording(cmd.Context(), args[0], r, cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.StringVar(&r.Listen, "listen", "127.0.0.1:0", "loopback `ADDR` to serve at; port 0 is any free port")
	f.DurationVar(&r.From, "from", 0, "start this `TIME` into the recording")
	f.Float64Var(&r.Speed, "speed", 1, "play `N` times as fast")
	f.BoolVar(&r.Paused, "paused", false, "start paused")
	return cmd
}

// stateDirCommand is for pods and for packages where no systemd runs: what has to be
// done as root before the server runs.
func stateDirCommand() *cobra.Command {
	p := server.SystemPaths()
	name := "ttmon"
	cmd := &cobra.Command{
		Use:   "make-state-dir",
		Short: "Create the state directory of ttmon-server (as root)",
		Long: `Creates the state directory, owned by the user that ttmon-server runs as. systemd
does the same for the unit; pods, and machines without systemd, need it.`,
		Example: "  ttmon-server make-state-dir --user ttmon",
		Args:    usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			uid, gid, err := lookUp(name)
			if err != nil {
				return daemon.Usage(err)
			}
			return server.MakeStateDir(p.StateDir, uid, gid)
		},
	}
	f := cmd.Flags()
	f.StringVar(&name, "user", name, "the `USER` that ttmon-server runs as, by name or number")
	f.StringVar(&p.StateDir, "state-dir", p.StateDir, "the state `DIR` of ttmon-server")
	return cmd
}

// lookUp finds a user by name or number; a number is a group's, too, where no such
// user is known.
func lookUp(name string) (uid, gid int, err error) {
	u, err := user.Lookup(name)
	if err != nil {
		if uid, err := strconv.Atoi(name); err == nil && uid > 0 {
			return uid, uid, nil
		}
		return 0, 0, fmt.Errorf("no such user: %q", name)
	}
	if uid, err = strconv.Atoi(u.Uid); err != nil {
		return 0, 0, err
	}
	gid, err = strconv.Atoi(u.Gid)
	return uid, gid, err
}
