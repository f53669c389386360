package remotewrite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// spool is a queue of requests, on the disk as long as that takes them, else
// the newest few in memory.
type spool struct {
	dir      string
	maxBytes int64

	mu      sync.Mutex
	queue   []entry // oldest first
	bytes   int64   // of all
	dropped uint64
	err     error // of the disk
}

type entry struct {
	ms   int64
	size int64
	held []byte // where the disk did not take it
}

const (
	suffix  = ".request"
	maxHeld = 8 << 20 // bytes in memory
)

// openSpool finds what is left from before. A directory that cannot be made
// is told by put.
func openSpool(dir string, maxBytes int64) *spool {
	s := &spool{dir: dir, maxBytes: maxBytes}
	list, _ := os.ReadDir(dir)
	for _, e := range list {
		ms, err := strconv.ParseInt(strings.TrimSuffix(e.Name(), suffix), 10, 64)
		info, statErr := e.Info()
		if !strings.HasSuffix(e.Name(), suffix) || err != nil || statErr != nil || !info.Mode().IsRegular() {
			if strings.HasSuffix(e.Name(), ".new") {
				_ = os.Remove(filepath.Join(dir, e.Name()))
			}
			continue
		}
		s.queue = append(s.queue, entry{ms: ms, size: info.Size()})
		s.bytes += info.Size()
	}
	sort.Slice(s.queue, func(i, j int) bool { return s.queue[i].ms < s.queue[j].ms })
	return s
}

func (s *spool) path(ms int64) string { return filepath.Join(s.dir, strconv.FormatInt(ms, 10)+suffix) }

// put queues a request of a time. The error says that it is in memory only.
func (s *spool) put(ms int64, body []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.queue); n > 0 && s.queue[n-1].ms >= ms {
		ms = s.queue[n-1].ms + 1 // the clock was set back: order matters more than the name
	}
	e := entry{ms: ms, size: int64(len(body))}
	s.err = s.write(ms, body)
	if s.err != nil {
		e.held = body
	}
	s.queue = append(s.queue, e)
	s.bytes += e.size
	s.trim()
	return s.err
}

func (s *spool) write(ms int64, body []byte) error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return fmt.Errorf("buffering remote write: %w", err)
	}
	path := s.path(ms)
	err := os.WriteFile(path+".new", body, 0o600)
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		_ = os.Remove(path + ".new")
		return fmt.Errorf("buffering remote write: %w", err)
	}
	return nil
}

// trim drops the oldest over the bounds.
func (s *spool) trim() {
	held := int64(0)
	for _, e := range s.queue {
		held += int64(len(e.held))
	}
	for len(s.queue) > 1 && (s.bytes > s.maxBytes || held > maxHeld) {
		held -= int64(len(s.queue[0].held))
		s.drop()
		s.dropped++
	}
}

// drop removes the oldest.
func (s *spool) drop() {
	e := s.queue[0]
	if e.held == nil {
		_ = os.Remove(s.path(e.ms))
	}
	s.bytes -= e.size
	s.queue = s.queue[1:]
}

// first is the oldest request. ok is false if there is none, or none can be
// read at the moment: then it is to be asked for again.
func (s *spool) first() (ms int64, body []byte, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.queue) > 0 {
		e := s.queue[0]
		if e.held != nil {
			return e.ms, e.held, true
		}
		body, err := os.ReadFile(s.path(e.ms))
		switch {
		case err == nil:
			return e.ms, body, true
		case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE), errors.Is(err, unix.ENOMEM):
			return 0, nil, false // it is there, and can be read the next time
		}
		s.dropped++
		s.drop()
	}
	return 0, nil, false
}

// done removes a request that was taken, or given up.
func (s *spool) done(ms int64, lost bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) > 0 && s.queue[0].ms == ms {
		s.drop()
	}
	if lost {
		s.dropped++
	}
}

func (s *spool) stats() (queued int, bytes int64, dropped uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue), s.bytes, s.dropped
}
