package keep

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/ttmon/ttmon/internal/book/runs"
	"github.com/ttmon/ttmon/internal/model"
)

// A process that opens a device again continues its run.
func TestReopened(t *testing.T) {
	b := open(t, t.TempDir())
	sc := &scene{}
	b.Observe(sc.at(0, program(7, 0, 10, 0)))
	for i := range 30 {
		b.Observe(sc.at(float64(1 + i)))
	}
	if r := only(t, b); r.End.Kind != runs.Gone {
		t.Errorf("%+v", r.End)
	}
	b.Observe(sc.at(31, program(7, 0, 50, 0)))
	if r := only(t, b); r.End.Kind != runs.Running || r.Pool(model.DRAM).Peak != 50 || r.Pool(model.DRAM).Seconds != 0 {
		t.Errorf("%+v", r)
	}
}

// A restart of the server, clean or not, loses no run and joins what belongs
// together.
func TestRestart(t *testing.T) {
	for _, clean := range []bool{true, false} {
		t.Run(fmt.Sprint("clean ", clean), func(t *testing.T) {
			dir := t.TempDir()
			sc := &scene{power: 100, to: 100}
			b := begin(t, dir)
			b.Observe(sc.at(0, program(7, 0, 10, 0), program(8, 1, 1, 0)))
			b.Observe(sc.at(1, program(7, 0, 10, 0), program(8, 1, 1, 0)))
			if clean {
				b.Close()
			} else {
				b.save(t0.Add(time.Second)) // the last checkpoint before a crash
			}
			b = open(t, dir)
			sc.to = 300
			b.Observe(sc.at(2, program(7, 0, 10, 0)))
			b.Observe(sc.at(3, program(7, 0, 10, 0)))
			list := all(t, b, runs.Query{})
			if len(list) != 2 {
				t.Fatalf("%+v", list)
			}
			if d := list[0].Devices[0]; list[0].ID != 1 || d.Energy != 300 || d.PCIe.ToDevice != 200 || list[0].Unseen != 0 {
				t.Errorf("%+v", list[0])
			}
			b.Observe(sc.at(60, program(9, 0, 10, 0)))
			b.Observe(sc.at(70, program(9, 0, 10, 0)))
			list = all(t, b, runs.Query{})
			if len(list) != 3 || list[0].End.Kind != runs.Unseen || list[1].End.Kind != runs.Gone || list[2].ID != 3 {
				t.Errorf("%+v", list)
			}
		})
	}
}

// A file that a crash has torn costs at most the line that was being written.
func TestTorn(t *testing.T) {
	dir := t.TempDir()
	s := OpenStore(dir, 0, 0)
	run := func(id uint64) runs.Run {
		return runs.Run{ID: id, Start: t0, Last: t0, End: runs.Ending{Kind: runs.Gone, At: t0}}
	}
	if err := s.Append([]runs.Run{run(1), run(2)}, t0); err != nil {
		t.Fatal(err)
	}
	s.Close()
	path := filepath.Join(dir, current)
	text, _ := os.ReadFile(path)
	if err := os.WriteFile(path, text[:len(text)-20], 0o600); err != nil {
		t.Fatal(err)
	}
	s = OpenStore(dir, 0, 0)
	if err := s.Append([]runs.Run{run(3)}, t0); err != nil {
		t.Fatal(err)
	}
	list, _, err := s.Find(runs.Query{})
	if err != nil || len(list) != 2 || list[0].ID != 1 || list[1].ID != 3 || s.Highest() != 3 {
		t.Errorf("%+v %v", list, err)
	}
}

