package shm

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
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

	// image is the last content that two reads agreed on; next is scratch.
	image, next []byte
	parsed      *Image
	parseErr    error
	torn        bool // slots kept changing owners while they were read
}

// openFile opens a directory entry. An error is kept in the file: a region that
// exists and may not be read is reported.
func openFile(d *shmDir, f found) *file {
	r := &file{
		inode: inodeOf(&f.st), id: f.id, path: d.path + "/" + f.name,
		owner: int(f.st.Uid), mode: f.st.Mode & 0o777, since: time.Unix(f.st.Ctim.Unix()), fd: -1,
	}
	pinned, err := unix.Openat(d.fd, f.name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
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
	if st.Mode&unix.S_IFMT != unix.S_IFREG || inodeOf(&st) != r.inode {
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

// load reads the region and reports whether it changed since the last time.
// Unchanged bytes, the usual case, cost one pread. Changed ones are read until
// two reads agree on every slot: a writer publishes a slot's pid before its
// name and its zeroed counters, and a word may be caught half-written.
func (r *file) load() (changed bool, err error) {
	if r.fd < 0 {
		return false, r.err
	}
	if r.next == nil {
		// One byte more than a region has, to detect a longer file.
		r.image, r.next = make([]byte, 0, Size+1), make([]byte, 0, Size+1)
	}
	if r.next, err = pread(r.fd, r.next); err != nil {
		return false, fmt.Errorf("reading %s: %w", r.path, err)
	}
	if bytes.Equal(r.next, r.image) && (r.parsed != nil || r.parseErr != nil) {
		return false, nil
	}
	if err := r.confirmRead(); err != nil {
		return false, fmt.Errorf("reading %s: %w", r.path, err)
	}
	r.parsed, r.parseErr = parseAfter(r.parsed, r.image)
	return true, nil
}

// retries is how often a region is read again while its slots change owners.
const retries = 3

// confirmRead makes next the image once a second read confirms it.
func (r *file) confirmRead() (err error) {
	for range 1 + retries {
		r.image, r.next = r.next, r.image
		if r.next, err = pread(r.fd, r.next); err != nil {
			return err
		}
		if r.torn = !sameOwners(r.image, r.next); !r.torn {
			break
		}
	}
	// Counters may still change: each is a word of its own, and the later is as
	// good as the earlier.
	r.image, r.next = r.next, r.image
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
		x, y := slotAt(a, i), slotAt(b, i)
		if u32(x, slotPID) != u32(y, slotPID) || !bytes.Equal(x[slotName:], y[slotName:]) {
			return false
		}
	}
	return true
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
