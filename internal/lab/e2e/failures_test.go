package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/book/failure"
	"github.com/ttmon/ttmon/internal/book/runs"
	"github.com/ttmon/ttmon/internal/lab/e2e/ttnn"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/lab/sim"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// failing is a real ttnn program that runs out of memory, catches it and continues.
type failing struct {
	*testing.T
	job   *ttnn.Job
	times uint64 // requests that failed
	last  uint64 // those of them that failed for the same reason as the last one
}

// playFailing starts one, of the user nobody: by itself, or under ttmon run. ttnn may
// be where only root reads, so the program keeps the right to do so.
func playFailing(t *testing.T, h *sim.Host, release string, run bool) *failing {
	t.Helper()
	return playFailingAs(t, h, nobody, release, run)
}

// playFailingAs starts one of another user.
func playFailingAs(t *testing.T, h *sim.Host, uid int, release string, run bool) *failing {
	t.Helper()
	hermetic.NeedOtherUsers(t)
	dir := t.TempDir()
	const right = "+dac_read_search,+dac_override"
	id := fmt.Sprint(uid)
	as := []string{"--reuid=" + id, "--regid=" + id, "--clear-groups", "--inh-caps=" + right, "--ambient-caps=" + right}
	if run {
		as = append(as, filepath.Join(bin, "ttmon"), "run", "--stacks", "--")
	}
	o := ttnn.Options{Release: release, Dir: dir, Descriptor: sim.MockDescriptor, Env: []string{"XDG_CACHE_HOME=" + filepath.Join(dir, "cache")}}
	o.Command = func(name string, args ...string) *exec.Cmd {
		return inHost(h, true)("setpriv", slices.Concat(as, []string{name}, args)...)
	}
	return &failing{T: t, job: ttnn.Play(t, o)}
}

func (f *failing) do(s ttnn.Step) ttnn.Reply {
	f.Helper()
	r, err := f.job.Do(s)
	if err != nil {
		f.Fatal(err)
	}
	return r
}

// ask asks for L1, and counts it if there is no room.
func (f *failing) ask(name string, rows int) (fits bool) {
	f.Helper()
	fits = f.do(ttnn.Step{"do": "ask", "name": name, "pool": "l1", "rows": rows, "columns": 2048}).Fits
	if !fits {
		f.times++
	}
	return fits
}

const someRows = 32 * 60

// fragment fills L1 and frees every second tensor.
func (f *failing) fragment() {
	f.Helper()
	n := 0
	for f.ask(fmt.Sprintf("t%d", n), someRows) {
		n++
	}
	for i := 0; i < n; i += 2 {
		f.do(ttnn.Step{"do": "free", "name": fmt.Sprintf("t%d", i)})
	}
}

// keeper is a ttmond that can be started again, with its server beside it.
type keeper struct {
	*daemon
	dir  string
	cmd  *exec.Cmd
	log  bytes.Buffer
	args []string
}

