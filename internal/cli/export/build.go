package export

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/book/failure"
	"github.com/ttmon/ttmon/internal/field/metric"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/past/recording"
)

// Options say what is made of a recording.
type Options struct {
	// Large is from how many bytes on (over all banks of a chip) a block is
	// told singly, from its allocation to its free.
	Large uint64
	// All takes every figure of the metric table, not only those that charts show.
	All bool
}

// Write tells a sink all that a recording holds, and closes it. laid are the
// slices of other traces, which Align has put on the recording's clock. What is kept
// in memory is what programs hold at a moment, however long the recording.
func Write(r *recording.Reader, o Options, laid []Slice, to Sink) error {
	err := write(r, o, to)
	to.Aligned(laid)
	return errors.Join(err, to.Close())
}

func write(r *recording.Reader, o Options, to Sink) error {
	first, last, _ := r.Span()
	chips, err := r.Chips()
	if err != nil {
		return err
	}
	b := &builder{
		o: o, to: to, first: first.UnixNano(), grain: grainOf(last.Sub(first), distinct(chips)), chips: chips, fields: metric.Devices(), titles: map[string]string{}, series: map[seriesKey]*Series{},
		lists: map[uint32][]*heldSum{}, held: map[heldKey]*heldSum{}, open: map[blockKey]openBlock{}, tags: map[tagKey]*tagSlice{},
		processes: map[uint32]*process{}, seen: map[model.ProcessID]*process{}, failures: map[string]*failure.Record{}, ops: map[workKey]int{}, waits: map[model.ProcessID]*wait{},
		places: map[uint64]placed{}, lanes: map[ranKey]*lanes{},
	}
	for _, f := range metric.Tagged(metric.InTraces) {
		b.titles[f.Name] = f.Title
	}
	c := r.Begin()
	for {
		rec, err := c.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if err := b.take(c.State, &rec); err != nil {
			return err
		}
	}
	b.finish(c.State, last.UnixNano())
	return nil
}

// distinct counts the chips that any list is on.
func distinct(chips map[uint32][]uint64) int {
	all := map[uint64]bool{}
	for _, list := range chips {
		for _, chip := range list {
			all[chip] = true
		}
	}
	return len(all)
}

type builder struct {
	o      Options
	to     Sink
	first  int64
	grain  int64
	chips  map[uint32][]uint64 // of each list, as far as they ever became known
	fields []metric.Device
	titles map[string]string // of the fields that viewers of traces are given, by their names
	series map[seriesKey]*Series

	lists     map[uint32][]*heldSum // that the blocks of each list are added to
	held      map[heldKey]*heldSum
	moved     []*heldSum // in this grain
	movedAt   int64      // the number of it
	open      map[blockKey]openBlock
	tags      map[tagKey]*tagSlice
	processes map[uint32]*process
	seen      map[model.ProcessID]*process
	flows     uint64
	failures  map[string]*failure.Record // by ID, as told last
	ops       map[workKey]int            // operations of a process and chip that have a series
	waits     map[model.ProcessID]*wait
	places    map[uint64]placed // of chips, by number
	lanes     map[ranKey]*lanes
}

type seriesKey struct {
	group Group
	field string
	chip  string
}

// process is one that uses devices, or tells its blocks.
type process struct {
	group Group
	from  int64
	to    int64
	open  bool
	name  string
}

func (b *builder) take(s *recording.State, rec *recording.Record) error {
	ns := rec.Time.UnixNano()
	if n := ns / b.grain; n != b.movedAt {
		b.flush()
		b.movedAt = n
	}
	switch rec.Kind {
	case recording.KindSnapshot:
		b.flush()
		snap, err := s.Snapshot()
		if err != nil {
			return err
		}
		b.snapshot(snap, ns)
	case recording.KindEvent:
		b.to.Instant(&Instant{Group: host, Track: "events", Name: words.Escape(rec.Event.Text), NS: ns, Args: []Arg{{"kind", string(rec.Event.Kind)}, {"level", rec.Event.Level.String()}}})
	case recording.KindFailure:
		b.failed(rec.Failure)
	case recording.KindPrograms:
		b.ran(rec.Programs, ns)
	case recording.KindOutput:
		track := map[int]string{1: "output", 2: "errors"}[rec.Output.Stream]
		b.to.Instant(&Instant{Group: host, Track: track, Name: words.Escape(rec.Output.Text), NS: ns})
	case recording.KindProcess:
		p := b.processes[rec.Process.ID]
		if p == nil || !p.open { // it may begin again, behind a part that is damaged
			p = &process{group: processGroup(rec.Process.PID, rec.Process.Name), from: ns, open: true, name: "tells its blocks: " + string(rec.Process.Method)}
			b.processes[rec.Process.ID] = p
		}
	}
	for i := range rec.Moves {
		b.move(s, &rec.Moves[i], ns)
	}
	if rec.Kind == recording.KindEnded {
		b.drop(rec.ID, ns)
	}
	return nil
}

// flush tells what the blocks of this grain came to.
func (b *builder) flush() {
	for _, h := range b.moved {
		h.grain.take(func(p Point) { b.to.Point(h.series, p, model.Exact) })
	}
	b.moved = b.moved[:0]
}

var host = Group{Name: "host"}

func processGroup(pid int, name string) Group {
	return Group{Name: words.Escape(name), PID: pid}
}

