package ledgerfile

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Reader copies ledgers. It keeps its buffers, so that reading again and again
// costs no memory. It is not safe for concurrent use.
type Reader struct {
	// MaxMemory is how much memory a Ledger may take (Ledger.Memory); one with
	// more is ErrTooLarge. Zero: as much as a ledger can.
	MaxMemory uint64

	data     [numSections][]byte
	failures [2][]byte // records, and their blocks
	again    []byte
	fence    atomic.Uint32
	header   header
}

// Attempts to copy a ledger between two changes. A writer needs less than a
// microsecond for one; a copy of ten thousand blocks needs a hundred.
const attempts = 6

// Read copies a ledger. It never waits for the writer: where that changes the
// ledger faster than it can be copied, the result says that it is Moving.
func (r *Reader) Read(fd int) (*Ledger, error) {
	var still int // attempts in which the epoch was odd, and the same
	var odd uint64
	for try := 0; ; try++ {
		if err := r.readHeader(fd, &r.header); err != nil {
			return nil, err
		}
		before := r.header.epoch()
		if before&1 != 0 {
			if before == odd {
				still++
			} else {
				odd, still = before, 0
			}
		}
		if before&1 != 0 && try < attempts && still < attempts {
			pause(try)
			continue
		}
		if err := r.readSections(fd); err != nil {
			return nil, err
		}
		after, err := r.epochNow(fd)
		if err != nil {
			return nil, err
		}
		whole := before == after && before&1 == 0
		if !whole && try < attempts {
			pause(try)
			continue
		}
		cut := before == after && before&1 != 0
		if !whole && !cut {
			if err := r.dropUnstable(fd); err != nil {
				return nil, err
			}
		}
		l := decode(&r.header, &r.data, &r.failures)
		l.Cut, l.Moving = cut, !whole && !cut
		if !whole {
			l.resum()
		}
		if l.Moving {
			l.Failures = nil // they may be torn; the next copy has them
		}
		r.release()
		return l, nil
	}
}

// pause gives the writer time to finish, more of it each time.
func pause(try int) {
	if try < 2 {
		runtime.Gosched()
		return
	}
	time.Sleep(time.Duration(try) * 20 * time.Microsecond)
}

// Epoch reads the number that changes with each change of the ledger.
func (r *Reader) Epoch(fd int) (uint64, error) {
	if err := r.readHeader(fd, &r.header); err != nil {
		return 0, err
	}
	return r.header.epoch(), nil
}

func (r *Reader) readHeader(fd int, h *header) error {
	clear(h.raw[headerSize:])
	n, err := pread(fd, h.raw[:], 0)
	if err != nil {
		return fmt.Errorf("reading the ledger: %w", err)
	}
	if n < headerSize {
		return ErrNotReady
	}
	return h.parse()
}

func (r *Reader) epochNow(fd int) (uint64, error) {
	r.fence.Add(1) // the copies before this are done before what comes next
	var b [8]byte
	n, err := pread(fd, b[:], offEpoch)
	if err != nil || n < 8 {
		return 0, errors.Join(ErrDamaged, err)
	}
	return le.Uint64(b[:]), nil
}

func (r *Reader) readSections(fd int) error {
	if n := r.header.memory(); r.MaxMemory > 0 && n > r.MaxMemory {
		return fmt.Errorf("%w: it would take %d bytes, and has %d", ErrTooLarge, n, r.MaxMemory)
	}
	for i, s := range r.header.sections {
		size := int(s.used) * int(recordSize[i])
		if cap(r.data[i]) < size {
			r.data[i] = make([]byte, size, max(size, min(size+size/2, keptBuffer)))
		}
		r.data[i] = r.data[i][:size]
		n, err := pread(fd, r.data[i], s.offset)
		if err != nil {
			return fmt.Errorf("reading the ledger: %w", err)
		}
		if n < size {
			return fmt.Errorf("%w: it is cut off in section %d", ErrDamaged, i)
		}
	}
	if err := r.readFailures(fd); err != nil {
		return err
	}
	r.fence.Add(1)
	return nil
}

// dropUnstable reads the blocks again and frees the slots that differ between
// the copies: they were being changed.
func (r *Reader) dropUnstable(fd int) error {
	first := r.data[secBlocks]
	if cap(r.again) < len(first) {
		r.again = make([]byte, len(first))
	}
	r.again = r.again[:len(first)]
	n, err := pread(fd, r.again, r.header.sections[secBlocks].offset)
	if err != nil || n < len(first) {
		return errors.Join(ErrDamaged, err)
	}
	size := int(recordSize[secBlocks])
	for at := 0; at+size <= len(first); at += size {
		if !bytes.Equal(first[at:at+size], r.again[at:at+size]) {
			le.PutUint32(first[at+blockSite:], 0)
		}
	}
	return nil
}

// keptBuffer is how large a buffer may be that is kept for the next ledger.
const keptBuffer = 1 << 20

// release keeps the texts with the ledger that was made, which refers to them.
func (r *Reader) release() {
	r.data[secFrames], r.data[secNodes], r.data[secStrings] = nil, nil, nil
	for i := range r.data {
		if cap(r.data[i]) > keptBuffer {
			r.data[i] = nil
		}
	}
	for i := range r.failures {
		if cap(r.failures[i]) > keptBuffer {
			r.failures[i] = nil
		}
	}
	if cap(r.again) > keptBuffer {
		r.again = nil
	}
}

func pread(fd int, b []byte, at int64) (n int, err error) {
	for n < len(b) {
		m, err := unix.Pread(fd, b[n:], at+int64(n))
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return n, err
		}
		if m == 0 {
			break
		}
		n += m
	}
	return n, nil
}

// ReadFile copies the ledger of that name.
func ReadFile(path string) (*Ledger, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	l, err := new(Reader).Read(fd)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return l, nil
}

// Holder asks the kernel which process keeps a ledger: the one that has it
// locked. It runs, since its lock ends with it. The pid is in our own
// namespace; it is 0 for a process that is not visible there. Do not call it
// for one's own ledger: a process's own lock does not conflict with itself.
func Holder(fd int) (pid int, held bool, err error) {
	l := unix.Flock_t{Type: unix.F_RDLCK}
	if err := unix.FcntlFlock(uintptr(fd), unix.F_GETLK, &l); err != nil {
		return 0, false, fmt.Errorf("cannot find the holder of a ledger: %w", err)
	}
	if l.Type == unix.F_UNLCK {
		return 0, false, nil
	}
	return max(0, int(l.Pid)), true, nil
}
