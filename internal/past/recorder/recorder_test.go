package recorder

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/past/recording"
	"github.com/ttmon/ttmon/internal/source/track"
	"github.com/ttmon/ttmon/internal/view/tui/tuitest"
	"github.com/ttmon/ttmon/lib/libtest"
)

func TestMain(m *testing.M) { hermetic.Main(m) }

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// recorded is a recorder and the file behind it.
type recorded struct {
	*Recorder
	w    *recording.Writer
	path string
}

func newRecorded(t *testing.T, begun time.Time) *recorded {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.ttrec")
	w, err := recording.Create(path, false)
	ok(t, err)
	return &recorded{New(w.Encoder, begun), w, path}
}

// end writes the rest and reads all of it.
func (r *recorded) end(t *testing.T) (records []recording.Record, c *recording.Cursor) {
	t.Helper()
	ok(t, r.Flush(time.Now().Add(time.Hour)))
	ok(t, r.w.Close())
	f, err := recording.Open(r.path)
	ok(t, err)
	t.Cleanup(func() { f.Close() })
	c = f.Begin()
	for {
		x, err := c.Next()
		if err != nil {
			return records, c
		}
		records = append(records, x)
	}
}

func count(list []recording.Record, kind recording.Kind) (n int) {
	for _, x := range list {
		if x.Kind == kind {
			n++
		}
	}
	return n
}

// built is the driver, built once.
var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "ttmon-recorder-*") // of the tests' own host, and gone with it
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "driver"), libtest.Build(dir, "static")
})

// program is one of the driver, whose ledgers are in a folder.
func program(t *testing.T, env ...string) (d *libtest.Driver, dir string) {
	t.Helper()
	if _, err := libtest.Compiler(); err != nil {
		t.Skip(err)
	}
	driver, err := built()
	ok(t, err)
	dir = t.TempDir()
	cmd := exec.Command(driver)
	cmd.Env = append(append(os.Environ(), "TTMON_DIR="+dir), env...)
	d, err = libtest.Start(cmd)
	ok(t, err)
	t.Cleanup(d.Kill)
	return d, dir
}

func do(t *testing.T, d *libtest.Driver, lines ...string) {
	t.Helper()
	for _, line := range lines {
		_, err := d.Do("%s", line)
		ok(t, err)
	}
}

// What happened is written in the order of time, whatever comes when.
func TestOrder(t *testing.T) {
	r := newRecorded(t, tuitest.Start)
	at := func(s int) time.Time { return tuitest.Start.Add(time.Duration(s) * time.Second) }
	r.Event(model.Event{Time: at(3), Text: "third"})
	r.Snapshot(tuitest.Host(1, 2), false)
	r.Output(at(1), recording.Output{Stream: 1, Text: "first"})
	ok(t, r.Flush(at(2)))
	r.Event(model.Event{Time: at(2).Add(1), Text: "between"})
	list, _ := r.end(t)
	var kinds []recording.Kind
	for i, x := range list {
		kinds = append(kinds, x.Kind)
		if i > 0 && x.Time.Before(list[i-1].Time) {
			t.Errorf("record %d is before the one before it", i)
		}
	}
	if len(list) != 4 || kinds[0] != recording.KindOutput || kinds[1] != recording.KindSnapshot || list[2].Event.Text != "between" {
		t.Errorf("%v", kinds)
	}
}

// A program that tells what happens is recorded event by event.
func TestTold(t *testing.T) {
	d, dir := program(t, "TTMON_EVENTS=1")
	reader := track.NewReader(track.Options{Dir: dir, Events: true})
	defer reader.Close()
	r := newRecorded(t, time.Now())
	do(t, d, "list 77 0", "push weights", "alloc 1 4096 640", "pop", "alloc 1 8192 64", "free 1 8192", "alloc 1 8192 128")
	look := func() { r.Sweep(reader.Read(nil), reader.Events(), time.Now()) }
	look()
	do(t, d, "list 78 1", "alloc 2 4096 64", "close 2")
	r.AddEvents(reader.Events(), time.Now())
	ok(t, d.End())
	look()
	look()
	list, c := r.end(t)
	if a, f := count(list, recording.KindAlloc), count(list, recording.KindFree); a != 4 || f != 1 {
		t.Errorf("%d allocations and %d frees, want 4 and 1", a, f)
	}
	if count(list, recording.KindClosed) != 1 || count(list, recording.KindEnded) != 1 || len(c.Processes()) != 0 {
		t.Errorf("%d lists closed, %d processes ended", count(list, recording.KindClosed), count(list, recording.KindEnded))
	}
	for _, x := range list {
		if x.Kind == recording.KindSite && x.Site.Tag != "weights" {
			t.Errorf("site %+v", x.Site)
		}
		if x.Kind == recording.KindProcess && (x.Process.PID != d.Cmd.Process.Pid || x.Process.Method != recording.ByLedger) {
			t.Errorf("process %+v", x.Process)
		}
	}
}

