package recorder

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/book/failure"
	"github.com/ttmon/ttmon/internal/field/event"
	"github.com/ttmon/ttmon/internal/field/wire"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/past/recording"
)

// Recorder writes to an Encoder. It belongs to one goroutine.
type Recorder struct {
	Missed uint64 // allocations and frees of all processes that were not told

	out      *recording.Encoder
	begun    time.Time // what is older is told as of then
	waiting  []item
	detector event.Detector

	processes map[string]*process // by what tells them apart: the path of a ledger, or a pid
	lastID    uint32              // of processes and lists
	sites     map[siteKey]uint32
	programs  programs
}

// item is something that waits to be written. Which fields it has depends on
// its kind.
type item struct {
	at    time.Time
	kind  recording.Kind
	id    uint32
	block blocks.Block
	n     uint64
	body  []byte
	value any
}

type siteKey struct {
	process, tag string
	node         uint32
}

// New makes a Recorder that writes to out, from a time on: blocks that were
// there before are told as of then.
func New(out *recording.Encoder, begun time.Time) *Recorder {
	return &Recorder{out: out, begun: begun, processes: map[string]*process{}, sites: map[siteKey]uint32{}}
}

// add lets something wait. Of what has one time, what was added first is
// written first: definitions before what refers to them.
func (r *Recorder) add(x item) {
	if x.at.Before(r.begun) {
		x.at = r.begun
	}
	r.waiting = append(r.waiting, x)
}

// Snapshot takes in a snapshot. With told, what happened since the one before
// is told by others (a ttmond), and is not found out here.
func (r *Recorder) Snapshot(s *model.Snapshot, told bool) {
	for _, e := range r.detector.Next(s) {
		if !told {
			r.Event(e)
		}
	}
	r.add(item{at: s.Time, kind: recording.KindSnapshot, body: wire.Append(nil, s)})
}

// Event takes in something that happened.
func (r *Recorder) Event(e model.Event) {
	r.add(item{at: e.Time, kind: recording.KindEvent, value: e})
}

// Failure takes in a request for memory that failed; one that repeats is taken in
// again. It is told as of now: the process may have ended before that was known.
func (r *Recorder) Failure(f *failure.Record, now time.Time) {
	r.add(item{at: now, kind: recording.KindFailure, value: f})
}

// Output takes in a line that a program printed.
func (r *Recorder) Output(at time.Time, o recording.Output) {
	r.add(item{at: at, kind: recording.KindOutput, value: o})
}

// Meta takes in what the recording is of.
func (r *Recorder) Meta(at time.Time, m recording.Meta) {
	r.add(item{at: at, kind: recording.KindMeta, value: m})
}

// Flush writes what happened up to a time, in order. What comes later and is
// of an earlier time is told as of then.
func (r *Recorder) Flush(until time.Time) error {
	slices.SortStableFunc(r.waiting, func(a, b item) int { return cmp.Compare(a.at.UnixNano(), b.at.UnixNano()) })
	n := 0
	for ; n < len(r.waiting) && !r.waiting[n].at.After(until); n++ {
		// What contradicts all before it (a list that ended while its events
		// were missed) costs itself only.
		if err := r.write(&r.waiting[n]); err != nil && !errors.Is(err, recording.ErrDamaged) {
			return err
		}
	}
	rest := copy(r.waiting, r.waiting[n:])
	clear(r.waiting[rest:])
	r.waiting = r.waiting[:rest]
	return nil
}

func (r *Recorder) write(x *item) error {
	switch x.kind {
	case recording.KindSnapshot:
		return r.out.Snapshot(x.at, x.body)
	case recording.KindAlloc:
		return r.out.Alloc(x.at, x.id, x.block)
	case recording.KindFree:
		return r.out.Free(x.at, x.id, x.block.Addr)
	case recording.KindRequested:
		return r.out.Requested(x.at, x.id, x.block.Addr, x.block.Asked)
	case recording.KindClear:
		return r.out.Clear(x.at, x.id)
	case recording.KindClosed:
		return r.out.Closed(x.at, x.id)
	case recording.KindEnded:
		return r.out.Ended(x.at, x.id)
	case recording.KindLost:
		return r.out.Lost(x.at, x.id, x.n)
	}
	switch v := x.value.(type) {
	case model.Event:
		v.Time = x.at
		return r.out.Event(v)
	case *failure.Record:
		return r.out.Failure(x.at, v)
	case *recording.Programs:
		return r.out.Programs(x.at, v)
	case recording.Output:
		return r.out.Output(x.at, v)
	case recording.Meta:
		return r.out.Meta(x.at, v)
	case recording.Process:
		return r.out.Process(x.at, v)
	case recording.List:
		return r.out.List(x.at, v)
	case recording.Site:
		return r.out.Site(x.at, v)
	}
	return nil
}
