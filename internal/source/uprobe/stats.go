package uprobe

import (
	"maps"
	"slices"
	"strings"

	"github.com/ttmon/ttmon/internal/base/budget"
	"github.com/ttmon/ttmon/internal/base/sorted"
	"github.com/ttmon/ttmon/internal/book/failure"
)

// Stats is the state of the watching.
type Stats struct {
	Ready     bool // all processes that were there before are watched
	Waits     bool // what processes enqueue and wait for is seen, too
	Processes int
	Libraries []Library
	Events    uint64 // read since the start
	Lost      uint64 // by processes that still run
	Detached  []int  // processes that allocate too often
	Slow      error  // why new processes are noticed late; nil if they are not
}

// Library is a file that is watched, or why it is not.
type Library struct {
	Path string
	Err  error
	// Unseen are the kinds of failures that its release has no function for.
	Unseen []failure.Kind
}

// Stats returns the state of the watching.
func (s *Source) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := Stats{Ready: s.isReady(), Waits: s.o.Waits, Processes: len(s.accounts.processes), Events: s.events, Slow: s.slow}
	for _, l := range s.libraries {
		st.Libraries = append(st.Libraries, Library{l.path, l.err, l.unseen()})
	}
	sorted.By(st.Libraries, func(a, b *Library) int { return strings.Compare(a.Path, b.Path) })
	for _, pid := range slices.Sorted(maps.Keys(s.accounts.processes)) {
		p := s.accounts.processes[pid]
		st.Lost += p.Lost
		if p.detached() {
			st.Detached = append(st.Detached, int(pid))
		}
	}
	return st
}

// unseen are the kinds of failures that are not seen in a library that is watched.
func (l *library) unseen() (list []failure.Kind) {
	if l.err != nil {
		return nil
	}
	for _, x := range []struct {
		site kind
		of   failure.Kind
	}{{noRoom, failure.NoRoom}, {clashed, failure.Clash}, {atBeyondL1, failure.Clash}, {traceRefused, failure.Trace}} {
		if !l.has(x.site) && !slices.Contains(list, x.of) {
			list = append(list, x.of)
		}
	}
	return list
}

func (s *Source) isReady() bool {
	select {
	case <-s.ready:
		return true
	default:
		return false
	}
}

// Budgets are what users have of the places for libraries, and of the blocks
// that are kept.
func (s *Source) Budgets() []budget.State {
	return []budget.State{s.slots.State(), s.accounts.shares.State(), s.programRoom.State()}
}
