package export

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ttmon/ttmon/internal/book/launches"
	"github.com/ttmon/ttmon/internal/field/wire"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/past/recording"
	"github.com/ttmon/ttmon/internal/view/tui/tuitest"
)

func program(s float64, length int64, name string) launches.Program {
	return launches.Program{Start: at(s).UnixNano(), Length: length, Name: name}
}

// withPrograms is a recording of a board with two chips and one with one, on which
// programs ran, and some were lost.
func withPrograms(t testing.TB) *recording.Reader {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.ttrec")
	w, err := recording.Create(path, false)
	ok(t, err)
	ok(t, w.Meta(at(0), recording.Meta{Version: "test", Started: at(0)}))
	snap := tuitest.Host(2, 0)
	snap.Devices[0].Chips = []model.Chip{{ID: model.Value(uint64(77)), Name: "L"}, {ID: model.Value(uint64(78)), Name: "R"}}
	snap.Devices[1].Chips = []model.Chip{{ID: model.Value(uint64(1<<64 - 1))}}
	ok(t, w.Snapshot(at(0), wire.Append(nil, snap)))
	add := func(s float64, p recording.Programs) {
		t.Helper()
		p.PID, p.Start, p.Process = 4242, 9, "python"
		ok(t, w.Programs(at(s), &p))
	}
	add(1, recording.Programs{Chip: 77, List: []launches.Program{program(0.5, 700, "matmul"), program(0.6, 50, "softmax"), {Start: at(0.6).UnixNano() + 50, Length: 3}}})
	add(1, recording.Programs{Chip: 78, Number: 1, List: []launches.Program{program(0.5, 900, "matmul"), program(0.5, 100, "beside")}})
	add(2, recording.Programs{Chip: 1<<64 - 1, Number: 2, Missed: 12, Lost: 1, List: []launches.Program{program(1.5, 0, "short")}})
	add(3, recording.Programs{Chip: 79, Number: 3, Broken: true, List: []launches.Program{program(2.5, 1e9, "late")}})
	add(4, recording.Programs{Chip: 77, Missed: 5})
	ok(t, w.Close())
	r, err := recording.Open(path)
	ok(t, err)
	t.Cleanup(func() { r.Close() })
	return r
}

// Perfetto's trace_processor finds every program as a slice with its name and length
// on a track of its chip, and where programs are missing.
func TestProgramSlices(t *testing.T) {
	hermetic.Long(t)
	const (
		tracks = `SELECT s.name, s.ts - %d, s.dur, t.name FROM slice s JOIN track t ON s.track_id = t.id WHERE t.name LIKE 'programs%%'`
		wrong  = `SELECT name FROM stats WHERE severity IN ('error', 'data_loss') AND value > 0`
	)
	want := []string{
		"L of python 4242: matmul 500000000+700", "L of python 4242: softmax 600000000+50", "L of python 4242: (name unknown) 600000050+3",
		"R of python 4242: matmul 500000000+900", "R of python 4242, at the same time 2: beside 500000000+100",
		"python 4242: short 1500000000+0", "its chip 3: late 2500000000+1000000000",
		"L of python 4242! 5 programs lost here", "python 4242! 12 programs lost here", "python 4242! 1 program of the process lost, on any of its chips",
		"its chip 3! programs may be missing before this",
	}
	slices.Sort(want)
	for _, tt := range []struct {
		name string
		sink func(io.Writer) Sink
		sql  string
	}{{"perfetto", toPerfetto, fmt.Sprintf(tracks, at(0).UnixNano())}} {
		t.Run(tt.name, func(t *testing.T) {
			var b bytes.Buffer
			ok(t, Write(withPrograms(t), Options{}, nil, tt.sink(&b)))
			answers := askProcessor(t, b.Bytes(), tt.sql, wrong)
			var got []string
			for _, row := range answers[0] {
				name, track := row[0].(string), row[3].(string)
				track = strings.TrimPrefix(strings.TrimPrefix(track, "programs of "), "programs on ")
				if strings.Contains(name, "lost") || strings.Contains(name, "missing") {
					got = append(got, track+"! "+name)
					continue
				}
				got = append(got, fmt.Sprintf("%s: %s %.0f+%.0f", track, name, row[1], row[2]))
			}
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if len(answers[1]) != 0 {
				t.Errorf("trace_processor complains: %v", answers[1])
			}
		})
	}
}

// A process that reports nonsense does not make tracks without end, and what is left
// out is said.
func TestTooManyAtATime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.ttrec")
	w, err := recording.Create(path, false)
	ok(t, err)
	p := recording.Programs{PID: 1, Chip: 77}
	for range 100 {
		p.List = append(p.List, program(1, 1e9, "x"))
	}
	ok(t, w.Programs(at(3), &p))
	ok(t, w.Close())
	r, err := recording.Open(path)
	ok(t, err)
	defer r.Close()
	var c counting
	if ok(t, Write(r, Options{}, nil, &c)); c.slices != maxLanes || c.instants != 1 {
		t.Errorf("%d slices, %d marks", c.slices, c.instants)
	}
}
