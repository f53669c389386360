package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/ttmon/ttmon/internal/api/client"
	"github.com/ttmon/ttmon/internal/collect"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/source/setup"
	"github.com/ttmon/ttmon/internal/version"
	"github.com/ttmon/ttmon/internal/view/doctor"
	"github.com/ttmon/ttmon/internal/view/text"
	"github.com/ttmon/ttmon/internal/view/words"
)

// doctorCmd is the command ttmon doctor with its flags.
type doctorCmd struct {
	*app
	json    bool
	bundle  string
	private bool
}

func newDoctor(a *app) *cobra.Command {
	d := &doctorCmd{app: a}
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Checks the host's setup for boards, and says what to do about what is wrong",
		Long: `Checks driver, firmware, PCIe links, permissions, IOMMU, huge pages, tt-metal's
accounting in /dev/shm, ttmond, uprobes, and what is missing for exact memory
figures; says what to do about each. It only looks, as every user may, and
answers within a second also if a chip hangs.

A hint is something that works and could do better. --bundle packs the report
and what it was made from into a file for a support request. Names of users,
hosts, programs and containers, command lines, and serial numbers are left out or
replaced in it, unless --private asks for them.

Exit codes: 0 all well, hints included; 1 a warning; 2 something does not work;
3 there is no board to check; 4 the bundle cannot be written.`,
		Example: `  ttmon doctor
  ttmon doctor --json | jq '.findings[] | select(.level != "ok")'
  ttmon doctor --bundle ttmon-bundle.tar.gz`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return d.run() },
	}
	f := cmd.Flags()
	f.BoolVar(&d.json, "json", false, "JSON in the ttmon.doctor/1 contract")
	f.StringVar(&d.bundle, "bundle", "", "also write a support bundle to `FILE`.tar.gz, which must not be there yet")
	f.BoolVar(&d.private, "private", false, "with --bundle: leave names, command lines and serial numbers in it")
	return cmd
}

func (d *doctorCmd) run() error {
	if d.private && d.bundle == "" {
		return usage("--private is about what --bundle packs: use both")
	}
	subject, err := d.subject()
	if err != nil {
		return err
	}
	report := doctor.Examine(subject)
	if d.bundle != "" {
		if err := d.pack(subject); err != nil {
			return err
		}
	}
	if err := d.print(report); err != nil {
		return err
	}
	if code := report.ExitCode(); code != 0 {
		return &exitError{code: code}
	}
	return nil
}

func (d *doctorCmd) print(r *doctor.Report) error {
	if d.json {
		return d.output("").write(append(reportJSON(r), '\n'))
	}
	o, err := d.textOptions(d.stdout)
	if err != nil {
		return err
	}
	out := text.AppendDoctor(nil, r, o)
	if d.bundle != "" {
		out = append(out, "\n the support bundle is "+words.Escape(d.bundle)+"\n"...)
	}
	return d.output("").write(out)
}

// reportJSON is the report for scripts.
func reportJSON(r *doctor.Report) []byte {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		panic("BUG: a report that is no JSON: " + err.Error())
	}
	return b
}

// subject gathers what is examined: this process's own view of the host, since
// that is what is asked about, and ttmond's word on itself.
func (d *doctorCmd) subject() (*doctor.Subject, error) {
	h, err := d.openHost()
	if err != nil {
		return nil, err
	}
	defer h.Close()
	s := &doctor.Subject{Root: os.Geteuid() == 0, Version: version.Version}
	said := make(chan doctor.DaemonState, 1)
	go func() { said <- askHealth(h) }()
	s.Setup = setup.Read(h.root)
	if s.Snapshot, err = d.snapshot(h); err != nil {
		return nil, err
	}
	s.Daemon = <-said
	return s, nil
}

// snapshot is the daemon's where it answers, for it sees more; it must be of
// this host.
func (d *doctorCmd) snapshot(h *host) (*model.Snapshot, error) {
	devices, all := 500*time.Millisecond, 900*time.Millisecond // an answer within a second, whatever hangs
	if h.patience > 0 {
		devices, all = h.patience, 2*h.patience
	}
	ctx, cancel := context.WithTimeout(context.Background(), all)
	defer cancel()
	if s, _ := h.ask(ctx); s != nil { // why not is said about the daemon
		return s, nil
	}
	c := collect.New(h.root, collect.Options{Patience: devices})
	defer c.Close()
	return c.Collect(ctx), nil
}

// askHealth asks ttmond how it is doing.
func askHealth(h *host) doctor.DaemonState {
	path := h.socket()
	if path == "" {
		return doctor.DaemonState{}
	}
	ctx, cancel := context.WithTimeout(context.Background(), h.daemonPatience())
	defer cancel()
	c := client.New(path)
	defer c.Close()
	health, _, err := c.Health(ctx)
	if err != nil {
		if op, away := errors.AsType[*net.OpError](err); away && op.Op == "dial" && !h.must {
			return doctor.DaemonState{} // a socket that somebody left
		}
		return doctor.DaemonState{Path: path, Why: err.Error()}
	}
	s := doctor.DaemonState{Answers: true, Path: path, Version: health.Version}
	for _, p := range health.Problems {
		s.Problems = append(s.Problems, p.Part+": "+p.Reason)
	}
	for _, p := range health.Warnings {
		s.Warnings = append(s.Warnings, p.Part+": "+p.Reason)
	}
	if u := health.Uprobe; u != nil {
		s.Watch, s.Reason, s.Watched = u.State, u.Reason, u.Processes
		if u.Late != "" {
			s.Unwatched = append(s.Unwatched, u.Late)
		}
		for _, l := range u.Libraries {
			if l.Reason != "" {
				s.Unwatched = append(s.Unwatched, fmt.Sprintf("%s is not watched: %s", l.Path, l.Reason))
			}
		}
	}
	return s
}
