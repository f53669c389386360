package selftest

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/board"
	"github.com/ttmon/ttmon/internal/cli/selftest/report"
	"github.com/ttmon/ttmon/internal/field/metric"
	"github.com/ttmon/ttmon/internal/model"
)

// value is one figure of a device, and the file that a witness reads it from.
type value struct {
	field string // in the table of metrics
	in    place
	file  string
	parse func(string) (float64, bool) // nil: text, compared as it is
	// near is how far two readings of a moving value may be apart where they are
	// not taken at once; 0: the value does not move.
	near float64
}

func values() []value {
	return []value{
		{"board.type", inClass, "tt_card_type", nil, 0},
		{"board.serial", inClass, "tt_serial", nil, 0},
		{"fw.bundle", inClass, "tt_fw_bundle_ver", nil, 0},
		{"temperature.asic", inHwmon, "temp1_input", scaled(1e-3), 3},
		{"temperature.asic.limit.throttle", inHwmon, "temp1_max", scaled(1e-3), 0},
		{"power.draw", inHwmon, "power1_input", scaled(1e-6), 20},
		{"power.limit", inHwmon, "power1_max", scaled(1e-6), 0},
		{"voltage.core", inHwmon, "in0_input", scaled(1e-3), 0.05},
		{"current.core", inHwmon, "curr1_input", scaled(1e-3), 25},
		{"clocks.ai", inClass, "tt_aiclk", scaled(1), 300},
		{"clocks.axi", inClass, "tt_axiclk", scaled(1), 100},
		{"clocks.arc", inClass, "tt_arcclk", scaled(1), 100},
		{"fan.speed", inHwmon, "fan1_input", scaled(1), 500},
		{"thermal.trips", inClass, "tt_therm_trip_count", scaled(1), 0},
		{"pcie.link.gen.current", inPCI, "current_link_speed", generation, 0},
		{"pcie.link.width.current", inPCI, "current_link_width", scaled(1), 0},
		{"pcie.link.gen.max", inPCI, "max_link_speed", generation, 0},
		{"pcie.link.width.max", inPCI, "max_link_width", scaled(1), 0},
	}
}

func scaled(by float64) func(string) (float64, bool) {
	return func(s string) (float64, bool) {
		n, err := strconv.ParseFloat(s, 64)
		return n * by, err == nil
	}
}

// generation reads "16.0 GT/s PCIe".
func generation(s string) (float64, bool) {
	rate, _, _ := strings.Cut(s, " ")
	n := slices.Index([]string{"2.5", "5.0", "8.0", "16.0", "32.0", "64.0"}, rate)
	return float64(n + 1), n >= 0
}

// rounds is how often a moving value is compared until it agrees.
const rounds = 5

// subject is a device whose values are compared.
type subject struct {
	index int
	bus   string
	open  map[string]*report.Row // values that do not agree yet, by field
}

// devices compares the values of all devices: the witness reads before and after
// ttmon, and a value is right if it lies between the two.
func (t *test) devices(ctx context.Context, r *report.Report) {
	first := t.snapshot(ctx)
	var list []*subject
	for i := range first.Devices {
		d := &first.Devices[i]
		if d.State != model.StateOK {
			r.Add(row(report.Devices, "all values", d.Index, report.Unknown, "the device is "+string(d.State)+": its files are left alone"))
			continue
		}
		if t.hung[d.Index] {
			r.Add(row(report.Devices, "all values", d.Index, report.Unknown, "the chip is hung: its values are stale"))
			continue
		}
		list = append(list, &subject{index: d.Index, bus: d.BusID, open: map[string]*report.Row{}})
	}
	for range rounds {
		before := t.readDevices(ctx, list)
		snap := t.snapshot(ctx)
		after := t.readDevices(ctx, list)
		waiting := false
		for n, s := range list {
			waiting = t.compareDevice(s, snap, before[n], after[n]) || waiting
		}
		if !waiting || ctx.Err() != nil {
			break
		}
		sleep(ctx, 200*time.Millisecond)
	}
	for _, v := range values() {
		for _, s := range list {
			if found := s.open[v.field]; found != nil {
				r.Add(*found)
			}
		}
	}
	t.plausible(r, t.snapshot(ctx))
}

// reading is what the witness read of a device, or why it could not.
type reading struct {
	files map[string]string
	err   error
}

