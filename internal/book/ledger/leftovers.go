package ledger

import (
	"cmp"
	"runtime"
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/base/sorted"
)

// Leftovers is what a dead process had not freed. It is reported once.
type Leftovers struct {
	Seq uint64 `json:"seq"` // counts up, so that a reader knows what it has seen
	Info
	Died    time.Time        `json:"died"`
	Reason  string           `json:"reason"` // how its exit was noticed
	Count   int              `json:"buffers"`
	Bytes   [NumPools]uint64 `json:"bytes"` // by pool, Host last
	Devices []int32          `json:"devices"`
	Largest Buffer           `json:"largest"`
	Oldest  time.Time        `json:"oldest"` // when the oldest of them was allocated
}

// Total sums what was left on devices, without host memory.
func (f *Leftovers) Total() (sum uint64) {
	for _, b := range f.Bytes[:Host] {
		sum += b
	}
	return sum
}

// End removes a process. Its bytes are subtracted from every sum at once; what
// it left behind is then examined in a goroutine of its own, since that takes
// milliseconds for millions of buffers, and passed to report (which may be nil)
// as well as kept for Leaks. A process that left nothing is not reported.
func (l *Ledger) End(p *Process, reason string, now time.Time, report func(Leftovers)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.ended {
		return
	}
	p.ended = true
	if l.procs[p.info.ProcessID] == p {
		delete(l.procs, p.info.ProcessID)
	}
	l.removeFromOwner(p)
	if p.table.live == 0 {
		p.table.drop()
		return
	}
	l.examined.Add(1)
	go func() {
		defer l.examined.Done()
		left := p.leftovers(reason, now)
		left.Seq = l.addLeak(left, p)
		if report != nil {
			report(left)
		}
	}()
}

// Wait returns when all leftovers have been examined.
func (l *Ledger) Wait() { l.examined.Wait() }

// leftovers examines a process that has exited; no other goroutine uses it.
func (p *Process) leftovers(reason string, now time.Time) Leftovers {
	left := Leftovers{Info: p.info, Died: now, Reason: reason, Count: p.table.live}
	oldest := uint32(1<<32 - 1)
	var largest *entry
	for i := range p.table.slabs {
		runtime.Gosched() // clients go first
		for j := range p.table.slabs[i].entries {
			e := &p.table.slabs[i].entries[j]
			if e.kind == noKind {
				continue
			}
			oldest = min(oldest, e.born)
			if largest == nil || e.size > largest.size {
				largest = e
			}
		}
	}
	left.Largest = p.view(largest)
	left.Oldest = p.bornAt(oldest)
	for i, d := range p.devices {
		n := uint64(0)
		for pool := range NumPools {
			left.Bytes[pool] += d.bytes[pool]
			n += d.count[pool]
		}
		if n > 0 {
			left.Devices = append(left.Devices, p.ids[i])
		}
	}
	slices.Sort(left.Devices)
	return left
}

// addLeak keeps what a process left, and gives the memory of its table back.
func (l *Ledger) addLeak(left Leftovers, p *Process) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	p.table.drop()
	l.leakSeq++
	left.Seq = l.leakSeq
	for len(l.leaks) >= l.maxLeaks {
		i := l.worstLeak()
		l.leaks = slices.Delete(l.leaks, i, i+1)
	}
	l.leaks = append(l.leaks, left)
	return left.Seq
}

// worstLeak is the index of what is dropped first: the oldest of the user who
// has most, so that many of one user do not displace another's.
func (l *Ledger) worstLeak() (index int) {
	count := map[int]int{}
	for i := range l.leaks {
		count[l.leaks[i].UID]++
	}
	for i := range l.leaks {
		if count[l.leaks[i].UID] > count[l.leaks[index].UID] {
			index = i
		}
	}
	return index
}

// Leaks returns the leftovers that were kept, newest first.
func (l *Ledger) Leaks() []Leftovers {
	l.mu.Lock()
	defer l.mu.Unlock()
	leaks := slices.Clone(l.leaks)
	sorted.By(leaks, func(a, b *Leftovers) int { return cmp.Compare(b.Seq, a.Seq) })
	return leaks
}
