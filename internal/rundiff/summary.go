// Package rundiff compares two recordings, or two moments: what was held at
// most, who grew, which blocks are new, which lines of code hold or allocate
// more or less.
//
// Its place in the flow: it reads internal/recording; cmd/ttmon prints what it
// finds, as text (view/text) or JSON.
package rundiff

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/recording"
)

// Side is one of the two that are compared.
type Side struct {
	Name    string    `json:"name"`
	At      time.Time `json:"at"` // up to when; what is held is of this moment
	Seconds float64   `json:"seconds"`
	Command []string  `json:"command,omitempty"`
	// Exit is the command's exit code; nil: it runs, or there was none.
	Exit *int `json:"exit_code,omitempty"`
	// Exact says that programs told their blocks; else the figures are those
	// of snapshots.
	Exact bool   `json:"exact"`
	Lost  uint64 `json:"lost_events,omitempty"`

	pools  map[poolKey]*pool
	places map[Place]*amounts
	users  map[string]*model.Sum // DRAM, by the name of the program
	blocks map[blockKey]int
	chips  map[uint32][]uint64 // of each list
	seen   bool                // there was a snapshot
	same   bool                // the other side is of the same recording
}

type poolKey struct {
	Chip string
	Pool string
}

// pool is what was held of a pool of a chip.
type pool struct {
	now, peak uint64
	peakAt    float64
	doubtful  bool
}

// Place is a line of a program, with the tag and the pool.
type Place struct {
	Pool     string `json:"pool"`
	Tag      string `json:"tag,omitempty"`
	File     string `json:"file,omitempty"`
	Line     int    `json:"line,omitempty"`
	Function string `json:"function,omitempty"`
}

type amounts struct {
	held, total    uint64
	blocks, allocs uint64
}

// blockKey is what blocks of two runs have in common: where they came from, and
// their size. Of two moments of one recording it is the block itself.
type blockKey struct {
	Place
	bytes      uint64
	addr       uint64
	born       int64
	oneProgram bool
}

// Options say what of a recording is summed up.
type Options struct {
	Name string
	At   time.Time
	// Same says that the other side is a moment of the same recording: blocks
	// are then told apart one by one.
	Same bool
}

// Sum sums a recording up, as far as a moment. A recording begins with events
// that are older than its first snapshot: that is the earliest moment.
func Sum(r *recording.Reader, o Options) (*Side, error) {
	first, last, ok := r.Span()
	if !ok {
		return nil, recording.ErrEmpty
	}
	if o.At.IsZero() || o.At.After(last) {
		o.At = last
	}
	if earliest := r.FirstSnapshot(); o.At.Before(earliest) {
		o.At = earliest
	}
	s := &Side{
		Name: o.Name, At: o.At, Seconds: o.At.Sub(first).Seconds(), same: o.Same, pools: map[poolKey]*pool{}, places: map[Place]*amounts{},
		users: map[string]*model.Sum{}, blocks: map[blockKey]int{},
	}
	var err error
	if s.chips, err = r.Chips(); err != nil {
		return nil, err
	}
	live := map[uint32]*liveList{}
	c := r.Begin()
	for {
		rec, err := c.NextUntil(o.At)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		s.take(c.State, &rec, live, rec.Time.Sub(first).Seconds())
	}
	for _, list := range live {
		for addr, x := range list.blocks {
			key := blockKey{Place: x.from.Place, bytes: x.bytes}
			if o.Same {
				key.addr, key.born, key.oneProgram = addr, x.born, true
			}
			s.blocks[key]++
		}
	}
	s.Command, s.Exit = c.Meta.Command, c.Meta.ExitCode
	return s, s.snapshots(r, c, first)
}

// liveList is a list and what is held of it. Where its blocks count is found once.
type liveList struct {
	def    recording.List
	pools  []*pool // of each of its chips
	places map[uint32]*place
	blocks map[uint64]held // by address
}

// place is a Place, and what it holds.
type place struct {
	Place
	*amounts
}

// held is a block that is held.
type held struct {
	from  *place
	bytes uint64 // of one chip
	born  int64
}

func (s *Side) take(state *recording.State, rec *recording.Record, live map[uint32]*liveList, at float64) {
	switch rec.Kind {
	case recording.KindAlloc:
		l := live[rec.ID]
		if l == nil {
			def, _, ok := state.List(rec.ID)
			if !ok {
				return
			}
			l = s.newList(def)
			live[rec.ID] = l
		}
		s.Exact = true
		l.drop(rec.Block.Addr)
		x := held{from: s.place(state, l, rec.Block.Site), bytes: rec.Block.Size * max(l.def.Geometry.Banks, 1), born: rec.Block.Born}
		l.blocks[rec.Block.Addr] = x
		l.add(&x, at, rec.Again)
	case recording.KindFree:
		live[rec.ID].drop(rec.Block.Addr)
	case recording.KindClear, recording.KindClosed:
		live[rec.ID].clear()
	case recording.KindEnded:
		for id, list := range live {
			if _, _, open := state.List(id); !open {
				list.clear()
			}
		}
	case recording.KindLost:
		s.Lost = max(s.Lost, rec.Lost)
	}
}

