package recorder

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/book/claim"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/past/recording"
	"github.com/ttmon/ttmon/internal/source/track"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// process is one whose blocks are recorded.
type process struct {
	key   string
	def   recording.Process
	lost  uint64
	lists map[uint64]*list // by the number that the producer gives them
	seen  bool
	from  origin
	n     uint64 // of the last change, of a process that is followed
	gaps  uint64 // changes of it that were not told
}

// origin is the source of what is recorded of a process.
type origin uint8

const (
	fromLedger origin = iota // its own ledger
	fromBlocks               // a ttmond, asked what it holds
	fromStream               // a ttmond, every change
)

// list is one of its lists; its def has no number while the pool is not known.
type list struct {
	def   recording.List
	group uint32
	early []item                  // what happened to it before its pool was known
	held  int                     // how many blocks early was last reduced to
	other bool                    // its pool is one that is not accounted for
	live  map[uint64]blocks.Block // of a process that is polled: as it was at the last poll
}

// rank orders the sources of a process, the best first, by the rule that figures
// follow, too. A source of every change comes before one that is polled.
func (o origin) rank(late bool) int {
	source := model.FromUprobe
	if o == fromLedger {
		source = model.FromTrack
	}
	n := 2 * claim.Rank(source, late)
	if o == fromBlocks {
		n++
	}
	return n
}

// hasBetterSource reports whether what another source reports of a process is recorded,
// and is to stay.
func (r *Recorder) hasBetterSource(from origin, def *recording.Process) bool {
	for _, p := range r.processes {
		if p.def.PID == def.PID && p.from != from && p.from.rank(p.def.Late) < from.rank(def.Late) {
			return true
		}
	}
	return false
}

// process finds the record of a process, or begins it. It is nil where another
// source reports the process, and knows more.
func (r *Recorder) process(key string, from origin, at time.Time, def recording.Process) *process {
	if p := r.processes[key]; p != nil {
		return p
	}
	if r.hasBetterSource(from, &def) {
		return nil
	}
	r.lastID++
	def.ID = r.lastID
	p := &process{key: key, from: from, def: def, lists: map[uint64]*list{}}
	r.end(at, func(old *process) bool { return old.from != from && old.def.PID == def.PID })
	r.processes[key] = p
	r.add(item{at: at, kind: recording.KindProcess, value: def})
	return p
}

// Sweep takes in what source/track found, and what processes told after it.
// Those that were there before and are no more have ended.
func (r *Recorder) Sweep(s *track.Sweep, told []track.LedgerEvents, now time.Time) {
	for _, p := range r.processes {
		p.seen = p.from != fromLedger
	}
	r.AddEvents(told, now)
	for i := range s.Processes {
		x := &s.Processes[i]
		def := recording.Process{PID: x.PID, Start: x.Start, Name: x.Ledger.Comm, Method: recording.ByLedger, Late: x.Ledger.Flags&ledgerfile.Late != 0}
		if !x.Ledger.TellsEvents {
			def.Method = recording.BySampling
		}
		p := r.process(x.Path, fromLedger, now, def)
		if p == nil {
			continue
		}
		p.seen = true
		if !x.Ledger.TellsEvents {
			r.poll(p, x.State, placesIn(x.Ledger), now)
		}
	}
	r.endUnseen(now)
}

func (r *Recorder) endUnseen(now time.Time) {
	r.end(now, func(p *process) bool { return !p.seen })
}

// end ends processes.
func (r *Recorder) end(now time.Time, which func(*process) bool) {
	for _, key := range slices.Sorted(maps.Keys(r.processes)) {
		if p := r.processes[key]; which(p) {
			r.add(item{at: now, kind: recording.KindEnded, id: p.def.ID})
			delete(r.processes, key)
		}
	}
}

