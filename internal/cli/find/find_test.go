package find

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/base/exit"
	"github.com/ttmon/ttmon/internal/cli/host"
	"github.com/ttmon/ttmon/internal/field/wire"
	"github.com/ttmon/ttmon/internal/field/wire/sample"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/past/recording"
)

func TestMain(m *testing.M) { hermetic.Main(m) }

// A file takes precedence over a run of its name, and over a moment in it.
func TestArguments(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"r7", "a@5m"} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for arg, want := range map[string]struct {
		run          bool
		file, moment string
	}{
		"r318":       {true, "r318", ""},
		"r7":         {false, "r7", ""},
		"318":        {false, "318", ""},
		"r3x":        {false, "r3x", ""},
		"x.ttrec":    {false, "x.ttrec", ""},
		"x.ttrec@5m": {false, "x.ttrec", "5m"},
		"a@5m":       {false, "a@5m", ""},
	} {
		t.Run(arg, func(t *testing.T) {
			if got := IsRun(arg); got != want.run {
				t.Errorf("a run: %v, want %v", got, want.run)
			}
			if file, moment := splitMoment(arg); file != want.file || moment != want.moment {
				t.Errorf("%q at %q, want %q at %q", file, moment, want.file, want.moment)
			}
		})
	}
}

// Where nothing keeps runs, that is said, and not that there were none.
func TestNothingKeepsRuns(t *testing.T) {
	home := t.TempDir()
	getenv := func(name string) string {
		return map[string]string{"HOME": home, "XDG_STATE_HOME": filepath.Join(home, "state"), "XDG_RUNTIME_DIR": home}[name]
	}
	for name, where := range map[string]host.Options{
		"direct":          {Getenv: getenv, Direct: true},
		"another root":    {Getenv: getenv, Root: t.TempDir()},
		"no ttmon-server": {Getenv: getenv},
	} {
		t.Run(name, func(t *testing.T) {
			f := &Finder{Where: where, OnlyOwn: func() { t.Error("runs of ttmon top were found") }}
			_, err := f.Run(t.Context(), "r1")
			if e, ok := errors.AsType[*exit.Error](err); !errors.Is(err, errNoRuns) || !ok || e.Code != exit.Unsupported {
				t.Errorf("error %v", err)
			}
		})
	}
}

// A recording without a program is no side of a comparison; that it was read is
// reported all the same.
func TestSideWithoutProgram(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.ttrec")
	w, err := recording.Create(path, false)
	if err == nil {
		now := time.Now()
		err = errors.Join(w.Snapshot(now, wire.Append(nil, &model.Snapshot{Time: now})), w.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	var read []string
	s := Sides{Finder: &Finder{}, Read: func(file string, _ *recording.Reader) { read = append(read, file) }}
	_, _, err = s.Of(t.Context(), []string{path, path})
	if e, ok := errors.AsType[*exit.Error](err); !ok || e.Code != exit.NoDevice || len(read) != 1 {
		t.Errorf("error %v, read %q", err, read)
	}
}

// A recording of a command is never compared by another user's program, unless that
// was chosen.
func TestSideOfShortCommand(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.ttrec")
	w, err := recording.Create(path, false)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	snap := sample.One()
	snap.Time = now
	err = errors.Join(w.Meta(now, recording.Meta{Command: []string{"python", "x.py"}, PID: 1 << 21}), w.Snapshot(now, wire.Append(nil, snap)), w.Close())
	if err != nil {
		t.Fatal(err)
	}
	s := Sides{Finder: &Finder{Where: host.Options{Direct: true}}, Read: func(string, *recording.Reader) {}}
	_, _, err = s.Of(t.Context(), []string{path, path})
	if e, ok := errors.AsType[*exit.Error](err); !ok || e.Code != exit.NoDevice || !strings.Contains(err.Error(), "python x.py") {
		t.Errorf("error %v", err)
	}
	s.Match = snap.Processes[0].Cmdline.V
	if _, b, err := s.Of(t.Context(), []string{path, path}); err != nil || b.Command != s.Match {
		t.Errorf("the program that was chosen: %+v, %v", b, err)
	}
}
