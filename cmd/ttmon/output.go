package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// output is where a command prints: the standard output, or a file that the
// user named.
type output struct {
	file *os.File
	name string // of the file; empty for the standard output
}

// open opens the file that -f named; "" and "-" are the standard output. The
// folder of the file is made if it is not there.
func (a *app) open(name string) (output, error) {
	if name == "" || name == "-" {
		return output{file: a.stdout}, nil
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return output{}, fileError(err)
	}
	f, err := os.Create(name)
	if err != nil {
		return output{}, fileError(err)
	}
	return output{f, name}, nil
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
func (o output) write(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	if _, err := o.file.Write(b); err != nil {
		if o.name == "" {
			return exitWith(exitInternal, "writing to the standard output: %w", errors.Unwrap(err))
		}
		return fileError(err)
	}
	return nil
}

func (o output) close() error {
	if o.name == "" {
		return nil
	}
	if err := o.file.Close(); err != nil { // a full disk may show only now
		return fileError(err)
	}
	return nil
}
