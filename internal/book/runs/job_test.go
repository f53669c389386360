package runs

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ttmon/ttmon/internal/model"
)

var day = time.Date(2026, 11, 15, 2, 0, 0, 0, time.UTC)

// runOf is a run of a Slurm job on device 0 that took an hour and 3600 J.
func runOf(id uint64, job string, uid, code int, dram uint64) Run {
	end := day.Add(time.Hour)
	pools := map[string]Pool{"dram": {Peak: dram, PeakBound: "at_least", PeakAt: day}}
	return Run{
		ID: id, Who: Who{UID: uid, User: "anna", Command: "train", Job: &Job{Kind: JobSlurm, ID: job, Name: "night", From: model.JobOfCgroup}},
		Start: day, Seen: day, Last: end, End: Ending{Kind: Exited, At: end, Code: &code}, Pools: pools,
		Processes: []Process{{PID: int(id), StartTicks: 1, Name: "py"}},
		Devices:   []Device{{Index: 0, BusID: "0000:01:00.0", Board: "n300", Open: 3600, Pools: pools, Power: &Stat{Mean: 1, Seconds: 3600}, Energy: 3600}},
	}
}

// Runs of a job are one job: its time, devices, peaks, energy and ends are theirs.
func TestJobOfRuns(t *testing.T) {
	first, second := runOf(1, "4711", 1000, 0, 5), runOf(2, "4711", 1000, 1, 9)
	second.Start, second.Devices[0].Index = day.Add(-time.Minute), 1
	alone := runOf(3, "", 1000, 0, 1)
	alone.Job = nil
	list := ByJob([]Run{first, second, alone}, &Query{}, nil)
	if len(list) != 1 {
		t.Fatalf("%+v", list)
	}
	j := list[0]
	if j.ID != "4711" || j.Name != "night" || j.User != "anna" || j.Running || j.Failed != 1 || len(j.Runs) != 2 || j.From != model.JobOfCgroup {
		t.Errorf("%+v", j)
	}
	if !j.Start.Equal(second.Start) || !j.Last.Equal(day.Add(time.Hour)) {
		t.Errorf("from %v to %v", j.Start, j.Last)
	}
	if j.Energy == nil || *j.Energy != 7200 {
		t.Errorf("energy %v", j.Energy)
	}
	want := []JobDevice{
		{Index: 0, BusID: "0000:01:00.0", Board: "n300", Peaks: map[string]Peak{"dram": {5, "at_least", day}}},
		{Index: 1, BusID: "0000:01:00.0", Board: "n300", Peaks: map[string]Peak{"dram": {9, "at_least", day}}},
	}
	if diff := cmp.Diff(want, j.Devices); diff != "" {
		t.Error(diff)
	}
}

// What the runs of a job held together is more than each of them did.
func TestJobHeldTogether(t *testing.T) {
	first, second := runOf(1, "4711", 1000, 0, 5), runOf(2, "4711", 1000, 0, 9)
	second.Devices[0].Together = map[string]Peak{"dram": {14, "at_least", day}}
	if list := ByJob([]Run{first, second}, &Query{}, nil); len(list) != 1 || list[0].Devices[0].Peaks["dram"].Bytes != 14 {
		t.Errorf("%+v", list)
	}
}

func TestJobsAsked(t *testing.T) {
	failed, leaked, last := runOf(1, "1", 1000, 1, 5), runOf(2, "2", 1001, 0, 5), runOf(4, "3", 1003, 0, 5)
	leaked.Left = []Left{{Bytes: map[string]uint64{"l1": 1}}}
	last.Job.Name, last.Devices[0].Index, last.Devices[0].BusID = "", 1, "0000:02:00.0"
	forged := runOf(3, "1", 1002, 0, 5)
	forged.Job.From = model.JobOfEnviron
	uid, no := 1001, false
	for _, tt := range []struct {
		name string
		q    Query
		want []string
	}{
		{"all, without the one that its user only claims", Query{}, []string{"1", "2", "3"}},
		{"failed", Query{Failed: true}, []string{"1"}},
		{"leaked", Query{Leaked: true}, []string{"2"}},
		{"of a user", Query{UID: &uid}, []string{"2"}},
		{"ended", Query{Running: &no}, []string{"1", "2", "3"}},
		{"by id", Query{Names: []string{"3"}}, []string{"3"}},
		{"by name", Query{Names: []string{"night"}}, []string{"1", "2"}},
		{"by device", Query{Device: "0"}, []string{"1", "2"}},
		{"since", Query{Since: day.Add(2 * time.Hour)}, nil},
		{"the last", Query{Limit: 1}, []string{"3"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			tt.q.Jobs = true
			for _, j := range ByJob([]Run{failed, leaked, forged, last}, &tt.q, nil) {
				got = append(got, j.ID)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What a job left comes from the snapshot: its live processes, and the records of
// those that died; not those of other jobs. Chips behind no device of this host are
// none of its devices.
func TestJobNow(t *testing.T) {
	run := runOf(1, "7", 1000, 0, 5)
	run.Processes = []Process{{PID: 1, Name: "py"}, {PID: 2, Name: "py"}}
	held := []model.DeviceUse{{Device: 3}, {Device: model.NoDevice}}
	s := &model.Snapshot{
		Processes: []model.Process{
			{PID: 2, State: model.Running, UID: model.Value(1000), SlurmJob: "7", Name: model.Value("py"), Devices: held},
			{PID: 3, State: model.Running, UID: model.Value(666), SlurmJob: "7", Name: model.Value("liar"), Devices: held},
		},
		StaleSlots: []model.StaleSlot{
			{PID: 1, Name: "py", Region: "/dev/shm/a", Device: model.NoDevice},
			{PID: 1, Name: "other", Region: "/dev/shm/b"},
			{PID: 1, Name: "py", Region: "/dev/shm/old", Updated: day.Add(-time.Hour)},
			{PID: 2, Name: "py", Region: "/dev/shm/c"},
			{PID: 9, Name: "py", Region: "/dev/shm/d"},
		},
	}
	g := ByJob([]Run{run}, &Query{}, s)[0]
	if diff := cmp.Diff([]Holder{{PID: 2, Name: "py", Devices: []int{3}}}, g.Holding); diff != "" {
		t.Error(diff)
	}
	if len(g.Left) != 1 || g.Left[0].Region != "/dev/shm/a" || g.Left[0].Device != model.NoDevice {
		t.Errorf("%+v", g.Left)
	}
}
