package uprobe

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/base/budget"
	"github.com/ttmon/ttmon/internal/book/launches"
	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/hostfs/proc"
	"github.com/ttmon/ttmon/internal/source/uprobe/pages"
)

// keptPrograms is how many programs are kept for all who follow, at 24 bytes each;
// one user's processes have at most half of them. Without a follower there are none.
var keptPrograms = budget.Limit{PerUID: 1 << 19, All: 1 << 20, Reserve: 1 << 17}

// programTap keeps the programs of processes one by one, while a client follows.
type programTap struct {
	room      *budget.Pool
	followers map[*ProgramFollower]bool
	logs      []*chipLog
	live      map[logKey]*chipLog
	// exited are processes whose last pages may still be in the ring, by pid.
	exited map[uint32]exitedProcess
}

type exitedProcess struct {
	*process
	at int64 // Unix ns; not earlier than its last page
}

type logKey struct {
	process *process
	chip    uint32
}

// chipLog are the programs of a process on a chip.
type chipLog struct {
	pages.Log
	process *process
	number  uint32
	uid     int // of the process when its chip first reported; -1: it was gone
	comm    string
	room    int64
	// refused: no follower may see it, so nothing is kept.
	refused bool
	ended   time.Time
	// another: the process runs another program since. What is known of this one:
	another    bool
	chip, lost uint64
}

const (
	// lateRead is how long after the end of a process its programs are kept.
	lateRead = 10 * time.Second
	// maxExited bounds the processes whose last pages may come after their exit.
	maxExited = 1024
)

// followPrograms has the programs of a process kept, while a client follows.
func (b *accounts) followPrograms(p *process) {
	if b.programs == nil || p.account().Logs != nil {
		return
	}
	t := b.programs
	p.work.Logs = func(chip uint32) *pages.Log {
		l := t.live[logKey{p, chip}]
		if l == nil {
			l = t.add(p, chip)
		}
		if l.refused {
			return nil
		}
		return &l.Log
	}
}

// add begins a log.
func (t *programTap) add(p *process, chip uint32) *chipLog {
	l := &chipLog{process: p, number: chip, uid: -1}
	uid, err := proc.Owner(hostfs.Root{}, p.PID)
	if st, statErr := proc.ReadStat(hostfs.Root{}, p.PID); err == nil && statErr == nil && (p.Start == 0 || p.Start == st.Start) {
		l.uid, l.comm, p.Start = uid, string(st.Comm), st.Start
	}
	if t.exited[uint32(p.PID)].process == p {
		l.uid, l.ended, l.Ended = p.uid, time.Now(), true // the pid may be another's by now
	}
	l.Grow = func(n int) bool {
		ok := t.room.Try(l.uid, int64(n))
		if ok {
			l.room += int64(n)
		}
		return ok
	}
	t.live[logKey{p, chip}] = l
	t.logs = append(t.logs, l)
	return l
}

// endPrograms ends the logs of a process, which are still to be read. exits: its last
// pages may still come.
func (b *accounts) endPrograms(p *process, exits bool) {
	t := b.programs
	if t == nil {
		return
	}
	left := p.afterExit() // its blocks need not be kept
	for key, l := range t.live {
		if key.process != p {
			continue
		}
		delete(t.live, key)
		if l.refused {
			continue
		}
		l.chip, l.lost = l.where()
		l.another, l.ended, l.Ended = !exits, time.Now(), true
		if l.process = left; exits {
			t.live[logKey{left, key.chip}] = l
		}
	}
	if p.work != nil {
		p.work.Logs = nil
	}
	switch {
	case exits && len(t.exited) < maxExited:
		t.exited[uint32(p.PID)] = exitedProcess{left, time.Now().UnixNano()}
	case p.work != nil:
		p.work.Unfollow()
	}
}

// afterExit is what is needed of a process whose last pages come after its exit.
func (p *process) afterExit() *process {
	left := &process{uid: p.uid, work: p.work, numbered: p.numbered}
	left.PID, left.Start, left.Seen = p.PID, p.Start, p.Seen
	return left
}

