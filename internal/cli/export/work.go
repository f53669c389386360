package export

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
)

// A snapshot knows how much of the time before it each operation took of a
// chip, and not when each program ran: so operations are figures over time, and
// slices only where every program was recorded (programs.go). What a host waits for is a slice, as far as snapshots saw it wait.

const (
	// opsOfChip is how many operations of a process and chip have series: those
	// that took most time in all when they first appear.
	opsOfChip = 8
	// waitSlice is how long a wait lasts at least that is worth a slice.
	waitSlice = int64(1e9)
)

// workKey is a process on a chip.
type workKey struct {
	process model.ProcessID
	chip    uint64
}

// wait is a thread's wait for the chips, as snapshots have seen it.
type wait struct {
	group    Group
	since    int64
	last     int64 // when it was last seen
	kind     model.WaitKind
	awaiting string // what was enqueued last
}

// chipWork adds how busy one chip of a device with several is.
func (b *builder) chipWork(group Group, d *model.Device, c *model.Chip, ns int64) {
	v, known := c.Work.Busy.Get()
	if !known {
		return
	}
	key := seriesKey{group, "busy", c.Name}
	s := b.series[key]
	if s == nil {
		s = &Series{
			Group: group, Name: "Busy " + words.Escape(c.Name), Field: "busy", Prom: "tenstorrent_chip_busy_ratio", Type: "gauge", Factor: 1,
			Labels: map[string]string{"device": strconv.Itoa(d.Index), "pci": d.BusID, "chip": c.Name},
		}
		b.series[key] = s
	}
	b.to.Point(s, Point{ns, v}, c.Work.Bound)
}

// works adds what processes had their chips do.
func (b *builder) works(s *model.Snapshot, ns int64) {
	for i := range s.Processes {
		p := &s.Processes[i]
		group := processGroup(p.PID, p.Name.V)
		for k := range p.Work.Chips {
			b.operations(group, p, &p.Work.Chips[k], ns)
		}
		b.wait(group, p, ns)
	}
	b.endWaits(func(w *wait) bool { return w.last < ns }) // its process is gone
}

// operations adds the shares of the operations of a process on a chip.
func (b *builder) operations(group Group, p *model.Process, c *model.ChipWork, ns int64) {
	where := words.Escape(c.Chip)
	if c.Device != model.NoDevice {
		where = strconv.Itoa(c.Device) + where
	}
	key := workKey{p.ID(), c.ChipID}
	list := slices.Clone(c.Operations)
	slices.SortStableFunc(list, func(x, y model.Operation) int { return cmp.Compare(y.Time, x.Time) })
	for i := range list {
		o := &list[i]
		share, known := o.Share.Get()
		if !known || o.Name == "" {
			continue
		}
		id := seriesKey{group, "operation " + o.Name, where}
		s := b.series[id]
		if s == nil {
			if b.ops[key] >= opsOfChip {
				continue
			}
			b.ops[key]++
			s = &Series{
				Group: group, Name: words.Escape(o.Name) + " on " + where, Field: "operation.share",
				Labels: map[string]string{"pid": strconv.Itoa(p.PID), "chip": where, "operation": o.Name},
			}
			b.series[id] = s
		}
		b.to.Point(s, Point{ns, share}, c.Work.ShareBound())
	}
}

// wait notes that a process waits for its chips, and ends a wait that is over.
func (b *builder) wait(group Group, p *model.Process, ns int64) {
	id, h := p.ID(), &p.Work.Host
	w := b.waits[id]
	if w != nil && (h.WaitingSince.IsZero() || h.WaitingSince.UnixNano() != w.since) {
		b.endWait(id)
		w = nil
	}
	if h.WaitingSince.IsZero() {
		return
	}
	if w == nil {
		w = &wait{group: group, since: h.WaitingSince.UnixNano(), kind: h.WaitingFor, awaiting: h.LastName}
		b.waits[id] = w
	}
	w.last = ns
}

// endWait tells a wait that is over. It lasted up to some time between the
// snapshot that saw it last and the next.
func (b *builder) endWait(id model.ProcessID) {
	w := b.waits[id]
	delete(b.waits, id)
	from := max(w.since, b.first)
	if w.last-from < waitSlice {
		return
	}
	args := []Arg{{"seen until", stamp(w.last)}}
	if w.awaiting != "" {
		args = append(args, Arg{"enqueued last", words.Escape(w.awaiting)})
	}
	b.to.Slice(&Slice{Group: w.group, Track: "waits for its chips", Name: "waits in " + string(w.kind), From: from, To: w.last, Args: args})
}

// endWaits ends some of the waits, in an order of their own, so that the same
// recording gives the same file.
func (b *builder) endWaits(over func(*wait) bool) {
	for _, id := range slices.SortedFunc(maps.Keys(b.waits), func(x, y model.ProcessID) int { return cmp.Compare(x.PID, y.PID) }) {
		if over(b.waits[id]) {
			b.endWait(id)
		}
	}
}
