package hostfs

import (
	"bytes"
	"io/fs"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Dir is a directory kept open. Resolving names in it, instead of along a path,
// costs less and pins what is read: below an open /proc/<pid> every result is
// of the process it was opened for (ESRCH after its exit), never of a later
// process with the same pid.
//
// The methods are for scans of thousands of entries. They allocate nothing and
// return bare errnos, because in such a scan ENOENT and EACCES are ordinary
// results. A Dir never opens a device node: Read does not follow links, so
// /proc/<pid>/fd/<n> is never opened, and Stat does not open.
type Dir struct{ fd int }

// OpenDir opens a directory. The caller closes it.
func (r Root) OpenDir(path string) (Dir, error) {
	fd, err := unix.Open(r.Path(path), dirFlags, 0)
	if err != nil {
		return Dir{-1}, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return Dir{fd}, nil
}

// OpenDir opens a directory below d. The caller closes it.
func (d Dir) OpenDir(name string) (Dir, error) {
	fd, err := d.open(name, dirFlags)
	return Dir{fd}, err
}

const (
	dirFlags  = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC
	fileFlags = unix.O_RDONLY | unix.O_CLOEXEC | unix.O_NOCTTY | unix.O_NOFOLLOW | unix.O_NONBLOCK
)

func (d Dir) open(name string, flags uintptr) (int, error) {
	var z [maxName]byte
	if !terminate(&z, name) {
		return -1, unix.ENAMETOOLONG
	}
	for {
		fd, _, errno := unix.Syscall6(unix.SYS_OPENAT, uintptr(d.fd), uintptr(unsafe.Pointer(&z[0])), flags, 0, 0, 0)
		switch errno {
		case 0:
			return int(fd), nil
		case unix.EINTR:
		default:
			return -1, errno
		}
	}
}

// Open opens a regular file below d for reads that are done elsewhere: in a
// Batch. The caller closes the descriptor.
func (d Dir) Open(name string) (fd int, err error) { return d.open(name, fileFlags) }

// Pin returns a descriptor of what a name leads to, a link's target included,
// without opening it (O_PATH): it can be inspected, and opened for reading once
// its type is known. The caller closes it.
func (d Dir) Pin(name string) (fd int, err error) { return d.open(name, unix.O_PATH|unix.O_CLOEXEC) }

// OpenIn pins a directory at a path inside another root: the one that the link
// name below d leads to. Links on the way are followed inside that root, and
// never out of it. The caller closes the descriptor.
func (d Dir) OpenIn(name, path string) (fd int, err error) {
	root, err := d.open(name, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC)
	if err != nil {
		return -1, err
	}
	defer unix.Close(root)
	const inside = unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS
	fd, err = unix.Openat2(root, strings.TrimLeft(path, "/"), &unix.OpenHow{Flags: pinFlags, Resolve: inside})
	if err == unix.ENOSYS {
		fd, err = openBelow(root, path)
	}
	return fd, err
}

const pinFlags = unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC

// openBelow is OpenIn for kernels without openat2 (before 5.6): no link is
// followed.
func openBelow(root int, path string) (fd int, err error) {
	fd, err = unix.Openat(root, ".", pinFlags, 0)
	for name := range strings.SplitSeq(path, "/") {
		if err != nil {
			return -1, err
		}
		if name == "" || name == "." {
			continue
		}
		above := fd
		if name == ".." {
			fd, err = -1, unix.EXDEV // as openat2 has it
		} else {
			fd, err = unix.Openat(above, name, pinFlags|unix.O_NOFOLLOW, 0)
		}
		unix.Close(above)
	}
	return fd, err
}

// Close closes the descriptor.
func (d Dir) Close() { unix.Close(d.fd) }

// Dup returns a second descriptor of the same directory, for a goroutine that
// may outlive its caller.
func (d Dir) Dup() (Dir, error) {
	fd, err := unix.FcntlInt(uintptr(d.fd), unix.F_DUPFD_CLOEXEC, 0)
	return Dir{fd}, err
}

// Read fills buf from the start of a regular file, and returns the number of
// bytes.
func (d Dir) Read(name string, buf []byte) (n int, err error) {
	fd, err := d.open(name, fileFlags)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	return fill(fd, buf)
}

func fill(fd int, buf []byte) (n int, err error) {
	for n < len(buf) {
		m, err := unix.Read(fd, buf[n:])
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return n, err
		case m == 0:
			return n, nil
		}
		n += m
	}
	return n, nil
}

// Append reads a regular file to its end and appends it to buf, which grows
// as needed, but not beyond limit bytes.
func (d Dir) Append(buf []byte, name string, limit int) ([]byte, error) {
	fd, err := d.open(name, fileFlags)
	if err != nil {
		return buf, err
	}
	defer unix.Close(fd)
	for len(buf) < limit {
		if len(buf) == cap(buf) {
			buf = slices.Grow(buf, max(4096, cap(buf)))
		}
		n, err := unix.Read(fd, buf[len(buf):min(cap(buf), limit)])
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return buf, err
		case n == 0:
			return buf, nil
		}
		buf = buf[:len(buf)+n]
	}
	return buf, nil
}