// Who missed events knows afterwards what holds, and says how many.
func TestMissed(t *testing.T) {
	d, dir := program(t, "TTMON_EVENTS=1")
	reader := track.NewReader(track.Options{Dir: dir, Events: true})
	defer reader.Close()
	r := newRecorded(t, time.Now())
	do(t, d, "list 77 0", "alloc 1 4096 64", "alloc 1 8192 64")
	r.Sweep(reader.Read(nil), reader.Events(), time.Now())
	do(t, d, "free 1 8192", "storm 1 1 200001", "alloc 1 12288 64")
	sweep := reader.Read(nil)
	r.Sweep(sweep, reader.Events(), time.Now())
	_, c := r.end(t)
	want := map[uint64]uint64{}
	for _, b := range sweep.Processes[0].Ledger.Blocks {
		want[uint64(sweep.Processes[0].Ledger.Sites[b.Site].List)<<32|b.Address] = b.Bytes
	}
	got := 0
	for _, id := range c.Lists() {
		_, live, _ := c.List(id)
		got += int(live.Usage().Blocks)
	}
	if got != len(want) {
		t.Errorf("%d blocks are recorded, %d are there", got, len(want))
	}
	p := c.Blocks(c.Processes()[0].ID)
	if p.Lost == 0 || p.Exact() {
		t.Errorf("lost %d, exact %v", p.Lost, p.Exact())
	}
}

// Of a program that does not tell, looks are compared.
func TestLooks(t *testing.T) {
	d, dir := program(t)
	reader := track.NewReader(track.Options{Dir: dir})
	defer reader.Close()
	r := newRecorded(t, time.Now())
	look := func() { r.Sweep(reader.Read(nil), reader.Events(), time.Now()) }
	do(t, d, "list 77 0", "push a", "alloc 1 4096 64", "pop")
	look()
	do(t, d, "alloc 1 8192 64", "free 1 4096")
	look()
	do(t, d, "alloc 1 4096 128")
	look()
	d.Kill()
	look()
	list, c := r.end(t)
	if a, f := count(list, recording.KindAlloc), count(list, recording.KindFree); a != 3 || f != 1 {
		t.Errorf("%d allocations, %d frees", a, f)
	}
	for _, x := range list {
		if x.Kind == recording.KindProcess && x.Process.Method != recording.BySampling {
			t.Errorf("%+v", x.Process)
		}
	}
	if count(list, recording.KindEnded) != 1 || len(c.Lists()) != 0 {
		t.Error("it has not ended")
	}
}

// What a ttmond says of processes is recorded, unless they tell it themselves.
func TestBlocks(t *testing.T) {
	r := newRecorded(t, tuitest.Start)
	process := func(sizes ...uint64) *blocks.Process {
		l := blocks.NewList(blocks.Geometry{Pool: model.L1, Banks: 2, Capacity: 1 << 20}, blocks.FromStart)
		for i, n := range sizes {
			l.Alloc(blocks.Block{Addr: uint64(i) << 12, Size: n, Born: tuitest.Start.UnixNano()})
		}
		return &blocks.Process{PID: 42, Start: 7, Allocators: []*blocks.Allocator{{ID: 3, Chips: []uint64{77}, Lists: []*blocks.List{l}}}}
	}
	now := tuitest.Start.Add(time.Second)
	r.Blocks([]*blocks.Process{process(64, 128)}, now)
	r.Blocks([]*blocks.Process{process(64)}, now.Add(time.Second))
	r.Sweep(&track.Sweep{}, nil, now.Add(2*time.Second)) // no ledger does not end it
	r.Blocks(nil, now.Add(3*time.Second))
	list, _ := r.end(t)
	if a, f, e := count(list, recording.KindAlloc), count(list, recording.KindFree), count(list, recording.KindEnded); a != 2 || f != 1 || e != 1 {
		t.Errorf("%d allocations, %d frees, %d ended", a, f, e)
	}
}
