package selftest

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/base/version"
	"github.com/ttmon/ttmon/internal/cli/host"
	"github.com/ttmon/ttmon/internal/cli/selection"
	"github.com/ttmon/ttmon/internal/cli/selftest/report"
	"github.com/ttmon/ttmon/internal/collect"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/model/apitype"
	"github.com/ttmon/ttmon/internal/node/api/client"
)

// Options say what is tested.
type Options struct {
	Host    host.Options
	Program string   // ttmon itself, to measure it
	Flags   []string // of all commands, for ttmon started by the test

	// Python has ttnn in it; empty: no program is run. Only are the devices it
	// may open: none named means one that is not in use.
	Python string
	Only   selection.Selection
	// Official is Tenstorrent's tt-smi, which wakes chips; empty: it is not run.
	Official string
	// Limit is how long the whole test may take; 0: DefaultLimit. What was not
	// tested by then is a row that says so.
	Limit time.Duration
	// Progress is called with the name of each step before it starts.
	Progress func(string)
}

// DefaultLimit is the Limit where none is given.
const DefaultLimit = 2 * time.Minute

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
	hung    map[int]bool    // devices that ttmond reports as hung and that we cannot judge yet
	jobs    []int           // processes of ttnn programs that were run
	folder  string          // the name of the folder that they write to; empty: none was made
}

// Run makes all comparisons. The error is about the options, or ctx ended; what
// could not be compared is in the report.
func Run(ctx context.Context, o Options) (*report.Report, error) {
	o.Limit = cmp.Or(o.Limit, DefaultLimit)
	h, err := host.Open(o.Host)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	t := &test{
		Options: o, root: h.Root, host: h, isRoot: os.Geteuid() == 0, program: o.Program, flags: o.Flags,
		direct: collect.New(h.Root, collect.Options{Timeout: time.Second, Thresholds: h.Thresholds()}),
	}
	defer t.direct.Close()
	begun := time.Now()
	r := &report.Report{Schema: report.Schema, Version: version.Version, Time: begun.UTC(), Root: t.isRoot, Boards: []report.Board{}, Rows: []report.Row{}}
	limited, cancel := context.WithTimeout(ctx, o.Limit)
	defer cancel()
	if err := t.all(limited, r); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("interrupted: %w", context.Cause(ctx))
	}
	r.Seconds = time.Since(begun).Seconds()
	order := report.Parts()
	slices.SortStableFunc(r.Rows, func(a, b report.Row) int { return slices.Index(order, a.Part) - slices.Index(order, b.Part) })
	return r, nil
}

func (t *test) all(ctx context.Context, r *report.Report) error {
	t.health = t.readHealth(ctx)
	s := t.snapshot(ctx)
	if err := t.about(r, s); err != nil {
		return err
	}
	before := t.readTraces(ctx, s)
	for _, step := range []struct {
		part report.Part
		what string
		do   func()
	}{
		{report.Host, "the host", func() { t.hostRows(ctx, r, s) }},
		{report.Devices, "devices", func() { t.devices(ctx, r) }},
		{report.Users, "who uses them", func() { t.users(ctx, r) }},
		{report.Regions, "memory in shared memory", func() { t.regions(ctx, r) }},
		{report.Cost, "cost", func() { t.cost(ctx, r) }},
		{report.Harmless, "what was touched", func() { t.harmless(ctx, r, before, t.snapshot(ctx)) }},
		{report.Official, "tt-smi", func() { t.official(ctx, r) }},
		{report.Program, "a ttnn program", func() { t.ttnn(ctx, r) }},
	} {
		if t.Progress != nil {
			t.Progress(step.what)
		}
		t.step(ctx, r, step.part, step.what, step.do)
	}
	t.leftBehind(r, before)
	t.optional(r, s)
	return nil
}

// step does one part of the test, unless the time is over. A part that was cut
// short is worth nothing, but for the ttnn program, which says itself how far it
// came: a read that did not return by then looks like a value that is missing.
func (t *test) step(ctx context.Context, r *report.Report, part report.Part, what string, do func()) {
	had := len(r.Rows)
	if ctx.Err() == nil {
		do()
	}
	if ctx.Err() == nil {
		return
	}
	if part != report.Program {
		r.Rows = r.Rows[:had]
	}
	r.Add(report.Row{
		Part: part, What: what, Verdict: report.Failed,
		Note: fmt.Sprintf("not tested: the test had to end after %s; --timeout gives it longer", words.Duration(t.Limit)),
	})
}

// snapshot reads the host directly: what is tested is ttmon's reading, not a
// daemon's memory of it.
func (t *test) snapshot(ctx context.Context) *model.Snapshot { return t.direct.Collect(ctx) }

func (t *test) readHealth(ctx context.Context) *apitype.Health {
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
	theirs, err := t.host.ReadSnapshot(ctx)
	if err != nil || theirs == nil {
		r.Add(report.Row{Part: report.Host, What: "snapshot of ttmond", Verdict: report.Wrong, Note: "it does not answer"})
		return
	}
	own := t.snapshot(ctx)
	count := len(theirs.Devices) - remembered(own, theirs)
	out := report.Row{
		Part: report.Host, What: "snapshot of ttmond", Ours: fmt.Sprintf("%d devices", len(own.Devices)),
		Witness: fmt.Sprintf("%d devices", count), By: "ttmond", Verdict: agree(len(own.Devices) == count),
	}
	t.hung = hungSince(own, theirs)
	if note := t.difference(own, theirs); note != "" {
		out.Verdict, out.Note = report.Wrong, note
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

// hungSince finds the devices whose heartbeat stopped before this test began: ttmond
// saw it beat, and we have not read it for long enough to know. heartbeats compares
// their state later.
func hungSince(own, theirs *model.Snapshot) map[int]bool {
	out := map[int]bool{}
	for i := range own.Devices {
		a, b := &own.Devices[i], theirs.Device(own.Devices[i].Index)
		if b != nil && b.State == model.StateHung && b.StateReason.Cause == model.HeartbeatStopped &&
			heartUnseen(a) {
			out[a.Index] = true
		}
	}
	return out
}

// difference says which device is another one for ttmond; empty: none.
func (t *test) difference(own, theirs *model.Snapshot) (note string) {
	for i := range own.Devices {
		d := own.Devices[i]
		if t.hung[d.Index] {
			d.State = model.StateHung
		}
		a, b := inventory(&d), "no such device"
		if other := theirs.Device(d.Index); other != nil {
			b = inventory(other)
		}
		if a != b {
			note = fmt.Sprintf("device %d is %s here, and %s for ttmond", d.Index, a, b)
		}
	}
	return note
}

// remembered counts the devices that ttmond shows as lost and that are not there
// any more: it remembers them, we cannot.
func remembered(own, theirs *model.Snapshot) (n int) {
	for i := range theirs.Devices {
		if d := &theirs.Devices[i]; d.State == model.StateLost && own.Device(d.Index) == nil {
			n++
		}
	}
	return n
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
