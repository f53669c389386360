package ledgerfile

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Reader copies ledgers. It keeps its buffers, so that reading again and again
// costs no memory. It is not safe for concurrent use.
type Reader struct {
	// MaxMemory is how much memory a Ledger may take (Ledger.Memory); one with
	// more is ErrTooLarge. Zero: as much as a ledger can.
	MaxMemory uint64

	header header
	data   sections
	again  []blockRecord
	events []eventRecord
	fence  atomic.Uint32
}

// sections are the copies of a ledger's.
type sections struct {
	chips        []chipRecord
	lists        []listRecord
	sites        []siteRecord
	frames       []frameRecord
	nodes        []nodeRecord
	texts        []byte
	blocks       []blockRecord
	failures     []failureRecord
	failedBlocks []failedBlockRecord
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
		if err := r.header.read(fd); err != nil {
			return nil, err
		}
		before := r.header.Epoch
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
		l := decode(&r.header, &r.data)
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
	if err := r.header.read(fd); err != nil {
		return 0, err
	}
	return r.header.Epoch, nil
}

func (r *Reader) epochNow(fd int) (uint64, error) {
	r.fence.Add(1) // the copies before this are done before what comes next
	epoch := make([]uint64, 1)
	if n, err := pread(fd, bytesOf(epoch), int64(unsafe.Offsetof(header{}.Epoch))); err != nil || n < 8 {
		return 0, errors.Join(ErrDamaged, err)
	}
	return epoch[0], nil
}

func (r *Reader) readSections(fd int) error {
	h, d := &r.header, &r.data
	if n := h.memory(); r.MaxMemory > 0 && n > r.MaxMemory {
		return fmt.Errorf("%w: it would take %d bytes, and has %d", ErrTooLarge, n, r.MaxMemory)
	}
	err := cmp.Or(
		all(fd, h.Section[secChips], &d.chips), all(fd, h.Section[secLists], &d.lists), all(fd, h.Section[secSites], &d.sites),
		all(fd, h.Section[secFrames], &d.frames), all(fd, h.Section[secNodes], &d.nodes), all(fd, h.Section[secStrings], &d.texts),
		all(fd, h.Section[secBlocks], &d.blocks), all(fd, h.Failure[secFailures], &d.failures), all(fd, h.Failure[secFailedBlocks], &d.failedBlocks),
	)
	r.fence.Add(1)
	return err
}

// dropUnstable reads the blocks again and frees the slots that differ between
// the copies: they were being changed.
func (r *Reader) dropUnstable(fd int) error {
	if err := all(fd, r.header.Section[secBlocks], &r.again); err != nil {
		return errors.Join(ErrDamaged, err)
	}
	for i := range r.data.blocks {
		if r.data.blocks[i] != r.again[i] {
			r.data.blocks[i].Site = 0
		}
	}
	return nil
}

// release keeps the texts with the ledger that was made, which refers to them.
func (r *Reader) release() {
	d := &r.data
	d.frames, d.nodes, d.texts = nil, nil, nil
	shrink(&d.chips)
	shrink(&d.lists)
	shrink(&d.sites)
	shrink(&d.blocks)
	shrink(&d.failures)
	shrink(&d.failedBlocks)
	shrink(&r.again)
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
