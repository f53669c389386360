package shm

import (
	"cmp"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/proc"
	"github.com/ttmon/ttmon/internal/sorted"
)

// shmDir is a directory that may hold regions: the host's /dev/shm, or that of
// a container.
type shmDir struct {
	inode
	path string          // as seen from the host being watched
	fd   int             // O_PATH
	via  model.ProcessID // a process through which it is reachable

	files    []found
	mtime    unix.Timespec
	listedAt time.Time
	seen     uint64 // sweep in which it was last reached
}

// found is a directory entry with a region's name.
type found struct {
	name string
	id   uint64
	st   unix.Stat_t
}

// maxFiles bounds how many files of one directory are kept open: /dev/shm is
// world-writable. A Galaxy has 32 chips.
const maxFiles = 1024

func (d *shmDir) close() { unix.Close(d.fd) }

// openHostDir opens the host's own /dev/shm.
func openHostDir(root hostfs.Root) (*shmDir, error) {
	const path = "/dev/shm"
	fd, err := unix.Open(root.Path(path), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", path, err)
	}
	return newDir(fd, path)
}

// openDirOf opens /dev/shm as a process sees it, given its directory below
// /proc. It may block on what is mounted there.
func openDirOf(dir hostfs.Dir, pid int) (*shmDir, error) {
	path := proc.SharedMemoryPath(pid)
	fd, err := proc.OpenSharedMemory(dir)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", path, err)
	}
	return newDir(fd, path)
}

func newDir(fd int, path string) (*shmDir, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("cannot stat %s: %w", path, err)
	}
	return &shmDir{inode: inodeOf(&st), path: path, fd: fd}, nil
}

func inodeOf(st *unix.Stat_t) inode { return inode{dev: uint64(st.Dev), ino: st.Ino} }

// mtimeSettled is how long a directory must be unmodified before an equal mtime
// proves equal content: timestamps have the resolution of the kernel's tick.
const mtimeSettled = 100 * time.Millisecond

// refresh lists the directory again if it may have changed.
func (d *shmDir) refresh(now time.Time) error {
	var st unix.Stat_t
	if err := unix.Fstat(d.fd, &st); err != nil {
		return fmt.Errorf("cannot stat %s: %w", d.path, err)
	}
	quiet := d.listedAt.Sub(time.Unix(st.Mtim.Unix())) > mtimeSettled
	if st.Mtim == d.mtime && quiet {
		return nil
	}
	files, err := d.list()
	if err != nil {
		return err
	}
	d.files, d.mtime, d.listedAt = files, st.Mtim, now
	return nil
}

func (d *shmDir) list() ([]found, error) {
	fd, err := unix.Openat(d.fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", d.path, err)
	}
	defer unix.Close(fd)
	var files []found
	var buf [16 << 10]byte
	var names []string
	for {
		n, err := unix.ReadDirent(fd, buf[:])
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return nil, fmt.Errorf("listing %s: %w", d.path, err)
		case n <= 0:
			sorted.By(files, func(a, b *found) int { return cmp.Compare(a.id, b.id) })
			return files, nil
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names[:0])
		for _, name := range names {
			if f, ok := d.statEntry(name); ok && len(files) < maxFiles {
				files = append(files, f)
			}
		}
	}
}

// statEntry reports whether a name is a region's: a regular file, not a link to
// one.
func (d *shmDir) statEntry(name string) (found, bool) {
	id, ok := ParseName(name)
	if !ok {
		return found{}, false
	}
	f := found{name: name, id: id}
	err := unix.Fstatat(d.fd, name, &f.st, unix.AT_SYMLINK_NOFOLLOW)
	return f, err == nil && f.st.Mode&unix.S_IFMT == unix.S_IFREG
}
