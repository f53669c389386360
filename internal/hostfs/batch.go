package hostfs

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
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
	dir     string   // where the last named file is
	pid     int      // the detached reader, 0 if none runs
	doneFD  int      // readable once the reads are over, -1 if none runs
}

// entry is one read, laid out for detach_*.s, which knows the offsets.
type entry struct {
	fd       uint64 // or the flags to open the file with, if it has a name
	buf      uintptr
	size     uint64
	offset   uint64
	result   int64   // bytes read, or a negated errno; EINPROGRESS until then
	dir      uintptr // the directory of the names from here on; 0: as before
	name     uintptr // of a file that the reader opens; 0: it reads fd
	unopened uint64  // 1: result says why the file could not be opened
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

// The longest name of a file and the longest path, with the NUL behind them.
const (
	maxFile = 256
	maxPath = 4096
)

// NamedBytes is what NewBatch has to be given, apart from the bytes of the
// reads, for files that AddFile names: their names and a path each time that the
// directory changes.
func NamedBytes(names, dirs int) int { return names*maxFile + dirs*maxPath }

// AddFile queues a read of a file that the reader opens, and closes, itself. So
// it costs this process no system call and no descriptor. It does not follow a
// link in the place of the file. The files of one directory are best added one
// after the other: the reader enters it once.
func (b *Batch) AddFile(root Root, dir, name string, size int) (i int, err error) {
	var at uintptr
	if dir != b.dir {
		if at, err = b.addDir(root, dir); err != nil {
			return -1, err
		}
	}
	if len(name) >= maxFile || strings.Contains(name, "/") {
		panic("BUG: not the name of a file: " + name)
	}
	named := b.addString(name)
	i = b.AddAt(int(fileFlags), size, 0)
	b.entries[i].dir, b.entries[i].name = at, named
	b.dir = dir
	return i, nil
}

// addDir stores the path of a directory for the reader, which changes to it: a
// path has to be absolute.
func (b *Batch) addDir(root Root, dir string) (at uintptr, err error) {
	if mayBeNode(dir + "/") {
		return 0, fmt.Errorf("reading in %s: device nodes are never opened", dir)
	}
	path, err := filepath.Abs(root.Path(dir))
	if err != nil {
		return 0, err
	}
	if len(path) >= maxPath {
		return 0, unix.ENAMETOOLONG
	}
	return b.addString(path), nil
}

// addString stores a string as the kernel reads it. It is not on Go's heap, for
// the same reason as the rest.
func (b *Batch) addString(s string) uintptr {
	if b.doneFD >= 0 || b.used+len(s)+1 > b.buffer() {
		panic("BUG: name added to a running or full batch")
	}
	start := buffersAt(len(b.entries)) + b.used
	b.arena[start+copy(b.arena[start:], s)] = 0
	b.used += len(s) + 1
	return uintptr(unsafe.Pointer(&b.arena[start]))
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
		if b.entries[i].name == 0 {
			b.fds = append(b.fds, b.entries[i].fd)
		}
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

// Unopened reports whether the error of read i is that of opening the file.
func (b *Batch) Unopened(i int) bool {
	e := &b.entries[i]
	return atomic.LoadInt64(&e.result) != -int64(unix.EINPROGRESS) && e.unopened != 0
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
	b.n, b.used, b.dir = 0, 0, ""
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
