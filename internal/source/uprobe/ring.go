package uprobe

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"
)

// ring reads a ring of the kernel's from time to time. It waits through Go's own
// poller: a thread that sleeps in a system call keeps Go's monitor awake for ten
// milliseconds each time, which costs more than reading an empty ring.
type ring struct {
	*ringbuf.Reader
	ready   *os.File // the ring again, for Go's poller
	conn    syscall.RawConn
	wakeAt  int // bytes: with more the kernel's part wakes the reader
	flushed atomic.Bool

	closing sync.Mutex // a closed Reader has no ring of which the bytes could be counted
	closed  bool
}

// recordReader is what records are read from.
type recordReader interface {
	ReadInto(*ringbuf.Record) error
}

// openRing maps a ring. wakeAt is how many bytes wake the reader.
func openRing(m *ebpf.Map, wakeAt int) (*ring, error) {
	fd, err := unix.FcntlInt(uintptr(m.FD()), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.SetNonblock(fd, true); err != nil { // or Go does not poll it
		unix.Close(fd)
		return nil, err
	}
	r := &ring{ready: os.NewFile(uintptr(fd), "ring"), wakeAt: wakeAt}
	if r.conn, err = r.ready.SyscallConn(); err == nil {
		err = r.ready.SetReadDeadline(time.Time{})
	}
	if err == nil {
		r.Reader, err = ringbuf.NewReader(m)
	}
	if err != nil {
		r.ready.Close()
		return nil, fmt.Errorf("polling it: %w", err)
	}
	r.SetDeadline(time.Unix(1, 0)) // reads return what there is
	return r, nil
}

// wait waits for so long, or until Flush is called, or many bytes are in the ring.
func (r *ring) wait(most time.Duration) error {
	if most <= 0 {
		return nil
	}
	if err := r.ready.SetReadDeadline(time.Now().Add(most)); err != nil {
		return err
	}
	if r.flushed.Swap(false) {
		return nil
	}
	woken := false
	err := r.conn.Read(func(uintptr) (done bool) {
		// Called again after each wake-up. One from before this wait is gone.
		done = woken || r.full()
		woken = true
		return done
	})
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil
	}
	return err
}

// full reports whether there is enough to read at once, or nothing ever again.
func (r *ring) full() bool {
	r.closing.Lock()
	defer r.closing.Unlock()
	return r.closed || r.AvailableBytes() >= r.wakeAt
}

// Flush ends the wait of the reader, or its next one.
func (r *ring) Flush() {
	r.flushed.Store(true)
	_ = r.ready.SetReadDeadline(time.Unix(1, 0))
}

// Close ends the reading.
func (r *ring) Close() error {
	err := r.ready.Close()
	r.closing.Lock()
	defer r.closing.Unlock()
	r.closed = true
	return errors.Join(err, r.Reader.Close())
}
