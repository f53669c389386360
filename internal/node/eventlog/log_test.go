package eventlog

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ttmon/ttmon/internal/model"
)

var testSizes = Sizes{File: 8 << 20, Recent: 2000}

var t0 = time.Unix(1_800_000_000, 0).UTC()

func event(i int) model.Event {
	return model.Event{Time: t0.Add(time.Duration(i) * time.Second), Kind: "state", Level: model.Critical, Devices: []string{"0000:01:00.0"}, Text: fmt.Sprint("number ", i)}
}

func open(t *testing.T, dir string) *Log {
	t.Helper()
	l, err := Open(dir, testSizes)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

func seqs(list []model.Event) (out []uint64) {
	for _, e := range list {
		out = append(out, e.Seq)
	}
	return out
}

// What was shown is there after a crash, and a torn line costs only itself.
func TestSurvives(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	more := l.More()
	if err := l.Append(event(1), event(2)); err != nil {
		t.Fatal(err)
	}
	<-more
	f, err := os.OpenFile(filepath.Join(dir, current), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.WriteString(`{"seq":3,"kind":"sta`) // killed in the middle of a write
	f.Close()
	l = open(t, dir) // the first was not closed
	if err := l.Append(event(3)); err != nil {
		t.Fatal(err)
	}
	l = open(t, dir)
	want := []model.Event{event(1), event(2), event(3)}
	for i := range want {
		want[i].Seq = uint64(i + 1)
	}
	if diff := cmp.Diff(want, l.Find(Query{})); diff != "" {
		t.Error(diff)
	}
}

func TestFind(t *testing.T) {
	l := open(t, t.TempDir())
	for i := range 10 {
		e := event(i + 1)
		if i == 4 {
			e.Kind, e.Devices = model.EventAlert, nil
		}
		if i != 4 {
			e.Level = model.Warning
		}
		if i == 6 {
			e.Devices = []string{"0000:02:00.0"}
		}
		if err := l.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name string
		q    Query
		want []uint64
	}{
		{"after", Query{After: 8}, []uint64{9, 10}},
		{"since", Query{Since: t0.Add(9 * time.Second)}, []uint64{9, 10}},
		{"until", Query{Until: t0.Add(2 * time.Second)}, []uint64{1, 2}},
		{"level", Query{Level: model.Critical}, []uint64{5}},
		{"kind", Query{Kinds: []model.EventKind{model.EventAlert}}, []uint64{5}},
		{"device, and the host", Query{Device: "0000:02:00.0"}, []uint64{5, 7}},
		{"limit", Query{Limit: 2}, []uint64{9, 10}},
		{"none", Query{After: 99}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, seqs(l.Find(c.q))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The log is bounded, and what memory has forgotten is read from the files.
func TestRotates(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	l.maxFile = 64 << 10
	for i := range 3000 {
		e := event(i)
		if err := l.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	total := int64(0)
	for _, name := range []string{current, previous} {
		st, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		total += st.Size()
	}
	if total > 2*l.maxFile {
		t.Errorf("the files have %d bytes", total)
	}
	all := l.Find(Query{})
	for i := 1; i < len(all); i++ {
		if all[i].Seq != all[i-1].Seq+1 {
			t.Fatalf("event %d follows %d", all[i].Seq, all[i-1].Seq)
		}
	}
	if all[len(all)-1].Seq != 3000 {
		t.Errorf("the last is %d", all[len(all)-1].Seq)
	}
}

// A disk that takes nothing: events are shown all the same, and say so.
func TestUnwritable(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := Open(filepath.Join(dir, "log"), testSizes)
	if err == nil {
		t.Fatal("a log below a file")
	}
	if l.Append(event(1)) == nil {
		t.Error("nothing is said of the disk")
	}
	if got := l.Find(Query{}); len(got) != 1 || !got[0].Volatile {
		t.Errorf("found %+v", got)
	}
	os.Remove(dir)
	if err := l.Append(event(2)); err != nil {
		t.Errorf("the disk is back: %v", err)
	}
}

// Whatever is in the files, they are read without harm.
func FuzzScan(f *testing.F) {
	f.Add([]byte(`{"seq":1,"kind":"state","text":"x"}` + "\n"))
	f.Add([]byte("\n\n{}\nnull\n[1]\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, current), b, 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := Open(dir, testSizes)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if err := l.Append(event(1)); err != nil {
			t.Fatal(err)
		}
		if got := l.Find(Query{After: l.Last() - 1}); len(got) == 0 {
			t.Error("the new event is not found")
		}
	})
}

// A file that becomes the previous one while it is asked for is still read, once.
func TestRotatesMeanwhile(t *testing.T) {
	l, err := Open(t.TempDir(), testSizes)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	list := make([]model.Event, 2*testSizes.Recent)
	for i := range list {
		list[i] = model.Event{Time: time.Now(), Kind: "x", Level: model.Info, Text: "it happened"}
	}
	if err := l.Append(list...); err != nil {
		t.Fatal(err)
	}
	found := l.FindWith(Query{}, func(before uint64, add func(*model.Event)) {
		files := l.opened()
		l.mu.Lock()
		defer l.mu.Unlock()
		if err := l.rotate(); err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			_ = scan(file, func(e *model.Event) bool { add(e); return e.Seq < before })
		}
	})
	for i := range found {
		if found[i].Seq != uint64(i)+1 {
			t.Fatalf("event %d is %d", i+1, found[i].Seq)
		}
	}
	if len(found) != len(list) {
		t.Errorf("%d events of %d", len(found), len(list))
	}
}
