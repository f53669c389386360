package api

import (
	"fmt"
	"testing"

	"github.com/ttmon/ttmon/internal/jobs"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/runs"
)

// What a job left comes from the snapshot: its live processes, and the records of
// those that died; not those of other jobs.
func TestJobNow(t *testing.T) {
	j := jobs.Job{Kind: jobs.Slurm, ID: "7", UID: 1000, Processes: []jobs.Process{{PID: 1, Name: "py"}, {PID: 2, Name: "py"}}}
	s := &model.Snapshot{
		Processes: []model.Process{
			{PID: 2, State: model.Running, UID: model.Value(1000), SlurmJob: "7", Name: model.Value("py"), Devices: []model.DeviceUse{{Device: 3}}},
			{PID: 3, State: model.Running, UID: model.Value(666), SlurmJob: "7", Name: model.Value("liar"), Devices: []model.DeviceUse{{Device: 3}}},
		},
		StaleSlots: []model.StaleSlot{
			{PID: 1, Name: "py", Region: "/dev/shm/a", Device: model.NoDevice},
			{PID: 1, Name: "other", Region: "/dev/shm/b"},
			{PID: 2, Name: "py", Region: "/dev/shm/c"},
			{PID: 9, Name: "py", Region: "/dev/shm/d"},
		},
	}
	a := j.Now(s)
	if len(a.Holding) != 1 || a.Holding[0].PID != 2 || len(a.Left) != 1 || a.Left[0].Region != "/dev/shm/a" || a.Left[0].Device != nil {
		t.Errorf("%+v", a)
	}
}

// Where /proc hides processes, users see their own jobs only.
func TestJobsHidden(t *testing.T) {
	v := viewpoint{level: 2, uid: 1000}
	for uid, hidden := range map[int]bool{1000: false, 1001: true, -1: true} {
		t.Run(fmt.Sprint(uid), func(t *testing.T) {
			if v.hides(model.Value(uid)) != hidden {
				t.Errorf("the job of %d: hidden is not %v", uid, hidden)
			}
		})
	}
}

// Where /proc hides processes, a run does not tell who shared its devices.
func TestRunsHidden(t *testing.T) {
	list := []runs.Run{{Neighbours: []runs.Neighbour{{UID: 1000, User: "anna"}, {UID: 1001, User: "ben", Name: "secret"}}}}
	present(list, func(uid int) bool { return uid != 1000 })
	if n := list[0].Neighbours; n[0].User != "anna" || n[1].User != "" || n[1].Name != "" || n[1].UID != -1 {
		t.Errorf("%+v", n)
	}
}
