package console

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/ttmon/ttmon/internal/base/exit"
)

// at is a console whose standard output is a file.
func at(t *testing.T, env map[string]string) *Console {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return &Console{Stdout: f, Stderr: f, Color: "auto", Getenv: func(name string) string { return env[name] }}
}

// A file is made with its folder when there is something to write, and not before.
func TestOutput(t *testing.T) {
	name := filepath.Join(t.TempDir(), "folder", "x.csv")
	o := at(t, nil).Output(name)
	if err := errors.Join(o.Write(nil), o.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(name); err == nil {
		t.Error("nothing was written, and there is a file")
	}
	if err := errors.Join(o.Write([]byte("a")), o.Write([]byte("b")), o.Close()); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(name); err != nil || string(b) != "ab" {
		t.Errorf("%q, %v", b, err)
	}
}

// A file gets its name when it is whole: what fails leaves the old one.
func TestWriteFile(t *testing.T) {
	c, name := at(t, nil), filepath.Join(t.TempDir(), "x")
	write := func(text string, err error) error {
		return c.WriteFile(name, 0o640, func(w io.Writer) error {
			_, _ = io.WriteString(w, text)
			return err
		})
	}
	if err := write("whole", nil); err != nil {
		t.Fatal(err)
	}
	failure := errors.New("half way")
	if err := write("half", failure); !errors.Is(err, failure) {
		t.Error(err)
	}
	b, err := os.ReadFile(name)
	st, statErr := os.Stat(name)
	if err != nil || statErr != nil || string(b) != "whole" || st.Mode().Perm() != 0o640 {
		t.Errorf("%q, %v, %v, %v", b, st.Mode(), err, statErr)
	}
	if list, err := os.ReadDir(filepath.Dir(name)); err != nil || len(list) != 1 {
		t.Errorf("%d files, %v", len(list), err)
	}
}

func TestFileError(t *testing.T) {
	for err, code := range map[error]int{os.ErrPermission: exit.Denied, io.ErrShortWrite: exit.Internal} {
		t.Run(fmt.Sprint(err), func(t *testing.T) {
			if e, ok := errors.AsType[*exit.Error](FileError(err)); !ok || e.Code != code {
				t.Error(e)
			}
		})
	}
}

func TestTextOptions(t *testing.T) {
	for _, tt := range []struct {
		name         string
		env          map[string]string
		color        string
		width        int
		colors, fail bool
	}{
		{"a file", nil, "auto", 0, false, false},
		{"columns", map[string]string{"COLUMNS": "132"}, "auto", 132, false, false},
		{"always", map[string]string{"NO_COLOR": "1"}, "always", 0, true, false},
		{"nonsense", nil, "blue", 0, false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := at(t, tt.env)
			c.Color = tt.color
			o, err := c.TextOptions(c.Stdout)
			if (err != nil) != tt.fail || !tt.fail && (o.Width != tt.width || o.Color != tt.colors) {
				t.Errorf("%+v, %v", o, err)
			}
		})
	}
}

func TestASCIILocale(t *testing.T) {
	for env, want := range map[string]bool{"": false, "C": true, "POSIX": true, "en_US.UTF-8": false, "C.utf8": false, "de_DE.ISO-8859-1": true} {
		t.Run(env, func(t *testing.T) {
			if got := ASCIILocale(func(string) string { return env }); got != want {
				t.Errorf("%q: %v", env, got)
			}
		})
	}
}

func TestNeedsTerminal(t *testing.T) {
	if err := at(t, map[string]string{"TERM": "xterm"}).NeedsTerminal("top"); err == nil {
		t.Error("a file is a terminal")
	}
}
