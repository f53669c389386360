package recording

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/book/failure"
	"github.com/ttmon/ttmon/internal/field/wire"
	"github.com/ttmon/ttmon/internal/model"
)

// State is all that holds at a moment of a recording.
type State struct {
	Time time.Time // of the last record
	Meta Meta

	snapshot  []byte // the last one's JSON
	snapTime  int64
	processes map[uint32]*process
	lists     map[uint32]*list
	sites     map[uint32]*Site
	moves     []Move // of the last record
}

type process struct {
	def   Process
	lost  uint64
	ended bool
}

type list struct {
	def  List
	live *blocks.List
}

// leaving appends that all blocks of the list go.
func (l *list) leaving(moves []Move) []Move {
	for b := range l.live.All() {
		moves = append(moves, Move{&l.def, b, true})
	}
	return moves
}

func newState() *State {
	return &State{processes: map[uint32]*process{}, lists: map[uint32]*list{}, sites: map[uint32]*Site{}}
}

// Snapshot is the last snapshot; nil where none has come yet.
func (s *State) Snapshot() (*model.Snapshot, error) {
	if s.snapshot == nil {
		return nil, nil
	}
	return wire.Decode(s.snapshot)
}

// SnapshotTime is when the last snapshot was taken; ok is false where there is none.
func (s *State) SnapshotTime() (at time.Time, ok bool) {
	return time.Unix(0, s.snapTime), s.snapshot != nil
}

// JSON is the last snapshot as it was recorded.
func (s *State) JSON() []byte { return s.snapshot }

// Processes are those whose blocks are known and that have not ended, by number.
func (s *State) Processes() (out []Process) {
	for _, id := range slices.Sorted(maps.Keys(s.processes)) {
		if p := s.processes[id]; !p.ended {
			out = append(out, p.def)
		}
	}
	return out
}

// Process is one by its number, ended or not.
func (s *State) Process(id uint32) (Process, bool) {
	if p := s.processes[id]; p != nil {
		return p.def, true
	}
	return Process{}, false
}

// List is a list by its number, and its live blocks, which belong to the state.
func (s *State) List(id uint32) (List, *blocks.List, bool) {
	if l := s.lists[id]; l != nil {
		return l.def, l.live, true
	}
	return List{}, nil, false
}

// Site is a place in a program.
func (s *State) Site(id uint32) (Site, bool) {
	if x := s.sites[id]; x != nil {
		return *x, true
	}
	return Site{}, false
}

