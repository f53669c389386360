package handover

import (
	"bufio"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// File is an open descriptor with a name. Several may have the same name.
type File struct {
	Name string
	FD   int
}

// Take removes the files with a name from the list and returns their
// descriptors, which are the caller's then.
func Take(files *[]File, name string) (fds []int) {
	rest := (*files)[:0]
	for _, f := range *files {
		if f.Name == name {
			fds = append(fds, f.FD)
		} else {
			rest = append(rest, f)
		}
	}
	*files = rest
	return fds
}

// Close closes what nobody has taken.
func Close(files []File) {
	for _, f := range files {
		unix.Close(f.FD)
	}
}

// Memfd makes an anonymous file and has write fill it.
func Memfd(name string, write func(io.Writer) error) (fd int, err error) {
	fd, err = unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("making an anonymous file for the %s: %w", name, err)
	}
	w := bufio.NewWriterSize(writer(fd), 1<<20)
	if err = write(w); err == nil {
		err = w.Flush()
	}
	if err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("writing the %s: %w", name, err)
	}
	return fd, nil
}

// ReadMemfd has read take in what Memfd wrote, and closes it.
func ReadMemfd(fd int, name string, read func(io.Reader) error) error {
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("reading the %s: %w", name, err)
	}
	return read(f)
}

// writer writes to a descriptor that it does not own.
type writer int

func (w writer) Write(b []byte) (n int, err error) {
	for n < len(b) {
		k, err := unix.Write(int(w), b[n:])
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return n, err
		}
		n += k
	}
	return n, nil
}