func (s *Side) newList(def recording.List) *liveList {
	l := &liveList{def: def, places: map[uint32]*place{}, blocks: map[uint64]held{}}
	for _, chip := range s.chips[def.ID] {
		key := poolKey{fmt.Sprintf("chip %d", chip), def.Pool}
		if s.pools[key] == nil {
			s.pools[key] = &pool{}
		}
		l.pools = append(l.pools, s.pools[key])
	}
	return l
}

// place is where the blocks of a list that a site allocates are counted.
func (s *Side) place(state *recording.State, l *liveList, id uint32) *place {
	if p := l.places[id]; p != nil {
		return p
	}
	site, _ := state.Site(id)
	p := &place{Place: Place{Pool: l.def.Pool, Tag: site.Tag}}
	if f, ok := site.Where(); ok {
		p.File, p.Line, p.Function = f.File, f.Line, f.Function
	}
	if s.places[p.Place] == nil {
		s.places[p.Place] = &amounts{}
	}
	p.amounts = s.places[p.Place]
	l.places[id] = p
	return p
}

// add takes in a block; one that is told again is not allocated again.
func (l *liveList) add(x *held, at float64, again bool) {
	for _, p := range l.pools {
		if p.now += x.bytes; p.now > p.peak {
			p.peak, p.peakAt = p.now, at
		}
	}
	n, a := uint64(max(len(l.pools), 1)), x.from.amounts
	a.held, a.blocks = a.held+x.bytes*n, a.blocks+1
	if !again {
		a.total, a.allocs = a.total+x.bytes*n, a.allocs+1
	}
}

// drop takes in that a block is gone. Of a list that is not known there is none.
func (l *liveList) drop(addr uint64) {
	if l == nil {
		return
	}
	x, ok := l.blocks[addr]
	if !ok {
		return
	}
	delete(l.blocks, addr)
	for _, p := range l.pools {
		p.now -= x.bytes
	}
	a := x.from.amounts
	a.held -= x.bytes * uint64(max(len(l.pools), 1))
	a.blocks--
}

func (l *liveList) clear() {
	if l == nil {
		return
	}
	for addr := range l.blocks {
		l.drop(addr)
	}
}

// snapshots takes what only they know: who held what at the moment, and, where
// no program told its blocks, what devices held at most.
func (s *Side) snapshots(r *recording.Reader, end *recording.Cursor, first time.Time) error {
	snap, err := end.Snapshot()
	switch {
	case err != nil:
		return err
	case snap == nil && s.Exact:
		return nil
	case snap == nil:
		return recording.ErrEmpty // nothing is not 0
	}
	s.seen = true
	for i := range snap.Processes {
		p := &snap.Processes[i]
		name := p.Name.V
		if name == "" {
			name = "process " + strconv.Itoa(p.PID)
		}
		if s.users[name] == nil {
			s.users[name] = &model.Sum{}
		}
		s.users[name].Add(p.Held(model.DRAM))
	}
	if s.Exact {
		return nil
	}
	c := r.Begin()
	for {
		rec, err := c.NextUntil(s.At)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if rec.Kind != recording.KindSnapshot {
			continue
		}
		if snap, err = c.Snapshot(); err != nil {
			return err
		}
		s.devices(snap, rec.Time.Sub(first).Seconds())
	}
}

func (s *Side) devices(snap *model.Snapshot, at float64) {
	for i := range snap.Devices {
		d := &snap.Devices[i]
		for _, kind := range []model.Pool{model.DRAM, model.L1} {
			n, bound, ok := d.Memory.Pools[kind].Used.Best()
			if !ok {
				continue
			}
			key := poolKey{fmt.Sprintf("device %d %s", d.Index, d.Board.V), kind.String()}
			p := s.pools[key]
			if p == nil {
				p = &pool{}
				s.pools[key] = p
			}
			p.now, p.doubtful = n, p.doubtful || bound != model.Exact
			if n > p.peak {
				p.peak, p.peakAt = n, at
			}
		}
	}
}

// keys of both maps, in order.
func keys[K comparable, V any](a, b map[K]V, compare func(K, K) int) []K {
	all := map[K]bool{}
	for k := range a {
		all[k] = true
	}
	for k := range b {
		all[k] = true
	}
	return slices.SortedFunc(maps.Keys(all), compare)
}
