package tree

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Plain keeps a copy of a tree in an ordinary directory. Files are rewritten
// in place, so that descriptors kept open on them see new values, as they do
// in sysfs. What a plain file cannot do (fail, block) it does not do: a file
// whose Show fails is not there. What is there stays there.
type Plain struct {
	dir   string
	files map[string]*plainFile
}

type plainFile struct {
	f    *os.File
	text []byte
}

// NewPlain makes a copier into dir, which must exist.
func NewPlain(dir string) *Plain { return &Plain{dir: dir, files: make(map[string]*plainFile)} }

// Update makes the directory show what the tree shows now, but for the paths
// ("/dev/tenstorrent") for which hide is true.
func (p *Plain) Update(root *Dir, hide func(path string) bool) error { return p.walk(root, "/", hide) }

// Close releases the files; they stay as they are.
func (p *Plain) Close() {
	for _, f := range p.files {
		f.f.Close()
	}
	clear(p.files)
}

func (p *Plain) walk(d *Dir, path string, hide func(path string) bool) error {
	for _, name := range d.Names() {
		sub := filepath.Join(path, name)
		if hide(sub) {
			continue
		}
		var err error
		switch n := d.Get(name).(type) {
		case *Dir:
			if err = os.Mkdir(p.dir+sub, 0o755); err == nil || errors.Is(err, fs.ErrExist) {
				err = p.walk(n, sub, hide)
			}
		case *Link:
			if err = os.Symlink(n.Target, p.dir+sub); errors.Is(err, fs.ErrExist) {
				err = nil
			}
		case *File:
			err = p.writeFile(sub, n)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *Plain) writeFile(path string, n *File) error {
	var text []byte
	if n.Show != nil {
		t, errno := n.Show(Caller{TID: os.Getpid(), UID: uint32(os.Getuid())})
		if errno != 0 {
			return nil
		}
		text = t
	}
	f := p.files[path]
	if f == nil {
		// The mode is set when the descriptor is open already: most files
		// are read-only, for us too.
		file, err := os.OpenFile(p.dir+path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		f = &plainFile{f: file}
		p.files[path] = f
		if err := file.Chmod(os.FileMode(n.Mode)); err != nil {
			return err
		}
	}
	return f.write(text)
}

// write puts the text in place and only then cuts off what was longer: a
// reader in between sees a line too many, never a number cut short.
func (f *plainFile) write(text []byte) error {
	if bytes.Equal(f.text, text) {
		return nil
	}
	if _, err := f.f.WriteAt(text, 0); err != nil {
		return fmt.Errorf("rewriting: %w", err)
	}
	if len(text) < len(f.text) {
		if err := f.f.Truncate(int64(len(text))); err != nil {
			return fmt.Errorf("rewriting: %w", err)
		}
	}
	f.text = bytes.Clone(text)
	return nil
}
