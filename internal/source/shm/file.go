package shm

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/source/devshm"
)

// file is a region kept open.
type file struct {
	inode
	id    uint64
	path  string    // as seen from the host being watched
	owner int       // uid: who may read it, and attach to it
	mode  uint32    // permission bits
	since time.Time // when it was created or a process last attached: attaching sets its size

	fd  int // −1 if it could not be opened
	err error

	image    []byte // the last content; two reads agreed on its owners
	parsed   *Image // of it
	parseErr error
	torn     bool // slots kept changing owners while they were read

	occupied slotSet          // the slots in parsed
	held     [numPools]uint64 // by all of them
	renewed  slotSet          // those with other bytes, after load found new figures
}

// change is how a region differs from what it was when last read.
type change uint8

const (
	unchanged  change = iota
	newFigures        // times and counters, of the slots that renewed has and of the header
	newMembers        // anything: owners of slots, attachments, the layout
)

// openFile opens a directory entry. An error is kept in the file: a region that
// exists and may not be read is reported.
func openFile(d *devshm.Dir, f found) *file {
	r := &file{
		inode: devshm.IDOf(&f.st), id: f.id, path: d.Path + "/" + f.name,
		owner: int(f.st.Uid), mode: f.st.Mode & 0o777, since: time.Unix(f.st.Ctim.Unix()), fd: -1,
	}
	pinned, err := unix.Openat(d.FD, f.name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		r.err = fmt.Errorf("opening %s: %w", r.path, err)
		return r
	}
	defer unix.Close(pinned)
	r.open(pinned)
	return r
}

