package recording

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Writer is an Encoder whose blocks go to a file.
type Writer struct {
	*Encoder
	f       *os.File
	path    string
	buf     []byte
	written int64
	err     error // the first that writing met; nothing is written after it
}

// Create makes a file for a recording. It must not be there, unless replace is
// set. Under its name it is a recording from the first moment: it is made
// beside it.
func Create(path string, replace bool) (*Writer, error) {
	e, err := NewEncoder()
	if err != nil {
		return nil, err
	}
	if st, err := os.Lstat(path); err == nil && !st.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "create", Path: path, Err: errors.New("it is there, and not a regular file")}
	} else if err == nil && !replace {
		return nil, &fs.PathError{Op: "create", Path: path, Err: fs.ErrExist}
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+unnamed+"*")
	if err != nil {
		return nil, underName(path, err)
	}
	w := &Writer{Encoder: e, f: f, path: path}
	head := appendFileHeader(nil, rand.Uint64())
	w.written = int64(len(head))
	if _, err = f.Write(head); err == nil {
		err = publish(f, path, replace)
	}
	if err != nil {
		f.Close()
		os.Remove(f.Name())
		return nil, underName(path, err)
	}
	return w, nil
}

// underName tells an error of a file that is made under another name by the name
// that it was to have.
func underName(path string, err error) error {
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		return &fs.PathError{Op: "create", Path: path, Err: failed.Err}
	}
	return err
}

// publish gives the file its name. Without replace, a file that came meanwhile stays.
func publish(f *os.File, path string, replace bool) error {
	if replace {
		return os.Rename(f.Name(), path)
	}
	err := os.Link(f.Name(), path)
	if errors.Is(err, fs.ErrExist) {
		return err
	}
	if err != nil { // a file system without links
		return os.Rename(f.Name(), path)
	}
	return os.Remove(f.Name())
}

// Resume opens a recording to append to it, behind its last whole block. What is
// appended stands for itself: the first block is a key block.
func Resume(path string) (*Writer, error) {
	e, err := NewEncoder()
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	r, err := openFile(f)
	if err == nil {
		defer r.dec.Close()
		err = f.Truncate(r.Whole())
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("resuming the recording %s: %w", path, err)
	}
	if n := len(r.blocks); n > 0 {
		e.last = r.blocks[n-1].last
	}
	return &Writer{Encoder: e, f: f, path: path, written: r.Whole()}, nil
}

// unnamed is in the name of a file that is not whole yet.
const unnamed = ".new-"

// Unnamed lists the files in a folder that never became recordings, because a
// program was killed.
func Unnamed(dir string) []string {
	list, _ := filepath.Glob(filepath.Join(dir, "*"+unnamed+"*"))
	return list
}

// Empty reports whether no block has been written.
func (w *Writer) Empty() bool { return w.written <= fileHeader }

// Bytes is how long the file is.
func (w *Writer) Bytes() int64 { return w.written }

// Tick writes the block out if it is older than age, or long.
func (w *Writer) Tick(now time.Time, age time.Duration) error {
	if n, first := w.Pending(); n > 0 && (w.Full() || now.Sub(first) >= age) {
		return w.Flush()
	}
	return w.err
}

// Flush writes what waits as a block.
func (w *Writer) Flush() error {
	if w.err != nil {
		return w.err
	}
	w.buf, _ = w.Cut(w.buf[:0])
	return w.write(w.buf)
}

func (w *Writer) write(b []byte) error {
	if _, err := w.f.WriteAt(b, w.written); err != nil {
		w.err = fmt.Errorf("writing the recording %s: %w", w.path, err)
		_ = w.f.Truncate(w.written) // half a block is none
		return w.err
	}
	w.written += int64(len(b))
	return nil
}

// Sync writes what waits as a block, and waits until it is on the disk.
func (w *Writer) Sync() error {
	if err := w.Flush(); err != nil {
		return err
	}
	if err := unix.Fdatasync(int(w.f.Fd())); err != nil {
		w.err = fmt.Errorf("writing the recording %s: %w", w.path, err)
	}
	return w.err
}

// Close writes the last block and closes the file.
func (w *Writer) Close() error {
	return errors.Join(w.Flush(), w.f.Sync(), w.f.Close())
}
