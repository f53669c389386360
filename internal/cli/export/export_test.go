package export

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/cli/metaltrace"
	"github.com/ttmon/ttmon/internal/field/wire"
	"github.com/ttmon/ttmon/internal/lab/e2e/ttnn"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/past/recording"
	"github.com/ttmon/ttmon/internal/view/tui/tuitest"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

const mib = 1 << 20

func at(s float64) time.Time {
	return tuitest.Start.Add(time.Duration(s * float64(time.Second)))
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// sample is a recording of ten seconds of two devices and a program: weights
// of 64 MiB from second 1 to the end, a cache of 32 MiB from 3 to 5, and one
// of 16 MiB from 4 to the close of its list at 8.
func sample(t testing.TB) *recording.Reader {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.ttrec")
	w, err := recording.Create(path, false)
	ok(t, err)
	ok(t, w.Meta(at(0), recording.Meta{Version: "test", Started: at(0)}))
	ok(t, w.Process(at(0), recording.Process{ID: 1, PID: 4242, Name: "python", Method: recording.ByLedger}))
	for id := uint32(2); id <= 3; id++ {
		ok(t, w.List(at(0), recording.List{ID: id, Process: 1, Allocator: 1, Pool: "dram", Geometry: blocks.Geometry{Banks: 8, Capacity: 1 << 32}, Chips: []uint64{77, 78}}))
	}
	ok(t, w.Site(at(0), recording.Site{ID: 1, Tag: "weights", Stack: []ledgerfile.Frame{{File: "/home/x/model.py", Line: 41, Function: "load"}}}))
	ok(t, w.Site(at(0), recording.Site{ID: 2, Tag: "kv-cache", Stack: []ledgerfile.Frame{{File: "/home/x/model.py", Line: 88, Function: "cache"}, {File: "/home/x/model.py", Line: 3, Function: "main"}}}))
	for s := range 10 {
		now := at(float64(s))
		ok(t, w.Snapshot(now, wire.Append(nil, tuitest.Host(2, s))))
		switch s {
		case 1:
			ok(t, w.Alloc(now, 2, blocks.Block{Addr: 0, Size: 8 * mib, Site: 1}))
		case 3:
			ok(t, w.Alloc(now, 2, blocks.Block{Addr: 8 * mib, Size: 4 * mib, Site: 2}))
		case 4:
			ok(t, w.Alloc(now, 3, blocks.Block{Addr: 0, Size: 2 * mib, Site: 2}))
			ok(t, w.Event(model.Event{Time: now, Kind: "no_room", Level: model.Warning, Text: "no room"}))
		case 5:
			ok(t, w.Free(now, 2, 8*mib))
			ok(t, w.Output(now, recording.Output{Stream: 1, Text: "epoch 1"}))
		case 8:
			ok(t, w.Closed(now, 3))
		}
	}
	ok(t, w.Close())
	r, err := recording.Open(path)
	ok(t, err)
	t.Cleanup(func() { r.Close() })
	return r
}

// written is what a sink makes of the sample.
func written(t testing.TB, o Options, laid []Slice, sink func(io.Writer) Sink) []byte {
	t.Helper()
	var b bytes.Buffer
	ok(t, Write(sample(t), o, laid, sink(&b)))
	return b.Bytes()
}

func toPerfetto(w io.Writer) Sink { return NewPerfetto(w, at(0)) }

// counting is a sink that counts.
type counting struct{ points, slices, instants int }

func (c *counting) Point(*Series, Point, model.Bound) { c.points++ }
func (c *counting) Slice(*Slice)                      { c.slices++ }
func (c *counting) Instant(*Instant)                  { c.instants++ }
func (c *counting) Aligned([]Slice)                   {}
func (c *counting) Close() error                      { return nil }

// peakPower is the most that the snapshots of the sample say.
func peakPower(device int) (most float64) {
	for s := range 10 {
		most = max(most, tuitest.Host(2, s).Devices[device].Power.V)
	}
	return most
}

// decoded is what Perfetto's schema finds in a trace.
type decoded struct {
	Counters map[string]struct {
		Peak, Last float64
		Points     int
		Unit       string
	}
	Slices   [][3]any
	Instants [][2]string
	Open     int
	Flows    map[string][][4]any // of each: begin or end, track, name, time
	Clocks   [][2]int64
	Unknown  int
}

// readPerfetto decodes a trace with PyPI's package perfetto, which tools/setup
// installs.
func readPerfetto(t *testing.T, trace []byte) (d decoded) {
	t.Helper()
	home, err := os.UserCacheDir()
	ok(t, err)
	packages, _ := filepath.Glob(filepath.Join(home, "ttmon", "perfetto-*"))
	if len(packages) == 0 {
		t.Skip("the package perfetto is not there: tools/setup all installs it")
	}
	root, err := ttnn.Repository()
	ok(t, err)
	file := filepath.Join(t.TempDir(), "trace")
	ok(t, os.WriteFile(file, trace, 0o600))
	cmd := exec.Command("python3", filepath.Join(root, "testdata/perfetto/tracks.py"), file)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+packages[len(packages)-1])
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	ok(t, err)
	ok(t, json.Unmarshal(out, &d))
	return d
}

