package atpeak

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/replace"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// Limits bound what is kept. The zero value has the defaults.
type Limits struct {
	OfUser, All           int   // processes
	OfUserBytes, AllBytes int64 // of their files
}

// The defaults, and what one process may take.
const (
	ofUser      = 256
	all         = 2048
	ofUserBytes = 4 << 20
	allBytes    = 32 << 20
	maxEncoded  = 128 << 10
)

// Store keeps the lines of processes that have exited, a file each, for a restart of
// ttmond and for a comparison weeks later. The oldest of a user make room for the
// user's next. Its methods may be called by any goroutine.
type Store struct {
	dir    string
	limits Limits
	log    *slog.Logger
	queue  chan exited

	mu       sync.Mutex
	entries  []entry // by the time of their exit
	reported bool    // that nothing can be written
}

// entry is a process whose lines are kept. Its file's name says all of it.
type entry struct {
	exited time.Time
	uid    int
	id     model.ProcessID
	bytes  int64
}

// exited is a process whose lines are to be kept.
type exited struct {
	entry
	lines ProcessLines
}

// maxQueue bounds the processes that wait for the disk. Of more that exit at once the
// lines are not kept.
const maxQueue = 64

const nameFormat = "%d-%d-%d-%d.json"

func (e *entry) name() string {
	return fmt.Sprintf(nameFormat, e.exited.UnixMilli(), e.uid, e.id.PID, e.id.StartTicks)
}

// Open returns the store in a directory, which is made when something is to be kept.
func Open(dir string, limits Limits, log *slog.Logger) *Store {
	limits.OfUser, limits.All = cmp.Or(limits.OfUser, ofUser), cmp.Or(limits.All, all)
	limits.OfUserBytes, limits.AllBytes = cmp.Or(limits.OfUserBytes, ofUserBytes), cmp.Or(limits.AllBytes, allBytes)
	s := &Store{dir: dir, limits: limits, log: log, queue: make(chan exited, maxQueue)}
	files, _ := os.ReadDir(dir)
	for _, f := range files {
		var e entry
		var exited int64
		info, err := f.Info()
		if _, err2 := fmt.Sscanf(f.Name(), nameFormat, &exited, &e.uid, &e.id.PID, &e.id.StartTicks); err != nil || err2 != nil {
			continue
		}
		if e.exited, e.bytes = time.UnixMilli(exited), info.Size(); e.name() == f.Name() {
			s.entries = append(s.entries, e)
		}
	}
	slices.SortFunc(s.entries, byExit)
	return s
}

func byExit(a, b entry) int { return a.exited.Compare(b.exited) }

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
	case s.queue <- exited{entry{exited: time.Now(), uid: uid, id: id}, lines}:
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
	x.bytes = int64(len(text))
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.makeRoom(&x.entry)
		err = os.MkdirAll(s.dir, 0o700)
	}
	if err == nil {
		err = replace.File(filepath.Join(s.dir, x.name()), text, 0o600)
	}
	if err != nil {
		if !s.reported {
			s.log.Warn("cannot save call sites of process", "err", err)
		}
		s.reported = true
		return
	}
	s.reported = false
	s.entries = append(s.entries, x.entry)
	slices.SortStableFunc(s.entries, byExit)
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

// makeRoom removes the oldest of the same user, then the oldest of all, until
// another one is within the limits.
func (s *Store) makeRoom(e *entry) {
	for _, bound := range []struct {
		n     int
		bytes int64
		of    func(*entry) bool
	}{
		{s.limits.OfUser, s.limits.OfUserBytes, func(x *entry) bool { return x.uid == e.uid }},
		{s.limits.All, s.limits.AllBytes, func(*entry) bool { return true }},
	} {
		n, bytes := 1, e.bytes
		for i := range s.entries {
			if x := &s.entries[i]; bound.of(x) {
				n, bytes = n+1, bytes+x.bytes
			}
		}
		s.entries = slices.DeleteFunc(s.entries, func(x entry) bool {
			if !bound.of(&x) || n <= bound.n && bytes <= bound.bytes {
				return false
			}
			n, bytes = n-1, bytes-x.bytes
			_ = os.Remove(filepath.Join(s.dir, x.name())) // Open would find it again, and remove it with the next
			return true
		})
	}
}

// Find is what is kept of a process that began at a time: pids and start times repeat
// from boot to boot. The time may be zero: the newest is meant.
func (s *Store) Find(id model.ProcessID, began time.Time) (lines ProcessLines, uid int, ok bool) {
	s.mu.Lock()
	i := -1
	for k := range s.entries {
		if e := &s.entries[k]; e.id == id && !e.exited.Before(began) && (i < 0 || began.IsZero()) {
			i = k
		}
	}
	var e entry
	if i >= 0 {
		e = s.entries[i]
	}
	s.mu.Unlock()
	if i < 0 {
		return lines, 0, false
	}
	text, err := os.ReadFile(filepath.Join(s.dir, e.name()))
	if err == nil {
		err = json.Unmarshal(text, &lines)
	}
	return lines, e.uid, err == nil && lines.Schema == Schema
}
