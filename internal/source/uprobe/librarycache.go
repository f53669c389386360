package uprobe

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/base/replace"
)

// Libraries that were used once are watched from the start the next time, so
// that a program which starts right after ttmond is seen from its first
// allocation.

// maxRemembered bounds how many are: each is read through when ttmond starts.
const maxRemembered = 16

// memory are the paths of libraries that were used, the last one first, in a
// file of ttmond's. Without a file nothing is kept.
type memory struct {
	file  string
	paths []string
}

// remembered is the file, as JSON.
type remembered struct {
	Libraries []string `json:"libraries"`
}

// readMemory reads the file. One that is damaged counts as empty.
func readMemory(file string) (*memory, error) {
	m := &memory{file: file}
	if file == "" {
		return m, nil
	}
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	var r remembered
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err != nil {
		return m, fmt.Errorf("reading the libraries watched before: %w", err)
	}
	for _, path := range r.Libraries {
		if filepath.IsAbs(path) && isLibrary(path) && len(m.paths) < maxRemembered {
			m.paths = append(m.paths, path)
		}
	}
	return m, nil
}

// add puts a path first.
func (m *memory) add(path string) error {
	if m.file == "" || len(m.paths) > 0 && m.paths[0] == path {
		return nil
	}
	m.paths = slices.DeleteFunc(m.paths, func(p string) bool { return p == path })
	m.paths = slices.Insert(m.paths, 0, path)
	m.paths = m.paths[:min(len(m.paths), maxRemembered)]
	return m.save()
}

// drop forgets paths that are gone; the next add writes it down.
func (m *memory) drop(path string) {
	m.paths = slices.DeleteFunc(m.paths, func(p string) bool { return p == path })
}

func (m *memory) save() error {
	data, err := json.Marshal(remembered{m.paths})
	if err != nil {
		return err
	}
	if err := replace.File(m.file, data, 0o600); err != nil {
		return fmt.Errorf("saving the watched libraries: %w", err)
	}
	return nil
}

// prepare watches the libraries that the configuration names, and those that
// were used before.
func (s *Source) prepare() {
	for _, glob := range s.o.Libraries {
		paths, err := filepath.Glob(glob)
		if err != nil {
			s.log.Warn("invalid library pattern", "pattern", glob, "err", err)
		}
		for _, path := range paths {
			if err := s.watchFile(path); err != nil {
				s.log.Warn("cannot attach to library", "library", path, "err", err)
			}
		}
	}
	m, err := readMemory(s.o.Memory)
	if err != nil {
		s.log.Warn("cannot read the list of watched libraries", "err", err)
	}
	s.memory = m
	for _, path := range slices.Clone(m.paths) {
		if err := s.watchFile(path); err != nil {
			m.drop(path)
		}
	}
}

// watchFile watches a file before any process has mapped it. It counts for the
// owner of the file.
func (s *Source) watchFile(path string) error {
	type opened struct {
		file   *os.File
		st     unix.Stat_t
		served bool
		err    error
	}
	done := make(chan opened, 1)
	go func() {
		var o opened
		if o.file, o.err = openRegular(path); o.err == nil {
			if o.st, o.err = stat(o.file); o.err == nil {
				o.served, o.err = onFUSE(o.file)
			}
		}
		done <- o
	}()
	select {
	case o := <-done:
		if o.err == nil && o.served && !s.isNamed(path) {
			o.err = errServed
		}
		if o.err != nil {
			o.file.Close()
			return o.err
		}
		uid := int(o.st.Uid)
		if s.isNamed(path) {
			uid = 0
		}
		_, _, err := s.library(o.file, path, uid, 0)
		return err
	case <-time.After(s.o.libraryTimeout):
		go func() { (<-done).file.Close() }()
		return fmt.Errorf("opening %s: %w", path, os.ErrDeadlineExceeded)
	}
}

var errNotRegular = errors.New("not a regular file")

// openRegular opens a file that may be anybody's, if it is a regular one: to
// open a device can do things.
func openRegular(path string) (*os.File, error) {
	at, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(at)
	var st unix.Stat_t
	if err := unix.Fstat(at, &st); err != nil {
		return nil, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, &fs.PathError{Op: "open", Path: path, Err: errNotRegular}
	}
	return os.Open(fmt.Sprintf("/proc/self/fd/%d", at))
}
