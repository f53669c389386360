package selftest

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/api/apitype"
	"github.com/ttmon/ttmon/internal/api/client"
	"github.com/ttmon/ttmon/internal/collect"
	"github.com/ttmon/ttmon/internal/host"
	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/selection"
	"github.com/ttmon/ttmon/internal/selftest/report"
	"github.com/ttmon/ttmon/internal/version"
)

// Options say what is tested.
type Options struct {
	Host    host.Options
	Program string   // ttmon itself, to measure it
	Flags   []string // of all commands, for ttmon started by the test

	// Python has ttnn in it; empty: no program is run. Only are the devices it
	// may open: none named means one that nobody uses.
	Python string
	Only   selection.Selection
	// Official is Tenstorrent's tt-smi, which wakes chips; empty: it is not run.
	Official string
	// Progress is told what is done next.
	Progress func(string)
}

// test is a self-test that runs.
type test struct {
	Options
	root    hostfs.Root
	host    *host.Host
	direct  *collect.Collector
	isRoot  bool
	program string
	flags   []string
	health  *apitype.Health // of a ttmond that runs here; nil: none
}

// Run makes all comparisons. The error is about the options; what could not be
// compared is in the report.
func Run(ctx context.Context, o Options) (*report.Report, error) {
	h, err := host.Open(o.Host)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	t := &test{
		Options: o, root: h.Root, host: h, isRoot: os.Geteuid() == 0, program: o.Program, flags: o.Flags,
		direct: collect.New(h.Root, collect.Options{Patience: time.Second}),
	}
	defer t.direct.Close()
	begun := time.Now()
	r := &report.Report{Schema: report.Schema, Version: version.Version, Time: begun.UTC(), Root: t.isRoot, Boards: []report.Board{}, Rows: []report.Row{}}
	if err := t.all(ctx, r); err != nil {
		return nil, err
	}
	r.Seconds = time.Since(begun).Seconds()
	order := report.Parts()
	slices.SortStableFunc(r.Rows, func(a, b report.Row) int { return slices.Index(order, a.Part) - slices.Index(order, b.Part) })
	return r, nil
}

func (t *test) all(ctx context.Context, r *report.Report) error {
	t.health = t.askHealth(ctx)
	s := t.snapshot(ctx)
	if err := t.about(r, s); err != nil {
		return err
	}
	before := t.readTraces(s)
	for _, part := range []struct {
		what string
		do   func()
	}{
		{"the host", func() { t.hostRows(ctx, r, s) }},
		{"devices", func() { t.devices(ctx, r) }},
		{"who uses them", func() { t.users(ctx, r) }},
		{"memory in shared memory", func() { t.regions(ctx, r) }},
		{"cost", func() { t.cost(ctx, r) }},
		{"what was touched", func() { t.harmless(r, before, t.snapshot(ctx)) }},
		{"tt-smi", func() { t.official(ctx, r) }},
		{"a ttnn program", func() { t.ttnn(ctx, r) }},
	} {
		if t.Progress != nil {
			t.Progress(part.what)
		}
		part.do()
	}
	t.optional(r, s)
	return ctx.Err()
}

// snapshot reads the host directly: what is tested is ttmon's reading, not a
// daemon's memory of it.
func (t *test) snapshot(ctx context.Context) *model.Snapshot { return t.direct.Collect(ctx) }

func (t *test) askHealth(ctx context.Context) *apitype.Health {
	path := t.host.Socket()
	if path == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, t.host.DaemonTimeout())
	defer cancel()
	c := client.New(path)
	defer c.Close()
	h, _, err := c.Health(ctx)
	if err != nil {
		return nil
	}
	return &h
}

