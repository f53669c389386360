package journal

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/field/wire"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/node/eventlog"
	"github.com/ttmon/ttmon/internal/past/history/held"
	"github.com/ttmon/ttmon/internal/past/recording"
)

var t0 = time.Date(2026, 11, 15, 8, 0, 0, 0, time.UTC)

func sec(n int) time.Time { return t0.Add(time.Duration(n) * time.Second) }

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, o Options) *Journal {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	if o.Keep == 0 {
		o.Keep = 24 * time.Hour
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = 1 << 30
	}
	j, err := Open(o)
	ok(t, err)
	t.Cleanup(func() { _ = j.Close() })
	return j
}

// host is a snapshot in which process 7 holds so many bytes of DRAM of device 0;
// below 0 it does not run.
func host(second, dram int) *model.Snapshot {
	s := &model.Snapshot{Time: sec(second)}
	if dram >= 0 {
		use := model.DeviceUse{Device: 0}
		use.Memory[model.DRAM] = model.ExactBytes(uint64(dram))
		s.Processes = []model.Process{{PID: 7, StartTicks: 1, State: model.Running, Devices: []model.DeviceUse{use}}}
	}
	return s
}

func (j *Journal) put(t *testing.T, second, dram int) {
	t.Helper()
	s := host(second, dram)
	ok(t, j.Snapshot(s.Time, wire.Append(nil, s)))
}

func event(n int) model.Event {
	return model.Event{Time: sec(n), Kind: "state", Level: model.Critical, Devices: []string{"0000:01:00.0"}, Text: fmt.Sprint("number ", n)}
}

