package uprobe

import (
	"context"
	"time"

	"github.com/ttmon/ttmon/internal/blocks/changes"
	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/proc"
)

// Follower is somebody who is told what happens to the blocks of processes. It
// belongs to one goroutine.
type Follower struct {
	s     *Source
	allow func(pid int) bool
	at    uint64            // in the ring
	known map[uint32]uint64 // the number of the last change that was told
	gaps  map[uint32]uint64 // the same, of processes of which some were missed
	asked map[uint32]bool   // what allow says
	next  time.Time         // when it is asked again
	upTo  int64             // that was told
}

// Follow begins to tell. Processes that allow says no to are left out; it is
// asked again every second.
func (s *Source) Follow(allow func(pid int) bool) *Follower {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.books.tap == nil {
		s.books.tap = newTap()
	}
	t := s.books.tap
	t.used++
	return &Follower{s: s, allow: allow, at: t.next, known: map[uint32]uint64{}, gaps: map[uint32]uint64{}, asked: map[uint32]bool{}}
}

// Close ends it. The last one takes the ring along.
func (f *Follower) Close() {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	if t := f.s.books.tap; t != nil {
		if t.used--; t.used == 0 {
			f.s.books.tap = nil
		}
	}
}

// Next waits for something to tell.
func (f *Follower) Next(ctx context.Context) (b changes.Batch, err error) {
	for {
		f.ask(&b)
		more := f.read(&b)
		if len(b.States)+len(b.Changes) > 0 || b.UpTo > 0 {
			return b, nil
		}
		var again <-chan time.Time
		if !f.s.ringOpen() {
			again = time.After(sayUpTo)
		}
		select {
		case <-more:
		case <-again:
		case <-f.s.ended:
			return b, context.Canceled
		case <-ctx.Done():
			return b, ctx.Err()
		}
	}
}

// ask asks about processes that are new, and about all once a second. It is
// done without the lock, which the reader of events needs.
func (f *Follower) ask(b *changes.Batch) {
	now := time.Now()
	all := now.After(f.next)
	for _, pid := range f.toAsk(all) {
		f.asked[pid] = f.allow(int(pid))
		if n, told := f.known[pid]; told && !f.asked[pid] {
			delete(f.known, pid)
			b.Changes = append(b.Changes, ended(pid, n, now, "it is not yours any more"))
		}
	}
	if all {
		f.next = now.Add(time.Second)
	}
}

func (f *Follower) toAsk(all bool) (list []uint32) {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	for pid := range f.s.books.processes {
		if _, asked := f.asked[pid]; all || !asked {
			list = append(list, pid)
		}
	}
	return list
}

func ended(pid uint32, n uint64, at time.Time, why string) changes.Change {
	return changes.Change{N: n + 1, Time: at.UnixNano(), PID: int(pid), Kind: changes.Ended, Why: why}
}

// maxBatch bounds what is told at once.
const maxBatch = 4096

// read takes what is there. more is closed when there is more.
func (f *Follower) read(b *changes.Batch) (more <-chan struct{}) {
	now := time.Now().UnixNano()
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	t := f.s.books.tap
	if !f.s.ringOpen() && now-t.upTo >= int64(sayUpTo) {
		t.upTo = now // no probe is set: nothing can have happened
	}
	if t.next-f.at > tapSize {
		f.overrun(t)
		again := make(chan struct{})
		close(again)
		return again // the rights are asked for anew, then what holds is told
	}
	for ; f.at < t.next && len(b.Changes) < maxBatch; f.at++ {
		f.take(&t.ring[f.at%tapSize], b)
	}
	if f.greet(b, t.next-f.at) && t.upTo > f.upTo {
		f.upTo, b.UpTo = t.upTo, t.upTo
	}
	return t.more
}

// take takes one change from the ring. With mu.
func (f *Follower) take(c *changes.Change, b *changes.Batch) {
	pid := uint32(c.PID)
	n, told := f.known[pid]
	gone := c.Kind == changes.Ended
	switch {
	case told && c.N <= n: // a state had it
		return
	case !told && f.asked[pid] && c.N == 1 && !gone:
		// All that it ever did is in the ring: it begins with nothing.
		b.States = append(b.States, f.beginning(pid))
	case !told: // greet tells it, if it may be told
		if gone {
			delete(f.asked, pid) // its number may become another's
		}
		return
	}
	f.known[pid] = c.N
	b.Changes = append(b.Changes, *c)
	if gone {
		delete(f.known, pid)
		delete(f.asked, pid)
	}
}

// beginning is the state of a process before its first change. With mu.
func (f *Follower) beginning(pid uint32) *changes.State {
	s := &changes.State{PID: int(pid)}
	if p := f.s.books.processes[pid]; p != nil {
		s.Release, s.Late = p.Release, p.Late
		p.name(s)
	}
	return s
}

// name adds how a process is called, and when it started, which the next sweep
// may be the first to see.
func (p *process) name(s *changes.State) {
	s.Start = p.Start
	if st, err := proc.ReadStat(hostfs.Root{}, p.PID); err == nil && (p.Start == 0 || p.Start == st.Start) {
		s.Start, s.Name = st.Start, string(st.Comm)
	}
}

// greet tells what processes hold of which nothing was told yet, or some was
// missed; all is false while there is more to tell. With mu. behind is how much of
// the ring is still to be taken. Who is always behind is told of processes, too:
// of those whose first change cannot be in that part.
func (f *Follower) greet(b *changes.Batch, behind uint64) (all bool) {
	for pid, p := range f.s.books.processes {
		if behind > 0 && p.changes <= behind {
			continue
		}
		if _, told := f.known[pid]; told || !f.asked[pid] || p.changes == 0 || p.trouble.Kind != "" {
			continue
		}
		n, gap := f.gaps[pid]
		delete(f.gaps, pid)
		f.known[pid] = p.changes
		if gap && n == p.changes {
			continue // what was missed was of others
		}
		s := p.state()
		p.name(s)
		if gap {
			s.Missed = max(p.changes, n+1) - n
		}
		b.States = append(b.States, s)
		return false // one at a time: there may be much to say
	}
	if behind > 0 {
		return false
	}
	for pid, n := range f.gaps {
		b.Changes = append(b.Changes, ended(pid, n, time.Now(), "it ended while changes were missed"))
	}
	clear(f.gaps)
	return true
}

// overrun is for a follower that was too slow: what it missed is not in the
// ring any more. With mu.
func (f *Follower) overrun(t *tap) {
	f.at = t.next
	for pid, n := range f.known {
		f.gaps[pid] = n
	}
	clear(f.known)
	clear(f.asked)
}
