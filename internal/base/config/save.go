package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/ttmon/ttmon/internal/base/replace"
)

// Save writes c to the file at path, changing only the settings that differ
// from what the file says and leaving everything else in it alone. A file that
// does not exist is made, with a line of explanation for each setting.
func Save(path string, c Config) error {
	if path == "" {
		return errors.New("saving the configuration: neither XDG_CONFIG_HOME nor HOME is set")
	}
	// Dotfiles are often links into a repository: replace the file, not the link.
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	doc, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		doc, err = template(), nil
	}
	if err != nil {
		return fmt.Errorf("saving the configuration: %w", err)
	}
	out, err := apply(doc, c)
	if err != nil {
		return fmt.Errorf("saving %s: %w", path, err)
	}
	return write(path, out)
}

// apply changes a document so that it reads back as c.
func apply(doc []byte, c Config) ([]byte, error) {
	old, err := Parse(doc)
	if err != nil {
		return nil, err
	}
	for _, o := range Options() {
		if o.Get(&old) == o.Get(&c) {
			continue
		}
		if doc, err = edit(doc, o.Path, o.toml(&c)); err != nil {
			return nil, err
		}
	}
	back, err := Parse(doc)
	if err != nil {
		return nil, err
	}
	for _, o := range Options() {
		if o.Get(&back) != o.Get(&c) {
			return nil, fmt.Errorf("%s would read back as %s: set it by hand", o.Path, o.Get(&back))
		}
	}
	return doc, nil
}

// template is a file that says nothing: each setting with its default, commented out.
func template() []byte {
	var b bytes.Buffer
	b.WriteString("# How ttmon looks. Written by the setup screen (F2), yours to edit.\n")
	def := Default()
	table := ""
	for _, o := range Options() {
		i := strings.LastIndexByte(o.Path, '.')
		if o.Path[:i] != table {
			table = o.Path[:i]
			fmt.Fprintf(&b, "\n[%s]\n", table)
		}
		fmt.Fprintf(&b, "# %s", o.Help)
		if o.Choices != nil {
			fmt.Fprintf(&b, " One of: %s.", strings.Join(o.Choices, ", "))
		}
		fmt.Fprintf(&b, "\n# %s = %s\n", o.Path[i+1:], o.toml(&def))
	}
	return b.Bytes()
}

// write replaces a file, with the mode that it has.
func write(path string, b []byte) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("making the configuration directory: %w", err)
	}
	mode := fs.FileMode(0o644)
	if st, err := os.Stat(path); err == nil {
		mode = st.Mode().Perm()
	}
	return replace.File(path, b, mode)
}
