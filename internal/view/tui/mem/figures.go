package mem

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
)

// chipKey names a chip across snapshots: where its device sits, and which of
// the device's chips it is.
type chipKey struct {
	bus string
	i   int
}

// chip is one chip of a snapshot.
type chip struct {
	dev *model.Device
	i   int
}

func (c chip) key() chipKey       { return chipKey{c.dev.BusID, c.i} }
func (c chip) data() *model.Chip  { return &c.dev.Chips[c.i] }
func (c chip) mem() *model.Memory { return &c.dev.Chips[c.i].Memory }

// title is "0 n300 L".
func (c chip) title() string {
	s := strconv.Itoa(c.dev.Index) + " " + words.Foreign(c.dev.Board)
	if n := c.data().Name; n != "" {
		s += " " + words.Escape(n)
	}
	return s
}

// chipsOf lists the chips of the devices named; no names: of all.
func chipsOf(s *model.Snapshot, only []string) []chip {
	var out []chip
	for i := range s.Devices {
		d := &s.Devices[i]
		if !d.AmongNamed(only) {
			continue
		}
		for j := range d.Chips {
			out = append(out, chip{d, j})
		}
	}
	return out
}

// shows reports whether a device is on the screen, by its index.
func shows(s *model.Snapshot, only []string) func(device int) bool {
	return func(device int) bool {
		d := s.Device(device)
		return d == nil || d.AmongNamed(only)
	}
}

// holder is a process and what it holds of one chip.
type holder struct {
	p      *model.Process
	mem    model.PoolBytes
	note   string
	source model.Source // of the figures
}

type holderKey struct {
	chip  chipKey
	pid   int
	start uint64
}

func (h *holder) key(c chip) holderKey { return holderKey{c.key(), h.p.PID, h.p.StartTicks} }

