package keep

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/base/statedir"
	"github.com/ttmon/ttmon/internal/book/runs"
	"github.com/ttmon/ttmon/internal/model"
)

// What another process keeps is read as far as it is known: a run ends unseen where
// nothing watches and its process has exited.
func TestRead(t *testing.T) {
	for _, tt := range []struct {
		name           string
		watched, alive bool
		want           runs.EndKind
	}{
		{"watched", true, false, runs.Running},
		{"not watched, alive", false, true, runs.Running},
		{"not watched, exited", false, false, runs.Unseen},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "runs")
			unlock, err := statedir.Lock(dir, LockFile)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { unlock() }()
			b := begin(t, dir)
			sc := &scene{}
			b.Observe(sc.at(0, program(7, 0, 10, 20), program(8, 1, 1, 2)))
			b.Observe(sc.at(1, program(8, 1, 1, 2)))
			b.Observe(sc.at(8, program(8, 1, 1, 2)))
			if !tt.watched {
				b.Close()
				unlock()
			}
			list, more, err := Read(dir, runs.Query{}, func(host string, id model.ProcessID) bool {
				if host != "lab" || id.PID != 8 {
					t.Errorf("asked for %v of %s", id, host)
				}
				return tt.alive
			})
			if err != nil || more || len(list) != 2 {
				t.Fatalf("%d runs, more %v, %v", len(list), more, err)
			}
			if list[0].Processes[0].PID != 7 || list[0].End.Kind != runs.Gone || list[0].Pools["dram"].Peak != 30 {
				t.Errorf("%+v", list[0])
			}
			if list[1].End.Kind != tt.want || list[1].End.Failed() {
				t.Errorf("it is %+v, want %s", list[1].End, tt.want)
			}
		})
	}
}

func TestReadNothing(t *testing.T) {
	dir := t.TempDir()
	if _, _, err := Read(filepath.Join(dir, "none"), runs.Query{}, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	if list, _, err := Read(dir, runs.Query{}, nil); err != nil || len(list) != 0 {
		t.Errorf("%v, %v", list, err)
	}
	if err := os.WriteFile(filepath.Join(dir, liveFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Read(dir, runs.Query{}, nil); err == nil {
		t.Error("a damaged file is read as none")
	}
}

// A run that begins is on the disk at once: another process may ask for it.
func TestNewRunIsWritten(t *testing.T) {
	dir := t.TempDir()
	b := open(t, dir)
	sc := &scene{}
	b.Observe(sc.at(0))
	b.Observe(sc.at(1, program(7, 0, 10, 20)))
	list, _, err := Read(dir, runs.Query{}, func(string, model.ProcessID) bool { return true })
	if err != nil || len(list) != 1 || list[0].Last != t0.Add(time.Second) {
		t.Errorf("%+v, %v", list, err)
	}
}
