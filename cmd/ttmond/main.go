// Ttmond is the node daemon: the allocation server that instrumented programs
// report to, the collector in the background, and the API that ttmon asks.
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
	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/chipread"
	"github.com/ttmon/ttmon/internal/version"
)

func main() {
	if readsChip() {
		os.Exit(chipread.Main())
	}
	// A log reader or an API client that leaves must not end the daemon.
	signal.Ignore(syscall.SIGPIPE)
	ends := endSignals()
	if !slices.Contains(ends, os.Signal(syscall.SIGHUP)) {
		// It would end us: a ttmond that starts has not read its configuration
		// yet, and a keeper never does. hangups listens for it later.
		signal.Ignore(syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	defer stop()
	context.AfterFunc(ctx, stop) // whoever asks twice means it
	if err := command().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "ttmond:", err)
		os.Exit(exitCode(err))
	}
}

// endSignals are those that stop ttmond. SIGHUP is one only where it says that
// the terminal was closed; a daemon is asked by it to read its configuration
// again.
func endSignals() []os.Signal {
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if onTerminal() && !signal.Ignored(syscall.SIGHUP) { // and nohup did not say otherwise
		ends = append(ends, syscall.SIGHUP)
	}
	return ends
}

func onTerminal() bool {
	_, err := unix.IoctlGetTermios(int(os.Stderr.Fd()), unix.TCGETS)
	return err == nil
}

// exitCode is 2 for what the user can correct on the command line or in the
// configuration, 1 for the rest.
func exitCode(err error) int {
	if _, ok := errors.AsType[usageError](err); ok {
		return 2
	}
	return 1
}

// usageError is an error of the command line or the configuration.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// takes makes what is wrong with arguments an error of the command line.
func takes(args cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, given []string) error {
		if err := args(cmd, given); err != nil {
			return usageError{err}
		}
		return nil
	}
}

// flags are what the command line says; they go before the configuration.
type flags struct {
	allocSocket, apiSocket, stateDir, root, config string
	listen                                         string
	takeover, checkConfig, verbose, keep           bool
	noUprobe                                       bool
	nodeCondition                                  string
	firmware                                       string
}

func command() *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "ttmond",
		Short: "the ttmon node daemon: hears every allocation, and answers for every user",
		Long: `ttmond listens where programs instrumented for tt-metal's old allocation server
report, keeps account of what each process holds on each chip, and answers ttmon
and everybody else on a local API. It runs in the foreground, needs no
configuration, and opens no device unless --firmware tells it to.

Stopping it closes no client's connection: a small process stays behind and
keeps them until they end or ttmond starts again. --takeover starts a new
ttmond in the place of a running one, without losing a byte.`,
		Version: version.Long(),
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("unexpected argument %q: ttmond takes only flags", args[0])}
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
			if err != nil {
				return usageError{err}
			}
			if f.checkConfig {
				return cfg.print(cmd.OutOrStdout())
			}
			return run(cmd.Context(), f, cfg)
		},
	}
	cmd.AddCommand(fleetCommand(), replayCommand())
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	p := cmd.Flags()
	p.StringVar(&f.allocSocket, "alloc-socket", "", "where old clients report (default "+defaultConfig().Alloc.Socket+")")
	p.StringVar(&f.apiSocket, "socket", "", "where the API is (default "+defaultConfig().API.Socket+")")
	p.StringVar(&f.stateDir, "state-dir", "", "where state is kept (default "+defaultConfig().StateDir+")")
	p.StringVar(&f.listen, "listen", "", "`ADDR` of /metrics, the API and PromQL over HTTP, or off (default "+defaultListen+")")
	p.StringVar(&f.root, "root", "", "the host's root directory, if it is not /")
	p.StringVar(&f.config, "config", "", "configuration `FILE` (default "+defaultConfigPath()+" if it is there)")
	p.BoolVar(&f.takeover, "takeover", false, "take the place of a running ttmond")
	p.BoolVar(&f.checkConfig, "check-config", false, "check the configuration, print it in full, and end")
	p.BoolVar(&f.noUprobe, "no-uprobe", false, "do not watch the allocators of programs through the kernel")
	p.StringVar(&f.nodeCondition, "node-condition", "", "in a pod: set the condition TenstorrentProblem of this `NODE` of Kubernetes when a chip hangs or is lost")
	p.StringVar(&f.firmware, "firmware", "", "what to read of the chips' firmware: `off|table|full` (default off)")
	p.BoolVarP(&f.verbose, "verbose", "v", false, "log more")
	p.BoolVar(&f.keep, "keep", false, "only keep the connections of a ttmond that stops")
	_ = p.MarkHidden("keep")
	return cmd
}
