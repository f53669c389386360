package tree

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Plain keeps a copy of a tree in an ordinary directory. Files are rewritten
// in place, so that descriptors kept open on them see new values, as they do
// in sysfs. What a plain file cannot do (fail, block) it does not do: a file
// whose Show fails is not there.
type Plain struct {
	dir   string
	files map[string]*plainFile
	links map[string]string
	dirs  map[string]bool
	hide  func(path string) bool // of the update being done
}

type plainFile struct {
	f    *os.File
	text []byte
}

// NewPlain makes a copier into dir, which must exist.
func NewPlain(dir string) *Plain {
	return &Plain{dir: dir, files: make(map[string]*plainFile), links: make(map[string]string), dirs: make(map[string]bool)}
}

// Update makes the directory show what the tree shows now, but for the paths
// ("/dev/tenstorrent") for which hide is true; nil hides nothing.
func (p *Plain) Update(root *Dir, hide func(path string) bool) error {
	p.hide = hide
	seen := make(map[string]bool)
	if err := p.walk(root, "", seen); err != nil {
		return err
	}
	return p.sweep(seen)
}

// Close releases the files; they stay as they are.
func (p *Plain) Close() {
	for _, f := range p.files {
		f.f.Close()
	}
	clear(p.files)
}

func (p *Plain) walk(d *Dir, path string, seen map[string]bool) error {
	for _, name := range d.Names() {
		sub := filepath.Join(path, name)
		if p.hide != nil && p.hide("/"+sub) {
			continue
		}
		var err error
		switch n := d.Get(name).(type) {
		case *Dir:
			seen[sub] = true
			if err = p.makeDir(sub); err == nil {
				err = p.walk(n, sub, seen)
			}
		case *Link:
			seen[sub] = true
			err = p.makeLink(sub, n.Target)
		case *File:
			err = p.makeFile(sub, n, seen)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *Plain) makeDir(path string) error {
	if p.dirs[path] {
		return nil
	}
	p.dirs[path] = true
	err := os.Mkdir(filepath.Join(p.dir, path), 0o755)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

func (p *Plain) makeLink(path, target string) error {
	if p.links[path] == target {
		return nil
	}
	if _, ok := p.links[path]; ok {
		os.Remove(filepath.Join(p.dir, path))
	}
	p.links[path] = target
	return os.Symlink(target, filepath.Join(p.dir, path))
}

func (p *Plain) makeFile(path string, n *File, seen map[string]bool) error {
	var text []byte
	if n.Show != nil {
		t, errno := n.Show(Caller{TID: os.Getpid(), UID: uint32(os.Getuid())})
		if errno != 0 {
			return nil // not there: swept if it was
		}
		text = t
	}
	seen[path] = true
	f := p.files[path]
	if f == nil {
		// The mode is set when the descriptor is open already: most files
		// are read-only, for us too.
		file, err := os.OpenFile(filepath.Join(p.dir, path), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
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

// sweep removes what the tree has no longer.
func (p *Plain) sweep(seen map[string]bool) error {
	var errs []error
	remove := func(path string) { errs = append(errs, os.Remove(filepath.Join(p.dir, path))) }
	for path, f := range p.files {
		if !seen[path] {
			f.f.Close()
			delete(p.files, path)
			remove(path)
		}
	}
	for path := range p.links {
		if !seen[path] {
			delete(p.links, path)
			remove(path)
		}
	}
	var dirs []string
	for path := range p.dirs {
		if !seen[path] {
			delete(p.dirs, path)
			dirs = append(dirs, path)
		}
	}
	slices.SortFunc(dirs, func(a, b string) int { return len(b) - len(a) }) // the deepest first
	for _, path := range dirs {
		remove(path)
	}
	return errors.Join(errs...)
}
