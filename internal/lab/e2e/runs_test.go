package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/book/runs"
	"github.com/ttmon/ttmon/internal/lab/sim"
)

// restartable is a ttmon-server that a test stops and starts.
type restartable struct {
	d   *daemon
	cmd *exec.Cmd // nil: it is stopped
	log bytes.Buffer
	// listen is where it serves the page and metrics.
	listen string
}

func (d *daemon) restartableServer() *restartable { return d.serverAt("off") }

func (d *daemon) serverAt(listen string) *restartable {
	r := &restartable{d: d, listen: listen}
	r.start()
	d.t.Cleanup(func() { r.stop(syscall.SIGTERM) })
	return r
}

func (r *restartable) start() {
	dir := filepath.Dir(r.d.api)
	r.cmd = r.d.host.Command(context.Background(), filepath.Join(bin, "ttmon-server"),
		"--daemon", r.d.api, "--socket", filepath.Join(dir, "server.sock"), "--state-dir", filepath.Join(dir, "state"), "--listen", r.listen)
	r.cmd.Stderr = &r.log
	if err := r.cmd.Start(); err != nil {
		r.d.t.Fatal(err)
	}
}

func (r *restartable) stop(sig syscall.Signal) {
	if r.cmd == nil {
		return
	}
	_ = r.cmd.Process.Signal(sig)
	if err := r.cmd.Wait(); err != nil && sig == syscall.SIGTERM && !endedBySIGTERM(r.cmd) {
		r.d.t.Errorf("ttmon-server: %v\n%s", err, r.log.String())
	}
	r.cmd = nil
}

// awaitRun asks for a run until something holds of it.
func (d *daemon) awaitRun(name, what string, holds func(*runs.Run) bool) runs.Run {
	d.t.Helper()
	var got result
	for limit := time.Now().Add(5 * time.Minute); time.Now().Before(limit); time.Sleep(100 * time.Millisecond) {
		got = runIn(d.t, d.host, "runs", "--json", "--match", name, "--daemon", d.api)
		var a runs.Answer
		if got.code != 0 || json.Unmarshal([]byte(got.out), &a) != nil {
			continue
		}
		if len(a.Runs) == 1 && holds(&a.Runs[0]) {
			return a.Runs[0]
		}
	}
	d.t.Fatalf("it never came to this: %s\n%+v", what, got)
	return runs.Run{}
}

