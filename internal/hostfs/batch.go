package hostfs

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Batch is a list of reads that may block: the driver can block a reader of its
// files for ten seconds, and no signal ends that wait. Start runs the reads,
// one after the other, in a process of their own that shares this one's memory
// (see detach). So a blocked read delays nothing else, and, unlike a blocked
// thread, it does not delay our exit either: a command that timed out on a chip
// returns to the shell at once. A Batch is reused: Add, Start, Wait, Result of
// each, Reset. It is not safe for concurrent use.
type Batch struct {
	arena   []byte // mapped, never on Go's heap: it may outlive a blocked reader's parent
	entries []entry
	shut    []fdRange
	fds     []uint64 // sorted, to find shut; kept for its memory
	n       int      // entries in use
	used    int      // bytes of the buffer area in use
	pid     int      // the detached reader, 0 if none runs
	doneFD  int      // readable once the reads are over, -1 if none runs
}

// entry is one read, laid out for detach_*.s, which knows the offsets.
type entry struct {
	fd     uint64
	buf    uintptr
	size   uint64
	offset uint64
	result int64 // bytes read, or a negated errno; EINPROGRESS until then
}

// fdRange is a range of descriptors that the reader does not need; both ends
// are included. detach_*.s knows the offsets.
type fdRange struct{ first, last uint32 }

const (
	entrySize = int(unsafe.Sizeof(entry{}))
	rangeSize = int(unsafe.Sizeof(fdRange{}))
)

// buffersAt is where in the arena the bytes go: behind the entries and a range
// before, between and behind all of their descriptors. The stack is at its end.
func buffersAt(reads int) int { return reads*entrySize + (reads+1)*rangeSize }

// NewBatch returns a batch for a number of reads and for all their bytes
// together.
func NewBatch(reads, bytes int) (*Batch, error) {
	size := buffersAt(reads) + bytes + stackSize
	arena, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, fmt.Errorf("mapping %d bytes for reads: %w", size, err)
	}
	return &Batch{
		arena:   arena,
		entries: unsafe.Slice((*entry)(unsafe.Pointer(&arena[0])), reads),
		shut:    unsafe.Slice((*fdRange)(unsafe.Pointer(&arena[reads*entrySize])), reads+1),
		doneFD:  -1,
	}, nil
}

// Add queues a read of at most size bytes from the start of fd and returns
// its number. The descriptor may be closed once Start has returned.
func (b *Batch) Add(fd, size int) int { return b.AddAt(fd, size, 0) }

// AddAt is Add for a read from an offset.
func (b *Batch) AddAt(fd, size int, offset int64) int {
	if b.doneFD >= 0 || b.n == len(b.entries) || b.used+size > b.buffer() {
		panic("BUG: read added to a running or full batch")
	}
	start := buffersAt(len(b.entries)) + b.used
	b.entries[b.n] = entry{
		fd:     uint64(fd),
		buf:    uintptr(unsafe.Pointer(&b.arena[start])),
		size:   uint64(size),
		offset: uint64(offset),
		result: -int64(unix.EINPROGRESS),
	}
	b.n++
	b.used += size
	return b.n - 1
}

func (b *Batch) buffer() int { return len(b.arena) - buffersAt(len(b.entries)) - stackSize }

// Start starts the reads. It does not wait for them.
func (b *Batch) Start() error {
	if b.n == 0 {
		return nil
	}
	pid, fd, err := detach(b.entries[:b.n], b.otherDescriptors(), b.arena[len(b.arena)-stackSize:])
	if err != nil {
		pid = 0
		if fd, err = readInThread(b.entries[:b.n]); err != nil {
			return fmt.Errorf("starting %d reads: %w", b.n, err)
		}
	}
	b.pid, b.doneFD = pid, fd
	return nil
}

// otherDescriptors are the descriptors of this process that the batch does not
// read.
func (b *Batch) otherDescriptors() []fdRange {
	b.fds = b.fds[:0]
	for i := range b.entries[:b.n] {
		b.fds = append(b.fds, b.entries[i].fd)
	}
	slices.Sort(b.fds)
	shut, next := b.shut[:0], uint64(0)
	for _, fd := range b.fds {
		if fd > next {
			shut = append(shut, fdRange{uint32(next), uint32(fd - 1)})
		}
		next = fd + 1
	}
	return append(shut, fdRange{uint32(next), math.MaxUint32})
}

// Reap ends the reader's process if its reads are over, without waiting for
// them, and reports whether they are still running.
func (b *Batch) Reap() (running bool) {
	if b.doneFD >= 0 {
		Wait([]*Batch{b}, time.Time{})
	}
	return b.doneFD >= 0
}

// Kill ends the reader's process, unless it is in a read that no signal ends;
// Reap reports that.
func (b *Batch) Kill() {
	if b.pid > 0 {
		_ = unix.PidfdSendSignal(b.doneFD, unix.SIGKILL, nil, 0)
	}
}

