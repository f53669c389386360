package export

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/blocks"
	"github.com/ttmon/ttmon/internal/metric"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/recording"
	"github.com/ttmon/ttmon/internal/view/words"
)

// Options say what is made of a recording.
type Options struct {
	// Large is from how many bytes on (over all banks of a chip) a block is
	// told singly, from its allocation to its free.
	Large uint64
	// All takes every figure of the metric table, not only those that charts show.
	All bool
}

// Charted are the fields that viewers of traces are given.
var charted = map[string]string{
	"power.draw": "Power", "temperature.asic": "Temperature", "clocks.ai": "AICLK", "voltage.core": "Voltage", "current.core": "Current",
	"fan.speed": "Fan", "pcie.rx": "PCIe to device", "pcie.tx": "PCIe from device", "activity.estimate": "Activity, estimated",
	"memory.used": "DRAM", "l1.used": "L1", "memory.stale": "left by dead processes",
}

// Build makes the Timeline of a recording.
func Build(r *recording.Reader, o Options) (*Timeline, error) {
	b := &builder{
		o: o, t: &Timeline{}, fields: metric.Devices(), series: map[seriesKey]*Series{},
		live: map[uint32]map[uint64]liveBlock{}, held: map[heldKey]*heldSum{}, open: map[blockKey]openBlock{}, tags: map[tagKey]*tagSlice{},
		processes: map[uint32]*process{}, seen: map[model.ProcessID]*process{},
	}
	b.t.First, b.t.Last, _ = r.Span()
	c := r.Begin()
	for {
		rec, err := c.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if err := b.take(c.State, &rec); err != nil {
			return nil, err
		}
	}
	b.finish(c.State)
	b.t.Meta = c.Meta
	b.t.sort()
	return b.t, nil
}

type builder struct {
	o      Options
	t      *Timeline
	fields []metric.Device
	series map[seriesKey]*Series

	live      map[uint32]map[uint64]liveBlock // by list and address
	held      map[heldKey]*heldSum
	open      map[blockKey]openBlock
	tags      map[tagKey]*tagSlice
	processes map[uint32]*process
	seen      map[model.ProcessID]*process
	lastSnap  int64
	flows     uint64
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

type heldKey struct {
	process uint32
	chip    uint64
	pool    model.Pool
}

type heldSum struct {
	bytes  int64
	series *Series
}

type blockKey struct {
	list uint32
	addr uint64
}

type openBlock struct {
	flow uint64
	name string
}

// liveBlock is a block that is held, with the list that it was taken from.
type liveBlock struct {
	def   recording.List
	bytes uint64 // of one chip
	tag   string
}

type tagKey struct {
	process uint32
	tag     string
}

type tagSlice struct {
	blocks int
	bytes  int64
	peak   int64
	from   int64
}

func (b *builder) take(s *recording.State, rec *recording.Record) error {
	ns := rec.Time.UnixNano()
	switch rec.Kind {
	case recording.KindSnapshot:
		snap, err := s.Snapshot()
		if err != nil {
			return err
		}
		b.snapshot(snap, ns)
	case recording.KindEvent:
		b.t.Instants = append(b.t.Instants, Instant{Group: host, Track: "events", Name: words.Escape(rec.Event.Text), NS: ns, Args: []Arg{{"kind", rec.Event.Kind}, {"level", rec.Event.Level}}})
	case recording.KindOutput:
		track := map[int]string{1: "output", 2: "errors"}[rec.Output.Stream]
		b.t.Instants = append(b.t.Instants, Instant{Group: host, Track: track, Name: words.Escape(rec.Output.Text), NS: ns})
	case recording.KindProcess:
		p := b.processes[rec.Process.ID]
		if p == nil {
			p = &process{group: processGroup(rec.Process.PID, rec.Process.Name), from: ns, open: true, name: "tells its blocks: " + string(rec.Process.Method)}
			b.processes[rec.Process.ID] = p
		}
	case recording.KindEnded:
		b.drop(s, rec.ID, ns)
	case recording.KindAlloc:
		b.alloc(s, rec, ns)
	case recording.KindFree:
		b.free(s, rec.ID, rec.Block.Addr, ns)
	case recording.KindClear, recording.KindClosed:
		b.clear(s, rec.ID, ns)
	}
	return nil
}

var host = Group{Name: "host"}

func processGroup(pid int, name string) Group {
	return Group{Name: words.Escape(fmt.Sprintf("process %d %s", pid, name)), PID: pid}
}

// snapshot takes the figures of a snapshot.
func (b *builder) snapshot(s *model.Snapshot, ns int64) {
	for i := range s.Devices {
		d := &s.Devices[i]
		group := Group{Name: fmt.Sprintf("device %d %s", d.Index, d.Board.V)}
		for j := range b.fields {
			f := &b.fields[j]
			title := charted[f.Name]
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
			}
		}
	}
	b.users(s, ns)
	b.lastSnap = ns
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
		s = &Series{Group: group, Name: title, Field: f.Name, Unit: baseUnit(f), Prom: f.Prom.Name, Type: f.Prom.Type, Factor: f.Prom.Factor, Labels: labels}
		b.add(key, s)
	}
	s.Points = append(s.Points, Point{ns, v.Num})
	s.bound(v.Bound, f.Prom.Bound, ns)
}

