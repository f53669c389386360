package prom

import (
	"slices"
	"strconv"
	"time"

	"github.com/ttmon/ttmon/internal/collect/assess"
	"github.com/ttmon/ttmon/internal/field/metric"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/node/stream"
)

// Options say what is left out or added.
type Options struct {
	Version, Revision, GoVersion string
	// Processes is how many processes get series of their own; 0: none.
	Processes int
	// MaxWorkloads bounds the workloads with series of their own; the others
	// are counted, not shown. 0: none has.
	MaxWorkloads int
	// Estimates shows estimates among the measurements.
	Estimates bool
}

// Emit receives a sample. The labels hold only until Emit returns.
type Emit func(f *Family, labels Labels, v float64)

// Walker turns snapshots into samples. It remembers what a snapshot cannot
// say alone: counts since the daemon began, and the ids of chips that do not
// answer any more. It is not safe for concurrent use.
type Walker struct {
	opt      Options
	families []deviceFamily
	devices  map[string]*device // by bus id
	last     time.Time
	buf      Labels
	dropped  float64 // workloads and processes over the bounds
	groups   map[workloadKey]*workload
	shown    int    // processes with series of their own
	chips    []chip // of the snapshot
}

// device is what is remembered of one.
type device struct {
	index          int
	chipID         string
	labels         Labels // device, pci and chip_id
	state          model.State
	resets, losses float64
	joules         float64
	watts          float64 // at the last snapshot, if metered
	metered        bool
	seen           time.Time
	info           Labels // of device_info
	firmware       []Labels
	infoOf         infoKey
}

// forgetAfter is how long the counters of a device that has gone are kept.
const forgetAfter = 24 * time.Hour

// NewWalker returns a walker that has seen nothing.
func NewWalker(o Options) *Walker {
	return &Walker{opt: o, families: deviceFamilies(), devices: map[string]*device{}, groups: map[workloadKey]*workload{}}
}

// SetOptions changes what is left out or added. What was counted stays.
func (w *Walker) SetOptions(o Options) { w.opt = o }

// Observe takes note of a snapshot. It must be called once for each, in order.
func (w *Walker) Observe(s *model.Snapshot) {
	dt := s.Time.Sub(w.last).Seconds()
	if w.last.IsZero() || dt < 0 || dt > 60 {
		dt = 0 // what it drew meanwhile is unknown
	}
	w.last = s.Time
	for i := range s.Devices {
		d := &s.Devices[i]
		x := w.devices[d.BusID]
		if x == nil {
			x = &device{index: -1, state: d.State}
			w.devices[d.BusID] = x
		}
		x.observe(d, dt)
		x.seen = s.Time
	}
	for id, x := range w.devices {
		if s.Time.Sub(x.seen) > forgetAfter {
			delete(w.devices, id)
		} else if x.seen != s.Time && x.state != model.StateLost {
			x.state = model.StateLost
			x.losses++
			x.metered = false
		}
	}
}

func (x *device) observe(d *model.Device, dt float64) {
	if x.state != d.State {
		switch d.State {
		case model.StateResetting:
			x.resets++
		case model.StateLost:
			x.losses++
		}
		x.state = d.State
	}
	p, ok := d.Power.Get()
	if ok && x.metered {
		x.joules += dt * (p + x.watts) / 2
	}
	x.watts, x.metered = p, ok
	id := x.chipID
	if d.ASICID.Known() {
		id = d.ASICID.V
	}
	if x.index != d.Index || id != x.chipID || x.labels == nil {
		x.index, x.chipID = d.Index, id
		b := label(nil, "device", strconv.Itoa(d.Index))
		b = label(b, "pci", d.BusID)
		x.labels = slices.Clip(label(b, "chip_id", id))
	}
}

// Walk emits every sample of a snapshot that was observed, family by family.
func (w *Walker) Walk(s *model.Snapshot, self *stream.Self, emit Emit) {
	w.node(s, emit)
	w.table(s, emit)
	w.chipTable(s, emit)
	w.deviceExtras(s, emit)
	w.holders(s, emit)
	w.work(s, emit)
	w.self(self, emit)
}

func (w *Walker) node(s *model.Snapshot, emit Emit) {
	ok := 0.0
	if s.Host.DriverLoaded {
		ok = 1
	}
	emit(up, nil, ok)
	emit(simulated, nil, flag(s.Simulated))
	b := label(w.buf[:0], "version", w.opt.Version)
	b = label(b, "revision", w.opt.Revision)
	b = label(b, "goversion", w.opt.GoVersion)
	emit(buildInfo, b, 1)
	if v, ok := s.Host.DriverVersion.Get(); ok {
		b = label(b[:0], "version", v)
		emit(driverInfo, b, 1)
	}
	emit(devices, nil, float64(len(s.Devices)))
	for _, state := range states {
		n := 0
		for i := range s.Devices {
			if s.Devices[i].State == state {
				n++
			}
		}
		b = label(b[:0], "state", string(state))
		emit(inState, b, float64(n))
	}
	counts := assess.Of(s).Counts()
	for _, kind := range assess.States() {
		n := 0
		if i := slices.IndexFunc(counts, func(c assess.Count) bool { return c.Kind == kind }); i >= 0 {
			n = counts[i].N
		}
		b = label(b[:0], "condition", string(kind))
		emit(inCondition, b, float64(n))
	}
	emit(unbound, nil, float64(len(s.Host.Unbound)))
	emit(snapshotTime, nil, float64(s.Time.UnixMilli())/1000)
	w.buf = b
}

// table emits the rows of the metric table.
func (w *Walker) table(s *model.Snapshot, emit Emit) {
	for i := range w.families {
		f := &w.families[i]
		if f.estimate && !w.opt.Estimates {
			continue
		}
		w.family(s, f, func(labels Labels, row *tableRow, v metric.Value) {
			n := v.Num
			if row.Prom.Factor != 0 {
				n *= row.Prom.Factor
			}
			emit(&f.Family, labels, n)
		})
		if f.bound != nil {
			w.family(s, f, func(labels Labels, _ *tableRow, v metric.Value) { emit(f.bound, labels, bound(v.Bound)) })
		}
	}
}

// family calls each with what is known of a family.
func (w *Walker) family(s *model.Snapshot, f *deviceFamily, each func(labels Labels, row *tableRow, v metric.Value)) {
	for j := range s.Devices {
		d := &s.Devices[j]
		base := w.devices[d.BusID].labels
		for k := range f.rows {
			row := &f.rows[k]
			v := row.Get(s, d)
			if !v.Known() {
				continue
			}
			w.buf = append(append(w.buf[:0], base...), row.labels...)
			each(w.buf, row, v)
		}
	}
}

func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