// exitedProcess is the process that pages of a time are of, if it has exited since;
// otherwise nil.
func (b *accounts) exitedProcess(pid uint32, at int64) *process {
	if b.programs == nil || b.processes[pid] != nil {
		return nil
	}
	if p, ok := b.programs.exited[pid]; ok && at <= p.at {
		return p.process
	}
	return nil
}

// where is the chip of a log, 0 where that is not known, and how many programs of
// the process were lost.
func (l *chipLog) where() (chip, lost uint64) {
	w := l.process.work
	if l.another || w == nil {
		return l.chip, l.lost
	}
	chip, _ = l.process.chipNumbered(l.number)
	return chip, w.Lost
}

// drop gives up the memory of a log.
func (t *programTap) drop(l *chipLog) {
	t.room.Release(l.uid, l.room)
	l.room = 0
	if w := l.process.work; w != nil && !l.another {
		w.UnfollowChip(l.number)
	}
	l.Log = pages.Log{}
}

// clean gives up logs that have been read, or that no follower may see.
func (t *programTap) clean(now time.Time) {
	maps.DeleteFunc(t.exited, func(_ uint32, p exitedProcess) bool { return now.UnixNano()-p.at > int64(lateRead) })
	t.logs = slices.DeleteFunc(t.logs, func(l *chipLog) bool {
		read, wanted := t.readBy(l)
		l.Read = read
		late := !l.ended.IsZero() && now.Sub(l.ended) > lateRead
		if wanted && !late {
			return false
		}
		t.drop(l)
		if l.refused = true; late {
			delete(t.live, logKey{l.process, l.number})
		}
		for f := range t.followers {
			delete(f.at, l)
		}
		return true
	})
}

// readBy is the number of the next program that some follower has not read, and
// whether any may see it, as far as that is decided.
func (t *programTap) readBy(l *chipLog) (next uint64, wanted bool) {
	next = l.Next()
	for f := range t.followers {
		at := f.at[l]
		switch {
		case at == nil, !at.decided:
			next, wanted = 0, true
		case at.allowed:
			next, wanted = min(next, at.next), true
		}
	}
	return next, wanted
}

// ProgramFollower receives the programs that run on the chips of processes. It
// belongs to one goroutine.
type ProgramFollower struct {
	s     *Source
	allow func(pid, uid int) bool
	at    map[*chipLog]*position // with the source's mu
	next  time.Time              // when pages are read again
	more  bool                   // not all was sent
	held  bool                   // programs wait for their names
	upTo  int64                  // Unix ns: what was reported before has been read
	// sentUpTo is the last time up to which all was sent.
	sentUpTo int64
}

// position is how far a follower has read a log.
type position struct {
	decided, allowed bool
	from, next       uint64
	lost             uint64
}

// FollowPrograms returns a follower of the processes that allow permits, by their
// pid and user (-1: not known). What was reported before is none of it.
func (s *Source) FollowPrograms(allow func(pid, uid int) bool) *ProgramFollower {
	s.Sync()
	s.mu.Lock()
	defer s.mu.Unlock()
	f := &ProgramFollower{s: s, allow: allow, at: map[*chipLog]*position{}}
	t := s.accounts.programs
	if t == nil {
		t = &programTap{room: s.programRoom, followers: map[*ProgramFollower]bool{}, live: map[logKey]*chipLog{}, exited: map[uint32]exitedProcess{}}
		s.accounts.programs = t
	}
	for key, l := range t.live {
		if l.refused {
			delete(t.live, key) // this one may be allowed to see it
		}
	}
	for _, l := range t.logs {
		f.at[l] = &position{from: l.Next(), next: l.Next()}
	}
	t.followers[f] = true
	return f
}