func TestPerfetto(t *testing.T) {
	d := readPerfetto(t, written(t, Options{Large: 20 * mib}, nil, toPerfetto))
	if d.Unknown != 0 {
		t.Errorf("%d fields that the schema does not know", d.Unknown)
	}
	for name, want := range map[string]float64{
		"python/DRAM, exact, chip 77": 112 * mib,
		"python/DRAM, exact, chip 78": 112 * mib,
		"device 0 n300/Core Power":    peakPower(0),
		"device 1 p150a/Core Power":   peakPower(1),
	} {
		t.Run(name, func(t *testing.T) {
			if got := d.Counters[name]; got.Peak != want {
				t.Errorf("peak %v, want %v", got.Peak, want)
			}
		})
	}
	if c := d.Counters["python/DRAM, exact, chip 77"]; c.Last != 0 || c.Points != 6 {
		t.Errorf("exact DRAM: %+v", c)
	}
	if u := d.Counters["device 0 n300/ASIC Temperature"].Unit; u != "C" {
		t.Errorf("the unit of temperature is %q", u)
	}
	// Two large blocks; the one of 32 MiB lives two seconds, the other until the end.
	const track = "python/large blocks"
	nano := func(s float64) float64 { return float64(at(s).UnixNano()) }
	want := map[string][][4]any{
		"1": {{"begin", track, "alloc 64 MiB of dram at model.py:41", nano(1)}, {"end", track, "free 64 MiB of dram at model.py:41", nano(9)}},
		"2": {{"begin", track, "alloc 32 MiB of dram at model.py:88", nano(3)}, {"end", track, "free 32 MiB of dram at model.py:88", nano(5)}},
	}
	if !reflect.DeepEqual(d.Flows, want) {
		t.Errorf("flows %v, want %v", d.Flows, want)
	}
	tags := map[string]float64{}
	for _, s := range d.Slices {
		tags[s[1].(string)] += s[2].(float64)
	}
	if tags["kv-cache"] != 5e9 || tags["weights"] != 8e9 || d.Open != 0 {
		t.Errorf("slices %v, %d open", d.Slices, d.Open)
	}
	marks := map[string]bool{}
	for _, x := range d.Instants {
		marks[x[0]+" "+x[1]] = true
	}
	if !marks["host/events no room"] || !marks["host/output epoch 1"] {
		t.Errorf("instants %v", d.Instants)
	}
	if len(d.Clocks) != 2 || d.Clocks[0][1] != at(0).UnixNano() {
		t.Errorf("clocks %v", d.Clocks)
	}
}

