package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/book/runs"
	"github.com/ttmon/ttmon/internal/field/wire"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/past/recording"
	"github.com/ttmon/ttmon/internal/past/runs/keep"
)

// Users have allocators with as many blocks as they can: they are no longer
// followed when they have used up their share, and root's program is watched
// from its first allocation.
func TestHostileBlocks(t *testing.T) {
	hermetic.Long(t)
	a := newArena(t)
	a.begin()
	if st := a.watchState(); st["state"] != "on" {
		t.Skipf("the kernel does not let us watch: %v", st["reason"])
	}
	attackers := []*exec.Cmd{a.play(60000, "blocks"), a.play(60001, "blocks")}
	a.watchProgram(true)
	a.await("attackers to use up their share", func() bool { return a.budget("watched_blocks").refused > 0 })
	a.takeOver()
	a.watchProgram(true)
	a.settle()
	if a.figures.mebibytes > 400 {
		t.Errorf("ttmond took %d MiB", a.figures.mebibytes)
	}
	for _, cmd := range attackers {
		a.end(cmd)
	}
	a.watchProgram(true)
}

// Users say that they belong to a job of root's: it stays root's, with the
// processes that Slurm put into it.
func TestHostileJobs(t *testing.T) {
	a := newArena(t)
	a.begin()
	group := a.slurmGroup()
	if err := os.WriteFile(filepath.Join(group, "cgroup.procs"), fmt.Append(nil, a.root.Process.Pid), 0o600); err != nil {
		t.Fatal(err)
	}
	for uid := range 2 {
		a.play(60000+uid, "jobs")
	}
	book := keep.New(keep.Options{Dir: t.TempDir(), Report: func(err error) { t.Error(err) }})
	book.Restore()
	defer book.Close()
	a.await("root's job and those who claim to belong to it", func() bool {
		s := a.snapshot()
		book.Observe(s)
		forged, real := 0, false
		for i := range s.Processes {
			p := &s.Processes[i]
			forged += map[bool]int{true: 1}[p.SlurmJob == forgedJob && p.SlurmFrom == model.JobOfEnviron]
			real = real || p.PID == a.root.Process.Pid && p.SlurmJob == forgedJob && p.SlurmFrom == model.JobOfCgroup
		}
		return forged > 0 && real
	})
	s := a.snapshot()
	book.Observe(s)
	q := runs.Query{Jobs: true, Names: []string{forgedJob}}
	found, _, err := book.Find(q)
	if err != nil {
		t.Fatal(err)
	}
	list := runs.ByJob(found, &q, s)
	if len(list) != 1 || list[0].UID != 0 {
		t.Fatalf("job %s is %+v", forgedJob, list)
	}
	for _, h := range list[0].Holding {
		if h.PID != a.root.Process.Pid {
			t.Errorf("process %d counts for root's job", h.PID)
		}
	}
	a.settle()
}

// slurmGroup makes a control group as Slurm does for a job of root's.
func (a *arena) slurmGroup() string {
	a.t.Helper()
	for _, base := range []string{"/sys/fs/cgroup/memory", "/sys/fs/cgroup"} {
		top := filepath.Join(base, "slurm")
		dir := filepath.Join(top, "uid_0", "job_"+forgedJob, "step_0")
		if os.MkdirAll(dir, 0o755) != nil {
			continue
		}
		a.t.Cleanup(func() {
			a.end(a.root)
			for d := dir; len(d) >= len(top); d = filepath.Dir(d) {
				for range 100 { // until the last process is gone
					if os.Remove(d) == nil {
						break
					}
					time.Sleep(20 * time.Millisecond)
				}
			}
		})
		return dir
	}
	a.t.Skip("no control group can be made here")
	return ""
}

func (a *arena) snapshot() *model.Snapshot {
	a.t.Helper()
	_, body := a.get("/v1/snapshot")
	s, err := wire.Decode([]byte(body))
	if err != nil {
		a.t.Fatalf("%v: %.200s", err, body)
	}
	return s
}

// A user puts fifos, devices and sockets in the place of a recording while root
// opens it: it is refused, and never waited for.
func TestHostileRecordings(t *testing.T) {
	a := newArena(t)
	a.begin()
	a.play(60000, "fifos")
	path := filepath.Join(filepath.Dir(a.alloc), "recording-60000")
	done := make(chan []error)
	go func() {
		var all []error
		for range 2000 {
			r, err := recording.Open(path)
			if err == nil {
				r.Close()
			}
			all = append(all, err)
		}
		done <- all
	}()
	select {
	case all := <-done:
		if slices.Contains(all, nil) {
			t.Error("a file was read as a recording")
		}
	case <-time.After(limit):
		t.Fatal("root waits for what is in the place of a recording")
	}
	a.settle()
}
