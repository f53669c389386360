package keep

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/book/runs"
	"github.com/ttmon/ttmon/internal/field/wire"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/past/recording"
)

// record writes a recording of two programs at devices, a snapshot every 5 s: pid 7
// holds 30 bytes, pid 8 300. libttmon reports the others.
func record(t *testing.T, m recording.Meta, traced ...recording.Process) *recording.Reader {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.ttrec")
	w, err := recording.Create(path, false)
	if err != nil {
		t.Fatal(err)
	}
	m.Version, m.Interval = "test", 5*time.Second
	sc := &scene{power: 50}
	if err := w.Meta(t0.Add(-time.Second), m); err != nil {
		t.Fatal(err)
	}
	for _, p := range traced {
		if err := w.Process(t0.Add(-time.Second), p); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 {
		s := sc.at(float64(5*i), program(7, 0, 10, 20), program(8, 1, 100, 200))
		s.Processes[1].Cmdline = model.Value("serve")
		if err := w.Snapshot(s.Time, wire.Append(nil, s)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := recording.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// A recording of a command is about that and nothing else; another one is about what
// the other side is, else about what held the most.
func TestProgram(t *testing.T) {
	code := 3
	other := runs.Run{Who: runs.Who{Command: "python3 train.py"}}
	again := runs.Run{Host: "lab", Processes: []runs.Process{{PID: 7, StartTicks: 7}}, Who: runs.Who{Command: "serve"}}
	for _, tt := range []struct {
		name  string
		meta  recording.Meta
		other *runs.Run
		pid   int
		end   runs.EndKind
	}{
		{"the largest", recording.Meta{}, nil, 8, runs.Running},
		{"the command", recording.Meta{PID: 7, ExitCode: &code}, nil, 7, runs.Exited},
		{"another command", recording.Meta{PID: 9, ExitCode: &code}, nil, 0, ""},
		{"another command, and one like the other side", recording.Meta{PID: 9, ExitCode: &code}, &other, 0, ""},
		{"as the other side", recording.Meta{}, &other, 7, runs.Running},
		{"the very program of the other side", recording.Meta{}, &again, 7, runs.Running},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := OfRecording(record(t, tt.meta), time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			r, ok := c.Program(tt.other)
			if tt.pid == 0 {
				if ok {
					t.Errorf("a program that the recording is not of: %+v", r)
				}
				return
			}
			if !ok || r.Processes[0].PID != tt.pid || r.End.Kind != tt.end {
				t.Errorf("%v %+v", ok, r)
			}
			if tt.end == runs.Exited && *r.End.Code != code {
				t.Errorf("exit code %d", *r.End.Code)
			}
			if r.Observed != 10 || r.Unseen != 0 { // 5 s are no gap of this recording
				t.Errorf("observed %v s, not %v s", r.Observed, r.Unseen)
			}
			if c.Chips[11] != 1 || c.Chips[2] != 0 || len(c.Chips) != 4 {
				t.Errorf("%v", c.Chips)
			}
		})
	}
}

// A command that allocates in a descendant is that descendant, or what was reported of it
// where no snapshot has it.
func TestProgramOfDescendant(t *testing.T) {
	code := 3
	for _, tt := range []struct {
		name   string
		traced recording.Process
		want   int  // 0: none
		seen   bool // by snapshots
	}{
		{"in snapshots", recording.Process{ID: 1, PID: 7, Start: 7, Method: recording.ByLedger}, 7, true},
		{"in none", recording.Process{ID: 1, PID: 12, Start: 12, Method: recording.ByLedger}, 12, false},
		{"one whose pid another has now", recording.Process{ID: 1, PID: 8, Start: 12, Method: recording.ByLedger}, 8, false},
		{"another program that ttmond sees", recording.Process{ID: 1, PID: 8, Start: 8, Method: recording.ByUprobe}, 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := OfRecording(record(t, recording.Meta{PID: 9, ExitCode: &code, Command: []string{"make", "x"}}, tt.traced), time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			r, ok := c.Program(nil)
			if ok != (tt.want > 0) || ok && (r.Processes[0].PID != tt.want || r.Seen.IsZero() == tt.seen) {
				t.Errorf("%v %+v", ok, r)
			}
			if ok && !tt.seen && (r.Command != "make x" || r.End.Kind != runs.Exited || *r.End.Code != code) {
				t.Errorf("%+v", r)
			}
		})
	}
}

// A command with several processes is all of them, whichever descend from it or have
// libttmon in them.
func TestProgramOfSeveral(t *testing.T) {
	c, err := OfRecording(record(t, recording.Meta{PID: 7}, recording.Process{ID: 1, PID: 8, Start: 8, Method: recording.ByLedger}), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	r, ok := c.Program(nil)
	if !ok || len(r.Processes) != 2 || len(r.Devices) != 2 || r.Pools["dram"].Peak != 330 || r.ID != c.Runs[0].ID {
		t.Errorf("%v %+v", ok, r)
	}
	if len(c.Runs) != 2 {
		t.Errorf("%d runs of the host", len(c.Runs))
	}
}

// Of a program that is followed nothing is known from the ledgers of others, and it is
// the same run when it opens a device again.
func TestFollow(t *testing.T) {
	p, sc := Follow(7, time.Second), &scene{}
	sc.exits = []model.Exit{ledgerOf(99, 1000, 1<<30, model.Exact)}
	p.Observe(sc.at(0))
	if r, ok := p.Run(); ok {
		t.Errorf("%+v", r)
	}
	for second, list := range [][]model.Process{{program(7, 0, 10, 0)}, {}, {}, {}, {}, {}, {}, {}, {child(program(8, 0, 60, 0), 7), program(9, 0, 500, 0)}} {
		p.Observe(sc.at(float64(second+1), list...))
	}
	r, ok := p.Run()
	if !ok || len(r.Processes) != 2 || r.Pools["dram"].Peak != 60 || r.End.Kind != runs.Running {
		t.Errorf("%v %+v", ok, r)
	}
}

func TestRecordingUpTo(t *testing.T) {
	r := record(t, recording.Meta{})
	for _, tt := range []struct {
		name     string
		until    time.Time
		observed float64
	}{
		{"the beginning, before the first snapshot", t0.Add(-time.Second), 0},
		{"a moment", t0.Add(7 * time.Second), 5},
		{"after the end", t0.Add(time.Hour), 10},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := OfRecording(r, tt.until)
			if err != nil {
				t.Fatal(err)
			}
			if x, ok := c.Program(nil); !ok || x.Observed != tt.observed {
				t.Errorf("%v, %+v", ok, x)
			}
		})
	}
	path := filepath.Join(t.TempDir(), "empty.ttrec")
	w, err := recording.Create(path, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Meta(t0, recording.Meta{Version: "test"}), w.Close()); err != nil {
		t.Fatal(err)
	}
	e, err := recording.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if _, err := OfRecording(e, time.Time{}); !errors.Is(err, recording.ErrEmpty) {
		t.Errorf("%v", err)
	}
}