// snapshot takes the figures of a snapshot.
func (b *builder) snapshot(s *model.Snapshot, ns int64) {
	for i := range s.Devices {
		d := &s.Devices[i]
		group := Group{Name: fmt.Sprintf("device %d %s", d.Index, d.Board.V)}
		b.place(group, d)
		for j := range b.fields {
			f := &b.fields[j]
			title := b.titles[f.Name]
			if f.Foreign || f.Prom.Name == "" || f.Kind != metric.Gauge && f.Kind != metric.Counter && f.Kind != metric.Bool || title == "" && !b.o.All {
				continue
			}
			v := f.Get(s, d)
			if !v.Known() {
				continue
			}
			b.figure(group, f, title, d, v, ns)
		}
		for j := range d.Chips {
			if len(d.Chips) > 1 {
				b.chip(group, d, &d.Chips[j], ns)
				b.chipWork(group, d, &d.Chips[j], ns)
			}
		}
	}
	b.users(s, ns)
	b.works(s, ns)
}

// figure adds a point to the series of a field.
func (b *builder) figure(group Group, f *metric.Device, title string, d *model.Device, v metric.Value, ns int64) {
	if title == "" {
		title = f.Name
	}
	key := seriesKey{group, f.Name, ""}
	s := b.series[key]
	if s == nil {
		labels := map[string]string{"device": strconv.Itoa(d.Index), "pci": d.BusID}
		addLabels(labels, f.Prom.Labels)
		s = &Series{
			Group: group, Name: title, Field: f.Name, Unit: baseUnit(f), Prom: f.Prom.Name, PromBound: f.Prom.Bound, Type: f.Prom.Type, Factor: f.Prom.Factor,
			Labels: labels,
		}
		b.series[key] = s
	}
	b.to.Point(s, Point{ns, v.Num}, v.Bound)
}

// chip adds the pools of one chip of a device with several.
func (b *builder) chip(group Group, d *model.Device, c *model.Chip, ns int64) {
	for _, p := range model.Pools() {
		n, bound, ok := c.Memory.Pools[p].Used.Best()
		if !ok {
			continue
		}
		key := seriesKey{group, p.String(), c.Name}
		s := b.series[key]
		if s == nil {
			if n == 0 && p != model.DRAM && p != model.L1 {
				continue
			}
			s = &Series{
				Group: group, Name: words.PoolName(p) + " " + c.Name, Field: p.String() + ".used", Unit: "B",
				Labels: map[string]string{"device": strconv.Itoa(d.Index), "pci": d.BusID, "chip": c.Name},
			}
			b.series[key] = s
		}
		b.to.Point(s, Point{ns, float64(n)}, bound)
	}
}

// users are slices: how long each process used devices.
func (b *builder) users(s *model.Snapshot, ns int64) {
	for _, p := range b.seen {
		p.open = false
	}
	for i := range s.Processes {
		x := &s.Processes[i]
		id := model.ProcessID{PID: x.PID, StartTicks: x.StartTicks}
		p := b.seen[id]
		if p == nil {
			from := ns
			if start := x.StartTime.UnixNano(); !x.StartTime.IsZero() && start > b.first && start < ns {
				from = start
			}
			p = &process{group: processGroup(x.PID, x.Name.V), from: from, name: "uses devices"}
			b.seen[id] = p
		}
		p.open, p.to = true, ns
	}
	for _, id := range b.order() {
		if p := b.seen[id]; !p.open {
			b.process(p, ns)
			delete(b.seen, id)
		}
	}
}

// order are the processes that use devices, in an order of their own, so that the
// same recording gives the same file.
func (b *builder) order() []model.ProcessID {
	return slices.SortedFunc(maps.Keys(b.seen), func(x, y model.ProcessID) int {
		return cmp.Or(cmp.Compare(x.PID, y.PID), cmp.Compare(x.StartTicks, y.StartTicks))
	})
}

func (b *builder) process(p *process, ns int64) {
	b.to.Slice(&Slice{Group: p.group, Track: p.name, Name: p.group.String(), From: p.from, To: ns})
}

// finish ends what is still open at the end of the recording.
func (b *builder) finish(s *recording.State, end int64) {
	for _, id := range slices.Sorted(maps.Keys(b.processes)) {
		for _, m := range s.End(id) {
			b.move(s, &m, end)
		}
		b.drop(id, end)
	}
	b.flush()
	b.endWaits(func(*wait) bool { return true })
	for _, id := range b.order() {
		p := b.seen[id]
		b.process(p, max(p.to, p.from))
	}
	b.addFailures()
}

// baseUnit is the unit that points are in.
func baseUnit(f *metric.Device) string {
	if f.Unit == "MiB" && f.Per == 1<<20 {
		return "B"
	}
	if f.Unit == "MiB/s" && f.Per == 1<<20 {
		return "B/s"
	}
	if f.Per != 0 && f.Per != 1 { // points are in the unit of the JSON contract: a ratio, not %
		return ""
	}
	return f.Unit
}

// addLabels reads constant labels as Prometheus writes them: pool="dram".
func addLabels(to map[string]string, text string) {
	for len(text) > 0 {
		name, rest, ok := strings.Cut(text, `="`)
		if !ok {
			return
		}
		value, rest, ok := strings.Cut(rest, `"`)
		if !ok {
			return
		}
		to[name] = value
		text = rest
		if len(text) > 0 && text[0] == ',' {
			text = text[1:]
		}
	}
}

// stamp is a time for tables and JSON, with its nanoseconds.
func stamp(ns int64) string { return time.Unix(0, ns).UTC().Format("2006-01-02T15:04:05.000000000Z") }
