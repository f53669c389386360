package replay

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ttmon/ttmon/internal/base/exit"
	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/book/failure"
	"github.com/ttmon/ttmon/internal/field/wire"
	"github.com/ttmon/ttmon/internal/field/wire/sample"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/past/recording"
	"github.com/ttmon/ttmon/internal/view/lines"
	"github.com/ttmon/ttmon/internal/view/tui/act"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

var start = time.Date(2026, 11, 15, 12, 0, 0, 0, time.Local)

// recorded is a recording of a minute, in which a program holds two blocks of the
// second chip of an n300.
func recorded(t *testing.T) *Recording {
	t.Helper()
	path := filepath.Join(t.TempDir(), "run.ttrec")
	w, err := recording.Create(path, false)
	if err != nil {
		t.Fatal(err)
	}
	board := sample.N300(3, 0x41)
	chip, _ := board.Chips[1].ID.Get()
	snap := sample.One()
	snap.Devices = []model.Device{board}
	for _, err := range []error{
		w.Meta(start, recording.Meta{Version: "test", Started: start}),
		w.Process(start, recording.Process{ID: 1, PID: 42, Start: 7, Name: "python", Method: recording.ByLedger}),
		w.List(start, recording.List{ID: 1, Process: 1, Pool: "dram", Geometry: blocks.Geometry{Banks: 2, Capacity: 1 << 20, Align: 32}, Chips: []uint64{chip}}),
		w.Site(start, recording.Site{ID: 5, Tag: "weights", Stack: []ledgerfile.Frame{{File: "/x/train.py", Function: "load", Line: 12}}}),
		w.Alloc(start, 1, blocks.Block{Addr: 64, Size: 4096, Asked: 8000, Born: start.UnixNano(), Site: 5}),
		w.Alloc(start, 1, blocks.Block{Addr: 8192, Size: 32, Born: start.UnixNano()}),
		w.Snapshot(start, wire.Append(nil, snap)),
		w.Output(start.Add(time.Second), recording.Output{Stream: 1, Text: "epoch \x1b[2J1"}),
		w.Snapshot(start.Add(time.Minute), wire.Append(nil, snap)),
		w.Close(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	r, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	r.Player.Go(start.Add(30 * time.Second))
	return r
}

// TestEventful: a look at a recording begins at the first of its worst events.
func TestEventful(t *testing.T) {
	at := func(seconds int, level model.Level) model.Event {
		return model.Event{Time: start.Add(time.Duration(seconds) * time.Second), Level: level, Kind: "x", Text: "x"}
	}
	for _, tt := range []struct {
		name   string
		events []model.Event
		want   int
	}{
		{"nothing happened", nil, 0},
		{"only a start", []model.Event{at(20, model.Info)}, 20},
		{"a warning after it", []model.Event{at(20, model.Info), at(30, model.Warning), at(40, model.Warning)}, 30},
		{"the worst counts", []model.Event{at(20, model.Warning), at(50, model.Critical), at(55, model.Critical)}, 50},
		{"an event from outside the recording", []model.Event{at(-20, model.Critical), at(30, model.Info)}, 30},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "run.ttrec")
			w, err := recording.Create(path, false)
			if err != nil {
				t.Fatal(err)
			}
			errs := []error{w.Meta(start, recording.Meta{Version: "test", Started: start}), w.Snapshot(start, wire.Append(nil, sample.One()))}
			for _, e := range tt.events {
				errs = append(errs, w.Event(e))
			}
			errs = append(errs, w.Snapshot(start.Add(time.Minute), wire.Append(nil, sample.One())), w.Close())
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
			r, err := recording.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			if got, err := Eventful(r); err != nil || !got.Equal(start.Add(time.Duration(tt.want)*time.Second)) {
				t.Errorf("%v, %v", got.Sub(start), err)
			}
		})
	}
}