// Blocks records what processes hold according to ttmond, where no better source
// has them. The list is complete: processes not in it have exited.
func (r *Recorder) Blocks(found []*blocks.Process, now time.Time) {
	for _, p := range r.processes {
		p.seen = p.from != fromBlocks
	}
	for _, x := range found {
		p := r.process(strconv.Itoa(x.PID), fromBlocks, now, recording.Process{PID: x.PID, Start: x.Start, Release: x.Release, Method: recording.BySampling, Late: x.Late})
		if p == nil {
			continue
		}
		p.seen = true
		r.missed(p, x.Lost, now)
		r.poll(p, x, nil, now)
	}
	r.endUnseen(now)
}

func (r *Recorder) missed(p *process, lost uint64, now time.Time) {
	if lost != p.lost {
		r.Missed += max(lost, p.lost) - p.lost
		p.lost = lost
		r.add(item{at: now, kind: recording.KindLost, id: p.def.ID, n: lost})
	}
}

// AddEvents records the events of ledgers.
func (r *Recorder) AddEvents(told []track.LedgerEvents, now time.Time) {
	for i := range told {
		t := &told[i]
		at := now
		if len(t.Events) > 0 {
			at = t.Events[0].Time
		}
		pid := t.PID
		if pid == 0 {
			pid = t.Ledger.PID
		}
		p := r.process(t.Path, fromLedger, at, recording.Process{
			PID: pid, Start: t.Ledger.StartTicks, Name: t.Ledger.Comm, Method: recording.ByLedger, Late: t.Ledger.Flags&ledgerfile.Late != 0,
		})
		if p == nil {
			continue
		}
		p.seen = t.PID != 0
		r.missed(p, t.Lost, at)
		if t.Resync != nil {
			r.resync(p, t.Resync, now)
		}
		for j := range t.Events {
			r.ledgerEvent(p, &t.Events[j], t.Places)
		}
	}
}

// site is the number of a place in a process.
func (r *Recorder) site(p *process, at time.Time, tag string, node uint32, stack func() []ledgerfile.Frame) uint32 {
	if tag == "" && node == 0 {
		return 0
	}
	key := siteKey{p.key, tag, node}
	id, ok := r.sites[key]
	if !ok {
		id = uint32(len(r.sites) + 1)
		r.sites[key] = id
		r.add(item{at: at, kind: recording.KindSite, value: recording.Site{ID: id, Tag: tag, Stack: stack()}})
	}
	return id
}

// ledgerEvent takes in one event of a process.
func (r *Recorder) ledgerEvent(p *process, e *ledgerfile.Event, places *ledgerfile.Ledger) {
	l := p.lists[uint64(e.List)]
	switch e.Kind {
	case ledgerfile.EventMade:
		l = &list{group: e.Node, def: recording.List{Process: p.def.ID, Allocator: uint64(e.Node), Late: e.Late, Geometry: blocks.Geometry{
			Banks: uint64(e.Tag), Base: e.Address, Capacity: e.Bytes, Align: e.Asked, Smallest: e.More,
		}}}
		p.lists[uint64(e.List)] = l
		r.define(l, e.Time, e.Pool)
		return
	case ledgerfile.EventChip:
		for n, x := range p.lists {
			if n == uint64(e.List) || e.List == 0 && x.group == e.Node {
				r.chip(x, e.Time, e.Address)
			}
		}
		return
	}
	if l == nil {
		return // of a list from before a gap
	}
	switch e.Kind {
	case ledgerfile.EventPool:
		r.define(l, e.Time, e.Pool)
	case ledgerfile.EventCut:
		l.def.Cut = e.Address
		r.changed(l, e.Time)
	case ledgerfile.EventFailed:
		r.failed(p, l, e)
	}
	kind, ok := kindOfEvent(e.Kind)
	if !ok {
		return
	}
	x := item{at: e.Time, kind: kind, block: blocks.Block{Addr: e.Address, Size: e.Bytes, Asked: e.Asked}}
	if kind == recording.KindAlloc {
		x.block.Site = r.site(p, e.Time, places.Text(e.Tag), e.Node, func() []ledgerfile.Frame { return places.Stack(e.Node) })
	}
	r.listEvent(p, uint64(e.List), x)
}

