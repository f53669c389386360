package proc

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/hostfs"
)

// Files that show a process's memory (cmdline, environ, maps) are served
// under its memory lock and from its pages. A process that waits for a driver
// while it maps a chip holds that lock for as long as the chip resets, and a
// process whose pages live on a dead file system never answers. Such reads
// run in a goroutine of their own and are given up when patience is at an
// end; the wait in the kernel is a killable one, so it does not keep us from
// exiting.

// stuck is a read that was given up and has not come back.
type stuck chan struct{}

func (s stuck) returned() bool {
	select {
	case <-s:
		return true
	default:
		return false
	}
}

// errStuck wraps hostfs.ErrTimeout, so that hostfs.Status says Hung.
var errStuck = fmt.Errorf("the process does not let its memory be looked at: %w", hostfs.ErrTimeout)

// begin starts a call: its reads share one amount of patience.
func (r *Reader) begin() { r.left = r.patience }

// readGuarded reads name below the process's directory into buf and returns
// what was read, at most limit bytes of it. Ownership of buf comes back with
// the result: after a timeout, the abandoned read still writes to the old one
// and the result is nil.
func (r *Reader) readGuarded(id identity, dir hostfs.Dir, name string, buf []byte, limit int) ([]byte, error) {
	if s, ok := r.stuck[id]; ok {
		if !s.returned() {
			return nil, errStuck // one lost thread per process is enough
		}
		delete(r.stuck, id)
	}
	own, err := dir.Dup()
	if err != nil {
		return buf[:0], err
	}
	done := make(stuck)
	go func() {
		defer close(done)
		defer own.Close()
		buf, err = own.Append(buf[:0], name, limit)
	}()
	timeout := time.NewTimer(max(r.left, time.Millisecond))
	defer timeout.Stop()
	begun := time.Now()
	select {
	case <-done:
		r.left -= time.Since(begun)
		return buf, err
	case <-timeout.C:
		r.left = 0
		r.stuck[id] = done
		return nil, errStuck
	}
}

// noProcess tells whether an error means that the process has ended.
func noProcess(err error) bool {
	return errors.Is(err, unix.ESRCH) || errors.Is(err, unix.ENOENT)
}
