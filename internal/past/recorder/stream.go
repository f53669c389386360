package recorder

import (
	"strconv"
	"time"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/book/blocks/changes"
	"github.com/ttmon/ttmon/internal/past/recording"
)

// Changes records what a ttmond sends about the blocks of processes that it
// watches through the kernel: every allocation and free.
func (r *Recorder) Changes(b *changes.Batch, now time.Time) {
	for _, s := range b.States {
		r.streamState(s, now)
	}
	for i := range b.Changes {
		c := &b.Changes[i]
		p := r.processes[streamKey(c.PID)]
		if p == nil || c.N <= p.n {
			continue
		}
		if p.n = c.N; c.Kind == changes.Ended {
			at := time.Unix(0, c.Time)
			r.end(at, func(x *process) bool { return x == p })
			continue
		}
		r.streamed(p, c)
	}
}

// Unfollowed is told when no ttmond tells changes any more: what it told holds
// no longer.
func (r *Recorder) Unfollowed(now time.Time) {
	r.end(now, func(p *process) bool { return p.from == fromStream })
}

func streamKey(pid int) string { return "stream " + strconv.Itoa(pid) }

// streamState makes what is recorded of a process equal to a state of it.
func (r *Recorder) streamState(s *changes.State, now time.Time) {
	key := streamKey(s.PID)
	p := r.processes[key]
	if p != nil && p.def.Start != 0 && s.Start != 0 && p.def.Start != s.Start {
		r.end(now, func(x *process) bool { return x == p })
		p = nil
	}
	def := recording.Process{PID: s.PID, Start: s.Start, Name: s.Name, Release: s.Release, Method: recording.ByUprobe, Late: s.Late}
	if p == nil && r.hasBetterSource(fromStream, &def) {
		return
	}
	if p == nil {
		since := r.begun
		r.end(now, func(x *process) bool {
			told := x.from != fromStream && x.def.PID == s.PID
			if told {
				since = now // up to now it told what is told here
			}
			return told
		})
		p = r.process(key, fromStream, since, def)
		p.n = s.N
		r.missed(p, s.Lost, now)
		r.realign(p, s, since, now)
		return
	}
	gap := s.Missed
	if gap == 0 && s.N != p.n { // the connection was lost, and what was told then
		gap = max(s.N, p.n+1) - p.n
	}
	p.n = s.N
	if gap > 0 {
		p.gaps += gap
		r.missed(p, s.Lost+p.gaps, now)
		if r.Flush(now) == nil { // else the next write tells
			r.realign(p, s, now, now)
		}
	}
}

// streamed takes in one change.
func (r *Recorder) streamed(p *process, c *changes.Change) {
	at := time.Unix(0, c.Time)
	switch c.Kind {
	case changes.Lost:
		r.missed(p, c.Size+p.gaps, at)
		return
	case changes.Watched:
		p.def.Late = c.Size != 0
		r.add(item{at: at, kind: recording.KindProcess, value: p.def})
		return
	case changes.Defined:
		r.defined(p, c.Def, at)
		return
	}
	if kind, ok := kindOfChange(c.Kind); ok {
		r.listEvent(p, uint64(c.List), item{at: at, kind: kind, block: blocks.Block{Addr: c.Addr, Size: c.Size, Asked: c.Asked}})
	}
}

// defined defines a list, or tells that it changed.
func (r *Recorder) defined(p *process, def *changes.List, at time.Time) {
	l := p.lists[uint64(def.ID)]
	if l == nil {
		r.lastID++
		l = &list{def: recording.List{ID: r.lastID}}
		p.lists[uint64(def.ID)] = l
	}
	id := l.def.ID
	l.def = definition(def)
	l.def.ID, l.def.Process = id, p.def.ID
	r.changed(l, at)
}

// kindOfChange is the record of a change to a block or a list.
func kindOfChange(k changes.Kind) (kind recording.Kind, ok bool) {
	switch k {
	case changes.Alloc:
		return recording.KindAlloc, true
	case changes.Free:
		return recording.KindFree, true
	case changes.Cleared:
		return recording.KindClear, true
	case changes.Closed:
		return recording.KindClosed, true
	}
	return kind, false
}