// kindOfEvent is the record of an event of a block or a list.
func kindOfEvent(k ledgerfile.EventKind) (kind recording.Kind, ok bool) {
	switch k {
	case ledgerfile.EventAlloc:
		return recording.KindAlloc, true
	case ledgerfile.EventFree:
		return recording.KindFree, true
	case ledgerfile.EventAsked:
		return recording.KindRequested, true
	case ledgerfile.EventClear:
		return recording.KindClear, true
	case ledgerfile.EventClosed:
		return recording.KindClosed, true
	}
	return kind, false
}

// listEvent records an event of the list with the producer's number n, or of a
// block in it, from any source. Of a list from before a gap nothing is known.
func (r *Recorder) listEvent(p *process, n uint64, x item) {
	l := p.lists[n]
	if l == nil {
		return
	}
	if x.kind == recording.KindClosed {
		delete(p.lists, n)
	}
	switch x.id = l.def.ID; {
	case l.other:
	case x.id == 0:
		l.wait(x)
	default:
		r.add(x)
	}
}

// failed records a failed allocation: what people look for first.
func (r *Recorder) failed(p *process, l *list, e *ledgerfile.Event) {
	r.Event(model.Event{
		Time: e.Time, Kind: model.EventNoRoom, Level: model.Warning, Process: true, PID: p.def.PID,
		Short: strconv.Itoa(p.def.PID) + " found no room", Text: words.NoRoom(p.def.PID, p.def.Name, l.def.Pool, e.Bytes),
	})
}

// define gives a list its number as soon as its pool is known. Pools that are
// not accounted for never get one.
func (r *Recorder) define(l *list, at time.Time, pool ledgerfile.Pool) {
	known, ok := blocks.PoolOf(pool)
	if !ok && pool != ledgerfile.PoolUnknown {
		l.other, l.early = true, nil
	}
	if !ok || l.def.ID != 0 {
		return
	}
	r.lastID++
	l.def.ID, l.def.Pool, l.def.Geometry.Pool = r.lastID, known.String(), known
	r.changed(l, at)
	for _, x := range l.early {
		x.id, x.at = l.def.ID, at
		r.add(x)
	}
	l.early = nil
}

// fewEarly is how much of a list whose pool is not known waits as it happened.
const fewEarly = 1024

// wait keeps what happened until the pool is known, which may be never. Of much
// only what still holds is kept: all of it is told as of one moment.
func (l *list) wait(x item) {
	l.early = append(l.early, x)
	if len(l.early) < max(fewEarly, 2*l.held) {
		return
	}
	last := map[uint64]int{} // where the block at an address was allocated
	asked := map[uint64]uint64{}
	for i, e := range l.early {
		switch e.kind {
		case recording.KindAlloc:
			last[e.block.Addr] = i
			delete(asked, e.block.Addr)
		case recording.KindFree:
			delete(last, e.block.Addr)
		case recording.KindRequested:
			asked[e.block.Addr] = e.block.Asked
		case recording.KindClear:
			clear(last)
		}
	}
	held := make([]item, 0, len(last))
	for _, i := range slices.Sorted(maps.Values(last)) {
		e := l.early[i]
		if n, ok := asked[e.block.Addr]; ok {
			e.block.Asked = n
		}
		held = append(held, e)
	}
	l.early, l.held = held, len(held)
}

func (r *Recorder) changed(l *list, at time.Time) {
	if l.def.ID != 0 {
		def := l.def
		def.Chips = slices.Clone(def.Chips)
		r.add(item{at: at, kind: recording.KindList, value: def})
	}
}

func (r *Recorder) chip(l *list, at time.Time, id uint64) {
	if !slices.Contains(l.def.Chips, id) {
		l.def.Chips = append(l.def.Chips, id)
		r.changed(l, at)
	}
}
