package main

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ttmon/ttmon/internal/view/text"
)

// output is where a command prints: the standard output, or a file that the
// user named. The file is made when there is something to write, so that a command
// that fails leaves nothing behind.
type output struct {
	file *os.File
	name string // of the file; empty for the standard output
}

// output is the place that -f named; "" and "-" are the standard output.
func (a *app) output(name string) *output {
	if name == "" || name == "-" {
		return &output{file: a.stdout}
	}
	return &output{name: name}
}

// create makes the file, and the folder it is in.
func (o *output) create() error {
	if err := os.MkdirAll(filepath.Dir(o.name), 0o755); err != nil {
		return fileError(err)
	}
	f, err := os.Create(o.name)
	if err != nil {
		return fileError(err)
	}
	o.file = f
	return nil
}

func fileError(err error) error {
	code := exitInternal
	if errors.Is(err, fs.ErrPermission) {
		code = exitDenied
	}
	return &exitError{code, err}
}

// write prints all of b at once: a screen is never seen half drawn, and a
// reader of a pipe gets whole lines. If nobody reads any more the runtime ends the
// program by SIGPIPE, quietly, as every other tool does.
func (o *output) write(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	if o.file == nil {
		if err := o.create(); err != nil {
			return err
		}
	}
	if _, err := o.file.Write(b); err != nil {
		if o.name == "" {
			return exitWith(exitInternal, "writing to the standard output: %w", errors.Unwrap(err))
		}
		return fileError(err)
	}
	return nil
}

// printText prints text for people: with nothing but ASCII where that is asked
// for.
func (a *app) printText(b []byte) error {
	o, err := a.textOptions(a.stdout)
	if err != nil {
		return err
	}
	if o.ASCII {
		b = text.ASCII(b)
	}
	return a.output("").write(b)
}

// writeFile has fill write a file, which gets its name when it is whole: nobody
// reads half of it. "-" is the standard output, and what is no regular file (a
// pipe, a terminal) is written to as it is.
func (a *app) writeFile(name string, mode fs.FileMode, fill func(io.Writer) error) error {
	if name == "-" {
		return fill(a.stdout)
	}
	if st, err := os.Stat(name); err == nil && !st.Mode().IsRegular() {
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return fileError(err)
		}
		defer f.Close()
		return fill(f)
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return fileError(err)
	}
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*")
	if err != nil {
		return fileError(rename(err, name))
	}
	defer os.Remove(f.Name()) // unless it has its name by then
	if err = f.Chmod(mode); err == nil {
		err = fill(underName{f, name})
	}
	if closed := f.Close(); err == nil && closed != nil { // a full disk may show only now
		err = fileError(closed)
	}
	if err != nil {
		return err
	}
	if err := os.Rename(f.Name(), name); err != nil {
		return fileError(err)
	}
	return nil
}

// underName is a file that has another name yet than the one people gave it,
// which is the one that errors tell.
type underName struct {
	file *os.File
	name string
}

func (u underName) Write(b []byte) (int, error) {
	n, err := u.file.Write(b)
	return n, rename(err, u.name)
}

// rename makes an error one of the file that people named.
func rename(err error, name string) error {
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		failed.Path = name
	}
	return err
}

func (o *output) close() error {
	if o.name == "" || o.file == nil {
		return nil
	}
	if err := o.file.Close(); err != nil { // a full disk may show only now
		return fileError(err)
	}
	return nil
}
