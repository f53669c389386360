package atpeak

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/ttmon/ttmon/internal/base/shelf"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// DefaultLimits are good for everybody.
var DefaultLimits = shelf.Limits{OfUser: 256, All: 2048, OfUserBytes: 4 << 20, AllBytes: 32 << 20, File: maxEncoded}

// maxEncoded is what one process may take.
const maxEncoded = 128 << 10

// Store keeps the lines of processes that have exited, a file each, for a restart of
// ttmond and for a comparison weeks later. The oldest of a user make room for the
// user's next. Its methods may be called by any goroutine.
type Store struct {
	log   *slog.Logger
	queue chan exited

	mu       sync.Mutex
	kept     *shelf.Shelf[model.ProcessID] // by the time of their exit
	reported bool                          // that nothing can be written
}

// exited is a process whose lines are to be kept. Its file's name says all but them.
type exited struct {
	*shelf.Item[model.ProcessID]
	lines ProcessLines
}

// maxQueue bounds the processes that wait for the disk. Of more that exit at once the
// lines are not kept.
const maxQueue = 64

const nameFormat = "%d-%d-%d-%d.json"

// newItem is a process by the time of its exit, in milliseconds.
func newItem(exited int64, uid int, id model.ProcessID) *shelf.Item[model.ProcessID] {
	return &shelf.Item[model.ProcessID]{Name: fmt.Sprintf(nameFormat, exited, uid, id.PID, id.StartTicks), Order: exited, UID: uid, Value: id}
}

// Open returns the store in a directory, which is made when something is to be kept.
func Open(dir string, l shelf.Limits, log *slog.Logger) *Store {
	s := &Store{log: log, queue: make(chan exited, maxQueue)}
	s.kept, _ = shelf.Open(dir, l, func(name string, _ func() ([]byte, error)) (*shelf.Item[model.ProcessID], error) {
		var exited int64
		var uid int
		var id model.ProcessID
		if _, err := fmt.Sscanf(name, nameFormat, &exited, &uid, &id.PID, &id.StartTicks); err != nil {
			return nil, nil
		}
		if x := newItem(exited, uid, id); x.Name == name {
			return x, nil
		}
		return nil, nil
	})
	return s
}

// Exited takes in the last ledger of a process. It does not wait for the disk: Run
// does.
func (s *Store) Exited(id model.ProcessID, uid int, l *ledgerfile.Ledger) {
	if id.PID <= 0 || uid < 0 || len(s.queue) == cap(s.queue) {
		return
	}
	lines, ok := Of(l)
	if !ok {
		return
	}
	select {
	case s.queue <- exited{newItem(time.Now().UnixMilli(), uid, id), lines}:
	default:
	}
}

// Run writes what processes left until ctx is done, and then what still waits.
func (s *Store) Run(ctx context.Context) {
	for {
		select {
		case x := <-s.queue:
			s.add(x)
			continue
		default:
		}
		select {
		case x := <-s.queue:
			s.add(x)
		case <-ctx.Done():
			return
		}
	}
}

// add writes the lines of a process.
func (s *Store) add(x exited) {
	text, err := encode(&x.lines)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		_, err = s.kept.Put(x.Item, text)
	}
	if err != nil && !s.reported {
		s.log.Warn("cannot save call sites of process", "err", err)
	}
	s.reported = err != nil
}

// encode is what is written. Of a process with very long names fewer lines are kept.
func encode(lines *ProcessLines) ([]byte, error) {
	p := *lines
	for {
		text, err := json.Marshal(&p)
		if err != nil {
			return nil, fmt.Errorf("encoding lines of code: %w", err)
		}
		if len(text) <= maxEncoded {
			return text, nil
		}
		p.Lines, p.Cut = halved(p.Lines), true
	}
}

// halved keeps the first half of the lines of each pool: those that held the most.
func halved(list []PeakLine) (out []PeakLine) {
	of, n := map[string]int{}, map[string]int{}
	for i := range list {
		of[list[i].Pool]++
	}
	for i := range list {
		if n[list[i].Pool]++; n[list[i].Pool] <= of[list[i].Pool]/2 {
			out = append(out, list[i])
		}
	}
	return out
}

// Find is what is kept of a process that began at a time: pids and start times repeat
// from boot to boot. The time may be zero: the newest is meant.
func (s *Store) Find(id model.ProcessID, began time.Time) (lines ProcessLines, uid int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found *shelf.Item[model.ProcessID]
	for _, x := range s.kept.Items {
		if x.Value == id && x.Order >= began.UnixMilli() && (found == nil || began.IsZero()) {
			found = x
		}
	}
	if found == nil {
		return lines, 0, false
	}
	text, err := s.kept.Get(found)
	if err == nil {
		err = json.Unmarshal(text, &lines)
	}
	return lines, found.UID, err == nil && lines.Schema == Schema
}
