package claim

import (
	"time"

	"github.com/ttmon/ttmon/internal/model"
)

// Work is what a process had one chip do, counted since the source first saw it.
type Work struct {
	Process model.ProcessID
	Chip    uint64    // UMD's unique id
	At      time.Time // when it was so
	// Reports: records come, or will. Otherwise they came once.
	Reports    bool
	Lossless   bool // no record is lost on the chip
	Unreadable bool // records come in a layout that is not known: nothing is counted

	Busy, Gap             time.Duration // in which a program ran; of short pauses between programs
	Programs              uint64
	Unprofiled            uint64 // programs of which nothing is known
	Queues, SubDevices    int    // of its device that the process used; 0: none was seen, so with programs it is not known
	Lost                  uint64 // records that the source missed
	Longest, LongestGap   time.Duration
	LongestName, LastName string
	Stalled               time.Duration
	Since, LastRecord     time.Time
	// LastEnd is when the last program ended, by the chip's own clock; 0: not known.
	LastEnd time.Duration
	// Before is how much had been done at an earlier moment, for a reader that
	// has no sample of its own; its Time is zero where that is not known.
	Before Moment
	Ops    []Op
	// Gaps are the longest, the longest first; GapsKept: the source lists them.
	Gaps     []Gap
	GapsKept bool
}

// Gap is a pause between two programs.
type Gap struct {
	Length time.Duration
	End    time.Time
	After  string // operation before it; empty: not known
}

// Unseen is why the process may have had the chip do more than it has reported; empty:
// it has not.
func (w *Work) Unseen() model.WorkCause {
	switch {
	case w.Lost > 0:
		return model.WorkRecordsLost
	case !w.Lossless && w.Programs > 0:
		return model.WorkLossy
	case w.Queues > 1 || w.Queues == 0 && w.Programs > 0:
		return model.WorkQueues
	case w.SubDevices > 1:
		return model.WorkSubDevices
	case w.Unprofiled > 0:
		return model.WorkUnprofiled
	}
	return ""
}

// Moment is how long a program had run on a chip by a time.
type Moment struct {
	Time          time.Time
	Busy, LastEnd time.Duration
}

// Op is an operation and what it took.
type Op struct {
	Name          string
	Calls         uint64
	Time, Longest time.Duration
}

// Host is what a process asked of its chips.
type Host struct {
	Process model.ProcessID
	model.HostWork
}

// Listens is whether a source sees the programs of a process.
type Listens struct {
	Process model.ProcessID
	Why     model.WorkCause // why not; empty: it does
	Host    model.HostCause // why it does not see what the process enqueues and waits for, unless it is in Hosts
}