// Blocks is what a process holds, in the terms of all who show blocks. It is a
// copy. Sites in it are those of the recording.
func (s *State) Blocks(id uint32) *blocks.Process {
	p := s.processes[id]
	if p == nil {
		return nil
	}
	out := &blocks.Process{PID: p.def.PID, Start: p.def.Start, Release: p.def.Release, Late: p.def.Late, Lost: p.lost}
	byID := map[uint64]*blocks.Allocator{}
	for _, n := range slices.Sorted(maps.Keys(s.lists)) {
		l := s.lists[n]
		if l.def.Process != id {
			continue
		}
		a := byID[l.def.Allocator]
		if a == nil {
			a = &blocks.Allocator{ID: l.def.Allocator}
			byID[l.def.Allocator] = a
			out.Allocators = append(out.Allocators, a)
		}
		for _, chip := range l.def.Chips {
			if !slices.Contains(a.Chips, chip) {
				a.Chips = append(a.Chips, chip)
			}
		}
		a.Lists = append(a.Lists, l.live.Clone())
	}
	slices.SortFunc(out.Allocators, func(a, b *blocks.Allocator) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// Lists are the numbers of the open lists, of all processes.
func (s *State) Lists() []uint32 { return slices.Sorted(maps.Keys(s.lists)) }

func (s *State) damaged(kind Kind) error {
	return fmt.Errorf("%w: a record of kind %d that fits nothing", ErrDamaged, kind)
}

// apply takes in one record. A snapshot's body is kept, so it must not change any more;
// what is returned refers to nothing of it.
func (s *State) apply(kind Kind, ns int64, body []byte) (r Record, err error) {
	r.Time, r.Kind = time.Unix(0, ns), kind
	s.Time = r.Time
	switch kind {
	case KindSnapshot:
		s.snapshot, s.snapTime = body, ns
	case KindEvent:
		r.Event = new(model.Event)
		err = s.decode(body, r.Event)
	case KindFailure:
		r.Failure, _ = failure.Decode(body) // of a newer ttmon, or damaged: passed over
	case KindPrograms:
		r.Programs, _ = decodePrograms(ns, body)
	case KindMeta:
		r.Meta = new(Meta)
		if err = s.decode(body, r.Meta); err == nil {
			s.Meta = *r.Meta
		}
	case KindProcess, KindList, KindSite:
		err = s.define(kind, body, &r)
	case KindOutput:
		if len(body) < 1 {
			return r, s.damaged(kind)
		}
		r.Output = Output{int(body[0]), string(body[1:])}
	case kindHeld:
		err = s.held(ns, body)
	case KindAlloc, KindFree, KindRequested, KindClear, KindClosed, KindEnded, KindLost:
		err = s.happened(kind, ns, body, &r)
	}
	return r, err
}

func (s *State) decode(body []byte, v any) error {
	if err := json.Unmarshal(body, v); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return nil
}

// maxDefinitions bounds what a damaged file can make us keep.
const maxDefinitions = 1 << 20

func (s *State) define(kind Kind, body []byte, r *Record) error {
	if len(s.processes)+len(s.lists)+len(s.sites) > maxDefinitions {
		return fmt.Errorf("%w: too many definitions", ErrDamaged)
	}
	switch kind {
	case KindProcess:
		r.Process = new(Process)
		if err := s.decode(body, r.Process); err != nil {
			return err
		}
		if old := s.processes[r.Process.ID]; old != nil {
			old.def = *r.Process // told again, when more is known
			break
		}
		s.processes[r.Process.ID] = &process{def: *r.Process}
	case KindSite:
		r.Site = new(Site)
		if err := s.decode(body, r.Site); err != nil {
			return err
		}
		s.sites[r.Site.ID] = r.Site
	case KindList:
		r.List = new(List)
		if err := s.decode(body, r.List); err != nil {
			return err
		}
		return s.defineList(*r.List)
	}
	return nil
}

func (s *State) defineList(def List) error {
	pool, ok := model.PoolNamed(def.Pool)
	if !ok {
		return fmt.Errorf("%w: a list of the unknown pool %q", ErrDamaged, def.Pool)
	}
	def.Geometry.Pool = pool
	origin := blocks.FromStart
	if def.Late {
		origin = blocks.Late
	}
	l := s.lists[def.ID]
	if l == nil {
		l = &list{live: blocks.NewList(def.Geometry, origin)}
		s.lists[def.ID] = l
	}
	l.def = def
	l.live.Geometry, l.live.Cut, l.live.Origin = def.Geometry, def.Cut, origin
	return nil
}

// happened takes in what happened to blocks, lists and processes.
func (s *State) happened(kind Kind, ns int64, body []byte, r *Record) error {
	c := cursor{b: body}
	id := c.uint()
	r.ID = uint32(id)
	if kind == KindEnded || kind == KindLost {
		p := s.processes[r.ID]
		if p == nil {
			return s.damaged(kind)
		}
		if kind == KindEnded {
			r.Moves = s.End(p.def.ID)
			return nil
		}
		p.lost = c.uint()
		r.Lost = p.lost
		return nil
	}
	l := s.lists[r.ID]
	if l == nil || c.bad || id>>32 != 0 {
		return s.damaged(kind)
	}
	moves := s.moves[:0]
	switch kind {
	case KindAlloc:
		r.Block = blocks.Block{Addr: c.uint(), Size: c.uint(), Asked: c.uint(), Born: ns}
		r.Block.Site = uint32(c.uint())
		r.Block.Tag = r.Block.Site
		dropped, added := l.live.Alloc(r.Block)
		for _, b := range dropped {
			moves = append(moves, Move{&l.def, b, true})
		}
		if added {
			moves = append(moves, Move{&l.def, r.Block, false})
		}
	case KindFree:
		r.Block.Addr = c.uint()
		if b, ok := l.live.Free(r.Block.Addr); ok {
			r.Block, moves = b, append(moves, Move{&l.def, b, true})
		}
	case KindRequested:
		addr, asked := c.uint(), c.uint()
		if b, ok := l.live.Free(addr); ok {
			peak := l.live.Peak
			b.Asked = asked
			l.live.Alloc(b)
			peak.Asked = max(peak.Asked, l.live.Peak.Asked)
			l.live.Peak = peak
			r.Block = b
		}
	case KindClear:
		moves = l.leaving(moves)
		l.live.Clear()
	case KindClosed:
		moves = l.leaving(moves)
		delete(s.lists, r.ID)
	}
	s.moves, r.Moves = moves, moves
	if c.bad {
		return s.damaged(kind)
	}
	return nil
}

// End ends a process, and returns the blocks that go with it.
func (s *State) End(process uint32) (moves []Move) {
	if p := s.processes[process]; p != nil {
		p.ended = true
	}
	for _, id := range slices.Sorted(maps.Keys(s.lists)) {
		if l := s.lists[id]; l.def.Process == process {
			moves = l.leaving(moves)
			delete(s.lists, id)
		}
	}
	return moves
}

// held fills a list with the blocks that it has at the start of a key block.
func (s *State) held(ns int64, body []byte) error {
	c := cursor{b: body}
	l := s.lists[uint32(c.uint())]
	n := c.uint()
	if l == nil || c.bad {
		return s.damaged(kindHeld)
	}
	l.live.Clear()
	if l.def.Late {
		l.live.Origin = blocks.Late
	}
	addr := uint64(0)
	for range n {
		addr += c.uint()
		b := blocks.Block{Addr: addr, Size: c.uint(), Asked: c.uint()}
		b.Site = uint32(c.uint())
		b.Tag = b.Site
		b.Born = ns - int64(c.uint())
		if c.bad {
			return s.damaged(kindHeld)
		}
		l.live.Alloc(b)
	}
	l.live.Peak = blocks.Peak{BankBytes: c.uint(), BankAt: int64(c.uint()), Asked: c.uint(), AskedAt: int64(c.uint())}
	l.live.Contradictions, l.live.FreedUnseen = c.uint(), c.uint()
	if c.bad {
		return s.damaged(kindHeld)
	}
	return nil
}

// appendHeld is what held reads.
func appendHeld(dst []byte, id uint32, l *blocks.List, ns int64) []byte {
	dst = binary.AppendUvarint(dst, uint64(id))
	dst = binary.AppendUvarint(dst, l.Usage().Blocks)
	addr := uint64(0)
	for b := range l.All() {
		for _, v := range []uint64{b.Addr - addr, b.Size, b.Asked, uint64(b.Site), uint64(max(0, ns-b.Born))} {
			dst = binary.AppendUvarint(dst, v)
		}
		addr = b.Addr
	}
	for _, v := range []uint64{l.Peak.BankBytes, uint64(l.Peak.BankAt), l.Peak.Asked, uint64(l.Peak.AskedAt), l.Contradictions, l.FreedUnseen} {
		dst = binary.AppendUvarint(dst, v)
	}
	return dst
}
