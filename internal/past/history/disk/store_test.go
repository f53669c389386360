package disk

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"github.com/ttmon/ttmon/internal/view/prom"
)

var t0 = time.Unix(1_800_000_000, 0)

var (
	power = &prom.Family{Name: "tenstorrent_core_power_watts", Type: "gauge"}
	limit = &prom.Family{Name: "tenstorrent_core_power_limit_watts", Type: "gauge", Static: true}
)

// said collects what a store says.
type said []string

func (s *said) notify(message string, args ...any) { *s = append(*s, fmt.Sprint(message, args)) }

func (s said) has(part string) bool {
	for _, text := range s {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}

func options(dir string, s *said) Options {
	return Options{
		Dir: filepath.Join(dir, "history"), MemoryDir: filepath.Join(dir, "memory"),
		FineFor: time.Hour, CoarseFor: 30 * 24 * time.Hour, MaxBytes: 1 << 30, MaxSeries: 100, Notify: s.notify,
	}
}

func open(t testing.TB, o Options) *Store {
	t.Helper()
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// appendRow appends a row with the power of some devices, and their limits.
func appendRow(s *Store, at time.Time, watts ...float64) {
	s.AddSnapshot(func(emit prom.Emit) {
		for i, w := range watts {
			if !math.IsNaN(w) {
				emit(power, prom.Pairs("device", fmt.Sprint(i)), w)
			}
		}
		for i := range watts {
			emit(limit, prom.Pairs("device", fmt.Sprint(i)), 300)
		}
	})
	s.Append(at)
}

// point is a sample; in tests times are seconds after t0.
type point struct{ At, V float64 }

func read(t testing.TB, s *Store, name, device string, from, to time.Time) []point {
	t.Helper()
	q, err := s.Querier(from.UnixMilli(), to.UnixMilli())
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	set := q.Select(context.Background(), true, nil,
		labels.MustNewMatcher(labels.MatchEqual, model.MetricNameLabel, name), labels.MustNewMatcher(labels.MatchEqual, "device", device))
	var list []point
	var it chunkenc.Iterator
	for set.Next() {
		for it = set.At().Iterator(it); it.Next() != chunkenc.ValNone; {
			at, v := it.At()
			if value.IsStaleNaN(v) {
				v = -1
			}
			list = append(list, point{float64(at-t0.UnixMilli()) / 1000, v})
		}
	}
	if set.Err() != nil {
		t.Fatal(set.Err())
	}
	return list
}

// measured leaves out the markers of ends.
func measured(list []point) []point {
	return slices.DeleteFunc(list, func(p point) bool { return p.V == -1 })
}

func TestAppend(t *testing.T) {
	var talk said
	s := open(t, options(t.TempDir(), &talk))
	for i := range 20 {
		v := float64(i)
		if i == 3 || i == 4 {
			v = math.NaN()
		}
		appendRow(s, t0.Add(time.Duration(i)*time.Second), v, 7)
	}
	got := read(t, s, power.Name, "0", t0, t0.Add(6*time.Second))
	want := []point{{0, 0}, {1, 1}, {2, 2}, {3, -1}, {5, 5}, {6, 6}} // it ends where it is unknown
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	// What hardly changes is there when it appears and every 15 seconds.
	if got := read(t, s, limit.Name, "1", t0, t0.Add(time.Minute)); len(got) != 2 {
		t.Errorf("a limit has %d samples", len(got))
	}
	if st := s.Stats(); st.Series != 4 || st.InMemory || st.Samples == 0 || st.Refused != 0 || st.Dropped != 0 {
		t.Errorf("stats %+v", st)
	}
	if len(talk) > 0 {
		t.Errorf("it says %q", talk)
	}
}

func TestSeriesAreBounded(t *testing.T) {
	var talk said
	o := options(t.TempDir(), &talk)
	o.MaxSeries = 3
	s := open(t, o)
	appendRow(s, t0, 1, 2, 3, 4)
	if st := s.Stats(); st.Series != 3 || st.Dropped != 5 {
		t.Errorf("stats %+v", st)
	}
}

// A killed ttmond has lost nothing that was appended.
func TestSurvivesACrash(t *testing.T) {
	var talk said
	dir := t.TempDir()
	s := open(t, options(dir, &talk))
	for i := range 50 {
		appendRow(s, t0.Add(time.Duration(i)*time.Second), float64(i))
	}
	// As if it had been killed: a copy of what is on the disk now.
	if err := os.CopyFS(filepath.Join(dir, "after"), os.DirFS(filepath.Join(dir, "history"))); err != nil {
		t.Fatal(err)
	}
	o := options(dir, &talk)
	o.Dir = filepath.Join(dir, "after")
	after := open(t, o)
	if got := measured(read(t, after, power.Name, "0", t0, t0.Add(time.Minute))); len(got) != 50 {
		t.Errorf("%d samples of 50 are left", len(got))
	}
	appendRow(after, t0.Add(51*time.Second), 51)
	if got := measured(read(t, after, power.Name, "0", t0, t0.Add(time.Minute))); len(got) != 51 {
		t.Errorf("%d samples of 51", len(got))
	}
}

func TestDamagedFilesAreSetAside(t *testing.T) {
	var talk said
	o := options(t.TempDir(), &talk)
	s := open(t, o)
	appendRow(s, t0, 1)
	s.Close()
	// A block that is none.
	block := filepath.Join(o.Dir, "fine", "01EM6Q6A1YPX4G9TEB20J22B2R")
	if err := os.MkdirAll(filepath.Join(block, "chunks"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"meta.json": `{"version":1,"ulid":"01EM6Q6A1YPX4G9TEB20J22B2R","minTime":1,"maxTime":2}`, "index": "nonsense", "chunks/000001": "x", "tombstones": ""} {
		if err := os.WriteFile(filepath.Join(block, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s = open(t, o)
	appendRow(s, t0.Add(time.Second), 2)
	if got := read(t, s, power.Name, "0", t0, t0.Add(time.Minute)); len(got) == 0 {
		t.Error("no history after a damaged block")
	}
	if s.Stats().InMemory {
		t.Error("it went to memory")
	}
}

func TestClock(t *testing.T) {
	var talk said
	dir := t.TempDir()
	s := open(t, options(dir, &talk))
	for i, at := range []time.Duration{0, 1, 2, -600, -599, 3} {
		appendRow(s, t0.Add(at*time.Second), float64(i))
	}
	if got := measured(read(t, s, power.Name, "0", t0.Add(-time.Hour), t0.Add(time.Hour))); len(got) != 6 {
		t.Errorf("ten minutes back: %v", got)
	}
	if len(talk) != 0 {
		t.Errorf("it says %q", talk)
	}
	back := t0.Add(-48 * time.Hour)
	for i := range 3 {
		appendRow(s, back.Add(time.Duration(i)*time.Second), 5)
	}
	if got := read(t, s, power.Name, "0", back.Add(-time.Hour), back.Add(time.Hour)); len(got) != 3 {
		t.Errorf("two days back: %v, %q", got, talk)
	}
	if !talk.has("clock was set back") {
		t.Errorf("it says %q", talk)
	}
	ahead := t0.Add(10 * 365 * 24 * time.Hour)
	appendRow(s, ahead, 9)
	if got := read(t, s, power.Name, "0", ahead, ahead.Add(time.Second)); len(got) != 1 {
		t.Errorf("ten years ahead: %v", got)
	}
	if _, err := os.Stat(filepath.Join(dir, "history", "fine.future")); err != nil {
		t.Error(err)
	}
}

// Without a disk there is a history in memory.
func TestNoDisk(t *testing.T) {
	var talk said
	dir := t.TempDir()
	o := options(dir, &talk)
	if err := os.WriteFile(o.Dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, o)
	appendRow(s, t0, 1)
	appendRow(s, t0.Add(time.Second), 2)
	if got := read(t, s, power.Name, "0", t0, t0.Add(time.Minute)); len(got) != 2 {
		t.Errorf("in memory: %v", got)
	}
	if !s.Stats().InMemory || !talk.has("in memory only") {
		t.Errorf("%+v, %q", s.Stats(), talk)
	}
	s.Close()
	if _, err := os.Stat(o.MemoryDir); !os.IsNotExist(err) {
		t.Error("the memory is not given back")
	}
}

// A database whose appends fail is left for memory, and come back to.
func TestDiskFailsAndRecovers(t *testing.T) {
	var talk said
	s := open(t, options(t.TempDir(), &talk))
	appendRow(s, t0, 1)
	s.account(tally{}, os.ErrDeadlineExceeded, false)
	if !s.Stats().InMemory || !talk.has("in memory only") {
		t.Fatalf("%+v, %q", s.Stats(), talk)
	}
	appendRow(s, t0.Add(time.Second), 2)     // to memory alone
	appendRow(s, t0.Add(20*time.Second), 20) // the disk is tried again
	if s.Stats().InMemory || !talk.has("on disk again") {
		t.Fatalf("%+v, %q", s.Stats(), talk)
	}
	appendRow(s, t0.Add(21*time.Second), 21)
	got := read(t, s, power.Name, "0", t0, t0.Add(time.Minute))
	if diff := cmp.Diff([]point{{0, 1}, {1, 2}, {1.001, -1}, {20, 20}, {21, 21}}, got); diff != "" {
		t.Error(diff)
	}
}

func TestLabelsOf(t *testing.T) {
	got := labelsOf("m", prom.Pairs("b", "x\"y\\z\nw", "a", "1", "c", "ü\xff"))
	want := labels.FromStrings("__name__", "m", "a", "1", "b", "x\"y\\z\nw", "c", "ü\uFFFD")
	if !labels.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

// Series are found again whatever order they come in, and those that have ended
// are forgotten after a while.
func TestSeriesSet(t *testing.T) {
	set := newSeriesSet(3)
	gen := uint64(0)
	row := func(names ...string) (found []*series, ended int) {
		gen++
		for _, name := range names {
			x, _ := set.find(power, prom.Pairs("device", name))
			if x != nil {
				x.gen, x.ended = gen, false
			}
			found = append(found, x)
		}
		set.sweep(gen, func(*series) { ended++ })
		return found, ended
	}
	first, _ := row(`a="1"`, `b="1"`, `c="1"`)
	for _, tt := range []struct {
		names []string
		want  []*series
		ended int
	}{
		{[]string{`a="1"`, `b="1"`, `c="1"`}, first, 0},
		{[]string{`c="1"`, `a="1"`}, []*series{first[2], first[0]}, 1},
		{[]string{`a="1"`, `b="1"`, `c="1"`}, first, 0},
		{[]string{`a="1"`, `d="1"`, `c="1"`}, []*series{first[0], nil, first[2]}, 1}, // one too many
		{[]string{`a="1"`}, first[:1], 1},
	} {
		if got, ended := row(tt.names...); !slices.Equal(got, tt.want) || ended != tt.ended {
			t.Errorf("row %d: %v, want %v; %d ended, want %d", gen, got, tt.want, ended, tt.ended)
		}
	}
	gen += keepEnded
	row(`a="1"`)
	if again, _ := row(`a="1"`, `b="1"`, `d="1"`); again[0] != first[0] || again[1] == first[1] || again[2] == nil || set.len() != 3 {
		t.Errorf("after a while: %v of %v, %d series", again, first, set.len())
	}
}
