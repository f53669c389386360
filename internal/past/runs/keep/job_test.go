package keep

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ttmon/ttmon/internal/book/runs"
	"github.com/ttmon/ttmon/internal/model"
)

// Runs of a job that have a device open at the same time hold it together; another
// user who claims the job does not count.
func TestJobTogether(t *testing.T) {
	b := open(t, t.TempDir())
	sc := &scene{}
	member := func(pid, uid int, dram uint64) model.Process {
		p := program(pid, 0, dram, 0)
		p.UID, p.SlurmJob, p.SlurmFrom = model.Value(uid), "7", model.JobOfCgroup
		return p
	}
	b.Observe(sc.at(0, member(1, 1000, 10)))
	b.Observe(sc.at(1, member(1, 1000, 10), member(2, 1000, 30), member(3, 666, 500)))
	b.Observe(sc.at(2, member(2, 1000, 35), member(3, 666, 500)))
	b.Observe(sc.at(3))
	list := runs.ByJob(all(t, b, runs.Query{Jobs: true}), &runs.Query{}, nil)
	got := map[int]runs.Peak{}
	for _, g := range list {
		got[g.UID] = g.Devices[0].Peaks["dram"]
	}
	want := map[int]runs.Peak{1000: {Bytes: 40, Bound: "at_least", At: t0.Add(time.Second)}, 666: {Bytes: 500, Bound: "at_least", At: t0.Add(time.Second)}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, known := list[0].Devices[0].Peaks["l1"]; known {
		t.Error("a peak of what no source accounted for")
	}
}

// A job is found as a whole where one of its runs is asked for, also by a number that
// another run has, and in files of before.
func TestWholeJobs(t *testing.T) {
	s := OpenStore(t.TempDir(), 0, 0)
	defer s.Close()
	packRuns(t, s, []runs.Run{packedRun(1, 11, "5"), packedRun(2, 12, "")}, []runs.Run{packedRun(3, 13, "6")})
	if err := s.Append([]runs.Run{packedRun(4, 14, ""), packedRun(5, 15, "5")}, t0); err != nil {
		t.Fatal(err)
	}
	hide := func(r *runs.Run) {
		if r.Job != nil {
			job := *r.Job
			job.Name, r.Job = "", &job
		}
	}
	for name, c := range map[string]struct {
		q    runs.Query
		want []uint64
	}{
		"all":                              {runs.Query{}, []uint64{1, 3, 5}},
		"with a run of late":               {runs.Query{Since: t0.Add(5 * time.Minute)}, []uint64{1, 5}},
		"by id":                            {runs.Query{Names: []string{"5"}}, []uint64{1, 5}},
		"by name":                          {runs.Query{Names: []string{"job-6"}}, []uint64{3}},
		"by a name that is not to be seen": {runs.Query{Names: []string{"job-6"}, Show: hide}, nil},
		"of a process, which is no job":    {runs.Query{Names: []string{"14"}}, nil},
		"the newest":                       {runs.Query{Limit: 1}, []uint64{1, 5}},
	} {
		t.Run(name, func(t *testing.T) {
			c.q.Jobs = true
			list, _, err := s.Find(c.q)
			if err != nil {
				t.Fatal(err)
			}
			var got []uint64
			for i := range list {
				got = append(got, list[i].ID)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A user does not find out the name of another's job by asking for it.
func TestNameNotShown(t *testing.T) {
	s := OpenStore(t.TempDir(), 0, 0)
	defer s.Close()
	if err := s.Append([]runs.Run{packedRun(1, 11, "5")}, t0); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"job-5", "5"} {
		list, _, err := s.Find(runs.Query{Names: []string{name}, Show: func(r *runs.Run) { r.Job = &runs.Job{ID: r.Job.ID} }})
		if err != nil || len(list) != map[string]int{"5": 1}[name] {
			t.Errorf("%s: %d runs, error %v", name, len(list), err)
		}
	}
}