// bound notes how a figure is to be read, once it was not exact.
func (s *Series) bound(bound model.Bound, prom string, ns int64) {
	n := map[model.Bound]float64{model.AtLeast: 1, model.Unsure: 2}[bound]
	if n != 0 && s.Bounds == nil {
		s.Bounds = &Series{Group: s.Group, Name: s.Name + ": 0 exact, 1 at least, 2 unsure", Field: s.Field + ".bound", Prom: prom, Type: "gauge", Labels: s.Labels}
		for _, p := range s.Points[:len(s.Points)-1] {
			s.Bounds.Points = append(s.Bounds.Points, Point{p.NS, 0})
		}
	}
	if s.Bounds != nil {
		s.Bounds.Points = append(s.Bounds.Points, Point{ns, n})
	}
}

func (b *builder) add(key seriesKey, s *Series) {
	b.series[key] = s
	b.t.Series = append(b.t.Series, s)
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
			b.add(key, s)
		}
		s.Points = append(s.Points, Point{ns, float64(n)})
		s.bound(bound, "", ns)
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
			if start := x.StartTime.UnixNano(); !x.StartTime.IsZero() && start > b.t.First.UnixNano() && start < ns {
				from = start
			}
			p = &process{group: processGroup(x.PID, x.Name.V), from: from, name: "uses devices"}
			b.seen[id] = p
		}
		p.open, p.to = true, ns
	}
	for id, p := range b.seen {
		if !p.open {
			b.process(p, ns)
			delete(b.seen, id)
		}
	}
}

func (b *builder) process(p *process, ns int64) {
	b.t.Slices = append(b.t.Slices, Slice{Group: p.group, Track: p.name, Name: p.group.Name, From: p.from, To: ns})
}

// alloc takes in a new block.
func (b *builder) alloc(s *recording.State, rec *recording.Record, ns int64) {
	def, _, ok := s.List(rec.ID)
	if !ok {
		return
	}
	b.free(s, rec.ID, rec.Block.Addr, ns) // its end was missed
	bytes := bytesOf(&def, rec.Block)
	b.change(s, &def, int64(bytes), ns)
	site, _ := s.Site(rec.Block.Site)
	if b.live[rec.ID] == nil {
		b.live[rec.ID] = map[uint64]liveBlock{}
	}
	b.live[rec.ID][rec.Block.Addr] = liveBlock{def, bytes, site.Tag}
	if site.Tag != "" {
		b.tag(def.Process, site.Tag, int64(bytes), ns)
	}
	if b.o.Large == 0 || bytes < b.o.Large {
		return
	}
	b.flows++
	name := words.Bytes(bytes) + " of " + def.Pool
	args := []Arg{{"address", fmt.Sprintf("%#x", rec.Block.Addr)}, {"bytes", strconv.FormatUint(bytes, 10)}}
	if site.Tag != "" {
		args = append(args, Arg{"tag", words.Escape(site.Tag)})
	}
	if f, ok := site.Where(); ok {
		name += words.Escape(fmt.Sprintf(" at %s:%d", filepath.Base(f.File), f.Line))
		args = append(args, Arg{"line", words.Escape(fmt.Sprintf("%s:%d %s", f.File, f.Line, f.Function))})
	}
	b.open[blockKey{rec.ID, rec.Block.Addr}] = openBlock{b.flows, name}
	b.t.Instants = append(b.t.Instants, Instant{Group: b.groupOf(def.Process), Track: "large blocks", Name: "alloc " + name, NS: ns, Flow: b.flows, Args: args})
}

