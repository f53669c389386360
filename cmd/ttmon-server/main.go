// Ttmon-server follows a ttmond, or collects by itself what its user may see, and
// serves history, alerts, metrics and the page. It needs no rights.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ttmon/ttmon/internal/base/version"
	"github.com/ttmon/ttmon/internal/node/api/client"
	"github.com/ttmon/ttmon/internal/node/daemon"
	"github.com/ttmon/ttmon/internal/node/handover"
	"github.com/ttmon/ttmon/internal/past/server"
	"github.com/ttmon/ttmon/internal/past/server/auto"
	"github.com/ttmon/ttmon/internal/past/server/follow"
	"github.com/ttmon/ttmon/internal/past/server/local"
)

func main() {
	signal.Ignore(syscall.SIGPIPE) // a log reader or an API client that leaves
	ends := daemon.EndSignals()
	if !slices.Contains(ends, os.Signal(syscall.SIGHUP)) {
		signal.Ignore(syscall.SIGHUP) // until the server listens for it
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal kills the process immediately
	if err := command().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "ttmon-server:", err)
		os.Exit(daemon.ExitCode(err))
	}
}

// flags are what the command line says; they go before the configuration.
type flags struct {
	daemon, socket, stateDir, root, config, listen string
	nodeCondition                                  string
	system, checkConfig, verbose                   bool
}

func command() *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "ttmon-server",
		Short: "Serve history, alerts, metrics and the web page of a host with Tenstorrent boards",
		Long: `ttmon-server follows ttmond's snapshots and events over its socket. It keeps
history, evaluates alert rules, answers PromQL, serves /metrics and the web page
over HTTP, and sends samples to other engines. It runs in the foreground, as any
user, without privileges: ttmond decides what a viewer may see of other users'
processes.

Without a ttmond it collects what its own user may see, so that one user has
history and the web page without root.`,
		Version:       version.Long(),
		Args:          usageArgs(cobra.NoArgs),
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := f.configure()
			if err != nil {
				return daemon.Usage(err)
			}
			if f.checkConfig {
				return cfg.Print(cmd.OutOrStdout())
			}
			return f.run(cmd.Context(), cfg)
		},
	}
	cmd.AddCommand(fleetCommand(), replayCommand(), stateDirCommand(), hashPasswordCommand())
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return daemon.Usage(err) })
	paths := server.DefaultPaths()
	p := cmd.Flags()
	p.StringVar(&f.daemon, "daemon", "", "`SOCKET` of the ttmond to follow (default: this host's, if one runs)")
	p.StringVar(&f.socket, "socket", "", "`PATH` of the API socket for ttmon (default "+paths.Socket+")")
	p.StringVar(&f.stateDir, "state-dir", "", "`DIR` for history, events and alerts (default "+paths.StateDir+")")
	p.StringVar(&f.listen, "listen", "", "serve /metrics, the web page, the API and PromQL over HTTP at `ADDR`, or off (default "+server.DefaultListen+")")
	p.StringVar(&f.root, "root", "", "without a ttmond: `DIR` at which the host's root is mounted, if not /")
	p.StringVar(&f.config, "config", "", "configuration `FILE` (default "+paths.Config+" if it exists)")
	p.BoolVar(&f.system, "system", false, "run as the system service: use /etc/ttmon, /var/lib/ttmon-server, /run/ttmon-server and root's ttmond")
	p.BoolVar(&f.checkConfig, "check-config", false, "check the configuration, print the result with all defaults, and exit")
	p.StringVar(&f.nodeCondition, "node-condition", "", "in a pod: set the condition TenstorrentProblem of the Kubernetes `NODE` when a chip hangs or is lost")
	p.BoolVarP(&f.verbose, "verbose", "v", false, "log at debug level")
	return cmd
}

// paths are the places of this server.
func (f *flags) paths() server.Paths {
	if f.system {
		return server.SystemPaths()
	}
	return server.DefaultPaths()
}

// configure joins defaults, files and flags, and checks the result.
func (f *flags) configure() (server.Config, error) {
	p := f.paths()
	c := server.Default(p)
	if f.system {
		c.Daemon = client.SystemSocket
	}
	if err := c.Read(p, f.config); err != nil {
		return c, err
	}
	for to, from := range map[*string]string{&c.Daemon: f.daemon, &c.Socket: f.socket, &c.StateDir: f.stateDir, &c.Root: f.root, &c.Listen.Address: f.listen} {
		if from != "" {
			*to = from
		}
	}
	if f.verbose {
		c.Log.Level = "debug"
	}
	return c, c.Check()
}

// run is the server's life. ctx ends with the signal to stop.
func (f *flags) run(ctx context.Context, cfg server.Config) error {
	log, logs := daemon.NewLog(cfg.Log, os.Stderr)
	defer logs.Close()
	daemon.UseFewCores()
	daemon.LimitHeap(daemon.MemoryLimit("/"))
	var host server.Host
	if cfg.Daemon != "" {
		host = follow.New(cfg.Daemon, log)
	} else {
		own := func() *local.Host { return local.New(cfg.Root, cfg.StateDir, cfg.Collect, cfg.Conditions, log) }
		paths := client.SocketPaths(os.Getenv)
		if cfg.Root != "/" {
			paths = nil // a ttmond of this host knows another root
		}
		host = auto.New(paths, own, log)
	}
	s := server.New(server.Options{Config: cfg, Host: host, Configure: f.configure, NodeCondition: f.nodeCondition, Log: log, Logs: logs})
	defer log.Info("ttmon-server stopped")
	return s.Run(ctx, func() {
		log.Info("ttmon-server is ready", "version", version.Version, "socket", cfg.Socket, "state_dir", cfg.StateDir)
		if err := handover.Notify("READY=1"); err != nil {
			log.Warn("cannot notify systemd", "err", err)
		}
	})
}

// oneArgument is the check of a command that takes one argument, which it names.
func oneArgument(cmd *cobra.Command, given []string) error {
	if len(given) != 1 {
		return daemon.Usage(fmt.Errorf("%s takes one argument, not %d: ttmon-server %s", cmd.Name(), len(given), cmd.Use))
	}
	return nil
}

// usageArgs makes what is wrong with arguments an error of the command line.
func usageArgs(args cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, given []string) error {
		if err := args(cmd, given); err != nil {
			return daemon.Usage(err)
		}
		return nil
	}
}