// TestRuns: what ttmon says of a run is what the simulator knows, also when
// ttmon-server is restarted meanwhile, and when the program is killed.
func TestRuns(t *testing.T) {
	t.Parallel()
	if !alone(t) {
		return
	}
	h := start(t, sim.Options{Boards: "n300,p150a"})
	ctl(t, h, "set", "1", "power1_input", "80000000")
	ctl(t, h, "set", "1", "temp1_input", "61000")
	d := startDaemon(t, h)
	server := d.restartableServer()
	pid := strings.TrimSpace(ctl(t, h, "run", "name=train,devices=1,kind=metal,dram=2G,l1=8M,user=1000"))
	d.awaitRun("train", "it is seen for a while", func(r *runs.Run) bool { return r.Observed > 2 })
	server.stop(syscall.SIGTERM)
	server.start()
	seen := d.awaitRun("train", "it is seen after a restart of the server", func(r *runs.Run) bool { return r.Observed > 5 })
	if seen.ID != 1 {
		t.Errorf("the run got another number: %d", seen.ID)
	}
	server.stop(syscall.SIGKILL)
	server.start()
	d.awaitRun("train", "it is seen after the server was killed", func(r *runs.Run) bool { return r.Observed > seen.Observed+2 })
	ctl(t, h, "run", "name=other,devices=0+1,kind=metal,dram=1G")
	d.awaitRun("other", "the neighbour is seen", func(r *runs.Run) bool { return len(r.Neighbours) == 1 && r.Neighbours[0].Seconds > 1 })
	n, err := strconv.Atoi(pid)
	if err != nil {
		t.Fatal(err)
	}
	if out := runProgram(t, h, "/bin/kill", "-KILL", strconv.Itoa(n)); out.code != 0 {
		t.Fatalf("%+v", out)
	}
	r := d.awaitRun("train", "it has ended and left its memory", func(r *runs.Run) bool { return r.End.Kind != runs.Running && len(r.Left) > 0 })
	dev := r.Devices[0]
	if len(r.Devices) != 1 || dev.Power == nil || dev.Temperature == nil || dev.PCIe == nil {
		t.Fatalf("%+v", r)
	}
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-6*math.Abs(want) {
			t.Errorf("%s is %v, want %v", what, got, want)
		}
	}
	const gib = 1 << 30
	near("peak of DRAM", float64(r.Pools["dram"].Peak), 2*gib)
	near("mean of DRAM", r.Pools["dram"].Mean, 2*gib)
	near("peak of DRAM of the device", float64(dev.Pools["dram"].Peak), 2*gib)
	near("peak of L1", float64(r.Pools["l1"].Peak), 8<<20)
	near("mean of L1", r.Pools["l1"].Mean, 8<<20)
	near("power", dev.Power.Mean, 80)
	near("highest power", dev.Power.Max, 80)
	near("energy", dev.Energy, 80*dev.Power.Seconds)
	near("heat", dev.Temperature.Max, 61)
	near("device", float64(dev.Index), 1)
	left, _ := r.LeftBytes()
	near("left", float64(left), 2*gib+8<<20)
	near("user", float64(r.UID), 1000)
	near("pid", float64(r.Processes[0].PID), float64(n))
	if total := r.Observed + r.Unseen; math.Abs(total-r.Last.Sub(r.Seen).Seconds()) > 0.01 {
		t.Errorf("%v s observed and %v s not, of %v", r.Observed, r.Unseen, r.Last.Sub(r.Seen))
	}
	if dev.Shared <= 0 || len(r.Neighbours) != 1 || r.Neighbours[0].Name != "other" {
		t.Errorf("%+v", r)
	}
	if killed := r.End.Kind == runs.Killed && r.End.Signal == 9; !killed && (r.End.Kind != runs.Exited || r.End.Code != nil) { // kernels before 6.15 do not tell
		t.Errorf("it ended like this: %+v", r.End)
	}
	for want, args := range map[string][]string{
		"left 2.0 GiB in DRAM, 8.0 MiB in L1": {"--leaked"},
		"Who shared its devices":              {"r1"},
		"61 °C":                               {pid},
		"r1,":                                 {"--csv", "-i", "1", "--match", "train"},
		"no run":                              {"--until", "1d"},
	} {
		t.Run(want, func(t *testing.T) {
			if out := runIn(t, h, append([]string{"runs", "--daemon", d.api}, args...)...); out.code != 0 || !strings.Contains(out.out, want) {
				t.Errorf("%q: no %q in %+v", args, want, out)
			}
		})
	}
	// How it differs from another, for people and for CI.
	if out := runIn(t, h, "diff", "r2", "r1", "--daemon", d.api); out.code != 0 || !strings.Contains(out.out, "dram.peak") || !strings.Contains(out.out, "left 2.0 GiB behind") {
		t.Errorf("%+v", out)
	}
	for condition, code := range map[string]int{"left>0": 1, "left>3GiB": 0, "energy>+1kWh": 0, "trace.mean@7>0": 3, "what": 2} {
		t.Run(condition, func(t *testing.T) {
			if out := runIn(t, h, "diff", "r2", "r1", "--fail-if", condition, "--daemon", d.api); out.code != code {
				t.Errorf("%+v, want %d", out, code)
			}
		})
	}
	if out := runIn(t, h, "diff", "r2", "r1", "--fail-if", "energy>+1kWh", "--json", "--daemon", d.api); out.code != 0 || !strings.Contains(out.out, `"result": "uncertain"`) || !strings.Contains(out.err, "not for certain: energy ~") {
		t.Errorf("what passes by a figure that is unsure: %+v", out)
	}
	if out := runIn(t, h, "diff", "r1", "--daemon", d.api); out.code != 6 || !strings.Contains(out.err, "first run of its command") {
		t.Errorf("%+v", out)
	}
	if out := runIn(t, h, "runs", "r999", "--daemon", d.api); out.code != 6 {
		t.Errorf("%+v", out)
	}
}

// TestRunsByJob: a job of Slurm is its runs: who, how much, and what it holds and has
// left now.
func TestRunsByJob(t *testing.T) {
	t.Parallel()
	h := start(t, sim.Options{Boards: "n150"})
	d := startDaemon(t, h)
	d.restartableServer()
	pid, err := strconv.Atoi(strings.TrimSpace(ctl(t, h, "run", "name=train,devices=0,kind=metal,dram=2G")))
	if err != nil {
		t.Fatal(err)
	}
	moveInto(t, h, []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}, "slurm/uid_0/job_4711/step_0/task_0", pid)
	await := func(want string, code int, args ...string) {
		t.Helper()
		var got result
		for limit := time.Now().Add(time.Minute); time.Now().Before(limit); time.Sleep(100 * time.Millisecond) {
			if got = runIn(t, h, append(args, "--daemon", d.api)...); got.code == code && strings.Contains(got.out, want) {
				return
			}
		}
		t.Errorf("%q: no %q with code %d in %+v", args, want, code, got)
	}
	await("~2.0 GiB", 0, "runs", "--by", "job", "4711")
	await("running", 0, "jobs")
	await("slurm,4711,root,0,running,", 0, "runs", "--by", "job", "--csv", "--user", "0")
	await(`"step": "0"`, 0, "runs", "--by", "job", "--json")
	await("process "+strconv.Itoa(pid)+" (train) of job 4711 holds device 0", 1, "runs", "--by", "job", "--left", "4711")
	await("no job", 0, "runs", "--by", "job", "--failed")
	if out := runProgram(t, h, "/bin/kill", "-KILL", strconv.Itoa(pid)); out.code != 0 {
		t.Fatalf("%+v", out)
	}
	await("2.0 GiB of the dead process "+strconv.Itoa(pid)+" (train) of job 4711", 1, "jobs", "--left", "4711")
	await("ended", 0, "runs", "--by", "job", "4711")
	await("", 0, "runs", "--by", "job", "--left", "4712")
}
