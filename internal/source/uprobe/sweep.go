package uprobe

import (
	"context"
	"maps"
	"time"

	"github.com/cilium/ebpf"

	"github.com/ttmon/ttmon/internal/book/blocks/changes"
	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/hostfs/proc"
	"github.com/ttmon/ttmon/internal/model"
)

// sweepEvery is how often the kernel's table of processes is scanned for those
// that hit too often, have lost events, or are gone.
const sweepEvery = 500 * time.Millisecond

// rateKey is what hits are counted by: each group of probes has its own limit.
type rateKey struct {
	pid uint32
	of  group
}

// count is how many hits a process had at a time.
type count struct {
	hits uint64
	at   time.Time
}

func (s *Source) sweep(ctx context.Context) error {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		s.sweepOnce(time.Now())
	}
}

func (s *Source) sweepOnce(now time.Time) {
	if s.isIdle() {
		return
	}
	table := map[uint32]watchProcess{} // by number in our namespace
	numbers := map[uint32]uint32{}     // in the kernel's
	var number uint32
	var row watchProcess
	for rows := s.kernel.Processes.Iterate(); rows.Next(&number, &row); {
		if row.Pid != 0 {
			table[row.Pid], numbers[row.Pid] = row, number
		}
	}
	var nameless uint64
	_ = s.kernel.Nameless.Lookup(uint32(0), &nameless)
	s.nameless.Store(nameless)
	hosts, ended := s.hostRows(), s.findEnded(table) // what the kernel is asked for, without mu

	defer s.dropGone()
	s.mu.Lock()
	defer s.mu.Unlock()
	for pid, row := range table {
		p := s.accounts.processes[pid]
		if p == nil {
			continue // its first event is still in the ring
		}
		if p.Start == 0 {
			p.Start = ticks(row.Start)
		}
		s.accounts.setOwner(p, int(row.Uid))
		p.nameless = nameless
		s.accounts.setLost(p, row.Lost, now)
		p.lost16 = uint16(row.Lost)
		p.taught = row.Taught
		if p.parent != 0 && row.Hits > 0 {
			s.adopt(pid, p.parent)
		}
		if rate := s.rate(rateKey{pid, groupAllocators}, row.Hits, now); rate > s.o.Limit && row.Ignored == 0 {
			s.detach(pid, numbers[pid], row, rate)
		}
		s.sweepWork(p, &row, now)
		if p.unplaced {
			s.wakeDiscover() // it could not be read, or its first event was still in the ring
		}
	}
	for pid, p := range s.accounts.processes {
		_, seen := table[pid]
		if start, gone := ended[pid]; !seen && gone && start == p.Start {
			// It has ended, and either never hit a probe or its last event was lost.
			s.forget(int(pid))
			s.accounts.endProcess(p, now.UnixNano(), "it has ended")
			s.accounts.remove(p)
		} else if !seen {
			// Its events may be among those of processes that have no place.
			s.accounts.setLost(p, p.Lost+nameless-min(p.nameless, nameless), now)
			p.nameless = nameless
		}
	}
	maps.DeleteFunc(s.rates, func(key rateKey, _ count) bool { return s.accounts.processes[key.pid] == nil })
	maps.DeleteFunc(s.elsewhere, func(pid uint32, _ bool) bool { _, seen := table[pid]; return !seen })
	s.sweepHosts(hosts, now)
	s.learnChips(now)
}

// findEnded finds processes that are not in the kernel's table, because they never hit
// a probe or have ended, and do not run any more: their starts, by pid. Events wait
// for mu, so they are looked for without it.
func (s *Source) findEnded(table map[uint32]watchProcess) map[uint32]uint64 {
	found := map[uint32]uint64{}
	s.mu.Lock()
	for pid, p := range s.accounts.processes {
		if _, seen := table[pid]; !seen {
			found[pid] = p.Start
		}
	}
	s.mu.Unlock()
	maps.DeleteFunc(found, func(pid uint32, start uint64) bool { return sameProcess(int(pid), start) })
	return found
}

// isIdle reports whether no process is known that could hit a probe: before the ring
// is open none is set.
func (s *Source) isIdle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.ringOpen() && len(s.accounts.processes) == 0 && len(s.libraries) == 0
}