// bytesOf is what a block takes from one chip.
func bytesOf(l *recording.List, x blocks.Block) uint64 { return x.Size * max(l.Geometry.Banks, 1) }

// free takes in that a block is gone.
func (b *builder) free(s *recording.State, list uint32, addr uint64, ns int64) {
	x, ok := b.live[list][addr]
	if !ok {
		return
	}
	delete(b.live[list], addr)
	def := &x.def
	b.change(s, def, -int64(x.bytes), ns)
	if x.tag != "" {
		b.tag(def.Process, x.tag, -int64(x.bytes), ns)
	}
	key := blockKey{list, addr}
	if o, ok := b.open[key]; ok {
		delete(b.open, key)
		b.t.Instants = append(b.t.Instants, Instant{Group: b.groupOf(def.Process), Track: "large blocks", Name: "free " + o.name, NS: ns, Flow: o.flow, FlowEnd: true})
	}
}

// clear takes in that a list gave up all its blocks.
func (b *builder) clear(s *recording.State, list uint32, ns int64) {
	for _, addr := range slices.Sorted(maps.Keys(b.live[list])) {
		b.free(s, list, addr, ns)
	}
}

func (b *builder) groupOf(process uint32) Group {
	if p := b.processes[process]; p != nil {
		return p.group
	}
	return host
}

// change moves what a process holds, on each chip of a list.
func (b *builder) change(s *recording.State, def *recording.List, by, ns int64) {
	chips := def.Chips
	if len(chips) == 0 {
		chips = []uint64{0}
	}
	for _, chip := range chips {
		key := heldKey{def.Process, chip, def.Geometry.Pool}
		h := b.held[key]
		if h == nil {
			h = &heldSum{series: &Series{
				Group: b.groupOf(def.Process), Name: fmt.Sprintf("%s, exact, chip %d", words.PoolName(def.Geometry.Pool), chip), Field: def.Pool + ".blocks", Unit: "B",
				Labels: map[string]string{"chip_id": strconv.FormatUint(chip, 10), "pool": def.Pool},
			}}
			if p, ok := s.Process(def.Process); ok {
				h.series.Labels["pid"] = strconv.Itoa(p.PID)
			}
			b.held[key] = h
			b.t.Series = append(b.t.Series, h.series)
		}
		h.bytes += by
		h.series.addFast(ns, float64(h.bytes))
	}
}

// tag keeps the slice of a tag: as long as anything is held under it.
func (b *builder) tag(process uint32, tag string, by, ns int64) {
	key := tagKey{process, tag}
	x := b.tags[key]
	if x == nil {
		x = &tagSlice{}
		b.tags[key] = x
	}
	if x.blocks == 0 {
		x.from, x.peak = ns, 0
	}
	x.bytes += by
	x.peak = max(x.peak, x.bytes)
	if by > 0 {
		x.blocks++
		return
	}
	if x.blocks--; x.blocks == 0 {
		b.endTag(key, x, ns)
	}
}

func (b *builder) endTag(key tagKey, x *tagSlice, ns int64) {
	name := words.Escape(key.tag)
	b.t.Slices = append(b.t.Slices, Slice{
		Group: b.groupOf(key.process), Track: "tag " + name, Name: name, From: x.from, To: ns,
		Args: []Arg{{"at most", words.Bytes(uint64(max(x.peak, 0)))}},
	})
	x.blocks, x.bytes = 0, 0
}

// drop ends a process and all that it held.
func (b *builder) drop(s *recording.State, id uint32, ns int64) {
	for list, live := range b.live {
		for _, x := range live {
			if x.def.Process == id {
				b.clear(s, list, ns)
			}
			break
		}
	}
	if p := b.processes[id]; p != nil && p.open {
		p.open = false
		b.process(p, ns)
	}
}

// finish ends what is still open at the end of the recording.
func (b *builder) finish(s *recording.State) {
	end := b.t.Last.UnixNano()
	for id := range b.processes {
		b.drop(s, id, end)
	}
	for _, p := range b.seen {
		b.process(p, max(p.to, p.from))
	}
	for _, s := range b.t.Series {
		if s.Bounds != nil {
			b.t.Series = append(b.t.Series, s.Bounds)
		}
	}
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

// nanoseconds of a time as JSON and others want it.
func stamp(ns int64) string { return time.Unix(0, ns).UTC().Format("2006-01-02T15:04:05.000000000Z") }
