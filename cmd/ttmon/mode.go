package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/base/exit"
	"github.com/ttmon/ttmon/internal/base/nearest"
	"github.com/ttmon/ttmon/internal/cli/repeat"
	"github.com/ttmon/ttmon/internal/field/metric"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/text"
)

// job decides what is printed. Two flags that ask for different things are an
// error.
func (s *smi) job() (repeat.Job, error) {
	type mode struct {
		flag string
		on   bool
		make func() (repeat.Job, error)
	}
	if only := !(s.json || s.list || s.query || s.ttList || s.trays || s.queryDevice != "" || s.apps != ""); only && s.ttSMI && s.cmd.Flags().Changed("filename") {
		s.snapshot = true // tt-smi -f alone saves a snapshot
	}
	modes := []mode{
		{"--json", s.json, s.jsonJob},
		{"-L", s.list, s.listJob},
		{"-q", s.query, s.reportJob},
		{"--query-device", s.queryDevice != "", s.deviceJob},
		{"--query-apps", s.apps != "", s.appsJob},
		{"--snapshot", s.snapshot || s.noTTY, s.snapshotJob},
		{"--list", s.ttList, s.ttListJob},
		{"--glx_list_tray_to_device", s.trays, s.traysJob},
	}
	chosen := mode{make: s.tableJob}
	for _, m := range modes {
		if !m.on {
			continue
		}
		if chosen.on {
			return repeat.Job{}, exit.Usage("%s and %s cannot be used together", chosen.flag, m.flag)
		}
		chosen = m
	}
	f := s.cmd.Flags()
	if s.display != "" && !s.query {
		return repeat.Job{}, exit.Usage("-d selects sections of the report: use it with -q")
	}
	if f.Changed("format") && s.queryDevice == "" && s.apps == "" {
		return repeat.Job{}, exit.Usage("--format needs --query-device or --query-apps")
	}
	for _, name := range []string{"query-device", "query-gpu", "query-apps", "query-compute-apps"} {
		if f.Changed(name) && f.Lookup(name).Value.String() == "" {
			return repeat.Job{}, exit.Usage("--%s needs fields: --help-%s lists them", name, name)
		}
	}
	return chosen.make()
}

func (s *smi) tableJob() (repeat.Job, error) {
	return repeat.Job{InPlace: true, Print: func(dst []byte, snap *model.Snapshot, o text.Options) []byte {
		o.Plain, o.Names = s.compact, s.names
		return text.AppendTable(dst, snap, o)
	}}, nil
}

func (s *smi) listJob() (repeat.Job, error) {
	return repeat.Job{InPlace: true, Print: text.AppendList}, nil
}

func (s *smi) jsonJob() (repeat.Job, error) {
	return repeat.Job{Print: s.appendJSON, Anyway: true}, nil
}

func (s *smi) reportJob() (repeat.Job, error) {
	var sections []text.Section
	for name := range strings.SplitSeq(s.display, ",") {
		if strings.TrimSpace(name) == "" {
			continue
		}
		section, ok := text.ParseSection(name)
		if !ok {
			var known []string
			for _, k := range text.Sections() {
				known = append(known, string(k))
			}
			if n := nearest.Word(strings.ToUpper(name), known); n != "" {
				return repeat.Job{}, exit.Usage("unknown section %q: did you mean %s?", name, n)
			}
			return repeat.Job{}, exit.Usage("unknown section %q: one of %s", name, sectionNames())
		}
		sections = append(sections, section)
	}
	return repeat.Job{InPlace: true, Print: func(dst []byte, snap *model.Snapshot, o text.Options) []byte {
		o.Plain = s.compact
		return text.AppendReport(dst, snap, sections, o)
	}}, nil
}

// ratesSample is how long a query that asks for rates waits for its second
// sample.
const ratesSample = 200 * time.Millisecond

func (s *smi) deviceJob() (repeat.Job, error) {
	columns, sample, err := columns("--query-device", s.queryDevice, metric.Devices())
	if err != nil {
		return repeat.Job{}, err
	}
	if s.cmd.Flags().Changed("query-gpu") && slices.ContainsFunc(columns, func(c metric.Column[*model.Device]) bool { return c.Title == "fan.speed" }) {
		fmt.Fprintln(s.Stderr, "ttmon: fan.speed is in rpm; nvidia-smi's is in percent, which boards do not report")
	}
	if s.estimates {
		estimate, _ := metric.Find(metric.Devices(), "activity.estimate")
		for i := range columns {
			if columns[i].Name == metric.Utilization {
				f := *columns[i].Field
				measured := f.Get
				f.Get = func(s *model.Snapshot, d *model.Device) metric.Value {
					if v := measured(s, d); v.Known() {
						return v
					}
					return estimate.Get(s, d)
				}
				columns[i].Field = &f
			}
		}
	}
	return csvJob(s, columns, sample, text.CSV.AppendQuery)
}

