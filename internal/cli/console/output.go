package console

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ttmon/ttmon/internal/base/exit"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
)

// Output is where a command prints: the standard output, or a file that the
// user named. The file is made when there is something to write, so that a command
// that fails leaves nothing behind.
type Output struct {
	File *os.File // nil until there is something to write
	Name string   // of the file; empty for the standard output
}

// Output is the place that -f named; "" and "-" are the standard output.
func (c *Console) Output(name string) *Output {
	if name == "" || name == "-" {
		return &Output{File: c.Stdout}
	}
	return &Output{Name: name}
}

// create makes the file, and the folder it is in.
func (o *Output) create() error {
	if err := os.MkdirAll(filepath.Dir(o.Name), 0o755); err != nil {
		return FileError(err)
	}
	f, err := os.Create(o.Name)
	if err != nil {
		return FileError(err)
	}
	o.File = f
	return nil
}

// FileError is an error of a file that the user named, with its exit code.
func FileError(err error) error {
	code := exit.Internal
	if errors.Is(err, fs.ErrPermission) {
		code = exit.Denied
	}
	return &exit.Error{Code: code, Err: err}
}

// Write prints all of b at once: a screen is never seen half drawn, and a
// reader of a pipe gets whole lines. If the reader is gone the runtime ends the
// program by SIGPIPE, quietly, as every other tool does.
func (o *Output) Write(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	if o.File == nil {
		if err := o.create(); err != nil {
			return err
		}
	}
	if _, err := o.File.Write(b); err != nil {
		if o.Name == "" {
			return exit.With(exit.Internal, "writing to the standard output: %w", errors.Unwrap(err))
		}
		return FileError(err)
	}
	return nil
}

// PrintText prints text for people: with nothing but ASCII where that is asked
// for.
func (c *Console) PrintText(b []byte) error {
	o, err := c.TextOptions(c.Stdout)
	if err != nil {
		return err
	}
	if o.ASCII {
		b = []byte(cells.ASCII(string(b)))
	}
	return c.Output("").Write(b)
}

// PrintAside prints text for people to the standard error, as PrintText prints it.
func (c *Console) PrintAside(b []byte) error {
	if c.UseASCII() {
		b = []byte(cells.ASCII(string(b)))
	}
	_, err := c.Stderr.Write(b)
	return err
}

// WriteFile has fill write a file, which gets its name when it is complete: no
// reader sees half of it. "-" is the standard output, and what is no regular file (a
// pipe, a terminal) is written to as it is.
func (c *Console) WriteFile(name string, mode fs.FileMode, fill func(io.Writer) error) error {
	if name == "-" {
		return fill(c.Stdout)
	}
	if st, err := os.Stat(name); err == nil && !st.Mode().IsRegular() {
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return FileError(err)
		}
		defer f.Close()
		return fill(f)
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return FileError(err)
	}
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*")
	if err != nil {
		return FileError(rename(err, name))
	}
	defer os.Remove(f.Name()) // unless it has its name by then
	if err = f.Chmod(mode); err == nil {
		err = fill(underName{f, name})
	}
	if closed := f.Close(); err == nil && closed != nil { // a full disk may show only now
		err = FileError(closed)
	}
	if err != nil {
		return err
	}
	if err := os.Rename(f.Name(), name); err != nil {
		return FileError(err)
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

// Close closes the file, if there is one.
func (o *Output) Close() error {
	if o.Name == "" || o.File == nil {
		return nil
	}
	if err := o.File.Close(); err != nil { // a full disk may show only now
		return FileError(err)
	}
	return nil
}