// Close ends it. The last follower frees all that is kept.
func (f *ProgramFollower) Close() {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	t := f.s.accounts.programs
	if t == nil || !t.followers[f] {
		return
	}
	delete(t.followers, f)
	t.clean(time.Now())
	if len(t.followers) > 0 {
		return
	}
	f.s.accounts.programs = nil
	for _, p := range f.s.accounts.processes {
		if p.work != nil {
			p.work.Unfollow()
		}
	}
}

const (
	// followPages is how often pages are read for a follower.
	followPages = 200 * time.Millisecond
	// maxSent is how many are sent at once.
	maxSent = 8192
)

// Next waits for programs and returns them.
func (f *ProgramFollower) Next(ctx context.Context) (list []launches.Message, err error) {
	for {
		if !f.more {
			if err := f.wait(ctx); err != nil {
				return nil, err
			}
			began := time.Now()
			f.next = began.Add(followPages)
			f.s.Sync()
			f.upTo = began.UnixNano()
		}
		f.decide()
		list = f.read(time.Now())
		if upTo := f.reached(); upTo > f.sentUpTo {
			f.sentUpTo = upTo
			list = append(list, launches.Message{UpTo: upTo})
		}
		if len(list) > 0 {
			return list, nil
		}
	}
}

// reached is a time: all that was reported before it has been sent. A process whose
// programs never get a name delays it, and does not stop it.
func (f *ProgramFollower) reached() int64 {
	switch {
	case f.more:
		return 0
	case f.held:
		return f.upTo - int64(pages.MaxHeld)
	}
	return f.upTo
}

func (f *ProgramFollower) wait(ctx context.Context) error {
	turn := time.NewTimer(time.Until(f.next))
	defer turn.Stop()
	select {
	case <-turn.C:
		return ctx.Err()
	case <-f.s.ended:
		return context.Canceled
	case <-ctx.Done():
		return ctx.Err()
	}
}

// decide calls allow for new logs, without the lock.
func (f *ProgramFollower) decide() {
	type decision struct {
		pid, uid int
		allowed  bool
	}
	open := map[*chipLog]*decision{}
	f.s.mu.Lock()
	for _, l := range f.s.accounts.programs.logs {
		if at := f.at[l]; at == nil || !at.decided {
			open[l] = &decision{pid: l.process.PID, uid: l.uid}
		}
	}
	f.s.mu.Unlock()
	if len(open) == 0 {
		return
	}
	for _, d := range open {
		d.allowed = f.allow(d.pid, d.uid)
	}
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	for _, l := range f.s.accounts.programs.logs { // others may have been dropped since
		d := open[l]
		if d == nil {
			continue
		}
		if f.at[l] == nil {
			f.at[l] = &position{}
		}
		f.at[l].decided, f.at[l].allowed = true, d.allowed
	}
}

// read returns what is to be sent, as much as may be at once.
func (f *ProgramFollower) read(now time.Time) (list []launches.Message) {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	t, left := f.s.accounts.programs, maxSent
	f.held = false
	for _, l := range t.logs {
		at := f.at[l]
		if at == nil || !at.allowed || l.Next() == 0 {
			continue
		}
		for some := true; some && left > 0; { // one batch, unless programs between are missing
			var b *launches.Batch
			if b, some = l.batch(at, left, now); some {
				list = append(list, launches.Message{Batch: b})
				left -= max(1, len(b.Programs))
			}
		}
		f.held = f.held || left > 0 && at.next < l.Next()
	}
	f.more = left == 0
	t.clean(now)
	return list
}

// batch are the programs from a position on, which is moved behind them; some:
// there is something to say.
func (l *chipLog) batch(at *position, most int, now time.Time) (b *launches.Batch, some bool) {
	b = &launches.Batch{PID: l.process.PID, StartTicks: l.process.Start, Process: l.comm, Number: l.number, From: max(at.from, l.First)}
	b.Chip, b.Lost = l.where()
	expected, lost := max(at.next, b.From), at.lost
	b.Programs, b.N, at.next = l.Since(expected, most, now.UnixNano())
	at.lost = b.Lost
	return b, len(b.Programs) > 0 || b.N > expected || b.Lost > lost
}
