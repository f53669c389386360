package main

import (
	"github.com/spf13/cobra"

	"github.com/ttmon/ttmon/internal/base/exit"
	support "github.com/ttmon/ttmon/internal/cli/doctor"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/view/doctor"
	"github.com/ttmon/ttmon/internal/view/text"
)

// doctorCmd is the command ttmon doctor with its flags.
type doctorCmd struct {
	*app
	json    bool
	bundle  string
	private bool
	daemons bool
}

func newDoctor(a *app) *cobra.Command {
	d := &doctorCmd{app: a}
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check the host's setup and say how to fix what is wrong",
		Long: `Checks driver, firmware, PCIe links, permissions, IOMMU, huge pages, tt-metal's
accounting in /dev/shm, ttmond, uprobes, and what is missing for exact memory
figures; says what to do about each. It only reads, works for every user,
and answers within a second even if a chip hangs.

A hint is about something that works but could work better. --bundle packs the report
and what it was made from into a file for a support request. Names of users,
hosts, programs and containers, command lines, and serial numbers are removed or
replaced, unless --private keeps them.

--daemons shows the health of ttmond and ttmon-server instead: whether they respond in
time, their clients, what they store, which users have reached a limit.

Exit codes: 0 no problem, or hints only; 1 a warning; 2 something does not work;
3 there is no board to check, or no ttmond responds; 4 the bundle cannot be written.`,
		Example: `  ttmon doctor
  ttmon doctor --json | jq '.findings[] | select(.level != "ok")'
  ttmon doctor --bundle ttmon-bundle.tar.gz
  ttmon doctor --daemons`,
		RunE: func(*cobra.Command, []string) error { return d.run() },
	}
	f := cmd.Flags()
	f.BoolVar(&d.daemons, "daemons", false, "show the health of ttmond and ttmon-server")
	f.BoolVar(&d.json, "json", false, "print JSON (schema ttmon.doctor/1; with --daemons that of /v1/health)")
	f.StringVar(&d.bundle, "bundle", "", "also write a support bundle to `FILE`.tar.gz; never overwrites a file")
	f.BoolVar(&d.private, "private", false, "with --bundle: include names, command lines and serial numbers, else removed")
	return cmd
}

func (d *doctorCmd) run() error {
	if d.private && d.bundle == "" {
		return exit.Usage("--private needs --bundle")
	}
	if d.daemons {
		if d.bundle != "" {
			return exit.Usage("--daemons and --bundle cannot be used together")
		}
		return d.daemonStatus(d.json)
	}
	subject, err := support.Subject(d.where)
	if err != nil {
		return err
	}
	report := doctor.Examine(subject)
	if d.bundle != "" {
		if err := support.Bundle(d.bundle, subject, d.private); err != nil {
			return err
		}
	}
	if err := d.print(report); err != nil {
		return err
	}
	if code := report.ExitCode(); code != 0 {
		return exit.Silent(code)
	}
	return nil
}

func (d *doctorCmd) print(r *doctor.Report) error {
	if d.json {
		return d.Output("").Write(append(support.JSON(r), '\n'))
	}
	o, err := d.TextOptions(d.Stdout)
	if err != nil {
		return err
	}
	out := text.AppendDoctor(nil, r, o)
	if d.bundle != "" {
		out = append(out, "\n the support bundle is "+words.Escape(d.bundle)+"\n"...)
	}
	return d.Output("").Write(out)
}