// open opens a pinned file for reading, after checking that it is the regular
// file that was listed: whatever has the name by now, a device node is never
// opened. It leaves no trace, not even the access time, where that is allowed
// (to the owner and root).
func (r *file) open(pinned int) {
	var st unix.Stat_t
	if err := unix.Fstat(pinned, &st); err != nil {
		r.err = fmt.Errorf("cannot stat %s: %w", r.path, err)
		return
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || devshm.IDOf(&st) != r.inode {
		r.err = fmt.Errorf("%s was replaced while it was opened", r.path)
		return
	}
	self := "/proc/self/fd/" + strconv.Itoa(pinned)
	const flags = unix.O_RDONLY | unix.O_CLOEXEC | unix.O_NOCTTY | unix.O_NONBLOCK
	r.fd, r.err = unix.Open(self, flags|unix.O_NOATIME, 0)
	if errors.Is(r.err, unix.EPERM) {
		r.fd, r.err = unix.Open(self, flags, 0)
	}
	if r.err != nil {
		r.fd, r.err = -1, fmt.Errorf("opening %s: %w", r.path, r.err)
	}
}

func (r *file) close() {
	if r.fd >= 0 {
		unix.Close(r.fd)
		r.fd = -1
	}
}

// newBuffer returns a buffer to read regions into: one byte more than they
// have, to detect a longer file.
func newBuffer() []byte { return make([]byte, 0, Size+1) }

// load reads the region, through a buffer for all regions, and returns how it
// differs from the last time. Two reads must agree on every slot's owner: a
// writer publishes a slot's pid before its name and its zeroed counters, and
// takes it back before it clears them. Where the owners are as they were, the
// last time was the other read, and it all costs one pread.
func (r *file) load(buf []byte) (change, error) {
	if r.fd < 0 {
		return unchanged, r.err
	}
	next, err := pread(r.fd, buf)
	if err != nil {
		return unchanged, fmt.Errorf("reading %s: %w", r.path, err)
	}
	if bytes.Equal(next, r.image) && !r.torn && (r.parsed != nil || r.parseErr != nil) {
		return unchanged, nil
	}
	if renewed, ok := r.compareFigures(next); ok {
		r.renewed = renewed
		r.updateFigures(next)
		return newFigures, nil
	}
	if err := r.confirmRead(next); err != nil {
		r.image = r.image[:0] // parsed is not of it
		return unchanged, fmt.Errorf("reading %s: %w", r.path, err)
	}
	r.parsed, r.parseErr = parseAfter(r.parsed, r.image)
	r.sumSlots()
	return newMembers, nil
}

// sumSlots sums up what the slots hold.
func (r *file) sumSlots() {
	r.occupied, r.held = 0, [numPools]uint64{}
	if r.parsed == nil {
		return
	}
	for i := range r.parsed.Slots {
		s := &r.parsed.Slots[i]
		r.occupied.add(s.Index)
		for pool, n := range s.Bytes {
			r.held[pool] += n
		}
	}
}

// compareFigures returns the slots whose bytes differ from the image. ok is
// false if more than figures may differ.
func (r *file) compareFigures(next []byte) (renewed slotSet, ok bool) {
	if r.parsed == nil || r.torn || len(next) != len(r.image) || !sameHeader(r.image, next) {
		return 0, false
	}
	for i := range numSlots {
		was, is := slotAt(r.image, i), slotAt(next, i)
		if bytes.Equal(was, is) {
			continue
		}
		if !sameOwner(was, is) {
			return 0, false
		}
		renewed.add(i)
	}
	return renewed, true
}

// updateFigures makes next the image, and parses what is new in it.
func (r *file) updateFigures(next []byte) {
	r.image = append(r.image[:0], next...)
	r.parsed.parseFigures(r.image)
	for i := range r.renewed.all {
		if !r.occupied.has(i) {
			continue
		}
		s := r.slot(i)
		for pool, n := range s.Bytes {
			r.held[pool] -= n
		}
		s.parseFigures(slotAt(r.image, i))
		for pool, n := range s.Bytes {
			r.held[pool] += n
		}
	}
}

// slot returns the parsed form of an occupied slot.
func (r *file) slot(i int) *Slot { return &r.parsed.Slots[r.occupied.before(i)] }

// retries is how often a region is read again while its slots change owners.
const retries = 3

// confirmRead makes next the image once a second read confirms it.
func (r *file) confirmRead(next []byte) (err error) {
	for range 1 + retries {
		r.image = append(r.image[:0], next...)
		if next, err = pread(r.fd, next); err != nil {
			return err
		}
		if r.torn = !sameOwners(r.image, next); !r.torn {
			break
		}
	}
	// Counters may still change: each is a word of its own, and the later is as
	// good as the earlier.
	r.image = append(r.image[:0], next...)
	return nil
}

// sameOwners reports whether two reads agree on length, header identity and the
// owner of each slot.
func sameOwners(a, b []byte) bool {
	if len(a) != len(b) {
		return false
	}
	if len(a) < Size {
		return bytes.Equal(a, b)
	}
	if u32(a, offVersion) != u32(b, offVersion) || u32(a, offInitState) != u32(b, offInitState) {
		return false
	}
	for i := range numSlots {
		if !sameOwner(slotAt(a, i), slotAt(b, i)) {
			return false
		}
	}
	return true
}

// sameOwner reports whether two reads of a slot agree on its owner.
func sameOwner(a, b []byte) bool {
	return u32(a, slotPID) == u32(b, slotPID) && bytes.Equal(a[slotName:], b[slotName:])
}

// sameHeader reports whether two reads of a region agree on all of the header
// but its time and its sums: on what initialising, attaching and detaching
// change.
func sameHeader(a, b []byte) bool {
	return bytes.Equal(a[:offUpdated], b[:offUpdated]) && bytes.Equal(a[offRefs:offTotals], b[offRefs:offTotals]) &&
		u32(a, offInitState) == u32(b, offInitState)
}

// pread reads from the start into buf, as far as its capacity goes. On a
// regular file a short read is its end.
func pread(fd int, buf []byte) ([]byte, error) {
	for {
		n, err := unix.Pread(fd, buf[:cap(buf)], 0)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return buf[:0], err
		}
		return buf[:n], nil
	}
}
