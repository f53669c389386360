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

	"github.com/ttmon/ttmon/internal/book/runs"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/lab/e2e/ttnn"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/model"
)

// What the simulator makes of the board while a run is watched: first, and while the
// run holds the most.
const (
	runWatts       = 80
	runWattsMost   = 140
	runCelsius     = 61
	runCelsiusMost = 72
	runClock       = 1000
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
	ttmondAgain   meanwhile = "over a takeover of ttmond"
	ttmondKilled  meanwhile = "over a kill of ttmond"
	serverAgain   meanwhile = "over a restart of ttmon-server"
	serverKilled  meanwhile = "over a kill of ttmon-server"
	serverLate    meanwhile = "over a kill of ttmon-server after its peak"
	indexLost     meanwhile = "over a kill of ttmon-server, its runs deleted"
	programKilled meanwhile = "killed"
	crashed       meanwhile = "crashed"
	terminated    meanwhile = "terminated"
	inContainer   meanwhile = "in a container"
)

// signal is what ends the program; 0: it exits.
func (m meanwhile) signal() syscall.Signal {
	return map[meanwhile]syscall.Signal{programKilled: syscall.SIGKILL, crashed: syscall.SIGSEGV, terminated: syscall.SIGTERM}[m]
}

// runScenarios hold the account of a run against what the simulator and ttnn know.
func runScenarios() (list []scenario) {
	for _, by := range []seenBy{seenInShm, seenByProbes, seenByLibrary} {
		for _, what := range []meanwhile{nothing, ttmondAgain, ttmondKilled, serverAgain, serverKilled, serverLate, indexLost, programKilled, crashed, terminated, inContainer} {
			quick := by == seenInShm && what == serverLate || by == seenByProbes && what == programKilled || by == seenByLibrary && what == ttmondKilled || by == seenByProbes && what == inContainer
			list = append(list, scenario{
				name: fmt.Sprintf("a run seen by %s, %s", by, what), how: alone | when(quick, fast),
				play: func(s *stage) { (&watchedRun{stage: s, by: by, what: what, truth: map[string]curve{}}).play() },
			})
		}
	}
	for _, by := range []seenBy{seenInShm, seenByProbes, seenByLibrary} {
		list = append(list, scenario{name: fmt.Sprintf("a peak between two snapshots, seen by %s", by), how: alone | when(by == seenByLibrary, fast), play: func(s *stage) { peakBetween(s, by) }})
		list = append(list, scenario{name: fmt.Sprintf("two runs at once, seen by %s", by), how: alone | when(by == seenByLibrary, fast), play: func(s *stage) { runsAtOnce(s, by) }})
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
	pid    int // of the job, on the host
	began  time.Time
	truth  map[string]curve // pools, and what the board measures
	// At the disturbance: when it was, and how the run was seen until then.
	disturbed time.Time
	before    *runs.Run
}

// level is what a figure is from a moment on. Of a change it is known only that it
// happened within a time.
type level struct {
	at     time.Time
	within time.Duration
	value  float64
}

// curve is a figure over time; before its first level it is 0.
type curve []level

// at is what the figure was at a moment.
func (c curve) at(t time.Time) (value float64) {
	for _, l := range c {
		if !l.at.After(t) {
			value = l.value
		}
	}
	return value
}

// sum is the figure times the seconds between two moments. slack is by how much it
// may be off where the figure is sampled: at each change by as much as it changed,
// for as long as a step between two samples takes.
func (c curve) sum(from, to time.Time, step float64) (sum, slack float64) {
	before := 0.0
	for i, l := range c {
		until := to
		if i+1 < len(c) && c[i+1].at.Before(to) {
			until = c[i+1].at
		}
		if l.at.After(from) {
			slack += math.Abs(l.value-before) * (step + l.within.Seconds())
		}
		if since := later(l.at, from); since.Before(until) {
			sum += l.value * until.Sub(since).Seconds()
		}
		before = l.value
	}
	return sum, slack
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
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
	if r.what == serverLate || r.what == indexLost {
		r.peakFor(journalWritten)
		r.disturb()
		seen := time.Now()
		r.await("it is seen again", func(x *runs.Run) bool { return x.Last.After(seen.Add(2 * time.Second)) })
	} else {
		r.disturb()
		r.peakFor(2)
	}
	r.end()
	// A process that exits closes its devices first, and may be seen in between.
	r.judge(r.await("it has ended", func(x *runs.Run) bool { return x.End.Kind != runs.Running && x.End.Kind != runs.Closed }))
}

// journalWritten is after how many seconds a snapshot is in the journal on the disk.
const journalWritten = 13

// peakFor has the run hold the most, and the board take the most, and then less again
// for so many seconds.
func (r *watchedRun) peakFor(seconds float64) {
	r.Helper()
	r.board(runWattsMost, runCelsiusMost)
	r.step(alloc("c", "dram", 64*mib))
	r.await("its peak is seen", func(x *runs.Run) bool {
		d := &x.Devices[0] // a busy machine may take a snapshot between two of its values
		return x.Pools["dram"].Held == 192*mib && d.Power != nil && d.Power.Max == runWattsMost && d.Temperature != nil && d.Temperature.Max == runCelsiusMost
	})
	r.step(ttnn.Step{"do": "free", "name": "c"})
	r.board(runWatts, runCelsius)
	before := r.await("it holds less again", func(x *runs.Run) bool { return x.Pools["dram"].Held == 128*mib })
	r.await("that is seen for a while", func(x *runs.Run) bool { return x.Observed > before.Observed+seconds })
}

// board sets what the board measures.
func (r *watchedRun) board(watts, celsius int) {
	r.Helper()
	for _, set := range []struct {
		what, attr  string
		value, unit int
	}{{"power", "power1_input", watts, 1_000_000}, {"temperature", "temp1_input", celsius, 1000}} {
		began := time.Now()
		r.ctl("set", "0", set.attr, fmt.Sprint(set.value*set.unit))
		r.change(set.what, began, float64(set.value))
	}
}

// change notes that a figure has changed since a moment.
func (r *watchedRun) change(what string, began time.Time, value float64) {
	within := time.Since(began)
	r.truth[what] = append(r.truth[what], level{began.Add(within / 2), within, value})
}

// prepare makes the host and the daemons.
func (r *watchedRun) prepare() {
	r.Helper()
	r.on("p150a")
	r.board(runWatts, runCelsius)
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
	if r.what == inContainer {
		before = append([]string{"unshare", "--pid", "--fork", "--kill-child", "--mount", "sh", "-c", `mount -t proc proc /proc && exec "$@"`, "sh"}, before...)
	}
	r.began = time.Now()
	job, cmd := r.launchCommand(ttnn.Newest, nil, before...)
	r.job, r.pid = job, r.onHost(cmd.Process.Pid, job.PID)
	r.do(r.job, open)
}

// step lets the program do something, and notes what it holds then.
func (r *watchedRun) step(step ttnn.Step) {
	r.Helper()
	began := time.Now()
	held := r.do(r.job, step).Held
	for _, pool := range []string{"dram", "l1"} {
		r.change(pool, began, float64(held[pool]))
	}
}

// disturb lets happen what the scenario is about.
func (r *watchedRun) disturb() {
	r.Helper()
	r.before = r.await("it is seen until now", func(*runs.Run) bool { return true })
	r.disturbed = time.Now()
	switch r.what {
	case ttmondAgain:
		r.reloadDaemon(r.d)
	case ttmondKilled:
		_ = r.d.cmd.Process.Kill()
		_ = r.d.cmd.Wait()
		r.bootDaemon(r.d)
	case serverAgain:
		r.restartServer(syscall.SIGTERM)
	case serverKilled, serverLate, indexLost:
		r.restartServer(syscall.SIGKILL)
	}
}

func (r *watchedRun) restartServer(sig syscall.Signal) {
	r.Helper()
	if err := r.server.Process.Signal(sig); err != nil {
		r.Fatal(err)
	}
	_ = r.server.Wait()
	if r.what == indexLost {
		if err := os.RemoveAll(filepath.Join(filepath.Dir(r.d.api), "past", "runs")); err != nil {
			r.Fatal(err)
		}
	}
	r.startRuns()
}

func (r *watchedRun) end() {
	r.Helper()
	if sig := r.what.signal(); sig != 0 {
		if err := syscall.Kill(r.pid, sig); err != nil {
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
		r.fact("processes", fmt.Sprint(r.pid), fmt.Sprint(x.Processes))
		return
	}
	r.fact("process", fmt.Sprint(r.pid), fmt.Sprint(x.Processes[0].PID)) // ttnn starts helpers, which have its descriptors for a moment
	d := &x.Devices[0]
	for _, pool := range []struct {
		name  string
		truth uint64
	}{{"dram", 192 * mib}, {"l1", 2 * mib}} {
		r.peak("peak of "+pool.name, pool.truth, x.Pools[pool.name])
		r.peak("peak of "+pool.name+" on the device", pool.truth, d.Pools[pool.name])
		r.mean("mean of "+pool.name, pool.name, x, func(x *runs.Run) runs.Pool { return x.Pools[pool.name] })
		r.mean("mean of "+pool.name+" on the device", pool.name, x, func(x *runs.Run) runs.Pool { return x.Devices[0].Pools[pool.name] })
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
	for _, c := range []struct {
		what  string
		truth float64
		stat  *runs.Stat
	}{{"power", runWattsMost, d.Power}, {"temperature", runCelsiusMost, d.Temperature}} {
		sum, slack := r.sum(c.what, x, x.Seen)
		r.within("mean "+c.what, sum/x.Observed, c.stat.Mean, slack/x.Observed)
		r.near("highest "+c.what, c.truth, c.stat.Max, 1e-6)
	}
	joules, slack := r.sum("power", x, x.Seen)
	r.within("energy", joules, d.Energy, slack)
	r.near("mean clock", runClock, d.Clock.Mean, 1e-6)
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
	if sig := r.what.signal(); sig != 0 {
		want = fmt.Sprintf("killed %d", sig)
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
	// A ledger also has what an operation held while it ran, which the program does not say.
	if between := r.by == seenByLibrary && p.Peak > truth; !between {
		r.fact(what, words.Bytes(truth), words.Bytes(p.Peak))
	}
	late := r.by == seenInShm || r.by == seenByProbes && r.what == ttmondKilled // a new ttmond has what was allocated before it from shared memory
	want := model.AtLeast
	if r.by == seenByLibrary { // its ledger has it
		want = model.Exact
	}
	if !late && model.ParseBound(p.PeakBound) != want {
		r.fact(what+" is", want.String(), p.PeakBound)
	}
}

// sum is a figure times the seconds from a moment to the end of the run, without those
// that were not seen: nothing changes while a scenario disturbs.
func (r *watchedRun) sum(what string, x *runs.Run, from time.Time) (sum, slack float64) {
	c := r.truth[what]
	sum, slack = c.sum(from, x.Last, x.Step)
	return sum - c.at(r.disturbed)*x.Unseen, slack
}

// mean adds a row for the time-weighted mean of a pool: what was held, each amount as
// long as it was, over the time in which it was known. It may be off by what changed
// within a step from one snapshot to the next; where a part in the middle was not
// seen, that is said.
func (r *watchedRun) mean(what, name string, x *runs.Run, of func(*runs.Run) runs.Pool) {
	r.Helper()
	p := of(x)
	until := r.before.Last.Sub(r.before.Seen).Seconds() - r.before.Unseen
	prefix := until - of(r.before).Seconds // until the program had opened its device
	hole := x.Observed - p.Seconds - prefix
	sum, slack := r.sum(name, x, x.Seen.Add(time.Duration(prefix*float64(time.Second))))
	c := r.truth[name]
	sum -= c.at(r.disturbed) * hole
	off := math.Abs(p.Mean*p.Seconds - sum)
	exact := model.ParseBound(p.MeanBound) == model.Exact
	v, why := right, fmt.Sprintf("off by %s times a second, of %s at most, known for %.1f of %.1f s", words.Bytes(uint64(off)), words.Bytes(uint64(slack)), p.Seconds, x.Observed)
	switch {
	case p.Seconds == 0, off > slack+1, exact && (x.Unseen > 0 || hole > x.Step):
		v = wrong
	case !exact:
		v = bounded
	}
	r.enter(row{what: what, truth: words.Bytes(uint64(sum / p.Seconds)), said: words.Bytes(uint64(p.Mean)), verdict: v, why: why})
}

// within adds a row for a figure that may be off by so much.
func (r *watchedRun) within(what string, truth, said, slack float64) {
	r.Helper()
	v := right
	if math.Abs(said-truth) > slack+1e-6*math.Abs(truth) {
		v = wrong
	}
	r.enter(row{what: what, truth: fmt.Sprintf("%.3f", truth), said: fmt.Sprintf("%.3f", said), verdict: v, why: fmt.Sprintf("to %.3f", slack)})
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

// peakBetween: what a program holds for much less than a second no snapshot need have
// seen. Its ledger has it; without one the peak is a bound below it, or missing.
func peakBetween(s *stage, by seenBy) {
	const truth = 256 * mib
	r := &watchedRun{stage: s, by: by, truth: map[string]curve{}}
	r.prepare()
	r.startJob()
	s.do(r.job, alloc("a", "dram", truth), ttnn.Step{"do": "free", "name": "a"})
	r.await("the program is seen", func(x *runs.Run) bool { return x.Observed > 1 })
	r.end()
	p := r.await("it has ended", func(x *runs.Run) bool { return x.End.Kind != runs.Running && x.End.Kind != runs.Closed }).Pools["dram"]
	n, bound, known := p.PeakBytes().Best()
	v := wrong
	switch {
	case known && n == truth && (bound == model.Exact || by != seenByLibrary):
		v = right
	case known && n < truth && bound != model.Exact && by != seenByLibrary:
		v = bounded
	case !known && by != seenByLibrary:
		v = missing
	}
	r.enter(row{what: "peak of dram", truth: words.Bytes(truth), said: words.Figure(p.PeakBytes()), verdict: v, why: "no snapshot need have seen it"})
}

// runsAtOnce: of two programs that share a device each has its own peak, and the other
// beside it.
func runsAtOnce(s *stage, by seenBy) {
	r := &watchedRun{stage: s, by: by, truth: map[string]curve{}}
	r.prepare()
	var jobs []*ttnn.Job
	truth := []uint64{64 * mib, 192 * mib}
	for n, bytes := range truth {
		r.startJob()
		s.do(r.job, alloc("a", "dram", int(bytes)))
		jobs = append(jobs, r.job)
		r.awaitRun(fmt.Sprintf("r%d", n+1), func(x *runs.Run) bool { return x.Pools["dram"].Held == bytes })
	}
	r.awaitRun("r1", func(x *runs.Run) bool { return x.Shared() > 1 })
	for _, j := range jobs {
		if err := j.End(); err != nil {
			s.Fatal(err)
		}
	}
	for n, bytes := range truth {
		name := fmt.Sprintf("r%d", n+1)
		x := r.awaitRun(name, func(x *runs.Run) bool { return x.End.Kind != runs.Running && x.End.Kind != runs.Closed })
		r.peak("peak of dram of "+name, bytes, x.Pools["dram"])
		r.fact("others beside "+name, "1", fmt.Sprint(len(x.Neighbours)))
		if took := x.Took().Seconds(); x.Shared() < 1 || x.Shared() > took {
			r.fact("seconds shared of "+name, fmt.Sprintf("1 to %.0f", took), fmt.Sprintf("%.1f", x.Shared()))
		}
	}
}

// comparedRuns: of two runs of a program ttmon diff names the line by which the peak
// grew, to their user and to root, after a restart of ttmond, and to no other user.
func comparedRuns(s *stage) {
	hermetic.NeedOtherUsers(s)
	r := &watchedRun{stage: s, by: seenByLibrary, truth: map[string]curve{}}
	r.prepare()
	for n, bytes := range []int{64 * mib, 256 * mib} {
		r.startJob()
		s.do(r.job, alloc("a", "dram", bytes))
		name := fmt.Sprintf("r%d", n+1)
		r.awaitRun(name, func(x *runs.Run) bool { return x.Pools["dram"].Held == uint64(bytes) })
		if n == 0 {
			r.end()
		} else if err := syscall.Kill(r.pid, syscall.SIGKILL); err != nil {
			s.Fatal(err)
		} else {
			_ = r.job.End()
		}
		r.awaitRun(name, func(x *runs.Run) bool { return x.End.Kind != runs.Running })
	}
	const blamed = "192 MiB more DRAM at the peak, from "
	var got said
	compare := []string{"diff", "r1", "r2", "--daemon", r.d.api}
	s.until("the line is known", func() bool {
		got = s.run(filepath.Join(bin, "ttmon"), compare...)
		return strings.Contains(got.out, blamed)
	})
	verdict, _, _ := strings.Cut(got.out, "\n")
	s.fact("the line is named", "true", fmt.Sprint(strings.Contains(verdict, ".py:")))
	s.reloadDaemon(r.d)
	s.fact("after a restart", "the same", map[bool]string{true: "the same", false: "not the same"}[s.run(filepath.Join(bin, "ttmon"), compare...).out == got.out])
	other := s.asNobody(compare...).out
	s.fact("to another user", "the figures, and no line", map[bool]string{true: "the figures, and no line", false: other}[strings.Contains(other, "192 MiB more DRAM at the peak") && !strings.Contains(other, ".py:")])
}

// awaitRun waits for one of several runs.
func (r *watchedRun) awaitRun(name string, holds func(*runs.Run) bool) (run *runs.Run) {
	r.Helper()
	r.until("it comes so far with "+name, func() bool {
		got := r.run(filepath.Join(bin, "ttmon"), "runs", name, "--json", "--daemon", r.d.api)
		var a runs.Answer
		if got.code != 0 || json.Unmarshal([]byte(got.out), &a) != nil || len(a.Runs) != 1 {
			return false
		}
		run = &a.Runs[0]
		return holds(run)
	})
	return run
}
