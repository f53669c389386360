// Ttmond is the node daemon: the allocation server that instrumented programs
// report to, the collector in the background, and the API that ttmon and
// ttmon-server ask. It opens no socket but Unix sockets.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/ttmon/ttmon/internal/base/version"
	"github.com/ttmon/ttmon/internal/node"
	"github.com/ttmon/ttmon/internal/node/daemon"
	"github.com/ttmon/ttmon/internal/source/chipread"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == chipread.Flag { // started to read one chip
		os.Exit(chipread.Main())
	}
	// A log reader or an API client that disconnects must not kill the daemon.
	signal.Ignore(syscall.SIGPIPE)
	// First of all: a SIGHUP that comes before the configuration is read must not end
	// a ttmond, nor one that comes after it be lost.
	hups := daemon.Hangups()
	ctx, stop := signal.NotifyContext(context.Background(), daemon.EndSignals()...)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal kills the process immediately
	if err := execute(ctx, os.Args[1:], hups, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "ttmond:", err)
		os.Exit(daemon.ExitCode(err))
	}
}

// flags are those of the command line, which take precedence over the configuration.
type flags struct {
	node.Options
	checkConfig, checkState, keep, reload, help, version bool
}

// about is what --help says before the flags.
const about = `ttmond is the node daemon of ttmon: it reads the driver, tracks the device memory of
every process, and serves ttmon and all local users over an API socket. It runs in
the foreground, needs no configuration, opens no device unless --firmware is given,
and listens on Unix sockets only: history, alerts, /metrics and the web page are
ttmon-server's.

Stopping it does not close the connections of programs that report allocations: a
small process keeps them open until they exit or ttmond starts again. --reload has a
running ttmond execute its program again, and read its configuration: after an
upgrade or a change of the file, and without losing a message.`

// execute runs a command line. It is parsed without cobra: cobra's templates disable the
// linker's elimination of unused methods, which costs 2 MB.
func execute(ctx context.Context, args []string, hups <-chan os.Signal, out io.Writer) error {
	var f flags
	set := f.flagSet()
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		return daemon.Usage(unexpected(args[0]))
	}
	if err := set.Parse(args); err != nil {
		return daemon.Usage(err)
	}
	switch {
	case f.help:
		fmt.Fprintf(out, "%s\n\nUsage:\n  ttmond [flags]\n\nFlags:\n%s", about, set.FlagUsages())
		return nil
	case f.version:
		fmt.Fprintln(out, "ttmond version", version.Long())
		return nil
	case set.NArg() > 0:
		return daemon.Usage(unexpected(set.Arg(0)))
	}
	cfg, err := f.config()
	if err != nil {
		return daemon.Usage(err)
	}
	switch {
	case f.checkConfig:
		return cfg.Print(out)
	case f.checkState:
		return node.Check(cfg, out)
	case f.reload:
		return node.Reload(ctx, cfg, out)
	}
	return node.Run(ctx, cfg, hups)
}

// config is that of the file and the flags. A keeper gets it from the ttmond that stops.
func (f *flags) config() (node.Config, error) {
	if f.keep {
		return node.KeeperConfig()
	}
	return node.Configure(f.Options)
}

// flagSet defines the flags.
func (f *flags) flagSet() *pflag.FlagSet {
	p := pflag.NewFlagSet("ttmond", pflag.ContinueOnError)
	p.Usage = func() {}
	preset := node.Default()
	p.StringVar(&f.AllocSocket, "alloc-socket", "", "`PATH` of the socket for tt-metal's allocation reports (default "+preset.Alloc.Socket+")")
	p.StringVar(&f.APISocket, "socket", "", "`PATH` of the API socket (default "+preset.API.Socket+")")
	p.StringVar(&f.StateDir, "state-dir", "", "`DIR` for state that survives a restart (default "+preset.StateDir+")")
	p.StringVar(&f.Root, "root", "", "`DIR` at which the host's root is mounted, if not /")
	p.StringVar(&f.File, "config", "", "configuration `FILE` (default "+daemon.ConfigPath("ttmond.toml")+" if it exists)")
	p.BoolVar(&f.reload, "reload", false, "have the running ttmond execute its program again, and read its configuration")
	p.BoolVar(&f.checkConfig, "check-config", false, "check the configuration, print the result with all defaults, and exit")
	p.StringVar(&f.Firmware, "firmware", "", "read the chips' firmware telemetry: `off|table|full` (default off)")
	p.BoolVar(&f.Waits, "uprobe-waits", false, "also trace what programs enqueue and wait for; costs a few microseconds per call")
	p.BoolVar(&f.Unopened, "unopened", false, "count reports for devices that their program does not have open, marked ~")
	p.BoolVar(&f.NoUprobe, "no-uprobe", false, "do not trace the allocators of programs with uprobes")
	p.BoolVarP(&f.Verbose, "verbose", "v", false, "log at debug level")
	p.BoolVarP(&f.Quiet, "quiet", "q", false, "log warnings and errors only")
	p.BoolVarP(&f.help, "help", "h", false, "print this help and exit")
	p.BoolVar(&f.version, "version", false, "print the version and exit")
	p.BoolVar(&f.keep, "keep", false, "only keep the connections of a ttmond that stops")
	_ = p.MarkHidden("keep")
	p.BoolVar(&f.checkState, "check-state", false, "only say whether the state that was lent could be taken over")
	_ = p.MarkHidden("check-state")
	return p
}

// unexpected returns the error for an argument.
func unexpected(arg string) error {
	return fmt.Errorf("unexpected argument %q: ttmond takes only flags", arg)
}
