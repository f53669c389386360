package shm

import (
	"cmp"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/base/sorted"
	"github.com/ttmon/ttmon/internal/source/devshm"
)

// found is a directory entry with a region's name.
type found struct {
	name string
	id   uint64
	st   unix.Stat_t
}

// maxFiles bounds how many files of one directory are kept open: /dev/shm is
// world-writable. A Galaxy has 32 chips.
const maxFiles = 1024

// filesIn lists the regions of a directory: regular files with such a name, and no
// links to one.
func (r *Reader) filesIn(d *devshm.Dir) ([]found, error) {
	names, err := d.Names(r.now, maxFiles, func(name string) bool { _, ok := ParseName(name); return ok })
	if err != nil {
		return nil, err
	}
	var files []found
	for _, name := range names {
		f := found{name: name}
		f.id, _ = ParseName(name)
		if f.st, err = d.Stat(name); err == nil && f.st.Mode&unix.S_IFMT == unix.S_IFREG {
			files = append(files, f)
		}
	}
	sorted.By(files, func(a, b *found) int { return cmp.Compare(a.id, b.id) })
	return files, nil
}
