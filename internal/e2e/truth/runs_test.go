package truth

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/ttmon/ttmon/internal/e2e/ttnn"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/runs"
	"github.com/ttmon/ttmon/internal/view/words"
)

// What the simulator makes of the board while a run is watched.
const (
	runWatts   = 80
	runCelsius = 61
	runClock   = 1000
)

// seenBy is who sees the allocations of a run.
type seenBy string

const (
	seenInShm     seenBy = "shared memory"
	seenByProbes  seenBy = "uprobes"
	seenByLibrary seenBy = "libttmon"
)

// meanwhile is what happens while a run is watched.
type meanwhile string

const (
	nothing       meanwhile = "in peace"
	ttmondAgain   meanwhile = "over a restart of ttmond"
	serverAgain   meanwhile = "over a restart of ttmon-server"
	serverKilled  meanwhile = "over a kill of ttmon-server"
	programKilled meanwhile = "killed"
)

// runScenarios hold the account of a run against what the simulator and ttnn know.
func runScenarios() (list []scenario) {
	for _, by := range []seenBy{seenInShm, seenByProbes, seenByLibrary} {
		for _, what := range []meanwhile{nothing, ttmondAgain, serverAgain, serverKilled, programKilled} {
			quick := by == seenInShm && what == serverKilled || by == seenByProbes && what == programKilled || by == seenByLibrary && what == ttmondAgain
			list = append(list, scenario{
				name: fmt.Sprintf("a run seen by %s, %s", by, what), how: alone | when(quick, fast),
				play: func(s *stage) { (&watchedRun{stage: s, by: by, what: what}).play() },
			})
		}
	}
	return append(list, scenario{name: "two runs with libttmon, compared", how: alone | fast, play: comparedRuns})
}

// watchedRun is a run of the real ttnn.
type watchedRun struct {
	*stage
	by     seenBy
	what   meanwhile
	d      *daemon
	server *exec.Cmd
	job    *ttnn.Job
	began  time.Time
	held   []change // what it held since when
}

// change is what a program holds from a moment on.
type change struct {
	at   time.Time
	held ttnn.Held
}

func (r *watchedRun) play() {
	r.Helper()
	r.prepare()
	r.startJob()
	r.step(alloc("a", "dram", 128*mib))
	r.step(alloc("b", "l1", 2*mib))
	r.await("it is seen", func(x *runs.Run) bool {
		return x.Observed > 2 && x.Pools["dram"].Held == 128*mib && x.Pools["l1"].Held == 2*mib
	})
	r.disturb()
	r.step(alloc("c", "dram", 64*mib))
	r.await("its peak is seen", func(x *runs.Run) bool { return x.Pools["dram"].Held == 192*mib })
	r.step(ttnn.Step{"do": "free", "name": "c"})
	before := r.await("it holds less again", func(x *runs.Run) bool { return x.Pools["dram"].Held == 128*mib })
	r.await("that is seen for a while", func(x *runs.Run) bool { return x.Observed > before.Observed+2 })
	r.end()
	r.judge(r.await("it has ended", func(x *runs.Run) bool { return x.End.Kind != runs.Running }))
}

// prepare makes the host and the daemons.
func (r *watchedRun) prepare() {
	r.Helper()
	r.on("p150a")
	r.ctl("set", "0", "power1_input", fmt.Sprint(runWatts*1_000_000))
	r.ctl("set", "0", "temp1_input", fmt.Sprint(runCelsius*1000))
	r.ctl("set", "0", "tt_aiclk", fmt.Sprint(runClock))
	if r.by == seenByProbes {
		r.d = r.watching(ttnnLibrary(r.stage, ttnn.Newest))
	} else {
		r.d = r.daemon()
	}
	r.startRuns()
}

// startRuns starts the ttmon-server that keeps runs.
func (r *watchedRun) startRuns() {
	r.Helper()
	dir := filepath.Dir(r.d.api)
	cmd := r.host.Command(context.Background(), filepath.Join(bin, "ttmon-server"),
		"--daemon", r.d.api, "--socket", filepath.Join(dir, "server.sock"), "--state-dir", filepath.Join(dir, "past"), "--listen", "off")
	log, err := os.OpenFile(filepath.Join(dir, "server.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		r.Fatal(err)
	}
	defer log.Close()
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		r.Fatal(err)
	}
	r.server = cmd
	r.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Signal(syscall.SIGTERM)
			_ = cmd.Wait()
		}
	})
}

func (r *watchedRun) startJob() {
	r.Helper()
	before := []string{filepath.Join(bin, "ttmon-sim"), "open", "--"}
	if r.by == seenByLibrary {
		before = append([]string{filepath.Join(bin, "ttmon"), "run", "--quiet", "--stacks", "--"}, before...)
	}
	r.began = time.Now()
	r.job = r.launch(ttnn.Newest, nil, before...)
	r.do(r.job, open)
}