// setLost notes that so many events of a process were lost.
func (b *accounts) setLost(p *process, lost uint64, now time.Time) {
	if lost > p.Lost {
		p.Lost = lost
		b.note(p, changes.Change{Kind: changes.Lost, Time: now.UnixNano(), Size: lost})
	}
}

// rate is how often a second a process has hit probes since the last sweep.
func (s *Source) rate(key rateKey, hits uint64, now time.Time) float64 {
	before, ok := s.rates[key]
	s.rates[key] = count{hits, now}
	elapsed := now.Sub(before.at).Seconds()
	if !ok || hits < before.hits || elapsed <= 0 {
		return 0
	}
	return float64(hits-before.hits) / elapsed
}

// detach removes the probes from a process that hits them too often: watching must
// not slow it. The kernel cannot leave out a process, so all others get probes of
// their own until it exits. With mu.
func (s *Source) detach(pid, number uint32, row watchProcess, rate float64) {
	row.Ignored = 1
	// From now on no more events. It may have ended meanwhile: a row made again would
	// be that of the next process with its number.
	_ = s.kernel.Processes.Update(number, row, ebpf.UpdateExist)
	if p := s.accounts.processes[pid]; p != nil {
		s.accounts.giveUp(p, time.Now().UnixNano(), model.Doubt{Kind: model.TooFast, Count: int(rate)})
	}
	s.log.Warn("process allocates too often; detached from it",
		"pid", pid, "hits_per_second", int(rate), "limit", s.o.Limit)
	s.leave(pid, groupAllocators)
}

// leave has the probes of a group taken out of a process. With mu.
func (s *Source) leave(pid uint32, g group) {
	for _, of := range s.known[int(pid)] {
		if l := s.libraries[of]; l != nil {
			l.left[g][int(pid)] = true
			s.rearm(l)
		}
	}
}

// learnChips watches which chips allocators stand for only as long as that is
// unknown for some process. With mu.
func (s *Source) learnChips(now time.Time) {
	for _, l := range s.libraries {
		if l.err != nil {
			continue
		}
		if learned := s.knowsChips(l, now); learned != l.learned {
			l.learned = learned
			s.rearm(l)
		}
	}
}

// learnNewChips is learnChips for allocators that were made just now: their first
// buffers would be gone before the next sweep. It takes no probes out, so that
// probes are set no more often than there are sweeps. With mu.
func (s *Source) learnNewChips(now time.Time) {
	if !s.accounts.learns {
		return
	}
	s.accounts.learns = false
	for _, l := range s.libraries {
		if l.err == nil && l.learned && !s.knowsChips(l, now) {
			l.learned = false
			s.rearm(l)
		}
	}
}

// knowsChips reports whether it is known which chips the allocators of a library's
// processes stand for. With mu.
func (s *Source) knowsChips(l *library, now time.Time) bool {
	used, open := false, false
	for pid := range l.pids {
		if p := s.accounts.processes[uint32(pid)]; p != nil {
			u, o := p.learning(now.UnixNano())
			used, open = used || u, open || o
		}
	}
	return used && !open
}

// dropGone drops libraries whose file is deleted. Its disk may not answer, so
// that is read without mu.
func (s *Source) dropGone() {
	s.mu.Lock()
	unused := maps.Clone(s.libraries)
	maps.DeleteFunc(unused, func(_ fileID, l *library) bool { return len(l.pids) > 0 })
	s.mu.Unlock()
	maps.DeleteFunc(unused, func(_ fileID, l *library) bool { return !l.isDeleted() })
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, l := range unused {
		if s.libraries[id] == l && len(l.pids) == 0 {
			s.drop(id)
		}
	}
}

// isDeleted reports whether the file has no name any more.
func (l *library) isDeleted() bool {
	l.arming.Lock() // it may be closed meanwhile
	defer l.arming.Unlock()
	st, err := stat(l.file)
	return err != nil || st.Nlink == 0
}

// sameProcess reports whether a process still runs.
func sameProcess(pid int, start uint64) bool {
	if start == 0 {
		_, err := proc.Owner(hostfs.Root{}, pid)
		return err == nil
	}
	now, err := proc.ReadStat(hostfs.Root{}, pid)
	return err == nil && now.Start == start
}
