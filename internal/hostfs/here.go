package hostfs

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// Where every user may write (/tmp, /dev/shm), any user can mount a filesystem
// that never answers (FUSE), or link to one. StatHere and ReadHere are for such
// directories: they follow no link, enter no other filesystem, and never wait
// for anything but a regular file. Each part of a path is pinned, which cannot
// block, before it is inspected.

// StatHere stats the file at a path below d.
func (d Dir) StatHere(path string) (st unix.Stat_t, err error) {
	fd, err := d.pinHere(path)
	if err != nil {
		return st, err
	}
	defer unix.Close(fd)
	return st, unix.Fstat(fd, &st)
}

// ReadHere is Read for a path below d; st is of the file that was read.
func (d Dir) ReadHere(path string, buf []byte) (n int, st unix.Stat_t, err error) {
	pinned, err := d.pinHere(path)
	if err != nil {
		return 0, st, err
	}
	defer unix.Close(pinned)
	if err := unix.Fstat(pinned, &st); err != nil {
		return 0, st, err
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
	case unix.S_IFLNK:
		return 0, st, unix.ELOOP
	default:
		return 0, st, unix.EINVAL
	}
	fd, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", pinned), int(fileFlags)&^unix.O_NOFOLLOW, 0)
	if err != nil {
		return 0, st, err
	}
	defer unix.Close(fd)
	n, err = fill(fd, buf)
	return n, st, err
}

// pinHere pins the file at a path below d. The caller closes the descriptor.
func (d Dir) pinHere(path string) (fd int, err error) {
	at := d.fd
	for name := range strings.SplitSeq(path, "/") {
		if name == ".." {
			err = unix.EXDEV
		} else {
			fd, err = unix.Openat(at, name, unix.O_PATH|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
		}
		if at != d.fd {
			unix.Close(at)
		}
		if err != nil {
			return -1, err
		}
		if err := d.sameFilesystem(fd); err != nil {
			unix.Close(fd)
			return -1, err
		}
		at = fd
	}
	return fd, nil
}

// sameFilesystem uses only what the kernel has cached.
func (d Dir) sameFilesystem(fd int) error {
	var here, there unix.Statx_t
	for _, of := range []struct {
		fd int
		st *unix.Statx_t
	}{{d.fd, &here}, {fd, &there}} {
		if err := unix.Statx(of.fd, "", unix.AT_EMPTY_PATH|unix.AT_STATX_DONT_SYNC, unix.STATX_TYPE, of.st); err != nil {
			return err
		}
	}
	if here.Dev_major != there.Dev_major || here.Dev_minor != there.Dev_minor {
		return unix.EXDEV
	}
	return nil
}