// step lets the program do something, and notes what it holds then.
func (r *watchedRun) step(step ttnn.Step) {
	r.Helper()
	held := ttnn.Held{}
	for pool, n := range r.do(r.job, step).Held {
		held[pool] = n
	}
	r.held = append(r.held, change{time.Now(), held})
}

// disturb lets happen what the scenario is about.
func (r *watchedRun) disturb() {
	r.Helper()
	switch r.what {
	case ttmondAgain:
		r.bootDaemon(r.d, "--takeover")
	case serverAgain:
		r.restartServer(syscall.SIGTERM)
	case serverKilled:
		r.restartServer(syscall.SIGKILL)
	}
}

func (r *watchedRun) restartServer(sig syscall.Signal) {
	r.Helper()
	if err := r.server.Process.Signal(sig); err != nil {
		r.Fatal(err)
	}
	_ = r.server.Wait()
	r.startRuns()
}

func (r *watchedRun) end() {
	r.Helper()
	if r.what == programKilled {
		if err := syscall.Kill(r.job.PID, syscall.SIGKILL); err != nil {
			r.Fatal(err)
		}
		_ = r.job.End() // it says that it was killed
		return
	}
	if err := r.job.End(); err != nil {
		r.Fatal(err)
	}
}

// await asks for the run until something holds of it.
func (r *watchedRun) await(what string, holds func(*runs.Run) bool) (run *runs.Run) {
	r.Helper()
	var got said
	r.until(what, func() bool {
		got = r.run(filepath.Join(bin, "ttmon"), "runs", "--json", "--daemon", r.d.api)
		var a runs.Answer
		if got.code != 0 || json.Unmarshal([]byte(got.out), &a) != nil || len(a.Runs) != 1 {
			return false
		}
		run = &a.Runs[0]
		return holds(run)
	})
	return run
}

// judge adds the rows.
func (r *watchedRun) judge(x *runs.Run) {
	r.Helper()
	r.fact("devices", "[0]", fmt.Sprint(x.Indexes()))
	if len(x.Devices) != 1 || len(x.Processes) == 0 {
		r.fact("processes", fmt.Sprint(r.job.PID), fmt.Sprint(x.Processes))
		return
	}
	r.fact("process", fmt.Sprint(r.job.PID), fmt.Sprint(x.Processes[0].PID)) // ttnn starts helpers, which have its descriptors for a moment
	d := &x.Devices[0]
	for _, pool := range []struct {
		name  string
		truth uint64
	}{{"dram", 192 * mib}, {"l1", 2 * mib}} {
		r.peak("peak of "+pool.name, pool.truth, x.Pools[pool.name])
		r.peak("peak of "+pool.name+" on the device", pool.truth, d.Pools[pool.name])
		r.mean("mean of "+pool.name, pool.name, x)
	}
	r.measured(x, d)
	r.ending(x)
}

// measured adds the rows of what the board measures.
func (r *watchedRun) measured(x *runs.Run, d *runs.Device) {
	r.Helper()
	if d.Power == nil || d.Temperature == nil || d.Clock == nil {
		r.fact("power, heat and clock", "known", fmt.Sprintf("%v %v %v", d.Power, d.Temperature, d.Clock))
		return
	}
	r.near("mean power", runWatts, d.Power.Mean, 1e-6)
	r.near("highest power", runWatts, d.Power.Max, 1e-6)
	r.near("highest temperature", runCelsius, d.Temperature.Max, 1e-6)
	r.near("mean clock", runClock, d.Clock.Mean, 1e-6)
	r.near("energy", runWatts*d.Power.Seconds, d.Energy, 1e-6)
	// Power is known of all the time that was observed, which is all but the gaps.
	r.near("seconds of known power", x.Observed, d.Power.Seconds, 0.01)
	r.near("seconds observed or not", x.Last.Sub(x.Seen).Seconds(), x.Observed+x.Unseen, 0.01)
	r.near("seconds throttled", 0, x.Trouble(model.ConditionThrottled), 0)
	r.near("seconds shared", 0, x.Shared(), 0)
}

// ending adds the rows of how and when it ended.
func (r *watchedRun) ending(x *runs.Run) {
	r.Helper()
	want, said := "exited 0", string(x.End.Kind)
	if r.what == programKilled {
		want = "killed 9"
	}
	switch {
	case x.End.Signal != 0:
		said += fmt.Sprintf(" %d", x.End.Signal)
	case x.End.Code != nil:
		said += fmt.Sprintf(" %d", *x.End.Code)
	case x.End.Kind == runs.Exited && x.End.Unknown != "":
		r.enter(row{what: "end", truth: want, said: "exited", verdict: missing, why: string(x.End.Unknown)})
		want = said
	}
	r.fact("end", want, said)
	if took := time.Since(r.began); x.Took() > took || x.Took() < took/2 {
		r.fact("duration", "at most "+took.String(), x.Took().String())
	}
}