func (s *smi) appsJob() (repeat.Job, error) {
	columns, sample, err := columns("--query-apps", s.apps, metric.Apps())
	if err != nil {
		return repeat.Job{}, err
	}
	return csvJob(s, columns, sample, text.CSV.AppendQueryApps)
}

// csvJob prints rows, and before the first of them what they mean.
func csvJob[S any](s *smi, columns []metric.Column[S], sample time.Duration,
	rows func(text.CSV, []byte, *model.Snapshot, []metric.Column[S]) []byte,
) (repeat.Job, error) {
	f, err := s.csv()
	begun := false
	f.Dropped = sayDropped(s, columns)
	return repeat.Job{Sample: sample, Print: func(dst []byte, snap *model.Snapshot, _ text.Options) []byte {
		if !begun {
			begun = true
			s.saySimulated(snap)
			if !f.NoHeader {
				dst = text.AppendHeader(dst, columns)
			}
		}
		return rows(f, dst, snap, columns)
	}}, err
}

// sayDropped says once of each field that nounits leaves its mark of doubt out, unless
// the field that has the bound was asked for, too.
func sayDropped[S any](s *smi, columns []metric.Column[S]) func(field string) {
	said := map[string]bool{}
	for _, c := range columns {
		if field, ok := strings.CutSuffix(c.Title, ".bound"); ok {
			said[field] = true
		}
	}
	return func(field string) {
		if !said[field] {
			said[field] = true
			fmt.Fprintf(s.Stderr, "ttmon: %s is not exact, which nounits leaves out: the field %s.bound says it\n", field, field)
		}
	}
}

// saySimulated says so where the output itself has no place for it.
func (s *smi) saySimulated(snap *model.Snapshot) {
	if snap.Simulated {
		s.Stderr.WriteString("ttmon: " + words.Simulated + "\n")
	}
}

// columns looks the fields of a query up; sample is how long to wait for a
// second sample, if one of them needs it.
func columns[S any](flag, list string, table []metric.Field[S]) (out []metric.Column[S], sample time.Duration, err error) {
	for name := range strings.SplitSeq(list, ",") {
		name = strings.TrimSpace(name)
		col, ok := metric.Find(table, name)
		if !ok {
			if n := nearest.Word(name, metric.Names(table)); n != "" && name != "" {
				return nil, 0, exit.Usage("%s: unknown field %q: did you mean %s?", flag, name, n)
			}
			return nil, 0, exit.Usage("%s: unknown field %q: --help-%s lists them", flag, name, strings.TrimPrefix(flag, "--"))
		}
		if col.Rate {
			sample = ratesSample
		}
		out = append(out, col)
	}
	return out, sample, nil
}

func (s *smi) csv() (f text.CSV, err error) {
	for i, part := range strings.Split(s.format, ",") {
		switch part = strings.TrimSpace(part); {
		case i == 0 && part == "csv":
		case i > 0 && part == "noheader":
			f.NoHeader = true
		case i > 0 && part == "nounits":
			f.NoUnits = true
		default:
			return f, exit.Usage("--format=%s: unknown format %q: it is csv[,noheader][,nounits]", s.format, part)
		}
	}
	return f, nil
}

func (s *smi) snapshotJob() (repeat.Job, error) {
	if s.cmd.Flags().Changed("filename") && s.file == "" { // -f alone: where the official tool puts it
		home, err := os.UserHomeDir()
		if err != nil {
			return repeat.Job{}, exit.With(exit.Internal, "no directory for the snapshot: %w: name a file with -f", err)
		}
		s.file = filepath.Join(home, "tt_smi_logs", time.Now().Format("01-02-2006_15:04:05")+"_results.json")
	}
	return repeat.Job{Print: func(dst []byte, snap *model.Snapshot, o text.Options) []byte {
		return text.AppendTTSMI(dst, snap, s.hostInfo(), o)
	}}, nil
}

func (s *smi) ttListJob() (repeat.Job, error) { return repeat.Job{Print: text.AppendTTList}, nil }

func (s *smi) traysJob() (repeat.Job, error) { return repeat.Job{Print: text.AppendTTTrays}, nil }