func TestTables(t *testing.T) {
	var n counting
	ok(t, Write(sample(t), Options{All: true}, nil, &n))
	list, err := csv.NewReader(bytes.NewReader(written(t, Options{All: true}, nil, NewCSV))).ReadAll()
	ok(t, err)
	if len(list) != n.points+1 || len(list[1]) != 7 {
		t.Errorf("%d lines for %d points", len(list), n.points)
	}
	for i := 2; i < len(list); i++ {
		if list[i][0] < list[i-1][0] {
			t.Errorf("line %d, of %s, is before the one above it, of %s", i+1, list[i][0], list[i-1][0])
		}
	}
	if b := written(t, Options{All: true}, nil, NewJSONL); bytes.Count(b, []byte("\n")) != n.points+n.slices+n.instants {
		t.Errorf("%d lines of JSON", bytes.Count(b, []byte("\n")))
	}
}

// A figure that was not always exact has a companion in traces, from its
// beginning on.
func TestDoubts(t *testing.T) {
	s := &Series{Group: host, Name: "DRAM", Unit: "B"}
	var got []string
	for i, bound := range []model.Bound{model.Exact, model.Exact, model.AtLeast, model.AtLeast, model.Unsure, model.Exact} {
		_, points := s.doubt(at(float64(i)).UnixNano(), bound)
		for _, p := range points {
			got = append(got, fmt.Sprint(time.Duration(p.NS-at(0).UnixNano()), " ", p.V))
		}
	}
	if want := []string{"0s 0", "2s 1", "4s 2", "5s 0"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Prometheus' own tool makes blocks of it.
func TestOpenMetrics(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed; make test installs it")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "x.om.txt")
	ok(t, os.WriteFile(file, written(t, Options{All: true}, nil, NewOpenMetrics), 0o600))
	out, err := exec.Command(promtool, "tsdb", "create-blocks-from", "openmetrics", file, filepath.Join(dir, "data")).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	ok(t, os.Mkdir(filepath.Join(dir, "data", "wal"), 0o700)) // which dump wants to see
	dump, err := exec.Command(promtool, "tsdb", "dump", filepath.Join(dir, "data")).Output()
	ok(t, err)
	if n := strings.Count(string(dump), `tenstorrent_core_power_watts"`); n != 20 {
		t.Errorf("%d samples of power, want 10 of each device:\n%s", n, dump[:min(len(dump), 2000)])
	}
}

func TestProfile(t *testing.T) {
	r := sample(t)
	b, err := Profile(r, at(4.5))
	ok(t, err)
	p, err := profile.ParseData(b)
	ok(t, err)
	sums := make([]int64, len(p.SampleType))
	for _, s := range p.Sample {
		for i, v := range s.Value {
			sums[i] += v
		}
	}
	// On two chips: 112 MiB allocated, held and at the peak, in three blocks.
	if sums[1] != 2*112*mib || sums[3] != 2*112*mib || sums[5] != 2*112*mib || sums[0] != 6 {
		t.Errorf("%v of %v", sums, p.SampleType)
	}
	if b, err = Profile(r, at(9)); err != nil {
		t.Fatal(err)
	}
	p, err = profile.ParseData(b)
	ok(t, err)
	held := int64(0)
	for _, s := range p.Sample {
		held += s.Value[3]
	}
	if held != 2*64*mib {
		t.Errorf("%d held at the end", held)
	}
	if _, err := Profile(r, at(0.5)); err == nil {
		t.Error("a profile of a moment without blocks")
	}
}

// Chips that are in the same lists hold the same.
func TestAlike(t *testing.T) {
	got := alike(map[uint32][]uint64{1: {7, 8, 9}, 2: {8, 7}, 3: {10}})
	if want := map[uint64]uint64{7: 7, 8: 7, 9: 9, 10: 10}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// However close points are, the peak of a series stays.
func TestPeaksStay(t *testing.T) {
	var g grain
	for i := range 1000 {
		g.add(Point{int64(i) * 1000, float64((i * 7919) % 997)})
	}
	g.add(Point{1_000_000, 3})
	var got []Point
	g.take(func(p Point) { got = append(got, p) })
	if len(got) != 2 || got[0].V != 996 || got[1].V != 3 || g.some {
		t.Error(got)
	}
}

// The first blocks of a list are older than what is known of its chips, and
// count on them all the same.
func TestChipsKnownLater(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.ttrec")
	w, err := recording.Create(path, false)
	ok(t, err)
	ok(t, w.Process(at(0), recording.Process{ID: 1, PID: 4242, Name: "python", Method: recording.ByLedger}))
	l := recording.List{ID: 2, Process: 1, Allocator: 1, Pool: "dram", Geometry: blocks.Geometry{Banks: 8, Capacity: 1 << 32}}
	ok(t, w.List(at(0), l))
	ok(t, w.Alloc(at(1), 2, blocks.Block{Addr: 0, Size: mib}))
	l.Chips = []uint64{77}
	ok(t, w.List(at(2), l))
	ok(t, w.Alloc(at(3), 2, blocks.Block{Addr: mib, Size: mib}))
	ok(t, w.Ended(at(5), 1))
	ok(t, w.Close())
	r, err := recording.Open(path)
	ok(t, err)
	defer r.Close()
	var b bytes.Buffer
	ok(t, Write(r, Options{}, nil, toPerfetto(&b)))
	d := readPerfetto(t, b.Bytes())
	if c := d.Counters["python/DRAM, exact, chip 77"]; c.Peak != 16*mib || len(d.Counters) != 1 {
		t.Errorf("counters %+v", d.Counters)
	}
	// It holds nothing when it has ended.
	for second, want := range map[float64]int64{4: 16 * mib, 5: 0} {
		t.Run(fmt.Sprint(second), func(t *testing.T) {
			heap, err := Profile(r, at(second))
			ok(t, err)
			p, err := profile.ParseData(heap)
			ok(t, err)
			held := int64(0)
			for _, s := range p.Sample {
				held += s.Value[3]
			}
			if held != want {
				t.Errorf("%d bytes are held after %v s, want %d", held, second, want)
			}
		})
	}
}

// Ops of tt-metal's profiler stand where they belong.
func TestLay(t *testing.T) {
	trace := &metaltrace.Trace{Kind: metaltrace.DeviceLog, Written: at(6), Slices: []metaltrace.Slice{
		{Clock: "chip 0", Group: "device profiler, chip 0", Track: "core 1,2 BRISC", Name: "FW", From: 1000, To: 5000},
		{Clock: "chip 0", Group: "device profiler, chip 0", Track: "core 1,2 BRISC", Name: "KERNEL", From: 2000, To: 4000},
		{Clock: "chip 1", Group: "device profiler, chip 1", Track: "core 1,2 BRISC", Name: "FW", From: 7e12, To: 7e12 + 3000},
	}}
	find := func(list []Slice, group, name string) (s Slice) {
		for _, x := range list {
			if x.Group.Name == group && x.Name == name {
				s = x
			}
		}
		return s
	}
	laid, _ := Align(trace, time.Time{})
	end := at(6).UnixNano()
	if s := find(laid, "device profiler, chip 0", "KERNEL"); s.To != end-1000 || s.From != end-3000 {
		t.Errorf("by the time of writing: %+v, the file ends at %d", s, end)
	}
	if s := find(laid, "device profiler, chip 1", "FW"); s.To != end {
		t.Errorf("a clock of its own: %+v", s)
	}
	d := readPerfetto(t, written(t, Options{}, laid, toPerfetto))
	if d.Open != 0 {
		t.Errorf("%d slices do not end", d.Open)
	}
	laid, _ = Align(trace, at(2))
	if s := find(laid, "device profiler, chip 0", "FW"); s.From != at(2).UnixNano() {
		t.Errorf("by the time that was given: %+v", s)
	}
}

// TestJSONLIsHarmless: a name that a program chose does nothing to a terminal.
func TestJSONLIsHarmless(t *testing.T) {
	var b bytes.Buffer
	d := NewJSONL(&b)
	d.Instant(&Instant{Name: "a\u202e\u009bb"})
	if err := d.Close(); err != nil || strings.ContainsAny(b.String(), "\u202e\u009b") || !strings.Contains(b.String(), `"a\u202e\u009bb"`) {
		t.Errorf("%q, %v", b.String(), err)
	}
}