func (t *test) readDevices(ctx context.Context, list []*subject) []reading {
	out := make([]reading, len(list))
	for n, s := range list {
		var paths []string
		for _, v := range values() {
			if p := path(t.root, s.index, s.bus, v.in, v.file); p != "" {
				paths = append(paths, p)
			}
		}
		out[n].files, out[n].err = readApart(ctx, paths)
	}
	return out
}

// compareDevice compares all values that do not agree yet; waiting reports
// whether one of them may still.
func (t *test) compareDevice(s *subject, snap *model.Snapshot, before, after reading) (waiting bool) {
	d := snap.Device(s.index)
	for _, v := range values() {
		old := s.open[v.field]
		if old != nil && (old.Verdict != report.Wrong || d != nil && d.State != model.StateOK) {
			continue // it agrees, or what was found while the chip worked is final
		}
		found := compareValue(v, snap, d, path(t.root, s.index, s.bus, v.in, v.file), before, after)
		if found == nil {
			continue
		}
		if n := s.index; found.Device == nil {
			found.Device = &n
		}
		s.open[v.field] = found
		waiting = waiting || found.Verdict == report.Wrong
	}
	return waiting
}

// compareValue is nil where neither ttmon nor the witness has the value.
func compareValue(v value, snap *model.Snapshot, d *model.Device, file string, before, after reading) *report.Row {
	column, ok := metric.Find(metric.Devices(), v.field)
	if !ok {
		panic("BUG: no field " + v.field)
	}
	out := &report.Row{Part: report.Devices, What: v.field, By: v.file + ", read by " + reader}
	for _, x := range []reading{before, after} {
		if x.err != nil {
			out.Verdict, out.Note = report.Unknown, x.err.Error()
			return out
		}
	}
	if d == nil {
		out.Verdict, out.Note = report.Wrong, "ttmon no longer shows the device"
		return out
	}
	if d.State != model.StateOK { // ttmon drops the values that the files still have
		out.Verdict, out.Note = report.Unknown, "the device became "+string(d.State)+" during the test"
		return out
	}
	ours := column.Get(snap, d)
	first, had := before.files[file]
	second, has := after.files[file]
	switch {
	case !ours.Known() && !had && !has:
		return nil
	case had != has:
		out.Verdict, out.Note = report.Unknown, "the file came or went meanwhile"
		return out
	case ours.Known() && ours.Nominal && !has:
		out.Ours, out.Verdict, out.Note = shown(column, ours), report.Unknown, "from the board catalogue: the driver does not offer it"
		return out
	case !ours.Known():
		return missed(out, v, ours, second)
	}
	out.Ours = shown(column, ours)
	if !has {
		out.Verdict, out.Note = report.Wrong, "the driver has no such value"
		return out
	}
	if v.parse == nil {
		out.Witness, out.Verdict = second, agree(strings.EqualFold(strings.TrimLeft(ours.Text, "0"), strings.TrimLeft(second, "0")))
		return out
	}
	low, okLow := v.parse(first)
	high, okHigh := v.parse(second)
	if !okLow || !okHigh {
		out.Witness, out.Verdict, out.Note = second, report.Wrong, "ttmon shows a number for something that is none"
		return out
	}
	out.Witness = shown(column, metric.Value{Num: high * per(column)})
	out.Verdict = agree(between(ours.Num, low, high, v.near))
	return out
}

// missed is a value that the witness has and ttmon has not. That is right only
// where the file holds what no working chip would say.
func missed(out *report.Row, v value, ours metric.Value, text string) *report.Row {
	out.Ours, out.Witness = string(ours.Status), text
	if v.parse != nil {
		if n, ok := v.parse(text); ok && n != 0 && ours.Status != model.Implausible {
			out.Verdict, out.Note = report.Wrong, "ttmon does not show a value that the driver has: "+ours.Why
			return out
		}
	}
	out.Verdict, out.Note = report.Unknown, "not believed: "+ours.Why
	return out
}

// between reports whether n is between two readings, or close to them.
func between(n, a, b, near float64) bool {
	slack := near + 1e-6*math.Max(math.Abs(a), math.Abs(b))
	return n >= math.Min(a, b)-slack && n <= math.Max(a, b)+slack
}

