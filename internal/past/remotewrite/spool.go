package remotewrite

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/base/shelf"
)

// spool is a queue of requests, on the disk as long as that takes them, else
// the newest few in memory.
type spool struct {
	mu      sync.Mutex
	queue   *shelf.Shelf[struct{}] // oldest first
	dropped uint64
}

const suffix = ".request"

// openSpool finds what is left from before. A directory that cannot be made
// is told by put.
func openSpool(dir string, maxBytes int64) *spool {
	queue, _ := shelf.Open(dir, shelf.Limits{OfUser: math.MaxInt, All: math.MaxInt, OfUserBytes: maxBytes, AllBytes: maxBytes}, func(name string, _ func() ([]byte, error)) (*shelf.Item[struct{}], error) {
		text, ours := strings.CutSuffix(name, suffix)
		ms, err := strconv.ParseInt(text, 10, 64)
		if !ours || err != nil {
			return nil, nil
		}
		return &shelf.Item[struct{}]{Order: ms}, nil
	})
	return &spool{queue: queue}
}

// put queues a request of a time. The error says that it is in memory only.
func (s *spool) put(ms int64, body []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if all := s.queue.Items; len(all) > 0 {
		ms = max(ms, all[len(all)-1].Order+1) // where the clock was set back, order matters more than the name
	}
	evicted, err := s.queue.Put(&shelf.Item[struct{}]{Name: strconv.FormatInt(ms, 10) + suffix, Order: ms}, body)
	s.dropped += uint64(evicted)
	if err != nil {
		return fmt.Errorf("buffering remote write: %w", err)
	}
	return nil
}

// first is the oldest request. ok is false if there is none, or none can be
// read at the moment: then it is to be asked for again.
func (s *spool) first() (ms int64, body []byte, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.queue.Items) > 0 {
		x := s.queue.Items[0]
		body, err := s.queue.Get(x)
		switch {
		case err == nil:
			return x.Order, body, true
		case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE), errors.Is(err, unix.ENOMEM):
			return 0, nil, false // it is there, and can be read the next time
		}
		s.dropped++
		s.queue.Remove(x)
	}
	return 0, nil, false
}

// done removes a request that was taken, or given up.
func (s *spool) done(ms int64, lost bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if all := s.queue.Items; len(all) > 0 && all[0].Order == ms {
		s.queue.Remove(all[0])
	}
	if lost {
		s.dropped++
	}
}

func (s *spool) stats() (queued int, bytes int64, dropped uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.queue.Items {
		bytes += x.Bytes
	}
	return len(s.queue.Items), bytes, s.dropped
}
