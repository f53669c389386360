package session

import (
	"context"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/source/track"
)

// Watch records the host until the process is told to end, or for a duration from
// the first snapshot on.
func Watch(o Options, duration time.Duration) (*Session, error) {
	root, err := o.Host.Files()
	if err != nil {
		return nil, err
	}
	s, err := New(o)
	if err != nil {
		return nil, err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, unix.SIGTERM, unix.SIGHUP)
	defer stop()
	reader := track.NewReader(track.Options{Root: root, Events: true, Remove: root == (hostfs.Root{})})
	defer reader.Close()
	s.Follow(reader, true)
	return s, s.End(s.recordUntil(ctx, duration))
}

// recordUntil records until ctx is done or the duration is over.
func (s *Session) recordUntil(ctx context.Context, duration time.Duration) error {
	ticker := time.NewTicker(DrainEvery)
	defer ticker.Stop()
	var end <-chan time.Time // of the duration, which counts from the first snapshot
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-end:
			return nil
		case now := <-ticker.C:
			if err := s.Tick(now); err != nil {
				return err
			}
			if end == nil && s.looked && duration > 0 {
				end = time.After(duration)
			}
		}
	}
}
