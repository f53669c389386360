package jobs

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/runs"
)

var day = time.Date(2026, 11, 15, 2, 0, 0, 0, time.UTC)

// runOf is a run of a Slurm job on device 0 that took an hour and 3600 J.
func runOf(id uint64, job string, uid, code int, dram uint64) runs.Run {
	end := day.Add(time.Hour)
	pools := map[string]runs.Pool{"dram": {Peak: dram, PeakBound: "at_least", PeakAt: day}}
	return runs.Run{
		ID: id, Who: runs.Who{UID: uid, User: "anna", Command: "train", Job: &runs.Job{Kind: runs.JobSlurm, ID: job, Name: "night", From: model.JobOfCgroup}},
		Start: day, Seen: day, Last: end, End: runs.Ending{Kind: runs.Exited, At: end, Code: &code}, Pools: pools,
		Processes: []runs.Process{{PID: int(id), StartTicks: 1, Name: "py"}},
		Devices:   []runs.Device{{Index: 0, BusID: "0000:01:00.0", Board: "n300", Open: 3600, Pools: pools, Power: &runs.Stat{Mean: 1, Seconds: 3600}, Energy: 3600}},
	}
}

// Runs of a job are one job: its time, devices, peaks, energy and ends are theirs.
func TestJobOfRuns(t *testing.T) {
	first, second := runOf(1, "4711", 1000, 0, 5), runOf(2, "4711", 1000, 1, 9)
	second.Start, second.Devices[0].Index = day.Add(-time.Minute), 1
	alone := runOf(3, "", 1000, 0, 1)
	alone.Job = nil
	list := Find(nil, []runs.Run{first, second, alone}, &runs.Query{})
	if len(list) != 1 {
		t.Fatalf("%+v", list)
	}
	j := list[0]
	if j.ID != "4711" || j.Name != "night" || j.User != "anna" || j.Running || j.Failed != 1 || len(j.Runs) != 2 || len(j.Processes) != 2 || j.From != model.JobOfCgroup {
		t.Errorf("%+v", j)
	}
	if !j.Start.Equal(second.Start) || !j.Last.Equal(day.Add(time.Hour)) {
		t.Errorf("from %v to %v", j.Start, j.Last)
	}
	if diff := cmp.Diff(&Energy{7200, "unsure"}, j.Energy); diff != "" {
		t.Error(diff)
	}
	want := []Device{
		{Index: 0, BusID: "0000:01:00.0", Board: "n300", Peaks: map[string]Peak{"dram": {5, "at_least", day}}},
		{Index: 1, BusID: "0000:01:00.0", Board: "n300", Peaks: map[string]Peak{"dram": {9, "at_least", day}}},
	}
	if diff := cmp.Diff(want, j.Devices); diff != "" {
		t.Error(diff)
	}
}

// What the processes of a job held together is more than each of its runs did.
func TestJobOfBookAndRuns(t *testing.T) {
	book := []Job{
		{
			Kind: Slurm, ID: "4711", UID: 1000, Start: day, Last: day.Add(time.Minute), Processes: []Process{{1, 1, "py"}},
			Devices: []Device{{Index: 0, Peaks: map[string]Peak{"dram": {14, "at_least", day}}}},
		},
		{Kind: Slurm, ID: "12", UID: 1001, Start: day.Add(-time.Hour), Last: day},
	}
	list := Find(book, []runs.Run{runOf(1, "4711", 1000, 0, 5), runOf(2, "4711", 1000, 0, 9)}, &runs.Query{})
	if len(list) != 2 || list[0].ID != "12" || list[1].Devices[0].Peaks["dram"].Bytes != 14 || len(list[1].Processes) != 2 || !list[1].Last.Equal(day.Add(time.Hour)) {
		t.Errorf("%+v", list)
	}
	if book[0].Devices[0].Peaks["dram"].Bytes != 14 || len(book[0].Processes) != 1 {
		t.Error("the book was changed")
	}
}

func TestJobsAsked(t *testing.T) {
	failed, leaked := runOf(1, "1", 1000, 1, 5), runOf(2, "2", 1001, 0, 5)
	leaked.Left = []runs.Left{{Bytes: map[string]uint64{"l1": 1}}}
	forged := runOf(3, "1", 1002, 0, 5)
	forged.Job.From = model.JobOfEnviron
	book := []Job{{Kind: Slurm, ID: "3", UID: 1003, Start: day, Last: day.Add(time.Hour)}}
	uid, no := 1001, false
	for _, tt := range []struct {
		name string
		q    runs.Query
		want []string
	}{
		{"all, without the one that its user only claims", runs.Query{}, []string{"1", "2", "3"}},
		{"failed", runs.Query{Failed: true}, []string{"1"}},
		{"leaked", runs.Query{Leaked: true}, []string{"2"}},
		{"of a user", runs.Query{UID: &uid}, []string{"2"}},
		{"ended", runs.Query{Running: &no}, []string{"1", "2", "3"}},
		{"by id", runs.Query{Names: []string{"3"}}, []string{"3"}},
		{"by name", runs.Query{Names: []string{"night"}}, []string{"1", "2"}},
		{"by device", runs.Query{Device: "0"}, []string{"1", "2"}},
		{"since", runs.Query{Since: day.Add(2 * time.Hour)}, nil},
		{"the last", runs.Query{Limit: 1}, []string{"3"}},
		{"that the user may see", runs.Query{Visible: func(uid int) bool { return uid == 1001 }}, []string{"2"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, j := range Find(book, []runs.Run{failed, leaked, forged}, &tt.q) {
				got = append(got, j.ID)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
