package uprobe

import (
	"context"
	"time"

	"github.com/ttmon/ttmon/internal/book/blocks/changes"
	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/hostfs/proc"
)

// Follower receives every change of the blocks of processes. It belongs to one
// goroutine.
type Follower struct {
	s       *Source
	allow   func(pid int) bool
	at      uint64            // in the ring
	known   map[uint32]uint64 // the number of the last change sent
	gaps    map[uint32]uint64 // the same, of processes with missed changes
	allowed map[uint32]bool   // what allow returned
	next    time.Time         // when allow is called for all again
	upTo    int64             // that was sent
}

// Follow returns a Follower of the processes that allow permits. allow is called
// again every second.
func (s *Source) Follow(allow func(pid int) bool) *Follower {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.accounts.tap == nil {
		s.accounts.tap = newTap()
	}
	t := s.accounts.tap
	t.used++
	return &Follower{s: s, allow: allow, at: t.next, known: map[uint32]uint64{}, gaps: map[uint32]uint64{}, allowed: map[uint32]bool{}}
}

// Close ends it. The last follower frees the ring.
func (f *Follower) Close() {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	if t := f.s.accounts.tap; t != nil {
		if t.used--; t.used == 0 {
			f.s.accounts.tap = nil
		}
	}
}

// Next waits for changes and returns them.
func (f *Follower) Next(ctx context.Context) (b changes.Batch, err error) {
	for {
		f.checkAccess(&b)
		more := f.read(&b)
		if len(b.States)+len(b.Changes) > 0 || b.UpTo > 0 {
			return b, nil
		}
		var again <-chan time.Time
		if !f.s.ringOpen() {
			again = time.After(notifyIdle)
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

// checkAccess calls allow for new processes, and once a second for all. It runs
// without the lock, which the reader of events needs.
func (f *Follower) checkAccess(b *changes.Batch) {
	now := time.Now()
	all := now.After(f.next)
	for _, pid := range f.toCheck(all) {
		f.allowed[pid] = f.allow(int(pid))
		if n, told := f.known[pid]; told && !f.allowed[pid] {
			delete(f.known, pid)
			b.Changes = append(b.Changes, ended(pid, n, now, "it is not yours any more"))
		}
	}
	if all {
		f.next = now.Add(time.Second)
	}
}

func (f *Follower) toCheck(all bool) (list []uint32) {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	for pid := range f.s.accounts.processes {
		if _, asked := f.allowed[pid]; all || !asked {
			list = append(list, pid)
		}
	}
	return list
}

func ended(pid uint32, n uint64, at time.Time, why string) changes.Change {
	return changes.Change{N: n + 1, Time: at.UnixNano(), PID: int(pid), Kind: changes.Ended, Why: why}
}

// maxBatch is how many changes one batch has at most.
const maxBatch = 4096

// read adds what is in the ring. more is closed when there is more.
func (f *Follower) read(b *changes.Batch) (more <-chan struct{}) {
	now := time.Now().UnixNano()
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	t := f.s.accounts.tap
	if !f.s.ringOpen() && now-t.upTo >= int64(notifyIdle) {
		t.upTo = now // no probe is set: nothing can have happened
	}
	if t.next-f.at > tapSize {
		f.overrun(t)
		again := make(chan struct{})
		close(again)
		return again // access is checked again, then whole states are sent
	}
	for ; f.at < t.next && len(b.Changes) < maxBatch; f.at++ {
		f.add(&t.ring[f.at%tapSize], b)
	}
	if f.addStates(b, t.next-f.at) && t.upTo > f.upTo {
		f.upTo, b.UpTo = t.upTo, t.upTo
	}
	return t.more
}

// add adds one change of the ring. With mu.
func (f *Follower) add(c *changes.Change, b *changes.Batch) {
	pid := uint32(c.PID)
	n, told := f.known[pid]
	gone := c.Kind == changes.Ended
	switch {
	case told && c.N <= n: // a state had it
		return
	case !told && f.allowed[pid] && c.N == 1 && !gone:
		// All that it ever did is in the ring: it begins with nothing.
		b.States = append(b.States, f.initialState(pid))
	case !told: // addStates sends it, if it is allowed
		if gone {
			delete(f.allowed, pid) // its number may become another's
		}
		return
	}
	f.known[pid] = c.N
	b.Changes = append(b.Changes, *c)
	if gone {
		delete(f.known, pid)
		delete(f.allowed, pid)
	}
}

// initialState is the state of a process before its first change. With mu.
func (f *Follower) initialState(pid uint32) *changes.State {
	s := &changes.State{PID: int(pid)}
	if p := f.s.accounts.processes[pid]; p != nil {
		s.Release, s.Late = p.Release, p.Late
		p.name(s)
	}
	return s
}

// name adds the name of a process, and its start time, which may not be known
// before the next sweep.
func (p *process) name(s *changes.State) {
	s.Start = p.Start
	if st, err := proc.ReadStat(hostfs.Root{}, p.PID); err == nil && (p.Start == 0 || p.Start == st.Start) {
		s.Start, s.Name = st.Start, string(st.Comm)
	}
}

// addStates adds the state of a process that was not sent yet, or whose changes
// were missed; all is false while there is more to send. With mu. behind is how
// much of the ring is still to be read. A follower that is always behind gets
// states, too: of processes whose first change cannot be in that part.
func (f *Follower) addStates(b *changes.Batch, behind uint64) (all bool) {
	for pid, p := range f.s.accounts.processes {
		if behind > 0 && p.changes <= behind {
			continue
		}
		if _, told := f.known[pid]; told || !f.allowed[pid] || p.changes == 0 || p.trouble.Kind != "" {
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
		return false // one at a time: a state may be large
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

// overrun handles a follower that was too slow: what it missed is not in the
// ring any more. With mu.
func (f *Follower) overrun(t *tap) {
	f.at = t.next
	for pid, n := range f.known {
		f.gaps[pid] = n
	}
	clear(f.known)
	clear(f.allowed)
}