// The store is bounded by size and age, and the numbers go on.
func TestBounds(t *testing.T) {
	dir := t.TempDir()
	s := OpenStore(dir, 24*time.Hour, 256<<10)
	id := uint64(0)
	for hour := range 60 {
		var list []runs.Run
		at := t0.Add(time.Duration(hour) * time.Hour)
		for range 100 {
			id++
			r := runs.Run{ID: id, Start: at, Last: at, End: runs.Ending{Kind: runs.Gone, At: at}}
			r.Command = strings.Repeat(fmt.Sprint("argument", id*7919), 40)
			list = append(list, r)
		}
		if err := s.Append(list, at); err != nil {
			t.Fatal(err)
		}
	}
	now := t0.Add(59 * time.Hour)
	list, _, err := s.Find(runs.Query{})
	if err != nil || len(list) < 1000 || len(list) > 4000 || list[len(list)-1].ID != id || s.Bytes() > maxFile+256<<10 {
		t.Fatalf("%d runs, %d bytes, %v", len(list), s.Bytes(), err)
	}
	if oldest := list[0].Start; now.Sub(oldest) > 40*time.Hour { // a file is removed when all in it is too old
		t.Errorf("the oldest is of %v", oldest)
	}
	found, more, err := s.Find(runs.Query{Since: now.Add(-90 * time.Minute), Limit: 150})
	if err != nil || len(found) != 150 || !more || found[149].ID != id {
		t.Errorf("%d runs, more %v, %v", len(found), more, err)
	}
	if OpenStore(dir, 0, 0).Highest() != id {
		t.Error("numbers begin again after a restart")
	}
}

func TestQuery(t *testing.T) {
	b := open(t, t.TempDir())
	sc := &scene{}
	slurm := program(7, 0, 1, 1)
	slurm.SlurmJob, slurm.SlurmFrom = "4711", model.JobOfCgroup
	other := program(8, 1, 1, 1)
	other.UID, other.Cmdline = model.Value(1001), model.Value("serve.py --port 80")
	b.Observe(sc.at(0, slurm, other))
	b.Observe(sc.at(1, slurm))
	uid, running := 1001, true
	for name, x := range map[string]struct {
		q    runs.Query
		want []uint64
	}{
		"all":             {runs.Query{}, []uint64{1, 2}},
		"number":          {runs.Query{Names: []string{"r2"}}, []uint64{2}},
		"bare number":     {runs.Query{Names: []string{"2"}}, []uint64{2}},
		"pid":             {runs.Query{Names: []string{"8"}}, []uint64{2}},
		"job by name":     {runs.Query{Names: []string{"4711"}}, []uint64{1}},
		"job":             {runs.Query{Job: "4711"}, []uint64{1}},
		"user":            {runs.Query{UID: &uid}, []uint64{2}},
		"command":         {runs.Query{Command: "python3 train.py"}, []uint64{1}},
		"text":            {runs.Query{Text: "SERVE"}, []uint64{2}},
		"device":          {runs.Query{Device: "1"}, []uint64{2}},
		"bus id":          {runs.Query{Device: "0000:01:00.0"}, []uint64{1}},
		"running":         {runs.Query{Running: &running}, []uint64{1}},
		"limit":           {runs.Query{Limit: 1}, []uint64{2}},
		"nothing":         {runs.Query{Names: []string{"r99"}}, nil},
		"not to be seen":  {runs.Query{Visible: func(uid int) bool { return uid == 1000 }}, []uint64{1}},
		"since the end":   {runs.Query{Since: t0.Add(500 * time.Millisecond)}, []uint64{1, 2}},
		"since later":     {runs.Query{Since: t0.Add(time.Minute)}, []uint64{1}},
		"until before":    {runs.Query{Until: t0.Add(-time.Hour)}, nil},
		"until in middle": {runs.Query{Until: t0}, []uint64{1, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []uint64
			for _, r := range all(t, b, x.q) {
				got = append(got, r.ID)
			}
			if diff := cmp.Diff(x.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// One user cannot make the account of another impossible.
func TestCrowd(t *testing.T) {
	b := open(t, t.TempDir())
	sc := &scene{}
	var crowd []model.Process
	for i := range 2 * maxLivePerUID {
		crowd = append(crowd, program(100+i, 0, 1, 1))
	}
	honest := program(50_000, 0, 1, 1)
	honest.UID = model.Value(1001)
	b.Observe(sc.at(0, append(crowd, honest)...))
	uid := 1001
	if n := len(all(t, b, runs.Query{})); n != maxLivePerUID+1 || len(all(t, b, runs.Query{UID: &uid})) != 1 {
		t.Errorf("%d runs", n)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"id":1,"uid":0,"start":"2026-11-15T12:00:00Z","end":{"kind":"gone"}}`))
	f.Add([]byte(`{"id":1,`))
	f.Fuzz(func(t *testing.T, line []byte) {
		if r, ok := parse(line); ok {
			c := r.Clone()
			c.Took()
			c.Energy()
			q := runs.Query{Text: "x", Device: "0", Job: "7"}
			q.Matches(&c)
		}
	})
}
