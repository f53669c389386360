package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/base/exit"
	"github.com/ttmon/ttmon/internal/cli/console"
	support "github.com/ttmon/ttmon/internal/cli/doctor"
	"github.com/ttmon/ttmon/internal/cli/selection"
	"github.com/ttmon/ttmon/internal/cli/selftest"
	"github.com/ttmon/ttmon/internal/cli/selftest/report"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/view/text"
)

// selftestCmd is the command ttmon selftest with its flags.
type selftestCmd struct {
	*app
	python, bundle           string
	official, json, all, yes bool
	ids                      []string
	limit                    time.Duration
}

func newSelftest(a *app) *cobra.Command {
	s := &selftestCmd{app: a}
	cmd := &cobra.Command{
		Use:   "selftest",
		Short: "Check ttmon's figures against independent sources on this host",
		Long: `Compares every figure that ttmon shows on this host with a second source: the
driver's files read by another program, the kernel's view of processes, the
accounting regions decoded again. With --python it also runs a small ttnn
program that knows what it holds; with --tt-smi it compares with Tenstorrent's own
tool. It then measures what ttmon costs, and checks that it touched no device.

Nothing is changed on the host. No device is opened without --python, and none
that is in use unless -i names it; both flags ask first.

Exit codes: 0 nothing is wrong, 1 a figure is wrong, 2 bad argument, 3 something
that was asked for could not be tested (--python, --tt-smi, --timeout).`,
		Example: `  ttmon selftest
  ttmon selftest --python ~/tt-metal/python_env/bin/python
  ttmon selftest --json | jq '.rows[] | select(.verdict == "wrong")'
  ttmon selftest --bundle selftest.tar.gz       attach it to an issue`,
		RunE: func(*cobra.Command, []string) error { return s.run() },
	}
	f := cmd.Flags()
	f.StringVar(&s.python, "python", "", "also run a ttnn program with this `PYTHON`; it opens a device that is not in use")
	addDevices(f, &s.ids, "with --python: the `DEVICES` the ttnn program may open, in use or not")
	f.BoolVar(&s.official, "tt-smi", false, "also compare with tt-smi, which opens and wakes the chips")
	f.DurationVar(&s.limit, "timeout", selftest.DefaultLimit, "stop after `TIME` and list what was not tested")
	f.BoolVarP(&s.yes, "yes", "y", false, "do not ask for confirmation")
	f.BoolVar(&s.all, "all", false, "print a line per device, even where all agree")
	f.BoolVar(&s.json, "json", false, "print JSON (schema "+report.Schema+")")
	f.StringVar(&s.bundle, "bundle", "", "also write a bundle for a bug report to `FILE`.tar.gz; never overwrites a file")
	return cmd
}

func (s *selftestCmd) run() error {
	if s.limit <= 0 {
		return exit.Usage("--timeout: %s is not positive", s.limit)
	}
	o := selftest.Options{Host: s.where, Python: s.python, Flags: s.globalFlags(), Limit: s.limit}
	var err error
	if o.Only, err = selection.Parse(s.ids); err != nil {
		return err
	}
	if len(s.ids) > 0 && s.python == "" {
		return exit.Usage("-i needs --python: it names devices for the ttnn program")
	}
	if o.Program, err = os.Executable(); err != nil {
		return exit.With(exit.Internal, "finding ttmon itself: %w", err)
	}
	if s.python != "" {
		if o.Python, err = exec.LookPath(s.python); err != nil {
			return exit.Usage("--python: %w", err)
		}
	}
	if s.official {
		if o.Official, err = exec.LookPath("tt-smi"); err != nil {
			return exit.Usage("--tt-smi: tt-smi is not installed (pip install tt-smi)")
		}
	}
	if err := s.agree(); err != nil {
		return err
	}
	if _, _, terminal := console.Size(s.Stderr); terminal && !s.json {
		o.Progress = func(what string) { fmt.Fprintf(s.Stderr, "\r\x1b[K testing %s…", what) }
		defer fmt.Fprint(s.Stderr, "\r\x1b[K")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, unix.SIGTERM)
	defer stop()
	result, err := selftest.Run(ctx, o)
	if err != nil {
		return err
	}
	return s.finish(result)
}

// agree asks before anything is opened or woken.
func (s *selftestCmd) agree() error {
	var what []string
	if s.python != "" {
		what = append(what, "--python opens a device and allocates memory on it for some seconds")
	}
	if s.official {
		what = append(what, "--tt-smi wakes every chip")
	}
	if len(what) == 0 || s.yes {
		return nil
	}
	if _, _, terminal := console.Size(s.Stderr); !terminal {
		return exit.Usage("%s: add --yes to agree", strings.Join(what, "; "))
	}
	fmt.Fprintf(s.Stderr, "%s.\nContinue? [y/N] ", strings.Join(what, ".\n"))
	line, _ := bufio.NewReader(os.Stdin).ReadString('\n')
	if a := strings.ToLower(strings.TrimSpace(line)); a != "y" && a != "yes" {
		return exit.With(exit.BadArgument, "nothing was tested")
	}
	return nil
}

// globalFlags are those of all commands that a ttmon started by the test needs,
// to look at the same host.
func (s *selftestCmd) globalFlags() (flags []string) {
	if s.where.Root != "" {
		flags = append(flags, "--root", s.where.Root)
	}
	if s.where.Daemon != "" {
		flags = append(flags, "--daemon", s.where.Daemon)
	}
	if s.where.Direct {
		flags = append(flags, "--direct")
	}
	return flags
}

func (s *selftestCmd) finish(r *report.Report) error {
	if s.bundle != "" {
		if err := support.SelftestBundle(s.bundle, s.where, r); err != nil {
			return err
		}
	}
	out := append(r.JSON(), '\n')
	if !s.json {
		o, err := s.TextOptions(s.Stdout)
		if err != nil {
			return err
		}
		out = text.AppendSelftest(nil, r, s.all, o)
		if s.bundle != "" {
			out = append(out, "\n the bundle is "+words.Escape(s.bundle)+"\n"...)
		}
	}
	if err := s.Output("").Write(out); err != nil {
		return err
	}
	switch {
	case r.Count(report.Wrong) > 0:
		return exit.Silent(1)
	case r.Count(report.Failed) > 0:
		return exit.Silent(exit.Unsupported)
	}
	return nil
}
