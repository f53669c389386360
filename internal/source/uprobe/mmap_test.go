package uprobe

import (
	"context"
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Who waits for mappings and is told to end writes nothing once it is closed:
// the number of its descriptor may be that of a client, or of a file of the
// history.
func TestEndOfWaitWritesNowhereElse(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var reusers []int // of the numbers of the two descriptors of each
	for range 200 {
		w, err := newMmapWatch()
		if err != nil {
			t.Fatal(err)
		}
		if err := w.wait(ctx, time.Hour); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		w.Close()
		reusers = append(reusers, eventfd(t), eventfd(t))
	}
	for _, fd := range reusers {
		var b [8]byte
		if n, err := unix.Read(fd, b[:]); !errors.Is(err, unix.EAGAIN) {
			t.Errorf("%d bytes were written to another's descriptor %d (%v)", n, fd, err)
		}
	}
}

// eventfd is one that is closed at the end.
func eventfd(t *testing.T) int {
	t.Helper()
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}