// Result returns the result of read i: its bytes, valid until Reset, or an
// error. It may be called while later reads are still blocked; for a read that
// has not returned it is ErrTimeout.
func (b *Batch) Result(i int) ([]byte, error) {
	e := &b.entries[i]
	n := atomic.LoadInt64(&e.result)
	switch {
	case n == -int64(unix.EINPROGRESS):
		return nil, ErrTimeout
	case n < 0:
		return nil, unix.Errno(-n)
	}
	start := int(e.buf - uintptr(unsafe.Pointer(&b.arena[0])))
	return b.arena[start : start+int(n)], nil
}

// Done counts the reads that have returned, up to the first that has not: where
// the reader is now.
func (b *Batch) Done() int {
	for i := range b.entries[:b.n] {
		if atomic.LoadInt64(&b.entries[i].result) == -int64(unix.EINPROGRESS) {
			return i
		}
	}
	return b.n
}

// Reset empties a finished batch for the next round. A batch whose reads are
// still blocked cannot be reset; Reap reports that.
func (b *Batch) Reset() {
	if b.doneFD >= 0 {
		panic("BUG: reset of a batch whose reads are not over")
	}
	b.n, b.used = 0, 0
}

// Close releases a finished batch. One that is still blocked keeps its
// memory, for the kernel will write to it when the read returns.
func (b *Batch) Close() {
	if !b.Reap() {
		unix.Munmap(b.arena)
		b.arena, b.entries, b.shut = nil, nil, nil
	}
}

// Wait waits until all batches are finished or the deadline has passed; the
// zero deadline does not wait.
func Wait(batches []*Batch, deadline time.Time) {
	fds := make([]unix.PollFd, 0, len(batches))
	waiting := make([]*Batch, 0, len(batches))
	for _, b := range batches {
		if b.doneFD >= 0 {
			fds = append(fds, unix.PollFd{Fd: int32(b.doneFD), Events: unix.POLLIN})
			waiting = append(waiting, b)
		}
	}
	for len(fds) > 0 {
		var left time.Duration
		if !deadline.IsZero() {
			left = max(0, time.Until(deadline))
		}
		// Rounded up: a poll of 0 ms in the last millisecond would spin.
		n, err := unix.Poll(fds, int((left+time.Millisecond-1)/time.Millisecond))
		if err != nil && err != unix.EINTR || err == nil && n == 0 && left == 0 {
			return
		}
		for i := len(fds) - 1; i >= 0; i-- {
			if fds[i].Revents != 0 {
				waiting[i].reapReader()
				fds[i], waiting[i] = fds[len(fds)-1], waiting[len(fds)-1]
				fds, waiting = fds[:len(fds)-1], waiting[:len(fds)-1]
			}
		}
		if left == 0 {
			return
		}
	}
}

// reapReader reaps the reader. It has exited, so this does not block.
func (b *Batch) reapReader() {
	unix.Close(b.doneFD)
	if b.pid > 0 {
		for {
			// The reader sends no SIGCHLD, so it is a "clone child".
			if _, err := unix.Wait4(b.pid, nil, unix.WALL, nil); err != unix.EINTR {
				break
			}
		}
	}
	b.pid, b.doneFD = 0, -1
}

// readInThread is for systems where no process can be detached (a strict
// seccomp filter, a process limit): a thread of ours does the reads. A blocked
// one then delays our exit, but nothing else.
func readInThread(entries []entry) (doneFD int, err error) {
	done, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		return -1, err
	}
	signal, err := unix.FcntlInt(uintptr(done), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		unix.Close(done)
		return -1, err
	}
	// The caller may close its descriptors once Start returns. One that cannot
	// be kept is the result of its read.
	fds := make([]int, len(entries))
	for i := range entries {
		var err error
		if fds[i], err = unix.FcntlInt(uintptr(entries[i].fd), unix.F_DUPFD_CLOEXEC, 0); err != nil {
			var errno unix.Errno
			errors.As(err, &errno)
			fds[i] = -1
			atomic.StoreInt64(&entries[i].result, -int64(errno))
		}
	}
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread may be stuck for good
		for i := range entries {
			if fds[i] < 0 {
				continue
			}
			e := &entries[i]
			n, _, errno := unix.Syscall6(unix.SYS_PREAD64, uintptr(fds[i]), e.buf, uintptr(e.size), uintptr(e.offset), 0, 0)
			result := int64(n)
			if errno != 0 {
				result = -int64(errno)
			}
			atomic.StoreInt64(&e.result, result)
			unix.Close(fds[i])
		}
		unix.Write(signal, []byte{1, 0, 0, 0, 0, 0, 0, 0})
		unix.Close(signal)
	}()
	return done, nil
}
