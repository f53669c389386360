package keep

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/book/runs"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/past/recording"
)

// Recorded is the runs in a recording, numbered from 1, the oldest first.
type Recorded struct {
	Runs  []runs.Run
	Until time.Time // as far as it was read
	// Chips says which device each chip belongs to, by UMD's unique ids.
	Chips map[uint64]int
	// Command is that which was recorded; nil: it was the host.
	Command []string
	meta    recording.Meta
	program *Program // the command that was recorded, with all of its processes
	// traced are processes whose own ledgers were recorded: in a recording of a command
	// they are its and its descendants'.
	traced []recording.Process
}

// OfRecording finds the runs in a recording, as far as a moment; the zero time is
// its end.
func OfRecording(r *recording.Reader, until time.Time) (*Recorded, error) {
	until, err := upTo(r, until)
	if err != nil {
		return nil, err
	}
	out := &Recorded{Until: until, Chips: map[uint64]int{}}
	t := tracker{ended: func(x *runs.Run) {
		out.Runs = slices.DeleteFunc(out.Runs, func(y runs.Run) bool { return y.ID == x.ID }) // it is known better now
		out.Runs = append(out.Runs, x.Clone())
	}}
	c := r.Begin()
	t.interval = func() time.Duration { return c.Meta.Interval }
	out.program = follow(t.interval, func(s *model.Snapshot, p *model.Process) bool {
		return c.Meta.PID != 0 && (descends(s, p, c.Meta.PID) || out.isTraced(p.ID()))
	})
	for {
		rec, err := c.NextUntil(until)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("finding the runs of a recording: %w", err)
		}
		if rec.Kind == recording.KindProcess && rec.Process.Method == recording.ByLedger {
			out.traced = append(out.traced, *rec.Process)
		}
		if rec.Kind != recording.KindSnapshot {
			continue
		}
		s, err := c.Snapshot()
		if err != nil {
			return nil, fmt.Errorf("finding the runs of a recording: %w", err)
		}
		if s != nil {
			t.observe(s)
			out.program.Observe(s)
			out.place(s)
		}
	}
	if t.last.IsZero() {
		return nil, recording.ErrEmpty
	}
	for _, l := range t.live {
		out.Runs = append(out.Runs, l.Clone())
	}
	out.meta, out.Command = c.Meta, c.Meta.Command
	for i := range out.Runs {
		out.exited(&out.Runs[i])
	}
	slices.SortFunc(out.Runs, byStart)
	return out, nil
}

// place notes where chips are.
func (c *Recorded) place(s *model.Snapshot) {
	for i := range s.Devices {
		for k := range s.Devices[i].Chips {
			if id, ok := s.Devices[i].Chips[k].ID.Get(); ok {
				c.Chips[id] = s.Devices[i].Index
			}
		}
	}
}

// upTo is the moment as far as which a recording is read: at least its first
// snapshot, which is later than its first events.
func upTo(r *recording.Reader, until time.Time) (time.Time, error) {
	_, last, ok := r.Span()
	if !ok {
		return until, recording.ErrEmpty
	}
	if until.IsZero() || until.After(last) {
		until = last
	}
	if first := r.FirstSnapshot(); until.Before(first) {
		until = first
	}
	return until, nil
}

// exited takes the exit code of the recorded command, where snapshots do not know
// that of its process.
func (c *Recorded) exited(r *runs.Run) {
	if c.meta.ExitCode == nil || r.End.Code != nil || r.End.Signal != 0 || len(r.Processes) == 0 || r.Processes[0].PID != c.meta.PID {
		return
	}
	if r.End.Kind == runs.Running {
		r.End.At = c.Until
	}
	r.End.Kind, r.End.Code = runs.Exited, c.meta.ExitCode
}

// Program is the run that the recording is about: of a recording of a command all of
// its processes, those that descend from it or that libttmon was in, and nothing else;
// of another one that of the same command as another run, else the largest.
func (c *Recorded) Program(other *runs.Run) (runs.Run, bool) {
	if c.meta.PID != 0 {
		r, seen := c.program.Run()
		if !seen {
			return c.unseen()
		}
		if at := slices.IndexFunc(c.Runs, func(x runs.Run) bool { return same(&x, &r) }); at >= 0 {
			r.ID = c.Runs[at].ID
		}
		c.exited(&r)
		return r, true
	}
	of := func(is func(*runs.Run) bool) (list []runs.Run) {
		for i := range c.Runs {
			if is(&c.Runs[i]) {
				list = append(list, c.Runs[i])
			}
		}
		return list
	}
	var own []runs.Run
	if other != nil {
		if own = of(func(r *runs.Run) bool { return same(r, other) }); len(own) == 0 {
			own = of(func(r *runs.Run) bool { return r.Command == other.Command && r.Command != "" })
		}
	}
	if len(own) == 0 {
		own = c.Runs
	}
	return largest(own)
}

func (c *Recorded) isTraced(p model.ProcessID) bool {
	return slices.ContainsFunc(c.traced, func(x recording.Process) bool { return x.PID == p.PID && x.Start == p.StartTicks })
}

// unseen is the command where no snapshot had it: what its ledgers told is known of
// it, and how long it took.
func (c *Recorded) unseen() (runs.Run, bool) {
	if len(c.traced) == 0 {
		return runs.Run{}, false
	}
	r := runs.Run{
		Host: c.meta.Host, Who: runs.Who{UID: -1, Name: c.traced[0].Name, Command: strings.Join(c.meta.Command, " ")},
		Start: c.meta.Started, Last: c.Until, End: runs.Ending{Kind: runs.Running}, Pools: map[string]runs.Pool{},
	}
	if c.meta.ExitCode != nil {
		r.End = runs.Ending{Kind: runs.Exited, At: c.Until, Code: c.meta.ExitCode}
	}
	for _, p := range c.traced {
		r.Processes = append(r.Processes, runs.Process{PID: p.PID, StartTicks: p.Start, Name: p.Name})
	}
	return r, true
}

// Choose leaves the runs that are wanted: Program is one of them, whatever the
// recording is of.
func (c *Recorded) Choose(wanted func(*runs.Run) bool) {
	c.Runs = slices.DeleteFunc(c.Runs, func(r runs.Run) bool { return !wanted(&r) })
	c.meta.PID = 0
}

// same reports whether two runs are of one program: of two moments of a recording.
func same(a, b *runs.Run) bool {
	return len(a.Processes) > 0 && len(b.Processes) > 0 && a.Host == b.Host && a.Processes[0].PID == b.Processes[0].PID && a.Processes[0].StartTicks == b.Processes[0].StartTicks
}

// largest is the run of a list that held the most DRAM, or, where that is not
// known of any, took longest.
func largest(list []runs.Run) (runs.Run, bool) {
	if len(list) == 0 {
		return runs.Run{}, false
	}
	return slices.MaxFunc(list, func(a, b runs.Run) int {
		x, y := a.Pools["dram"].Peak, b.Pools["dram"].Peak
		if x != y {
			return int(min(max(int64(x)-int64(y), -1), 1))
		}
		return int(min(max(a.Took()-b.Took(), -1), 1))
	}), true
}
