// Ttmond is the node daemon: the allocation server that instrumented programs
// report to, the collector in the background, and the API that ttmon and
// ttmon-server ask. It opens no socket but Unix sockets.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/ttmon/ttmon/internal/chipread"
	"github.com/ttmon/ttmon/internal/daemon"
	"github.com/ttmon/ttmon/internal/node"
	"github.com/ttmon/ttmon/internal/version"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == chipread.Flag { // started to read one chip
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
	if err := execute(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "ttmond:", err)
		os.Exit(daemon.ExitCode(err))
	}
}

// flags are what the command line says; they go before the configuration.
type flags struct {
	node.Options
	checkConfig, keep, help, version bool
	listen, nodeCondition            string // ttmon-server's
}

// about is what --help says before the flags.
const about = `ttmond listens where programs instrumented for tt-metal's old allocation server
report, keeps account of what each process holds on each chip, and answers ttmon
and everybody else on a local API. It runs in the foreground, needs no
configuration, opens no device unless --firmware tells it to, and listens on Unix
sockets only: history, alerts, /metrics and the page are ttmon-server's.

Stopping it closes no client's connection: a small process stays behind and
keeps them until they end or ttmond starts again. --takeover starts a new
ttmond in the place of a running one, without losing a byte.`

// execute does what a command line says. It is parsed without cobra, whose templates
// keep the linker from leaving out what is not used: 2 MB.
func execute(ctx context.Context, args []string, out io.Writer) error {
	var f flags
	set := f.set()
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		return daemon.Usage(unexpected(args[0]))
	}
	err := set.Parse(args)
	switch {
	case err == nil && f.help:
		fmt.Fprintf(out, "%s\n\nUsage:\n  ttmond [flags]\n\nFlags:\n%s", about, set.FlagUsages())
		return nil
	case err != nil:
		return daemon.Usage(err)
	case f.version:
		fmt.Fprintln(out, "ttmond version", version.Long())
		return nil
	case set.NArg() > 0:
		return daemon.Usage(unexpected(set.Arg(0)))
	}
	cfg, err := node.Configure(f.Options)
	if f.keep {
		cfg, err = node.KeeperConfig()
	}
	if err == nil {
		err = f.moved()
	}
	if err != nil {
		return daemon.Usage(err)
	}
	if f.checkConfig {
		return cfg.Print(out)
	}
	return node.Run(ctx, f.Options, cfg)
}

// set are the flags.
func (f *flags) set() *pflag.FlagSet {
	p := pflag.NewFlagSet("ttmond", pflag.ContinueOnError)
	p.Usage = func() {}
	preset := node.Default()
	p.StringVar(&f.AllocSocket, "alloc-socket", "", "where old clients report (default "+preset.Alloc.Socket+")")
	p.StringVar(&f.APISocket, "socket", "", "where the API is (default "+preset.API.Socket+")")
	p.StringVar(&f.StateDir, "state-dir", "", "where state is kept (default "+preset.StateDir+")")
	p.StringVar(&f.Root, "root", "", "the host's root directory, if it is not /")
	p.StringVar(&f.File, "config", "", "configuration `FILE` (default "+daemon.ConfigPath("ttmond.toml")+" if it is there)")
	p.BoolVar(&f.Takeover, "takeover", false, "take the place of a running ttmond")
	p.BoolVar(&f.checkConfig, "check-config", false, "check the configuration, print it in full, and exit")
	p.StringVar(&f.Firmware, "firmware", "", "what to read of the chips' firmware: `off|table|full` (default off)")
	p.BoolVar(&f.Waits, "uprobe-waits", false, "see what programs enqueue and wait for, too, at some microseconds a call")
	p.BoolVar(&f.NoUprobe, "no-uprobe", false, "do not watch the allocators of programs through the kernel")
	p.BoolVarP(&f.Verbose, "verbose", "v", false, "log more")
	p.BoolVarP(&f.help, "help", "h", false, "print this and exit")
	p.BoolVar(&f.version, "version", false, "print the version and exit")
	p.BoolVar(&f.keep, "keep", false, "only keep the connections of a ttmond that stops")
	p.StringVar(&f.listen, "listen", "", "ttmon-server's")
	p.StringVar(&f.nodeCondition, "node-condition", "", "ttmon-server's")
	for _, name := range []string{"keep", "listen", "node-condition"} {
		_ = p.MarkHidden(name)
	}
	return p
}

// unexpected is the error of an argument. Two were commands once.
func unexpected(arg string) error {
	if arg == "fleet" || arg == "replay" {
		return fmt.Errorf("%s is served by ttmon-server %s", arg, arg)
	}
	return fmt.Errorf("unexpected argument %q: ttmond takes only flags", arg)
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