// holders lists who uses a chip, the largest holder of a pool first.
func holders(s *model.Snapshot, c chip, by model.Pool) []holder {
	var out []holder
	for i := range s.Processes {
		p := &s.Processes[i]
		for j := range p.Devices {
			u := &p.Devices[j]
			if u.Device != c.dev.Index {
				continue
			}
			if m, ok := heldOn(u, c); ok {
				out = append(out, holder{p: p, mem: m, source: u.Source, note: strings.Join(words.UseReasons(p, u, s.Source), "; ")})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b holder) int {
		return cmp.Or(cmp.Compare(number(b.mem[by]), number(a.mem[by])), cmp.Compare(a.p.PID, b.p.PID))
	})
	return out
}

// heldOn is what a use of a device holds of one of its chips; ok is false for
// a process that has the device open and nothing on this chip.
func heldOn(u *model.DeviceUse, c chip) (model.PoolBytes, bool) {
	id := c.data().ID
	for k := range u.Chips {
		if id.Known() && u.Chips[k].ChipID == id.V {
			return u.Chips[k].Memory, true
		}
	}
	// The figures of a device are those of its only chip; of several chips,
	// without figures by chip, the first stands for all that is unknown.
	return u.Memory, len(c.dev.Chips) == 1 || len(u.Chips) == 0 && c.i == 0
}

// staleSlots lists what dead processes left on a chip.
func staleSlots(s *model.Snapshot, c chip) []*model.StaleSlot {
	var out []*model.StaleSlot
	for i := range s.StaleSlots {
		g := &s.StaleSlots[i]
		if id := c.data().ID; g.Device == c.dev.Index && (!id.Known() || g.ChipID == id.V || len(c.dev.Chips) == 1) {
			out = append(out, g)
		}
	}
	return out
}

// share is what part of a pool, or of the memory it lies in, is taken, or NaN
// where that cannot be told; of names the memory it lies in.
func share(m *model.Memory, p model.Pool) (r float64, soft bool, of string) {
	if u := &m.Pools[p]; p == model.Trace && !u.Total.Known() {
		r, soft = part(m, p, u.Used)
		return r, soft, words.PoolName(model.DRAM)
	}
	r, bound, ok := words.Ratio(p, &m.Pools[p])
	if !ok {
		return math.NaN(), false, ""
	}
	return r, bound != model.Exact, ""
}

// part is an amount's share of the DRAM, or NaN where it is unknown. Of L1 it
// always is: buffers take the same range of every core.
func part(m *model.Memory, p model.Pool, b model.Bytes) (r float64, soft bool) {
	n, bound, known := b.Best()
	total, ok := m.Pools[model.DRAM].Total.Get()
	if !known || !ok || total == 0 || p != model.DRAM && p != model.Trace {
		return math.NaN(), false
	}
	return float64(n) / float64(total), bound != model.Exact
}

// used says the use of a pool, or why it is not known.
func used(m *model.Memory, p model.Pool) string { return words.Pool(p, &m.Pools[p], m.Tracking) }

// trend keeps what a single snapshot cannot tell: rates, high-water marks,
// and the figures at a mark.
type trend struct {
	at      time.Time
	last    map[chipKey]model.PoolBytes
	rate    map[chipKey][model.NumPools]model.Reading[float64] // bytes/s
	peak    map[chipKey]model.PoolBytes
	top     map[holderKey]model.PoolBytes // peaks of the holders
	held    map[holderKey]model.PoolBytes
	mark    *mark
	samples int
}

// mark is a moment to count from.
type mark struct {
	at    time.Time
	chips map[chipKey]model.PoolBytes
	held  map[holderKey]model.PoolBytes
}

func poolsOf(m *model.Memory) (b model.PoolBytes) {
	for p := range m.Pools {
		b[p] = m.Pools[p].Used
	}
	return b
}

// addSample notes the figures of a snapshot.
func (l *trend) addSample(s *model.Snapshot) {
	if l.peak == nil {
		l.peak, l.top = map[chipKey]model.PoolBytes{}, map[holderKey]model.PoolBytes{}
	}
	dt := s.Time.Sub(l.at).Seconds()
	last := l.last
	l.last, l.rate = map[chipKey]model.PoolBytes{}, map[chipKey][model.NumPools]model.Reading[float64]{}
	l.held = map[holderKey]model.PoolBytes{}
	for _, c := range chipsOf(s, nil) {
		now, before := poolsOf(c.mem()), last[c.key()]
		var rate [model.NumPools]model.Reading[float64]
		peak := l.peak[c.key()]
		for p := range now {
			rate[p] = model.Missing[float64](model.Pending, "")
			if !now[p].Known() {
				continue
			}
			peak[p] = larger(peak[p], now[p])
			if before[p].Known() && dt > 0 {
				rate[p] = model.Value((float64(number(now[p])) - float64(number(before[p]))) / dt)
			}
		}
		l.last[c.key()], l.rate[c.key()], l.peak[c.key()] = now, rate, peak
		for _, h := range holders(s, c, model.DRAM) {
			k := h.key(c)
			l.held[k] = h.mem
			top := l.top[k]
			for p := range h.mem {
				top[p] = larger(top[p], h.mem[p])
			}
			l.top[k] = top
		}
	}
	for k := range l.top { // of processes that are gone
		if _, ok := l.held[k]; !ok {
			delete(l.top, k)
		}
	}
	l.at = s.Time
	l.samples++
}

// setMark counts from now on; again, it no longer does.
func (l *trend) setMark() {
	if l.mark != nil {
		l.mark = nil
		return
	}
	l.mark = &mark{at: l.at, chips: l.last, held: l.held}
}

// forgetPeaks resets the high-water marks.
func (l *trend) forgetPeaks() { l.peak, l.top = nil, nil }

// number is the best number of a figure, for sorting and differences.
func number(b model.Bytes) uint64 {
	n, _, _ := b.Best()
	return n
}

// larger is the larger of two figures; an unknown one is no figure.
func larger(a, b model.Bytes) model.Bytes {
	if !a.Known() || b.Known() && number(b) > number(a) {
		return b
	}
	return a
}

// delta is a change since the mark: "+1.2 GiB"; empty where it is not known.
func delta(now, then model.Bytes) string {
	if !now.Known() || !then.Known() {
		return ""
	}
	_, a, _ := now.Best()
	_, b, _ := then.Best()
	mark := ""
	if max(a, b) != model.Exact { // what was not counted may have changed as well
		mark = words.Mark(model.Unsure)
	}
	if number(now) < number(then) {
		return mark + "−" + words.Bytes(number(then)-number(now))
	}
	return mark + "+" + words.Bytes(number(now)-number(then))
}

// speed says a rate with its sign: "+120 MiB/s".
func speed(r model.Reading[float64]) string {
	v, ok := r.Get()
	switch {
	case !ok:
		return words.Missing(r.Status)
	case v < 0:
		return "−" + words.Rate(-v)
	case v > 0:
		return "+" + words.Rate(v)
	}
	return words.Rate(0)
}