func startKeeper(t *testing.T, h *sim.Host, args ...string) *keeper {
	t.Helper()
	dir := t.TempDir()
	for _, made := range []string{dir, filepath.Dir(dir)} { // other users are to reach the sockets
		if err := os.Chmod(made, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	k := &keeper{daemon: &daemon{t: t, host: h, api: filepath.Join(dir, "api"), alloc: filepath.Join(dir, "alloc")}, dir: dir, args: args}
	k.start()
	t.Cleanup(k.stop)
	k.startServer()
	return k
}

func (k *keeper) start() {
	k.t.Helper()
	k.cmd = k.host.Command(context.Background(), filepath.Join(bin, "ttmond"), append([]string{
		"--socket", k.api, "--alloc-socket", k.alloc, "--state-dir", filepath.Join(k.dir, "ttmond"),
	}, k.args...)...)
	k.cmd.Stderr = &k.log
	if err := k.cmd.Start(); err != nil {
		k.t.Fatal(err)
	}
	k.await("ttmond answers", func() bool { return runIn(k.t, k.host, "smi", "--daemon", k.api, "-L").code == 0 })
}

func (k *keeper) stop() {
	k.t.Helper()
	_ = k.cmd.Process.Signal(syscall.SIGTERM)
	if err := k.cmd.Wait(); err != nil {
		k.t.Errorf("ttmond: %v\n%s", err, k.log.String())
	}
}

func (k *keeper) await(what string, holds func() bool) {
	k.t.Helper()
	for limit := time.Now().Add(2 * time.Minute); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(limit) {
			events := runIn(k.t, k.host, "events", "--daemon", k.api)
			list := runIn(k.t, k.host, "why", "--list", "--daemon", k.api)
			k.t.Fatalf("it never came to this: %s\n%s%s\n%s", what, events.out, list.out+list.err, k.log.String())
		}
	}
}

// why is a failure as a user is shown it; nil: it is not.
func (k *keeper) why(as func(args ...string) result, args ...string) *failure.Record {
	k.t.Helper()
	r := as(append([]string{"why", "--json", "--daemon", k.api}, args...)...)
	var head struct{ Schema string }
	if json.Unmarshal([]byte(r.out), &head) != nil || head.Schema != failure.Schema {
		return nil // there is none: why tells how a process does instead
	}
	record, err := failure.Decode([]byte(r.out))
	if err != nil {
		k.t.Fatal(err)
	}
	return record
}

// asUser runs ttmon as another user.
func asUser(t *testing.T, h *sim.Host, uid int) func(args ...string) result {
	t.Helper()
	hermetic.NeedOtherUsers(t)
	return func(args ...string) result {
		t.Helper()
		id := fmt.Sprint(uid)
		return runProgram(t, h, "setpriv", append([]string{"--reuid=" + id, "--regid=" + id, "--clear-groups", "--inh-caps=-all", filepath.Join(bin, "ttmon")}, args...)...)
	}
}

// watched is how a release is watched.
type watched struct {
	release string
	how     model.Source
}

// allWatched are the newest release in both ways and two others in one each; with
// TTMON_TEST_ALL all of them in both ways (make truth).
func allWatched() []watched {
	list := []watched{
		{ttnn.Newest, model.FromUprobe},
		{ttnn.Newest, model.FromTrack},
		{ttnn.Middle, model.FromUprobe},
		{ttnn.AllThreads, model.FromTrack},
	}
	if os.Getenv("TTMON_TEST_ALL") != "" {
		list = append(list, watched{ttnn.Middle, model.FromTrack}, watched{ttnn.AllThreads, model.FromUprobe})
	}
	return list
}

// TestFailureIsSeen: a real ttnn program finds no room again and again, catches
// that and continues. However ttmond sees it, it keeps one failure with its count for
// each reason, makes one event of it that leads there, and counts it; its owner and
// root are told why, others are not told that it exists; all of it outlives ttmond and the
// program.
func TestFailureIsSeen(t *testing.T) {
	for _, c := range allWatched() {
		how := c.how
		t.Run(c.release+" "+string(how), func(t *testing.T) {
			t.Parallel()
			h := start(t, sim.Options{Boards: "p150a"})
			config := watchingRelease(t, c.release)
			if how == model.FromTrack {
				config = filepath.Join(t.TempDir(), "ttmond.toml")
				if err := os.WriteFile(config, []byte("[uprobe]\nenabled = false\n"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			k := startKeeper(t, h, "--config", config)
			tape := startTape(t, h, k.daemon)
			if how == model.FromUprobe {
				k.mustWatch()
			}
			f := playFailing(t, h, c.release, how == model.FromTrack)
			f.do(ttnn.Step{"do": "open", "mesh": []int{1, 1}})
			f.fragment()
			for f.last < 50 {
				if f.ask("too-large", 2*someRows) {
					t.Fatal("it fits")
				}
				f.last++
			}
			k.isSeen(f, how)
			isRecorded(t, h, f, tape)
			k.outlives(f)
		})
	}
}

// isSeen checks everything that shows a failure while the program runs.
func (k *keeper) isSeen(f *failing, how model.Source) {
	k.t.Helper()
	root, own := func(args ...string) result { return runIn(k.t, k.host, args...) }, asUser(k.t, k.host, nobody)
	var r *failure.Record
	k.await("all failures of one reason are counted in one, and their device is known", func() bool {
		r = k.why(root)
		return r != nil && r.Count == f.last && r.ChipsResolved()
	})
	if r.Verdict.Cause != failure.Fragmented || r.Source != string(how) || r.Process.PID != f.job.PID || r.Process.UID != nobody || len(r.Verdict.Fixes) == 0 {
		k.t.Errorf("kept: %s by %s of %+v, %d fixes", r.Verdict.Cause, r.Source, r.Process, len(r.Verdict.Fixes))
	}
	if len(r.Stack) == 0 {
		k.t.Error("the line that asked is not known")
	}
	if len(r.Chips) != 1 || r.Chips[0].Device == nil || *r.Chips[0].Device != 0 {
		k.t.Errorf("chips: %+v", r.Chips)
	}
	id := r.ID
	if mine := k.why(own, fmt.Sprint(f.job.PID)); mine == nil || mine.ID != id {
		k.t.Errorf("its owner is shown %+v", mine)
	}
	otherUser := asUser(k.t, k.host, 4711)
	for _, args := range [][]string{nil, {id}, {fmt.Sprint(f.job.PID)}} {
		if got := k.why(otherUser, args...); got != nil {
			k.t.Errorf("another user is shown %s with %v", got.ID, args)
		}
	}
	var list failure.List
	if out := otherUser("why", "--list", "--json", "--daemon", k.api); json.Unmarshal([]byte(out.out), &list) != nil || len(list.Failures) != 0 {
		k.t.Errorf("another user sees %s%s", out.out, out.err)
	}
	for _, want := range []string{"fragmented", "What would have made it fit", "requested"} {
		if out := own("why", "--daemon", k.api); !strings.Contains(out.out, want) {
			k.t.Errorf("why says nothing of %q:\n%s%s", want, out.out, out.err)
		}
	}
	link := "(ttmon why " + id + ")"
	k.await("an event leads to it", func() bool { return strings.Contains(root("events", "--daemon", k.api).out, link) })
	events := func() int { return strings.Count(root("events", "--daemon", k.api).out, "no room for") }
	k.await("the other failure's event", func() bool { return events() >= 2 })
	if n := events(); n != 2 {
		k.t.Errorf("%d events are made of two failures, of which one repeats", n)
	}
	k.until("the metric counts all", root, func(s *model.Snapshot) bool { return s.Device(0).AllocationFailures.V == f.times })
	k.awaitSeries(fmt.Sprintf("tenstorrent_allocation_failures_total == %d", f.times), 1)
}

// TestStormHidesNoOtherFailure: while a program of one user fails as fast as it can, another
// user's only failure is kept, reported and counted.
func TestStormHidesNoOtherFailure(t *testing.T) {
	hermetic.Long(t)
	t.Parallel()
	h := start(t, sim.Options{Boards: "p150a"})
	k := startKeeper(t, h, "--config", watchingFromTheStart(t))
	k.mustWatch()
	storm, quiet := playFailing(t, h, ttnn.Newest, false), playFailingAs(t, h, 4711, ttnn.Newest, false)
	for _, f := range []*failing{storm, quiet} {
		f.do(ttnn.Step{"do": "open", "mesh": []int{1, 1}})
	}
	const rounds = 3000
	ended := make(chan error, 1)
	go func() {
		_, err := storm.job.Do(ttnn.Step{"do": "storm", "rounds": rounds})
		ended <- err
	}()
	root := func(args ...string) result { return runIn(t, h, args...) }
	k.await("the storm is seen", func() bool { return k.why(root, fmt.Sprint(storm.job.PID)) != nil })
	if quiet.ask("too-large", 100*someRows) {
		t.Fatal("it fits")
	}
	own := asUser(t, h, 4711)
	k.await("the other user's failure is kept, with its line", func() bool {
		r := k.why(own, fmt.Sprint(quiet.job.PID))
		return r != nil && r.Count == 1 && len(r.Stack) > 0 && r.ChipsResolved()
	})
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	k.await("every round of the storm is counted, in one record", func() bool {
		r := k.why(root, fmt.Sprint(storm.job.PID))
		return r != nil && r.Count == rounds
	})
	if n := strings.Count(root("events", "--daemon", k.api).out, "no room for"); n != 2 {
		t.Errorf("%d events are made of two failures", n)
	}
}

// TestFatalFailure: a real ttnn program dies of a request that fails. After the
// crash ttmon why names the line that asked, and ttmon runs what the program died of.
func TestFatalFailure(t *testing.T) {
	for _, c := range allWatched() {
		how := c.how
		t.Run(c.release+" "+string(how), func(t *testing.T) {
			t.Parallel()
			h := start(t, sim.Options{Boards: "p150a"})
			k := startKeeper(t, h, "--config", watchingRelease(t, c.release))
			if how == model.FromUprobe {
				k.mustWatch()
			}
			f := playFailing(t, h, c.release, how == model.FromTrack)
			f.do(ttnn.Step{"do": "open", "mesh": []int{1, 1}})
			f.ask("some", someRows)
			k.until("a snapshot has the program", func(args ...string) result { return runIn(t, h, args...) }, func(s *model.Snapshot) bool {
				return slices.ContainsFunc(s.Processes, func(p model.Process) bool { return p.PID == f.job.PID && len(p.Devices) > 0 })
			})
			if how == model.FromUprobe { // the snapshot was an extra one, and runs are made of those at every second
				k.await("it is a run", func() bool { return k.runOf(f) != nil })
			}
			if _, err := f.job.Do(ttnn.Step{"do": "die", "pool": "l1", "rows": 100 * someRows, "columns": 2048}); err == nil {
				t.Fatal("it lives")
			}
			if err := f.job.End(); err == nil {
				t.Error("it ended well")
			}
			k.namesTheLine(f)
			// Only processes that have opened a device have an exit in snapshots. A mocked
			// chip is not opened: the test opens a device for the process that it starts,
			// which with libttmon is ttmon run.
			if how == model.FromUprobe {
				k.diedOf(f)
			}
		})
	}
}

// namesTheLine: after the death of a program its owner learns which line asked.
func (k *keeper) namesTheLine(f *failing) {
	k.t.Helper()
	own := asUser(k.t, k.host, nobody)
	k.await("why names the line", func() bool {
		r := k.why(own, fmt.Sprint(f.job.PID))
		return r != nil && r.Count == 1 && slices.ContainsFunc(r.Stack, func(x ledgerfile.Frame) bool { return x.Function == "die" })
	})
	if out := own("why", "--daemon", k.api); !strings.Contains(out.out, "job.py") {
		k.t.Errorf("why:\n%s%s", out.out, out.err)
	}
}

// diedOf: the run of the program says what it died of.
func (k *keeper) diedOf(f *failing) {
	k.t.Helper()
	k.await("its run has the failure", func() bool {
		r := k.runOf(f)
		if r == nil || r.Failures == nil {
			return false
		}
		known := r.Failures.Count == 1 && r.Failures.Pool == "l1" && r.Failures.ID != ""
		return known && r.End.NoRoom && strings.HasPrefix(r.End.Text, "out of L1, exit 1")
	})
}

// runOf is the run of a program; nil: there is none yet.
func (k *keeper) runOf(f *failing) *runs.Run {
	k.t.Helper()
	var a runs.Answer
	if json.Unmarshal([]byte(runIn(k.t, k.host, "runs", "--json", "--daemon", k.api).out), &a) != nil {
		return nil
	}
	i := slices.IndexFunc(a.Runs, func(r runs.Run) bool { return len(r.Processes) > 0 && r.Processes[0].PID == f.job.PID })
	if i < 0 {
		return nil
	}
	return &a.Runs[i]
}

// isRecorded: a recording that was made meanwhile tells the same story, and hands it
// on.
func isRecorded(t *testing.T, h *sim.Host, f *failing, tape *tape) {
	t.Helper()
	list, err := tape.end().Failures()
	counted, causes := uint64(0), map[failure.Cause]bool{}
	for _, r := range list {
		counted, causes[r.Verdict.Cause] = counted+r.Count, true
	}
	if err != nil || len(list) != 2 || counted != f.times || len(causes) != 2 {
		t.Errorf("recorded: %+v, %v", list, err)
	}
	for _, args := range [][]string{
		{"replay", tape.file, "why"},
		{"replay", tape.file, "why", fmt.Sprint(f.job.PID)},
		{"replay", tape.file, "why", "--list"},
		{"export", tape.file, "--jsonl", "-o", "-"},
		{"export", tape.file, "--perfetto", "-o", "-"},
	} {
		if r := runIn(t, h, args...); r.code != 0 || !strings.Contains(r.out, "fragmented") {
			t.Errorf("ttmon %s: %d\n%.500s%s", strings.Join(args, " "), r.code, r.out, r.err)
		}
	}
}

// outlives: what is kept is there after the program has exited and ttmond has been
// started again, and no other user may see it then.
func (k *keeper) outlives(f *failing) {
	k.t.Helper()
	if err := f.job.End(); err != nil {
		k.t.Error(err)
	}
	before := k.why(asUser(k.t, k.host, nobody))
	k.stop()
	k.start()
	after := k.why(asUser(k.t, k.host, nobody))
	if before == nil || after == nil || after.ID != before.ID || after.Count != f.last || after.Verdict.Cause != failure.Fragmented {
		k.t.Errorf("before a restart %+v, after it %+v", before, after)
	}
	if got := k.why(asUser(k.t, k.host, 4711)); got != nil {
		k.t.Errorf("after a restart another user is shown %s", got.ID)
	}
}

// TestFailureAlert: a failed allocation notifies once, and once when it is over.
// The other rules have TestEveryRule.
func TestFailureAlert(t *testing.T) {
	hermetic.Long(t)
	t.Parallel()
	h := start(t, sim.Options{Boards: "p150a"})
	var r receiver
	d := alerting(t, h, &r, quickRules(t, 15)) // it fails once: a busy machine must look within 20 s
	f := playFailing(t, h, ttnn.Newest, true)
	f.do(ttnn.Step{"do": "open", "mesh": []int{1, 1}})
	d.awaitSeries("tenstorrent_allocation_failures_total", 1)
	f.fragment()
	r.awaitLine(t, "firing AllocationFailed 0")
	r.awaitLine(t, "resolved AllocationFailed 0")
	if text := r.description("AllocationFailed"); !strings.Contains(text, "ttmon why") {
		t.Errorf("it does not say where to look: %q", text)
	}
}
