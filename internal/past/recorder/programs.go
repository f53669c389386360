package recorder

import (
	"time"

	"github.com/ttmon/ttmon/internal/book/launches"
	"github.com/ttmon/ttmon/internal/past/recording"
)

// programs is what is known of the programs that a ttmond sends.
type programs struct {
	recorded, missed uint64

	chips map[chipKey]uint64    // the number of the next program
	lost  map[processKey]uint64 // programs of a process that ttmond could not read
	// broken: the connection was lost. Programs of processes that are new since may
	// be missing.
	broken bool
}

type processKey struct {
	pid   int
	start uint64
}

type chipKey struct {
	processKey
	number uint32
}

// maxFollowed bounds the processes that are known: those of before are forgotten.
const maxFollowed = 1 << 16

// Programs records programs that a ttmond sent, and how many are missing before them.
func (r *Recorder) Programs(b *launches.Batch, now time.Time) {
	s := &r.programs
	if s.chips == nil || len(s.chips) > maxFollowed {
		s.chips, s.lost = map[chipKey]uint64{}, map[processKey]uint64{}
	}
	process := processKey{b.PID, b.StartTicks}
	chip := chipKey{process, b.Number}
	p := &recording.Programs{PID: b.PID, Start: b.StartTicks, Process: b.Process, Chip: b.Chip, Number: b.Number, List: b.Programs}
	switch next, known := s.chips[chip]; {
	case known && b.N >= next:
		p.Missed = b.N - next
	case known: // a ttmond that was restarted without its predecessor's account
		p.Broken, p.Missed = true, b.N-min(b.From, b.N)
	default:
		p.Missed = b.N - min(b.From, b.N)
		p.Broken = s.broken && b.From > 1
	}
	lost, known := s.lost[process]
	if known && b.Lost > lost || !known && b.From == 1 {
		p.Lost = b.Lost - lost
	}
	s.chips[chip], s.lost[process] = b.N+uint64(len(b.Programs)), b.Lost
	if p.Missed+p.Lost == 0 && !p.Broken && len(p.List) == 0 {
		return
	}
	s.recorded += uint64(len(p.List))
	s.missed += p.Missed + p.Lost
	r.add(item{at: now, kind: recording.KindPrograms, value: p})
}

// ProgramsBroken notes that a ttmond stopped sending programs.
func (r *Recorder) ProgramsBroken() { r.programs.broken = true }

// CountPrograms is how many programs were recorded, and how many are missing.
func (r *Recorder) CountPrograms() (recorded, missed uint64) {
	return r.programs.recorded, r.programs.missed
}
