package uprobe

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mapping is a library that a process has mapped.
type mapping struct {
	pid, uid   int
	start, end uint64 // of the range that holds code
	offset     uint64 // of that range in the file
	inode      uint64
	path       string // in the process's root
	time       uint64 // ns after boot; 0: not known when
}

const (
	libraryName = "libtt_metal.so"
	deleted     = " (deleted)" // is behind the path of a file without a name
)

// isLibrary says whether a file's name is that of tt-metal's library.
func isLibrary(file string) bool {
	return strings.HasPrefix(path.Base(strings.TrimSuffix(file, deleted)), libraryName)
}

// mmapWatch reads the kernel's records of new mappings of code, of all
// processes, from one ring per CPU.
type mmapWatch struct {
	rings []mmapRing
	poll  int    // an epoll of the rings, and of stop
	stop  int    // an eventfd: written to end the wait
	busy  bool   // the last read found records: there will be more
	room  []byte // for the records of a ring
	// online lists the CPUs in use; they change when one is plugged in, or taken out.
	online  func() ([]int, error)
	checked time.Time // when that was last read
}

type mmapRing struct {
	cpu  int
	fd   int
	data []byte // a page of control, then the ring
}

// The ring of each CPU, in pages. A record has about 150 bytes.
const mmapPages = 8

// watchMmap opens the records.
func watchMmap() (*mmapWatch, error) {
	w, err := newMmapWatch()
	if err != nil {
		return nil, err
	}
	if _, err := w.followCPUs(time.Now()); err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}

// followCPUs opens a ring for each CPU that has none, and closes those of CPUs that
// are offline: their rings get no records when they are back. more says that there
// are CPUs that had no ring: what was mapped on them meanwhile is not in any record.
func (w *mmapWatch) followCPUs(now time.Time) (more bool, err error) {
	w.checked = now
	cpus, err := w.online()
	if err != nil {
		return false, err
	}
	w.rings = slices.DeleteFunc(w.rings, func(r mmapRing) bool {
		offline := !slices.Contains(cpus, r.cpu)
		if offline {
			r.close()
		}
		return offline
	})
	for _, cpu := range cpus {
		if slices.ContainsFunc(w.rings, func(r mmapRing) bool { return r.cpu == cpu }) {
			continue
		}
		if err := w.open(cpu); err != nil {
			return more, err
		}
		more = true
	}
	return more, nil
}

// open opens the ring of a CPU. The first record wakes the reader; those that follow
// are found by the same read.
func (w *mmapWatch) open(cpu int) error {
	attr := unix.PerfEventAttr{
		Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_DUMMY,
		Size:        uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
		Sample_type: unix.PERF_SAMPLE_TIME,
		Bits: unix.PerfBitMmap | unix.PerfBitMmap2 | unix.PerfBitSampleIDAll |
			unix.PerfBitUseClockID | unix.PerfBitWatermark,
		Wakeup:  1,
		Clockid: unix.CLOCK_BOOTTIME,
	}
	fd, err := unix.PerfEventOpen(&attr, -1, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if errors.Is(err, unix.ENODEV) {
		return nil // it has gone offline
	}
	if err != nil {
		return fmt.Errorf("opening the kernel's records of mappings: %w", err)
	}
	data, err := unix.Mmap(fd, 0, (1+mmapPages)*os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		unix.Close(fd)
		return fmt.Errorf("mapping the kernel's records of mappings: %w", err)
	}
	w.rings = append(w.rings, mmapRing{cpu: cpu, fd: fd, data: data})
	return w.poller(fd)
}

func (r *mmapRing) close() {
	_ = unix.Munmap(r.data)
	unix.Close(r.fd)
}

// newMmapWatch is one without rings: nothing wakes who waits for it.
func newMmapWatch() (*mmapWatch, error) {
	poll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("waiting for new mappings: %w", err)
	}
	w := &mmapWatch{poll: poll, stop: -1, online: onlineCPUs}
	if w.stop, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err == nil {
		err = w.poller(w.stop)
	}
	if err != nil {
		w.Close()
		return nil, fmt.Errorf("waiting for new mappings: %w", err)
	}
	return w, nil
}

func (w *mmapWatch) poller(fd int) error {
	return unix.EpollCtl(w.poll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)})
}

// wait waits for a record, and then a little longer: libraries are loaded
// many at a time, and one look is enough for all of them. On a host where no
// program starts it costs next to nothing, and on one where programs start all the time no
// system call. It ends early when ctx is done.
func (w *mmapWatch) wait(ctx context.Context, more time.Duration) error {
	if !w.busy {
		if err := w.waitForRecord(ctx); err != nil {
			return err
		}
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(more):
		return nil
	}
}

// wake ends the wait as a record would.
func (w *mmapWatch) wake() { _, _ = unix.Write(w.stop, []byte{1, 0, 0, 0, 0, 0, 0, 0}) }