// about fills in what the report is about.
func (t *test) about(r *report.Report, s *model.Snapshot) error {
	r.Simulated, r.Driver, r.Kernel = s.Simulated, s.Host.DriverVersion.V, t.line("/proc/sys/kernel/osrelease")
	switch {
	case s.Simulated:
		r.Stage = report.Simulated
	case len(s.Devices) == 0:
		r.Stage = report.NoBoard
	default:
		r.Stage = report.Silicon
	}
	for i := range s.Devices {
		d := &s.Devices[i]
		name := d.Board.V
		if !d.Board.Known() {
			name = string(d.Arch)
		}
		n := slices.IndexFunc(r.Boards, func(b report.Board) bool { return b.Name == name && b.Firmware == d.Firmware.Bundle.V })
		if n < 0 {
			r.Boards = append(r.Boards, report.Board{Name: name, Firmware: d.Firmware.Bundle.V})
			n = len(r.Boards) - 1
		}
		r.Boards[n].Count++
	}
	_, err := t.Only.From(s)
	return err
}

// hostRows compares what ttmon says of the host as a whole.
func (t *test) hostRows(ctx context.Context, r *report.Report, s *model.Snapshot) {
	count := 0
	names, _ := t.root.Names("/sys/bus/pci/devices")
	for _, name := range names {
		if t.line("/sys/bus/pci/devices/"+name+"/vendor") == "0x1e52" {
			count++
		}
	}
	r.Add(report.Row{
		Part: report.Host, What: "devices", Ours: fmt.Sprint(len(s.Devices) + len(s.Host.Unbound)), Witness: fmt.Sprint(count), By: "the PCI bus",
		Verdict: agree(len(s.Devices)+len(s.Host.Unbound) == count),
	})
	if v := t.line("/sys/module/tenstorrent/version"); v != "" || s.Host.DriverVersion.Known() {
		r.Add(report.Row{Part: report.Host, What: "driver", Ours: s.Host.DriverVersion.V, Witness: v, By: "version of the module", Verdict: agree(v == s.Host.DriverVersion.V)})
	}
	if t.health == nil {
		r.Add(report.Row{Part: report.Host, What: "ttmond", Verdict: report.Unknown, Note: "it does not run here"})
		return
	}
	r.Add(report.Row{Part: report.Host, What: "release of ttmond", Ours: version.Version, Witness: t.health.Version, By: "its health", Verdict: agree(t.health.Version == version.Version)})
	t.daemonRows(ctx, r)
}

// daemonRows compares ttmond's snapshot with our own reading: what does not
// move must be equal.
func (t *test) daemonRows(ctx context.Context, r *report.Report) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	theirs, err := t.host.Ask(ctx)
	if err != nil || theirs == nil {
		r.Add(report.Row{Part: report.Host, What: "snapshot of ttmond", Verdict: report.Wrong, Note: "it does not answer"})
		return
	}
	own := t.snapshot(ctx)
	out := report.Row{
		Part: report.Host, What: "snapshot of ttmond", Ours: fmt.Sprintf("%d devices", len(own.Devices)),
		Witness: fmt.Sprintf("%d devices", len(theirs.Devices)), By: "ttmond", Verdict: agree(len(own.Devices) == len(theirs.Devices)),
	}
	for i := range own.Devices {
		a, b := inventory(&own.Devices[i]), "no such device"
		if d := theirs.Device(own.Devices[i].Index); d != nil {
			b = inventory(d)
		}
		if a != b {
			out.Verdict, out.Note = report.Wrong, fmt.Sprintf("device %d is %s here, and %s for ttmond", own.Devices[i].Index, a, b)
		}
	}
	r.Add(out)
	for i := range own.Devices {
		a, b := &own.Devices[i], theirs.Device(own.Devices[i].Index)
		if b == nil || !a.Temperature.Known() || !b.Temperature.Known() {
			continue
		}
		x := row(report.Host, "temperature.asic by ttmond", a.Index, agree(between(a.Temperature.V, b.Temperature.V, b.Temperature.V, 5)), "")
		x.Ours, x.Witness, x.By = fmt.Sprintf("%.0f °C", a.Temperature.V), fmt.Sprintf("%.0f °C", b.Temperature.V), "ttmond"
		r.Add(x)
	}
}

// inventory is what of a device does not change from second to second.
func inventory(d *model.Device) string {
	return fmt.Sprintf("%s %s %s %s", d.BusID, d.Board.V, d.Serial.V, d.State)
}

// daemonPID is the process of the ttmond that answers; 0: none, or not known.
func (t *test) daemonPID() int {
	if t.health == nil {
		return 0
	}
	return t.health.PID
}
