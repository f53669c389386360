// Ttmond is the node daemon: the allocation server that instrumented programs
// report to, the collector in the background, and the API that ttmon and
// ttmon-server ask. It opens no socket but Unix sockets.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ttmon/ttmon/internal/chipread"
	"github.com/ttmon/ttmon/internal/daemon"
	"github.com/ttmon/ttmon/internal/version"
)

func main() {
	if readsChip() {
		os.Exit(chipread.Main())
	}
	// A log reader or an API client that leaves must not end the daemon.
	signal.Ignore(syscall.SIGPIPE)
	ends := daemon.EndSignals()
	if !slices.Contains(ends, os.Signal(syscall.SIGHUP)) {
		// It would end us: a ttmond that starts has not read its configuration
		// yet, and a keeper never does. daemon.Hangups listens for it later.
		signal.Ignore(syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal kills the process immediately
	if err := command().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "ttmond:", err)
		os.Exit(daemon.ExitCode(err))
	}
}

// flags are what the command line says; they go before the configuration.
type flags struct {
	allocSocket, apiSocket, stateDir, root, config string
	takeover, checkConfig, verbose, keep           bool
	noUprobe                                       bool
	firmware                                       string
	listen, nodeCondition                          string // ttmon-server's
}

func command() *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "ttmond",
		Short: "node daemon: tracks allocations and serves all local users",
		Long: `ttmond listens where programs instrumented for tt-metal's old allocation server
report, keeps account of what each process holds on each chip, and answers ttmon
and everybody else on a local API. It runs in the foreground, needs no
configuration, opens no device unless --firmware tells it to, and listens on Unix
sockets only: history, alerts, /metrics and the page are ttmon-server's.

Stopping it closes no client's connection: a small process stays behind and
keeps them until they end or ttmond starts again. --takeover starts a new
ttmond in the place of a running one, without losing a byte.`,
		Version: version.Long(),
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return daemon.Usage(fmt.Errorf("unexpected argument %q: ttmond takes only flags", args[0]))
			}
			return nil
		},
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := configure(f)
			if f.keep {
				cfg, err = keeperConfig()
			}
			if err == nil {
				err = f.moved()
			}
			if err != nil {
				return daemon.Usage(err)
			}
			if f.checkConfig {
				return cfg.print(cmd.OutOrStdout())
			}
			return run(cmd.Context(), f, cfg)
		},
	}
	cmd.AddCommand(movedCommand("fleet"), movedCommand("replay"))
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return daemon.Usage(err) })
	p := cmd.Flags()
	p.StringVar(&f.allocSocket, "alloc-socket", "", "where old clients report (default "+defaultConfig().Alloc.Socket+")")
	p.StringVar(&f.apiSocket, "socket", "", "where the API is (default "+defaultConfig().API.Socket+")")
	p.StringVar(&f.stateDir, "state-dir", "", "where state is kept (default "+defaultConfig().StateDir+")")
	p.StringVar(&f.root, "root", "", "the host's root directory, if it is not /")
	p.StringVar(&f.config, "config", "", "configuration `FILE` (default "+daemon.ConfigPath("ttmond.toml")+" if it is there)")
	p.BoolVar(&f.takeover, "takeover", false, "take the place of a running ttmond")
	p.BoolVar(&f.checkConfig, "check-config", false, "check the configuration, print it in full, and exit")
	p.StringVar(&f.firmware, "firmware", "", "what to read of the chips' firmware: `off|table|full` (default off)")
	p.BoolVar(&f.noUprobe, "no-uprobe", false, "do not watch the allocators of programs through the kernel")
	p.BoolVarP(&f.verbose, "verbose", "v", false, "log more")
	p.BoolVar(&f.keep, "keep", false, "only keep the connections of a ttmond that stops")
	p.StringVar(&f.listen, "listen", "", "ttmon-server's")
	p.StringVar(&f.nodeCondition, "node-condition", "", "ttmon-server's")
	for _, name := range []string{"keep", "listen", "node-condition"} {
		_ = p.MarkHidden(name)
	}
	return cmd
}

// moved refuses flags of what ttmon-server does now. That there is no TCP listener
// may be said: it is so.
func (f *flags) moved() error {
	switch {
	case f.listen != "" && f.listen != "off":
		return errors.New("--listen: ttmond listens on Unix sockets only; /metrics, PromQL and the page are served by ttmon-server --listen ADDR")
	case f.nodeCondition != "":
		return errors.New("--node-condition: the condition of the node is set by ttmon-server --node-condition NODE")
	}
	return nil
}

// movedCommand refuses a command that is ttmon-server's now.
func movedCommand(name string) *cobra.Command {
	return &cobra.Command{
		Use: name, Hidden: true, DisableFlagParsing: true,
		RunE: func(*cobra.Command, []string) error {
			return daemon.Usage(fmt.Errorf("%s is served by ttmon-server %s", name, name))
		},
	}
}