// waitForRecord waits until a ring has a record, wake is called, CPUs are to be
// checked, or ctx is done.
func (w *mmapWatch) waitForRecord(ctx context.Context) error {
	defer w.interruptBy(ctx)()
	var events [8]unix.EpollEvent
	for ctx.Err() == nil {
		_, err := unix.EpollWait(w.poll, events[:], int(scanEvery.Milliseconds()))
		if err == nil {
			_, _ = unix.Read(w.stop, make([]byte, 8)) // what it was woken for is done next
			break
		}
		if !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("waiting for new mappings: %w", err)
		}
	}
	return nil
}

// interruptBy lets the end of ctx interrupt the wait. What it returns undoes
// that, and comes back only when nothing will write any more: after Close the
// descriptor's number is another file's.
func (w *mmapWatch) interruptBy(ctx context.Context) (undo func()) {
	written := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(written)
		w.wake()
	})
	return func() {
		if !stop() {
			<-written
		}
	}
}

// onlineCPUs lists the numbers of the CPUs in use.
func onlineCPUs() (cpus []int, err error) {
	text, err := os.ReadFile("/sys/devices/system/cpu/online")
	if err != nil {
		for i := range runtime.NumCPU() {
			cpus = append(cpus, i)
		}
		return cpus, nil
	}
	for part := range strings.SplitSeq(strings.TrimSpace(string(text)), ",") {
		from, to, isRange := strings.Cut(part, "-")
		first, err := strconv.Atoi(from)
		if err != nil {
			return nil, fmt.Errorf("/sys/devices/system/cpu/online: %w", err)
		}
		last := first
		if isRange {
			if last, err = strconv.Atoi(to); err != nil {
				return nil, fmt.Errorf("/sys/devices/system/cpu/online: %w", err)
			}
		}
		for i := first; i <= last; i++ {
			cpus = append(cpus, i)
		}
	}
	return cpus, nil
}

// Close ends the records.
func (w *mmapWatch) Close() {
	for i := range w.rings {
		w.rings[i].close()
	}
	w.rings = nil
	unix.Close(w.poll)
	unix.Close(w.stop)
}

// read returns the libraries that were mapped since the last call. incomplete
// says that records were lost.
func (w *mmapWatch) read() (found []mapping, incomplete bool) {
	w.busy = false
	if now := time.Now(); now.Sub(w.checked) >= scanEvery {
		more, err := w.followCPUs(now)
		incomplete = more || err != nil // then all processes are scanned, and again while it fails
	}
	for i := range w.rings {
		more, some, lost := w.rings[i].read(&w.room)
		found = append(found, more...)
		w.busy, incomplete = w.busy || some, incomplete || lost
	}
	return found, incomplete
}

// read returns the libraries in the ring's records; some says that there were
// records.
func (r *mmapRing) read(room *[]byte) (found []mapping, some, lost bool) {
	control := (*unix.PerfEventMmapPage)(unsafe.Pointer(&r.data[0]))
	ring := r.data[os.Getpagesize():]
	head := atomic.LoadUint64(&control.Data_head)
	tail := control.Data_tail
	if head == tail {
		return nil, false, false
	}
	// A record may wrap around the end of the ring: make it straight.
	waiting := slices.Grow((*room)[:0], int(head-tail))
	for at := tail; at < head; {
		from := at % uint64(len(ring))
		n := min(head-at, uint64(len(ring))-from)
		waiting = append(waiting, ring[from:from+n]...)
		at += n
	}
	atomic.StoreUint64(&control.Data_tail, head)
	*room = waiting
	found, lost = parseRecords(waiting)
	return found, true, lost
}

// Records of the kernel that are read.
const (
	recordLost      = 2
	recordMmap2     = 10
	recordHead      = 8  // type u32, misc u16, size u16
	recordMmap2Head = 64 // up to the file's name
)

// parseRecords picks tt-metal's libraries out of a run of records.
func parseRecords(b []byte) (found []mapping, lost bool) {
	for len(b) >= recordHead {
		kind := binary.NativeEndian.Uint32(b)
		size := int(binary.NativeEndian.Uint16(b[6:]))
		if size < recordHead || size > len(b) {
			return found, true // cannot be: as good as lost
		}
		record := b[recordHead:size]
		b = b[size:]
		switch {
		case kind == recordLost:
			lost = true
		case kind == recordMmap2 && len(record) > recordMmap2Head+8 && bytes.Contains(record[recordMmap2Head:], []byte(libraryName)):
			if m := parseMmap2(record); isLibrary(m.path) {
				found = append(found, m)
			}
		}
	}
	return found, lost
}

// parseMmap2 reads a record: pid, tid u32; address, length, offset u64; major,
// minor u32; inode, generation u64; protection, flags u32; name; time u64.
func parseMmap2(b []byte) mapping {
	u32, u64 := binary.NativeEndian.Uint32, binary.NativeEndian.Uint64
	name, _, _ := bytes.Cut(b[recordMmap2Head:len(b)-8], []byte{0})
	return mapping{
		pid: int(u32(b)), start: u64(b[8:]), end: u64(b[8:]) + u64(b[16:]), offset: u64(b[24:]),
		inode: u64(b[40:]), path: string(name), time: u64(b[len(b)-8:]),
	}
}
