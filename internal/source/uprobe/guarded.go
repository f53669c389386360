package uprobe

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/hostfs"
)

// fuseMagic is the type of file systems that a user's own program serves.
const fuseMagic = 0x65735546

// errServed is why a library on such a file system is not watched. The kernel
// reads the code again when a probe is set, and no process of the host can fork
// meanwhile: how long that takes must not be up to a user.
var errServed = errors.New("a program of some user serves its file system (FUSE); name it in uprobe.libraries to watch it")

// onFUSE reports whether a program serves a file. It may block.
func onFUSE(f *os.File) (bool, error) {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &st); err != nil {
		return false, fmt.Errorf("reading the file system of %s: %w", f.Name(), err)
	}
	return int64(st.Type) == fuseMagic, nil
}

// guardedReader reads a file whose disk may not answer. Another process does
// the reads, and is killed at the deadline.
type guardedReader struct {
	file  *os.File
	batch *hostfs.Batch
	by    time.Time
}

func newGuardedReader(f *os.File, by time.Time) (*guardedReader, error) {
	b, err := hostfs.NewBatch(1, pieceBytes)
	if err != nil {
		return nil, err
	}
	return &guardedReader{f, b, by}, nil
}

// ReadAt is io.ReaderAt's. After hostfs.ErrTimeout nothing more is read.
func (r *guardedReader) ReadAt(b []byte, at int64) (n int, err error) {
	for n < len(b) {
		piece, err := r.read(min(len(b)-n, pieceBytes), at+int64(n))
		if err != nil {
			return n, fmt.Errorf("reading the library: %w", err)
		}
		if len(piece) == 0 {
			return n, io.EOF
		}
		n += copy(b[n:], piece)
	}
	return n, nil
}

func (r *guardedReader) read(size int, at int64) ([]byte, error) {
	if r.batch.Reap() {
		return nil, hostfs.ErrTimeout
	}
	r.batch.Reset()
	i := r.batch.AddAt(int(r.file.Fd()), size, at)
	if err := r.batch.Start(); err != nil {
		return nil, err
	}
	hostfs.Wait([]*hostfs.Batch{r.batch}, r.by)
	if r.batch.Reap() {
		return nil, hostfs.ErrTimeout
	}
	return r.batch.Result(i)
}

// close ends the reader. It returns a read that cannot be killed; the caller waits
// for it.
func (r *guardedReader) close() (blocked *hostfs.Batch) {
	if r.batch.Reap() {
		r.batch.Kill()
		hostfs.Wait([]*hostfs.Batch{r.batch}, time.Now().Add(100*time.Millisecond))
	}
	if r.batch.Reap() {
		return r.batch
	}
	r.batch.Close()
	return nil
}