func TestMoment(t *testing.T) {
	r := recorded(t)
	for s, want := range map[string]time.Time{
		"": start, "start": start, "end": start.Add(time.Minute), "20s": start.Add(20 * time.Second), "-10s": start.Add(50 * time.Second),
		"12:00:30": start.Add(30 * time.Second), "2026-11-15T12:00:15": start.Add(15 * time.Second), "11:00:00": start.Add(23 * time.Hour),
	} {
		t.Run(s, func(t *testing.T) {
			if got, err := Moment(r.Reader, "--at", s); err != nil || !got.Equal(want) {
				t.Errorf("%q: %v, %v, want %v", s, got, err, want)
			}
		})
	}
	for _, s := range []string{"noon", "12", "1:2:3:4"} {
		if got, err := Moment(r.Reader, "--at", s); err == nil {
			t.Errorf("%q is %v", s, got)
		}
	}
}

func TestBuffers(t *testing.T) {
	r := recorded(t)
	got, err := r.Buffers(t.Context(), act.Target{PID: 42, StartTicks: 7})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(got, func(a, b act.Buffer) int { return int(b.Bytes) - int(a.Bytes) })
	want := []act.Buffer{
		{Device: 3, Chip: "R", Pool: "dram", Bytes: 8000, Age: time.Second, Note: "[weights] train.py:12 load"},
		{Device: 3, Chip: "R", Pool: "dram", Bytes: 64, Age: time.Second, Note: "at 0x2000"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for name, who := range map[string]act.Target{"another": {PID: 43}, "one with its number": {PID: 42, StartTicks: 8}} {
		t.Run(name, func(t *testing.T) {
			if _, err := r.Buffers(t.Context(), who); !errors.Is(err, act.ErrUnknown) {
				t.Error(err)
			}
			if _, err := r.Blocks(t.Context(), who); !errors.Is(err, act.ErrUnknown) {
				t.Error(err)
			}
		})
	}
}

func TestHeld(t *testing.T) {
	r := recorded(t)
	a, err := r.Held(0)
	if err != nil {
		t.Fatal(err)
	}
	text := string(a.Append(nil, nil, lines.Options{}))
	for _, want := range []string{"[weights] train.py:12 load", "7.8"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if _, err := r.Held(43); err == nil {
		t.Error("a process that is not in it holds something")
	}
}

func TestAppendOutput(t *testing.T) {
	r := recorded(t)
	for asJSON, want := range map[bool]string{false: "12:00:01.000 1  epoch \\x1b[2J1\n", true: `"stream":1,"text":"epoch \u001b[2J1"`} {
		t.Run(fmt.Sprint(asJSON), func(t *testing.T) {
			if got, err := r.AppendOutput(nil, asJSON); err != nil || !strings.Contains(string(got), want) {
				t.Errorf("%q, %v, want %q", got, err, want)
			}
		})
	}
}

func TestOpen(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(file, []byte("no recording"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{file, file + "y"} {
		if e, ok := errors.AsType[*exit.Error](func() error { _, err := Open(name); return err }()); !ok || e.Code != exit.BadArgument {
			t.Errorf("%s: %v", name, e)
		}
	}
}

func TestFailures(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.ttrec")
	w, err := recording.Create(path, false)
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)
	for i, id := range []string{"f1", "f2"} {
		l := blocks.NewList(blocks.Geometry{Pool: model.DRAM, Banks: 8, Capacity: 4096}, blocks.FromStart)
		at := begun.Add(time.Duration(i) * time.Second)
		err = errors.Join(err, w.Failure(at, &failure.Record{Schema: failure.Schema, ID: id, Kind: failure.NoRoom, Time: at, Pool: "dram", State: l}))
	}
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	r, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	list, err := r.Failures()
	if err != nil || len(list) != 2 || list[0].ID != "f2" {
		t.Errorf("%+v, %v", list, err)
	}
	if !r.End().Equal(begun.Add(time.Second)) {
		t.Errorf("it ends at %v", r.End())
	}
}