func agree(yes bool) report.Verdict {
	if yes {
		return report.Right
	}
	return report.Wrong
}

// per is how many of the JSON contract's unit make one of what is printed.
func per(c metric.Column[*model.Device]) float64 {
	if c.Per == 0 {
		return 1
	}
	return c.Per
}

func shown(c metric.Column[*model.Device], v metric.Value) string {
	s := c.Format(v)
	if c.Unit != "" {
		s += " " + c.Unit
	}
	return s
}

// plausible holds values against what physics and the board's identity allow: a
// witness that does not read the same file.
func (t *test) plausible(r *report.Report, s *model.Snapshot) {
	for i := range s.Devices {
		d := &s.Devices[i]
		if d.State != model.StateOK || t.hung[d.Index] {
			continue
		}
		physics(r, d)
		t.identity(r, d)
	}
}

// physics compares values with each other, and with what a chip can do.
func physics(r *report.Report, d *model.Device) {
	add := func(what, ours, witness, by string, right bool) {
		x := row(report.Devices, what, d.Index, agree(right), "")
		x.Ours, x.Witness, x.By = ours, witness, by
		r.Add(x)
	}
	if v, a, p := d.Voltage, d.Current, d.Power; v.Known() && a.Known() && p.Known() {
		product := v.V * a.V
		add("power.draw", fmt.Sprintf("%.1f W", p.V), fmt.Sprintf("%.1f W", product), "voltage × current", between(p.V, product, product, math.Max(3, product*0.15)))
	}
	if n := d.Temperature; n.Known() {
		add("temperature.asic", fmt.Sprintf("%.1f °C", n.V), "0 to 125 °C", "what silicon survives", n.V > 0 && n.V < 125)
	}
	if b, ok := board.ByCard(d.Board.V); ok && d.AICLK.Known() && b.ClockMax > 0 {
		most := b.ClockMax * 1.25 // a newer firmware may allow some more
		add("clocks.ai", fmt.Sprintf("%.0f MHz", d.AICLK.V), fmt.Sprintf("at most %.0f MHz", most), "the board catalogue", d.AICLK.V <= most)
	}
	if p := d.PCIe; p.Gen.Known() && p.GenMax.Known() && p.Width.Known() && p.WidthMax.Known() {
		add("pcie.link.current", fmt.Sprintf("gen %d ×%d", p.Gen.V, p.Width.V), fmt.Sprintf("at most gen %d ×%d", p.GenMax.V, p.WidthMax.V), "what the device can do",
			p.Gen.V <= p.GenMax.V && p.Width.V <= p.WidthMax.V)
	}
}

// identity holds the board's name against its serial number and the PCI ids,
// which the manufacturer wrote.
func (t *test) identity(r *report.Report, d *model.Device) {
	b, ok := board.ByCard(d.Board.V)
	if !d.Board.Known() || !ok {
		return
	}
	x := row(report.Devices, "board.type", d.Index, agree(b.Arch == d.Arch), "")
	x.Ours, x.Witness, x.By = d.Board.V+" ("+string(b.Arch)+")", string(d.Arch), "PCI device id"
	r.Add(x)
	code, err := strconv.ParseUint(strings.TrimPrefix(t.line("/sys/bus/pci/devices/"+d.BusID+"/subsystem_device"), "0x"), 16, 16)
	if w, ok := board.ByCode(uint16(code)); ok && err == nil {
		x = row(report.Devices, "board.type", d.Index, agree(w.Card == b.Card), "")
		x.Ours, x.Witness, x.By = d.Board.V, w.Card, "PCI subsystem id"
		r.Add(x)
	}
	serial, ok := board.ParseID(d.Serial.V)
	if !d.Serial.Known() || !ok {
		return
	}
	x = row(report.Devices, "board.type", d.Index, report.Unknown, "the catalogue does not know the code in the serial number")
	x.Ours, x.By = d.Board.V, "code in the serial number"
	if w, ok := board.ByCode(uint16(board.CodeOf(serial))); ok {
		x.Witness, x.Verdict, x.Note = w.Card, agree(w.Card == b.Card), ""
	}
	r.Add(x)
}

func row(p report.Part, what string, device int, v report.Verdict, note string) report.Row {
	return report.Row{Part: p, What: what, Device: &device, Verdict: v, Note: note}
}
