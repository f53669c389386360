package hostfs

import "golang.org/x/sys/unix"

// Kept is a file of the kernel that is read repeatedly, kept open from its
// first read on: opening and closing it cost more than reading it. Each read
// still returns the current content, and below /proc/<pid> that of the process
// it was opened for. The zero Kept is not open.
type Kept struct{ fd int } // one more than the descriptor

// ReadKept fills buf with the file at name below d, from its beginning. It is
// for files of /proc that the kernel writes in one piece: it reads once.
func (d Dir) ReadKept(f *Kept, name string, buf []byte) (n int, err error) {
	if f.fd == 0 {
		fd, err := d.open(name, fileFlags)
		if err != nil {
			return 0, err
		}
		f.fd = fd + 1
	}
	for {
		n, err := unix.Pread(f.fd-1, buf, 0)
		if err != unix.EINTR {
			return max(n, 0), err
		}
	}
}

// Close closes the descriptor, if there is one.
func (f *Kept) Close() {
	if f.fd != 0 {
		unix.Close(f.fd - 1)
		f.fd = 0
	}
}

// IsProc reports whether the directory is in a kernel's /proc, and not in a tree
// of files that looks like one.
func (d Dir) IsProc() bool {
	var fs unix.Statfs_t
	return unix.Fstatfs(d.fd, &fs) == nil && fs.Type == unix.PROC_SUPER_MAGIC
}