// Pieces reads a regular file to its end, or up to limit bytes, and calls do for
// each piece, which is in buf. It returns how much was read; an error of do ends
// it.
func (d Dir) Pieces(name string, buf []byte, limit int, do func(piece []byte) error) (read int, err error) {
	fd, err := d.open(name, fileFlags)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	for read < limit {
		n, err := unix.Read(fd, buf[:min(len(buf), limit-read)])
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return read, err
		case n == 0:
			return read, nil
		}
		read += n
		if err := do(buf[:n]); err != nil {
			return read, err
		}
	}
	return read, nil
}

// Readlink reads the target of a link into buf; a longer one is cut off.
func (d Dir) Readlink(name string, buf []byte) (int, error) {
	var z [maxName]byte
	if !terminate(&z, name) || len(buf) == 0 {
		return 0, unix.ENAMETOOLONG
	}
	n, _, errno := unix.Syscall6(unix.SYS_READLINKAT, uintptr(d.fd), uintptr(unsafe.Pointer(&z[0])),
		uintptr(unsafe.Pointer(&buf[0])), uintptr(len(buf)), 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// Stat follows links, and uses only what the kernel has cached: a link into a
// dead network or FUSE mount must not block us.
func (d Dir) Stat(name string, st *unix.Statx_t) error {
	const flags = unix.AT_STATX_DONT_SYNC | unix.AT_NO_AUTOMOUNT
	const mask = unix.STATX_TYPE | unix.STATX_UID | unix.STATX_INO | unix.STATX_SIZE | unix.STATX_MTIME
	var z [maxName]byte
	if !terminate(&z, name) {
		return unix.ENAMETOOLONG
	}
	_, _, errno := unix.Syscall6(unix.SYS_STATX, uintptr(d.fd), uintptr(unsafe.Pointer(&z[0])),
		flags, mask, uintptr(unsafe.Pointer(st)), 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// Each calls visit with every name but "." and "..", until visit returns
// false. buf holds the raw entries; visit must not keep the name.
func (d Dir) Each(buf []byte, visit func(name []byte) bool) error {
	_, err := d.EachFrom(0, buf, visit)
	return err
}

// EachFrom is Each from a position on, 0 or what it returned before: where visit
// ended it, or 0 at the end of the directory.
func (d Dir) EachFrom(at int64, buf []byte, visit func(name []byte) bool) (next int64, err error) {
	if _, err := unix.Seek(d.fd, at, unix.SEEK_SET); err != nil {
		return 0, err
	}
	for {
		n, err := unix.Getdents(d.fd, buf)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return 0, err
		case n <= 0:
			return 0, nil
		}
		for rest := buf[:n]; len(rest) > direntName; {
			name, size := direntAt(rest)
			if !isDot(name) && !visit(name) {
				return *(*int64)(unsafe.Pointer(&rest[8])), nil
			}
			rest = rest[size:]
		}
	}
}

// direntName is where the name begins in the kernel's struct linux_dirent64:
// u64 inode, s64 offset, u16 record length, u8 type, then the name.
const direntName = 19

func direntAt(b []byte) (name []byte, size int) {
	size = int(*(*uint16)(unsafe.Pointer(&b[16])))
	name = b[direntName:size]
	if i := bytes.IndexByte(name, 0); i >= 0 {
		name = name[:i]
	}
	return name, size
}

func isDot(name []byte) bool { return string(name) == "." || string(name) == ".." }

// maxName is longer than any path that scans put together.
const maxName = 512

// terminate copies a name into z with the NUL the kernel wants.
func terminate(z *[maxName]byte, name string) bool {
	if len(name) >= len(z) {
		return false
	}
	z[copy(z[:], name)] = 0
	return true
}
