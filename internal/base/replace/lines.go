package replace

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Lines is a file to which lines are only ever appended. It is not safe for concurrent
// use.
type Lines struct {
	Path string
	Size int64 // while it is open

	file *os.File // nil: it is to be opened
	torn bool     // it may end in the middle of a line
}

// Open makes the file ready, and its folder. Append does so, too.
func (l *Lines) Open() error {
	if l.file != nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(l.Path), 0o700); err != nil {
		return fmt.Errorf("opening %s: %w", l.Path, err)
	}
	f, err := os.OpenFile(l.Path, os.O_RDWR|os.O_CREATE|os.O_APPEND|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return fmt.Errorf("opening %s: %w", l.Path, err)
	}
	st, err := f.Stat()
	if err != nil || !st.Mode().IsRegular() {
		f.Close()
		return fmt.Errorf("opening %s: it is not a regular file", l.Path)
	}
	l.file, l.Size, l.torn = f, st.Size(), false
	if last := make([]byte, 1); l.Size > 0 {
		_, err = f.ReadAt(last, l.Size-1)
		l.torn = err != nil || last[0] != '\n'
	}
	return nil
}

// Append appends whole lines, and waits until they are on the disk.
func (l *Lines) Append(lines []byte) error {
	if err := l.Open(); err != nil {
		return err
	}
	if l.torn {
		lines = append([]byte{'\n'}, lines...)
	}
	n, err := l.file.Write(lines)
	l.Size += int64(n)
	if err == nil {
		err = unix.Fdatasync(int(l.file.Fd()))
	}
	if l.torn = err != nil; l.torn {
		return fmt.Errorf("writing %s: %w", l.Path, err)
	}
	return nil
}

// Close closes the file, which may be opened again.
func (l *Lines) Close() {
	if l.file != nil {
		l.file.Close()
		l.file, l.Size = nil, 0
	}
}