func seqs(list []model.Event) string {
	var out []string
	for _, e := range list {
		text := fmt.Sprint(e.Seq)
		if e.Volatile {
			text += "v"
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}

func (j *Journal) files(t *testing.T) (names []string) {
	t.Helper()
	list, err := os.ReadDir(j.opt.Dir)
	ok(t, err)
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

// A moment is the last snapshot not after it, of whichever segment, also after a
// restart, and one that has just been written.
func TestAt(t *testing.T) {
	dir := t.TempDir()
	j := open(t, Options{Dir: dir})
	for s := 0; s < 8000; s += 5 {
		j.put(t, s, s)
	}
	check := func(when string, j *Journal) {
		t.Helper()
		for _, c := range []struct{ at, want int }{{0, 0}, {4, 0}, {3599, 3595}, {3600, 3600}, {7202, 7200}, {7995, 7995}, {9999, 7995}} {
			t.Run(fmt.Sprint(when, " ", c.at), func(t *testing.T) {
				at, body, err := j.At(sec(c.at))
				if err != nil || !at.Equal(sec(c.want)) || !bytes.Equal(body, wire.Append(nil, host(c.want, c.want))) {
					t.Errorf("at %d: the snapshot of %v, %v", c.at, at.Sub(t0), err)
				}
			})
		}
		if _, _, err := j.At(sec(-1)); !errors.Is(err, ErrNone) {
			t.Errorf("before the first: %v", err)
		}
		if oldest, newest := j.Span(); !oldest.Equal(t0) || !newest.Equal(sec(7995)) {
			t.Errorf("from %v to %v", oldest, newest)
		}
	}
	check("written", j)
	ok(t, j.Close())
	j = open(t, Options{Dir: dir})
	check("reopened", j)
	j.put(t, 8000, 1)
	if n := len(j.files(t)); n != 3 {
		t.Errorf("%d files of two and a quarter hours: %v", n, j.files(t))
	}
}

// An event is on the disk when Append returns; snapshots of the last seconds are
// what a kill costs.
func TestKilled(t *testing.T) {
	dir := t.TempDir()
	j := open(t, Options{Dir: dir})
	j.put(t, 0, 0)
	more := j.More()
	ok(t, j.Append(event(1), event(2)))
	<-more
	f, err := os.OpenFile(filepath.Join(dir, j.files(t)[0]), os.O_APPEND|os.O_WRONLY, 0)
	ok(t, err)
	_, err = f.WriteString("TTRB, and then the power went") // a write that was under way
	ok(t, err)
	ok(t, f.Close())
	from := model.EventOrigin{Log: "x", Seq: 9}
	j = open(t, Options{Dir: dir}) // the first one was not closed
	e := event(3)
	e.From = &from
	ok(t, j.Append(e))
	j = open(t, Options{Dir: dir})
	if got := seqs(j.Find(eventlog.Query{})); got != "1 2 3" || j.Last() != 3 || j.Origin() != from {
		t.Errorf("events %s, last %d, from %v", got, j.Last(), j.Origin())
	}
	if _, _, err := j.At(t0); err != nil {
		t.Error(err)
	}
}

func TestFind(t *testing.T) {
	j := open(t, Options{})
	for i := range 10 {
		e := event(i + 1)
		if i == 4 {
			e.Kind, e.Devices = model.EventAlert, nil
		}
		ok(t, j.Append(e))
	}
	for name, c := range map[string]struct {
		q    eventlog.Query
		want string
	}{
		"after": {eventlog.Query{After: 8}, "9 10"},
		"since": {eventlog.Query{Since: sec(9)}, "9 10"},
		"until": {eventlog.Query{Until: sec(2)}, "1 2"},
		"kind":  {eventlog.Query{Kinds: []model.EventKind{model.EventAlert}}, "5"},
		"limit": {eventlog.Query{Limit: 2}, "9 10"},
		"none":  {eventlog.Query{After: 99}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := seqs(j.Find(c.q)); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// Snapshots are bounded by age and by size; events outlive them, and what memory
// has forgotten is read from the files.
func TestExpires(t *testing.T) {
	for name, o := range map[string]Options{"age": {Keep: 2 * time.Hour}, "size": {MaxBytes: 300_000}} {
		t.Run(name, func(t *testing.T) {
			o.Dir = t.TempDir()
			j := open(t, o)
			n := 0
			for s := 0; s < 8*3600; s += 60 {
				j.put(t, s, s)
				n++
				if s%3600 == 0 {
					for range maxRecent / 4 {
						ok(t, j.Append(event(s)))
					}
				}
			}
			oldest, newest := j.Span()
			if age := newest.Sub(oldest); age > 4*time.Hour || age < time.Hour {
				t.Errorf("%v of snapshots are kept: %v", age, j.files(t))
			}
			check := func(j *Journal) {
				t.Helper()
				all := j.Find(eventlog.Query{})
				if len(all) != 8*maxRecent/4 {
					t.Errorf("%d events are found", len(all))
				}
				for i := range all {
					if all[i].Seq != uint64(i+1) {
						t.Fatalf("event %d is in the place of %d", all[i].Seq, i+1)
					}
				}
				if got := len(j.Find(eventlog.Query{Since: sec(7 * 3600)})); got != maxRecent/4 {
					t.Errorf("%d events of the last hour", got)
				}
			}
			check(j)
			ok(t, j.Close())
			check(open(t, o))
		})
	}
}

// A segment whose events were moved, but which is still there after a crash, does
// not tell them twice.
func TestMovedTwice(t *testing.T) {
	dir := t.TempDir()
	j := open(t, Options{Dir: dir})
	ok(t, j.Append(event(1), event(2)))
	ok(t, j.moveEvents(filepath.Join(dir, j.files(t)[0])))
	ok(t, j.Append(event(3)))
	j = open(t, Options{Dir: dir})
	if got := seqs(j.Find(eventlog.Query{})); got != "1 2 3" {
		t.Errorf("events %s", got)
	}
	j.Recent = eventlog.NewRecent(maxRecent) // as if they were long ago
	j.Number(make([]model.Event, 3))
	if got := seqs(j.Find(eventlog.Query{})); got != "1 2 3" {
		t.Errorf("from the files: events %s", got)
	}
}

// A clock that is set back begins another segment, and is believed.
func TestClockSetBack(t *testing.T) {
	j := open(t, Options{})
	j.put(t, 5000, 1)
	j.put(t, 5001, 2)
	j.put(t, 100, 3)
	j.put(t, 101, 4)
	if at, _, err := j.At(sec(5000)); err != nil || !at.Equal(sec(101)) {
		t.Errorf("%v %v", at, err)
	}
	if at, _, err := j.At(sec(100)); err != nil || !at.Equal(sec(100)) {
		t.Errorf("%v %v", at, err)
	}
	// An event of the future does not move the snapshots behind it.
	ok(t, j.Append(model.Event{Time: time.Now().Add(time.Hour), Kind: "x", Level: model.Info, Text: "x"}))
}

// A disk that is full: snapshots and events are there all the same, events say that
// they are in memory, and are on the disk when it takes them.
func TestFullDisk(t *testing.T) {
	dir, memory := t.TempDir(), filepath.Join(t.TempDir(), "memory")
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=256k"); err != nil {
		t.Skipf("mounting a small disk takes rights: %v", err)
	}
	defer func() { _ = unix.Unmount(dir, unix.MNT_DETACH) }()
	var told []error
	o := Options{Dir: filepath.Join(dir, "journal"), MemoryDir: memory, Changed: func(err error) { told = append(told, err) }}
	j := open(t, o)
	ok(t, j.Append(event(1)))
	j.put(t, 10, 1)
	ok(t, j.w.Flush())
	filler := filepath.Join(dir, "filler")
	_ = os.WriteFile(filler, make([]byte, 1<<20), 0o600) // as much as there is
	long := event(2)
	long.Text = ""
	for range 1000 {
		long.Text += rand.Text()
	}
	err := j.Append(long)
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("on a full disk: %v", err)
	}
	j.put(t, 20, 2)
	if at, _, err := j.At(sec(20)); err != nil || !at.Equal(sec(20)) {
		t.Errorf("the snapshot in memory: %v %v", at, err)
	}
	if got := seqs(j.Find(eventlog.Query{})); got != "1 2v" {
		t.Errorf("events %s", got)
	}
	j.tried = time.Time{} // it is time to try again: still full
	j.put(t, 30, 3)
	ok(t, os.Remove(filler))
	j.tried = time.Time{}
	j.put(t, 40, 4)
	ok(t, j.Append(event(3)))
	if got := seqs(j.Find(eventlog.Query{})); got != "1 2 3" || len(told) != 2 || told[1] != nil {
		t.Errorf("events %s; told %v", got, told)
	}
	for _, s := range []int{10, 20, 30, 40} {
		if at, _, err := j.At(sec(s)); err != nil || !at.Equal(sec(s)) {
			t.Errorf("at %d: %v %v", s, at, err)
		}
	}
	ok(t, j.Close())
	j = open(t, o)
	if got := seqs(j.Find(eventlog.Query{})); got != "1 2 3" {
		t.Errorf("after a restart: events %s", got)
	}
	if _, err := os.Stat(memory); !os.IsNotExist(err) {
		t.Error("the segments in memory are still there")
	}
}

// Where nothing can be written at all, events are in memory.
func TestUnwritable(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "file")
	ok(t, os.WriteFile(dir, nil, 0o600))
	j, err := Open(Options{Dir: filepath.Join(dir, "journal"), Keep: time.Hour, MaxBytes: 1 << 20})
	if err == nil {
		t.Fatal("a journal below a file")
	}
	if j.Append(event(1)) == nil || j.Snapshot(sec(1), []byte("{}")) == nil {
		t.Error("nothing is said of the disk")
	}
	if got := seqs(j.Find(eventlog.Query{})); got != "1v" {
		t.Errorf("events %s", got)
	}
	ok(t, os.Remove(dir))
	j.tried = time.Time{}
	ok(t, j.Append(event(2)))
	if got := seqs(j.Find(eventlog.Query{})); got != "1 2" {
		t.Errorf("events %s", got)
	}
}

// What a process held is read from the snapshots, over segments.
func TestHeld(t *testing.T) {
	j := open(t, Options{})
	for s := 3000; s < 4200; s++ {
		dram := 5
		switch {
		case s == 3590: // a peak of a second, before the segment ends
			dram = 90
		case s >= 4000:
			dram = -1
		}
		if s < 3700 || s > 3800 {
			j.put(t, s, dram)
		}
	}
	told := func(list []held.Point) string {
		var out []string
		for _, p := range list {
			text := "-"
			if d, known := p.Devices[0]; known {
				text = fmt.Sprint(d[model.DRAM].Bytes)
			}
			out = append(out, fmt.Sprintf("%v=%s", p.Time.Sub(t0).Seconds(), text))
		}
		return strings.Join(out, " ")
	}
	list, since, step := j.Held(t.Context(), 7, 1, sec(3100), sec(9000), 100)
	if got, want := told(list), "3100=5 3590=90 3591=5 3699.001=- 3801=5 4000=-"; got != want || step != 0 || !since.Equal(sec(3100)) {
		t.Errorf("%s since %v, want %s", got, since, want)
	}
	if list, _, _ := j.Held(t.Context(), 7, 2, sec(3100), sec(9000), 100); len(list) != 0 {
		t.Errorf("another process of that pid: %s", told(list))
	}
	if list, since, _ := j.Held(t.Context(), 7, 0, sec(0), sec(3001), 100); told(list) != "3000=5 3001=5" || !since.Equal(sec(3000)) {
		t.Errorf("from before the first: %s since %v", told(list), since)
	}
}

// A copy is a recording of the last minutes, and grows.
func TestCopy(t *testing.T) {
	j := open(t, Options{})
	for s := 0; s < 4000; s++ {
		j.put(t, s, s)
	}
	path := filepath.Join(t.TempDir(), "copy.ttrec")
	c, err := j.Copy(path, sec(3400), recording.Meta{Version: "test", Reason: "alert X"})
	ok(t, err)
	for s := 4000; s < 7500; s++ { // into the next segment
		j.put(t, s, s)
		if s%600 == 0 {
			ok(t, c.Extend())
		}
	}
	ok(t, c.Extend())
	ok(t, c.Close())
	r, err := recording.Open(path)
	ok(t, err)
	defer r.Close()
	first, last, _ := r.Span()
	if first.After(sec(3400)) || first.Before(sec(3300)) || !last.Equal(sec(7499)) || r.Torn || r.Damaged > 0 {
		t.Errorf("from %v to %v, torn %v, %d damaged", first, last, r.Torn, r.Damaged)
	}
	n := 0
	cur := r.Begin()
	for rec, err := cur.Next(); err == nil; rec, err = cur.Next() {
		if rec.Kind == recording.KindSnapshot {
			n++
		}
	}
	if want := int(last.Sub(first).Seconds()) + 1; n != want || cur.Meta.Reason != "alert X" {
		t.Errorf("%d snapshots of %d, kept for %q", n, want, cur.Meta.Reason)
	}
}

// A copy that cannot be written is no file.
func TestCopyToFullDisk(t *testing.T) {
	j := open(t, Options{})
	for s := range 4000 {
		j.put(t, s, s)
	}
	dir := t.TempDir()
	if err := unix.Mount("none", dir, "tmpfs", 0, "size=16k"); err != nil {
		t.Skipf("a file system of its own cannot be mounted: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	if _, err := j.Copy(filepath.Join(dir, "copy.ttrec"), sec(0), recording.Meta{Version: "test"}); !errors.Is(err, unix.ENOSPC) {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// However often it is started, there is a segment an hour, not one a start.
func TestManyStarts(t *testing.T) {
	dir := t.TempDir()
	for s := range 50 {
		j, err := Open(Options{Dir: dir, Keep: time.Hour, MaxBytes: 1 << 20})
		ok(t, err)
		j.put(t, s, s)
		ok(t, j.Append(event(s)))
		if s%2 == 0 { // the others are killed
			ok(t, j.Close())
		}
	}
	j := open(t, Options{Dir: dir})
	if n := len(j.files(t)); n != 1 || j.Last() != 50 {
		t.Errorf("%d events in %d files: %v", j.Last(), n, j.files(t))
	}
}

// What came after a moment is read in order, over segments, to the last that was
// written.
func TestSince(t *testing.T) {
	j := open(t, Options{})
	for s := 0; s < 8000; s += 5 {
		j.put(t, s, s)
	}
	for name, c := range map[string]struct{ after, first, count int }{
		"all but the first": {0, 5, 1599},
		"between two":       {7201, 7205, 159},
		"over a segment":    {3590, 3595, 881},
		"the last":          {7990, 7995, 1},
		"nothing":           {7995, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var got []int
			ok(t, j.Since(t.Context(), sec(c.after), func(s *model.Snapshot) { got = append(got, int(s.Time.Sub(t0).Seconds())) }))
			if len(got) != c.count || c.count > 0 && (got[0] != c.first || got[len(got)-1] != 7995 || !slices.IsSorted(got)) {
				t.Errorf("%d snapshots, from %v", len(got), got[:min(1, len(got))])
			}
		})
	}
}