// peak adds a row for the most that was held. Every peak of these programs is seen by
// a snapshot, so it has to be there.
func (r *watchedRun) peak(what string, truth uint64, p runs.Pool) {
	r.Helper()
	r.fact(what, words.Bytes(truth), words.Bytes(p.Peak))
	if want := model.AtLeast; r.by != seenInShm && model.ParseBound(p.PeakBound) != want {
		r.fact(what+" is", want.String(), p.PeakBound)
	}
}

// late is how much later than it happened a change may be in a snapshot, on a busy
// machine.
const late = 3 * time.Second

// mean adds a row for the time-weighted mean of a pool: what was held, each amount as
// long as it was.
func (r *watchedRun) mean(what, pool string, x *runs.Run) {
	r.Helper()
	p := x.Pools[pool]
	if x.Unseen > 0 {
		r.fact(what+" is", model.Unsure.String(), p.MeanBound)
		return
	}
	var sum, slack float64
	before := uint64(0)
	for i, c := range r.held {
		until := x.Last
		if i+1 < len(r.held) {
			until = r.held[i+1].at
		}
		sum += float64(c.held[pool]) * until.Sub(c.at).Seconds()
		slack += math.Abs(float64(c.held[pool])-float64(before)) * late.Seconds()
		before = c.held[pool]
	}
	// A moment that no snapshot saw (a server that is started again) weighs little
	// enough in a mean to be within the slack.
	seconds := x.Last.Sub(r.held[0].at).Seconds()
	v, why := right, ""
	if p.Seconds == 0 || math.Abs(p.Mean-sum/seconds) > slack/seconds {
		v, why = wrong, fmt.Sprintf("known for %.1f of %.1f s", p.Seconds, seconds)
	}
	r.enter(row{what: what, truth: words.Bytes(uint64(sum / seconds)), said: words.Bytes(uint64(p.Mean)), verdict: v, why: why})
}

// near adds a row for a figure that is no memory.
func (r *watchedRun) near(what string, truth, said, share float64) {
	r.Helper()
	v := right
	if math.Abs(said-truth) > share*math.Max(math.Abs(truth), 1) {
		v = wrong
	}
	r.enter(row{what: what, truth: fmt.Sprintf("%.3f", truth), said: fmt.Sprintf("%.3f", said), verdict: v})
}

// comparedRuns: of two runs of a program ttmon diff names the line by which the peak
// grew, to their user and to root, after a restart of ttmond, and to no other user.
func comparedRuns(s *stage) {
	r := &watchedRun{stage: s, by: seenByLibrary}
	r.prepare()
	for n, bytes := range []int{64 * mib, 256 * mib} {
		r.startJob()
		s.do(r.job, alloc("a", "dram", bytes))
		name := fmt.Sprintf("r%d", n+1)
		r.awaitRun(name, func(x *runs.Run) bool { return x.Pools["dram"].Held == uint64(bytes) })
		if n == 0 {
			r.end()
		} else if err := syscall.Kill(r.job.PID, syscall.SIGKILL); err != nil {
			s.Fatal(err)
		} else {
			_ = r.job.End()
		}
		r.awaitRun(name, func(x *runs.Run) bool { return x.End.Kind != runs.Running })
	}
	const blamed = "192 MiB more DRAM at the peak ("
	var got said
	compare := []string{"diff", "r1", "r2", "--daemon", r.d.api}
	s.until("the line is known", func() bool {
		got = s.run(filepath.Join(bin, "ttmon"), compare...)
		return strings.Contains(got.out, blamed)
	})
	verdict, _, _ := strings.Cut(got.out, "\n")
	s.fact("the line is named", "true", fmt.Sprint(strings.Contains(verdict, ".py:") && strings.Contains(verdict, "+192 MiB)")))
	s.bootDaemon(r.d, "--takeover")
	s.fact("after a restart", got.out, s.run(filepath.Join(bin, "ttmon"), compare...).out)
	other := s.asNobody(compare...).out
	s.fact("to another user", "the figures, and no line", map[bool]string{true: "the figures, and no line", false: other}[strings.Contains(other, "192 MiB more DRAM at the peak") && !strings.Contains(other, ".py:")])
}

// awaitRun waits for one of several runs.
func (r *watchedRun) awaitRun(name string, holds func(*runs.Run) bool) {
	r.Helper()
	r.until("it comes so far with "+name, func() bool {
		got := r.run(filepath.Join(bin, "ttmon"), "runs", name, "--json", "--daemon", r.d.api)
		var a runs.Answer
		return got.code == 0 && json.Unmarshal([]byte(got.out), &a) == nil && len(a.Runs) == 1 && holds(&a.Runs[0])
	})
}
