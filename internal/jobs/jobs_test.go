package jobs

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/hermetic"
	"github.com/ttmon/ttmon/internal/model"
)

var t0 = time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)

// at is a snapshot so many seconds later.
func at(second int, list ...model.Process) *model.Snapshot {
	return &model.Snapshot{Time: t0.Add(time.Duration(second) * time.Second), Processes: list, Devices: []model.Device{{Index: 0, BusID: "0000:01:00.0", Board: model.Value("n150")}}}
}

func process(pid, uid int, job, step string, dram uint64) model.Process {
	p := model.Process{
		PID: pid, StartTicks: 1, State: model.Running, UID: model.Value(uid), User: model.Value("u" + strconv.Itoa(uid)), Name: model.Value("py"),
		SlurmJob: job, SlurmStep: step, SlurmFrom: model.JobOfCgroup,
		Devices: []model.DeviceUse{{Device: 0}},
	}
	p.Devices[0].Memory[model.DRAM] = model.ExactBytes(dram)
	return p
}

// Peaks are of all processes of a job together, and at least what they say.
func TestPeak(t *testing.T) {
	b := New()
	b.Observe(at(0, process(1, 1000, "7", "0", 10)))
	b.Observe(at(1, process(1, 1000, "7", "0", 10), process(2, 1000, "7", "1", 30), process(3, 1001, "8", "", 5)))
	b.Observe(at(2, process(2, 1000, "7", "1", 35), process(4, 0, "", "", 99)))
	b.Observe(at(3))
	list := b.Find(Query{})
	if len(list) != 2 {
		t.Fatalf("%+v", list)
	}
	j := list[0]
	if j.ID != "7" || j.User != "u1000" || j.Running || !j.Start.Equal(t0) || !j.Last.Equal(t0.Add(2*time.Second)) || len(j.Steps) != 2 || len(j.Processes) != 2 {
		t.Errorf("%+v", j)
	}
	if p := j.Devices[0].Peaks["dram"]; p.Bytes != 40 || p.Bound != "at_least" || !p.At.Equal(t0.Add(time.Second)) || j.Devices[0].Board != "n150" {
		t.Errorf("%+v", j.Devices)
	}
	if _, known := j.Devices[0].Peaks["l1"]; known {
		t.Error("a peak of what no source accounted for")
	}
}

// A process on chips that are behind no device of this host holds none of them.
func TestHoldersElsewhere(t *testing.T) {
	p := process(1, 1000, "7", "0", 10)
	p.Devices = append(p.Devices, model.DeviceUse{Device: model.NoDevice})
	s := at(0, p)
	b := New()
	b.Observe(s)
	if a := b.Find(Query{})[0].Now(s); len(a.Holding) != 1 || len(a.Holding[0].Devices) != 1 || a.Holding[0].Devices[0] != 0 {
		t.Errorf("%+v", a.Holding)
	}
}

// A job between two steps is one job.
func TestRevive(t *testing.T) {
	b := New()
	b.Observe(at(0, process(1, 1000, "7", "0", 10)))
	b.Observe(at(1))
	b.Observe(at(2, process(2, 1000, "7", "1", 5)))
	list := b.Find(Query{IDs: []string{"7"}})
	if len(list) != 1 || !list[0].Running || list[0].Devices[0].Peaks["dram"].Bytes != 10 {
		t.Errorf("%+v", list)
	}
}

// A process that claims to be in another user's job gets a record of its own, and not many.
func TestLiars(t *testing.T) {
	hermetic.Long(t)
	b := New()
	crowd := []model.Process{process(1, 1000, "7", "", 10)}
	for i := range 2 * maxLivePerUID {
		crowd = append(crowd, process(100+i, 666, strconv.Itoa(7+i), "", 1<<40))
	}
	b.Observe(at(0, crowd...))
	honest := 1000
	if list := b.Find(Query{UID: &honest}); len(list) != 1 || list[0].Devices[0].Peaks["dram"].Bytes != 10 {
		t.Errorf("%+v", list)
	}
	if n := len(b.Find(Query{})); n != maxLivePerUID+1 {
		t.Errorf("%d jobs", n)
	}
	for i := range 2 * maxEndedOfUID {
		b.Observe(at(1+i, process(100+i, 666, strconv.Itoa(10000+i), "", 1)))
	}
	if list := b.Find(Query{UID: &honest}); len(list) != 1 {
		t.Error("the many jobs of one user pushed out another's")
	}
}

// What a process's environment says does not count where control groups say
// that the job is another user's.
func TestForgedJob(t *testing.T) {
	b := New()
	forged := process(2, 666, "7", "", 1<<40)
	forged.SlurmFrom = model.JobOfEnviron
	alone := process(3, 666, "8", "", 5)
	alone.SlurmFrom = model.JobOfEnviron
	s := at(0, process(1, 1000, "7", "", 10), forged, alone)
	b.Observe(s)
	for range 2 { // while it runs, and when it has ended
		list := b.Find(Query{IDs: []string{"7"}})
		if len(list) != 1 || list[0].UID != 1000 {
			t.Fatalf("%+v", list)
		}
		if a := list[0].Now(s); len(a.Holding) != 1 || a.Holding[0].PID != 1 {
			t.Errorf("%+v", a.Holding)
		}
		b.Observe(at(1, forged, alone))
	}
	if list := b.Find(Query{IDs: []string{"8"}}); len(list) != 1 || list[0].From != model.JobOfEnviron {
		t.Errorf("a job that no other process is in: %+v", list)
	}
}

// The book survives a restart, and one that cannot be read is set aside.
func TestFile(t *testing.T) {
	dir := t.TempDir()
	fail := func(err error) { t.Error(err) }
	b := Open(dir, fail)
	b.Observe(at(0, process(1, 1000, "7", "0", 10)))
	b.Close()
	b = Open(dir, fail)
	b.Observe(at(9, process(1, 1000, "7", "0", 4)))
	if list := b.Find(Query{}); len(list) != 1 || !list[0].Running || !list[0].Start.Equal(t0) || list[0].Devices[0].Peaks["dram"].Bytes != 10 {
		t.Errorf("%+v", list)
	}
	path := filepath.Join(dir, "jobs.json")
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	said := 0
	if b = Open(dir, func(error) { said++ }); len(b.Find(Query{})) != 0 || said != 1 {
		t.Errorf("%d reports of a broken file", said)
	}
}
