package proc

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/model"
)

// holderScan lists the processes that hold device nodes, as far as visible.
type holderScan struct {
	Holders map[int][]Holder // by device, in the order of /proc
	Coverage
}

// Holder is a process that holds a device node, by descriptors that it
// opened, inherited or was handed.
type Holder struct {
	PID int
	FDs []int // descriptor numbers in that process
}

// Coverage says how many processes of the host a scan could read.
type Coverage struct {
	Scanned   bool // a scan took place; without one the rest is zero
	Processes int  // listed in /proc
	Denied    int  // listed, but we may not read their descriptors
	Skipped   int  // not scanned again for lack of time
	Hiding    bool // hidepid hides processes from the list
	Able      bool // we have CAP_SYS_PTRACE: Denied has another reason
}

// Complete reports whether no holder can have been missed.
func (c Coverage) Complete() bool {
	return c.Scanned && c.Denied == 0 && c.Skipped == 0 && !c.Hiding
}

// Doubts say why a holder may have been missed.
func (c Coverage) Doubts() []model.Doubt {
	switch {
	case !c.Scanned || c.Complete():
		return nil
	case c.Hiding:
		return []model.Doubt{{Kind: model.ProcessesHidden, UID: os.Geteuid()}}
	case c.Denied > 0 && c.Able:
		return []model.Doubt{{Kind: model.ProcessesGuarded, Count: c.Denied}}
	case c.Denied > 0:
		return []model.Doubt{{Kind: model.ProcessesDenied, Count: c.Denied, UID: os.Geteuid()}}
	default:
		return []model.Doubt{{Kind: model.ProcessesSkipped, Count: c.Skipped}}
	}
}

// holders finds every process that holds a device node, apart from our own. The
// first call reads every descriptor of the host, later ones only those of
// processes that have changed. Once ctx ends, changed processes are counted as
// skipped, and their last result is kept; the next call scans them. proc is the
// open /proc.
func (r *Reader) holders(ctx context.Context, proc hostfs.Dir) (holderScan, error) {
	d := &r.descriptors
	now := time.Now()
	s := holderScan{Holders: map[int][]Holder{}, Coverage: Coverage{Scanned: true, Hiding: r.view.hiding, Able: hasPtraceCapability()}}
	err := proc.Each(d.pids, func(name []byte) bool {
		pid, ok := parsePID(name)
		if ok && pid != r.view.self {
			m := ifChanged
			if ctx.Err() != nil {
				m = never
			}
			s.add(d, proc, pid, now, m)
		}
		return true
	})
	if err != nil {
		return holderScan{}, fmt.Errorf("listing processes: %w", err)
	}
	d.dropUnseen()
	return s, nil
}

// add scans one process and adds the devices it holds.
func (s *holderScan) add(d *descriptors, proc hostfs.Dir, pid int, now time.Time, m scanMode) {
	t, err := d.refreshTable(proc, pid, now, m)
	if noProcess(err) {
		return // it exited meanwhile
	}
	s.Processes++
	if err != nil {
		s.Skipped++
	}
	if t == nil {
		return
	}
	if t.denied {
		s.Denied++
	}
	for _, h := range t.holds {
		of := s.Holders[h.device]
		if n := len(of); n > 0 && of[n-1].PID == pid {
			of[n-1].FDs = append(of[n-1].FDs, h.fd)
			continue
		}
		s.Holders[h.device] = append(of, Holder{PID: pid, FDs: []int{h.fd}})
	}
}
