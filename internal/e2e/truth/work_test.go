package truth

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ttmon/ttmon/internal/e2e/ttnn"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/lib/libtest"
)

// Who reads what chips report.
type witness string

const (
	byLibrary witness = "libttmon"
	byProbe   witness = "probe"
	byBoth    witness = "libttmon and probe"
)

// workJob is a ttnn program whose chips report what the scenario makes up.
type workJob struct {
	*ttnn.Job
	feed    *ttnn.Feed
	d       *daemon
	witness witness
	begun   time.Time // what is so now
}

// enqueue gives the chips work without waiting for it: without any nothing could
// run on them.
func (s *stage) enqueue(j *workJob) {
	s.Helper()
	s.do(j.Job, alloc("a", "dram", 65536), ttnn.Step{"do": "add", "name": "b", "of": []string{"a", "a"}})
}

// workScenarios: how busy chips are said to be, against what they were fed.
func workScenarios() (list []scenario) {
	for _, c := range []struct {
		name   string
		boards string
		fast   bool
		play   func(*stage, *workJob)
		open   ttnn.Step // how its devices are opened
	}{
		{"7 % busy", "p150a", false, steady(0.07), nil},
		{"70 % busy", "p150a", true, everywhere(0.7), nil},
		{"100 % busy", "p150a", false, steady(1), nil},
		{"nothing ran", "p150a", false, nothingRan, nil},
		{"two chips", "n300", false, twoChips, nil},
		{"a burst", "p150a", false, burst, nil},
		{"killed in full stream", "p150a", false, killedInStream, nil},
		{"the host waits", "p150a", false, hostWaits, nil},
		{"idle after its work", "p150a", false, idleAfter, nil},
		{"programs without an id", "p150a", false, withoutID, nil},
		{"pages that are no programs", "p150a", false, onlySyncs, nil},
		{"a divided device", "p150a", false, divided, nil},
		{"a program of 3 s", "p150a", false, longProgram, nil},
		{"forged pages", "p150a", true, forgedPages, nil},
		{"a second queue beside the first", "p150a", false, besideAnother, ttnn.Step{"queues": 2}},
	} {
		for _, w := range []witness{byLibrary, byProbe} {
			list = append(list, scenario{
				name: fmt.Sprintf("work: %s by %s", c.name, w), how: alone | when(c.fast, fast),
				play: func(s *stage) { c.play(s, s.fed(c.boards, ttnn.Newest, w, c.open)) },
			})
		}
	}
	for _, release := range []string{"0.71.2", "0.76.0", "0.79.0", "0.80.0"} {
		for _, w := range []witness{byLibrary, byProbe} {
			list = append(list, scenario{
				name: fmt.Sprintf("work: 70 %% busy with %s by %s", release, w), how: alone,
				play: func(s *stage) { steady(0.7)(s, s.fed("p150a", release, w, nil)) },
			})
		}
	}
	return append(list, scenario{
		name: "work: 70 % busy by both", how: alone,
		play: func(s *stage) { everywhere(0.7)(s, s.fed("p150a", ttnn.Newest, byBoth, nil)) },
	})
}

// fed starts a ttmond and a job with all devices of a host open, whose chips
// report at the scenario's will.
func (s *stage) fed(boards, release string, w witness, open ttnn.Step) *workJob {
	s.Helper()
	s.on(boards)
	var d *daemon
	if w == byLibrary {
		d = s.daemonWith("--no-uprobe")
	} else {
		d = s.watching(ttnnLibrary(s, release))
	}
	feed, err := ttnn.NewFeed(s.TempDir(), len(s.chips), 1)
	if err != nil {
		s.Skip(err)
	}
	var before []string
	if w != byProbe {
		dir := s.TempDir()
		if err := libtest.Build(dir, "plain"); err != nil {
			s.Fatal(err)
		}
		before = []string{filepath.Join(dir, "libttmon.so")}
	}
	j := &workJob{Job: s.ttnn(release, feed.Env(before...)...), feed: feed, d: d, witness: w}
	step := ttnn.Step{"do": "open", "device": 0}
	if len(s.chips) > 1 {
		step = ttnn.Step{"do": "open", "mesh": []int{1, len(s.chips)}}
	}
	maps.Copy(step, open)
	s.do(j.Job, step)
	if release < "0.76" {
		s.do(j.Job, ttnn.Step{"do": "feed"})
	}
	return j
}

// stream reports programs as time passes.
type stream struct {
	stop chan struct{}
	wg   sync.WaitGroup
}

const period = time.Millisecond // of a program and its pause

// streams lets a chip be busy for a part of each period until the stream ends.
// page, if any, adds a page to each.
func (s *stage) streams(j *workJob, chip int, busy float64, page func()) *stream {
	x, c := &stream{stop: make(chan struct{})}, j.feed.Chips[chip]
	j.begun = time.Now()
	run := uint64(math.Round(busy * float64(period)))
	x.wg.Go(func() {
		begun, clock := time.Now(), c.Clock
		for {
			select {
			case <-x.stop:
				return
			case <-time.After(2 * time.Millisecond):
			}
			for c.Clock-clock+uint64(period) <= uint64(time.Since(begun)) {
				c.Program(1, uint64(period)-run, run)
				if page != nil {
					page()
				}
			}
		}
	})
	s.Cleanup(x.end)
	return x
}

// end ends it; what was reported by then has been taken.
func (x *stream) end() {
	select {
	case <-x.stop:
	default:
		close(x.stop)
	}
	x.wg.Wait()
}

// nearly is how far an exact share may be from the truth: its last digit.
const nearly = 0.0005

// processOf is a process of a snapshot; one without anything where it is not there.
func processOf(snap *model.Snapshot, pid int) *model.Process {
	for i := range snap.Processes {
		if snap.Processes[i].PID == pid {
			return &snap.Processes[i]
		}
	}
	return &model.Process{}
}

// judgeWork holds a figure of work against the truth.
func judgeWork(truth float64, w *model.Work) (v verdict, why string) {
	switch {
	case !w.Busy.Known() && w.Cause == "":
		return wrong, "missing, and nothing says why"
	case !w.Busy.Known():
		return missing, string(w.Cause)
	case w.Busy.V < 0 || w.Busy.V > 1:
		return wrong, "no share"
	case w.Bound == model.Exact && math.Abs(w.Busy.V-truth) <= nearly:
		return right, ""
	case w.Bound == model.Exact:
		return wrong, "without a mark"
	case w.Cause == "":
		return wrong, "marked, and nothing says why"
	case w.Bound == model.AtLeast && w.Busy.V > truth+nearly:
		return wrong, "more than there is"
	}
	return bounded, string(w.Cause)
}

func percent(x float64) string { return fmt.Sprintf("%.2f %%", 100*x) }

func saidOf(w *model.Work) string {
	if !w.Busy.Known() {
		return "?"
	}
	return map[model.Bound]string{model.AtLeast: "≥ ", model.Unsure: "~ "}[w.Bound] + percent(w.Busy.V)
}

// say waits until a chip's figure is as it shall be in the end: exact, or not for
// a reason. No figure of a window that began after what is so now may be wrong.
func (s *stage) say(j *workJob, chip int, truth float64, want ...model.WorkCause) *model.Snapshot {
	s.Helper()
	var snap *model.Snapshot
	for limit := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		snap = s.daemonSnapshot(j.d)
		w := &snap.Devices[0].Chips[chip].Work
		if from := snap.Time.Add(-time.Duration(w.Window * float64(time.Second))); from.Before(j.begun.Add(100*time.Millisecond)) && time.Now().Before(limit) {
			continue
		}
		v, why := judgeWork(truth, w)
		good := slices.Contains(want, w.Cause) && (w.Cause != "" || w.Bound == model.Exact)
		if !good && v != wrong && time.Now().Before(limit) {
			continue
		}
		if !good {
			v, why = wrong, fmt.Sprintf("%q, and never %q", w.Cause, want)
		}
		s.enter(row{what: fmt.Sprintf("busy, chip %d", chip), truth: percent(truth), said: saidOf(w), verdict: v, why: why})
		return snap
	}
}

func steady(busy float64) func(*stage, *workJob) {
	return func(s *stage, j *workJob) {
		want := model.WorkCause("")
		if regexp.MustCompile(`with 0\.7`).MatchString(s.name) {
			want = model.WorkLossy
		}
		s.enqueue(j)
		s.streams(j, 0, busy, nil)
		s.say(j, 0, busy, want)
		for range 5 { // and it stays so
			time.Sleep(300 * time.Millisecond)
			w := &s.daemonSnapshot(j.d).Devices[0].Chips[0].Work
			v, why := judgeWork(busy, w)
			s.enter(row{what: "busy, again", truth: percent(busy), said: saidOf(w), verdict: v, why: why})
		}
	}
}

// everywhere: the same figure in every view.
func everywhere(busy float64) func(*stage, *workJob) {
	return func(s *stage, j *workJob) {
		s.enqueue(j)
		s.streams(j, 0, busy, nil)
		snap := s.say(j, 0, busy, "")
		source := model.FromTrack
		if j.witness == byProbe {
			source = model.FromUprobe
		}
		by := ""
		if chips := processOf(snap, j.PID).Work.Chips; len(chips) > 0 {
			by = string(chips[0].Source)
		}
		s.fact("by", string(source), by)
		ttmon := func(args ...string) string {
			return s.run(filepath.Join(bin, "ttmon"), append(args, "--daemon", j.d.api)...).out
		}
		s.shown("smi --query-device", busy, func() string {
			return ttmon("smi", "--query-device=busy", "--format=csv,noheader")
		})
		s.shown("smi -q", busy, func() string {
			_, rest, _ := strings.Cut(ttmon("smi", "-q", "-d", "UTILIZATION"), "Busy")
			line, _, _ := strings.Cut(rest, "\n")
			return line
		})
		s.shown("smi", busy, func() string {
			_, row, _ := strings.Cut(ttmon("smi"), "p150a")
			line, _, _ := strings.Cut(row, "\n")
			return line
		})
		s.shown("Prometheus", busy, s.scrapes(j.d))
		s.shown("ops --json", busy, func() string {
			var x struct {
				Operations []struct {
					Operation string
					Share     float64 `json:"share_ratio"`
				}
			}
			_ = json.Unmarshal([]byte(ttmon("ops", "--once", "--json")), &x)
			for _, o := range x.Operations {
				if o.Operation == "eltwise/binary_ng" {
					return percent(o.Share)
				}
			}
			return ""
		})
	}
}

var sample = regexp.MustCompile(`"value":\[[0-9.]+,"([^"]+)"\]`)

// scrapes reads how busy a device is from the series of a ttmon-server.
func (s *stage) scrapes(d *daemon) func() string {
	s.Helper()
	socket := s.startServer(d)
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}
	s.Cleanup(client.CloseIdleConnections)
	query := func(series string) string {
		answer, err := client.Get("http://server/prometheus/api/v1/query?query=" + series)
		if err != nil {
			return "" // it does not listen yet
		}
		defer answer.Body.Close()
		text, _ := io.ReadAll(answer.Body)
		if m := sample.FindSubmatch(text); m != nil {
			return string(m[1])
		}
		return ""
	}
	return func() string {
		ratio, err := strconv.ParseFloat(query("tenstorrent_busy_ratio"), 64)
		mark, known := map[string]string{"0": "", "1": "≥ ", "2": "~ "}[query("tenstorrent_busy_bound")]
		if err != nil || !known {
			return ""
		}
		return mark + percent(ratio)
	}
}

var share = regexp.MustCompile(`(≥|~)?\s*([0-9.]+) ?%`)

// shown waits until a view has an exact figure, and no other one may be wrong. A
// view that rounds may be off by half of its last digit.
func (s *stage) shown(view string, truth float64, get func() string) {
	s.Helper()
	for limit := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		said := strings.TrimSpace(get())
		m := share.FindStringSubmatch(said)
		v, why := missing, "no figure"
		if m != nil {
			x, _ := strconv.ParseFloat(m[2], 64)
			off := x/100 - truth
			switch {
			case m[1] == "" && math.Abs(off) <= 0.002, m[1] == "~":
				v, why = right, ""
			case m[1] == "≥" && off <= 0.002:
				v, why = bounded, "at least"
			default:
				v, why = wrong, "not so"
			}
		}
		if v == right || v == wrong || time.Now().After(limit) {
			if v == missing {
				v = wrong
			}
			s.enter(row{what: view, truth: percent(truth), said: said, verdict: v, why: why})
			return
		}
	}
}

// nothingRan: libttmon has seen that nothing was enqueued; from outside no one
// has.
func nothingRan(s *stage, j *workJob) {
	j.begun = time.Now()
	if j.witness == byProbe {
		s.say(j, 0, 0, model.WorkSilent)
		return
	}
	s.say(j, 0, 0, "")
}

func twoChips(s *stage, j *workJob) {
	s.enqueue(j)
	s.streams(j, 0, 0.7, nil)
	s.streams(j, 1, 0.07, nil)
	s.say(j, 0, 0.7, "")
	s.say(j, 1, 0.07, "")
}

// burst: programs as fast as they are taken. libttmon sees all of them; of what
// the probe sees the rest is counted as lost.
func burst(s *stage, j *workJob) {
	const n = 1_000_000
	for range n {
		j.feed.Chips[0].Program(1, 30, 70)
	}
	if err := j.feed.Chips[0].Flush(); err != nil {
		s.Fatal(err)
	}
	var got uint64
	s.until("the burst is counted", func() bool {
		chips := processOf(s.daemonSnapshot(j.d), j.PID).Work.Chips
		if len(chips) == 0 {
			return false
		}
		before := got
		got = chips[0].Work.ProgramSum.V
		return got == n || j.witness == byProbe && got > 0 && got == before
	})
	v := right
	if got != n {
		v = bounded
	}
	if got > n || got != n && j.witness == byLibrary {
		v = wrong
	}
	s.enter(row{what: "programs of a burst", truth: fmt.Sprint(n), said: fmt.Sprint(got), verdict: v})
}

func killedInStream(s *stage, j *workJob) {
	s.enqueue(j)
	x := s.streams(j, 0, 0.7, nil)
	s.say(j, 0, 0.7, "")
	x.end()
	s.kill(j.Job)
	j.begun = time.Now()
	s.say(j, 0, 0, "") // no process has the device open
}

// hostWaits: nothing completes while the host waits: the chip may be busy.
func hostWaits(s *stage, j *workJob) {
	s.enqueue(j)
	x := s.streams(j, 0, 0.7, nil)
	s.say(j, 0, 0.7, "")
	j.feed.Chips[0].Hold(true)
	s.Cleanup(func() { j.feed.Chips[0].Hold(false) })
	s.do(j.Job, ttnn.Step{"do": "finish", "later": true})
	x.end()
	j.begun = time.Now()
	snap := s.say(j, 0, 1, model.WorkSilent)
	if j.witness != byProbe {
		s.fact("the host waits for", string(model.WaitsForFinish), string(processOf(snap, j.PID).Work.Host.WaitingFor))
	}
}

// idleAfter: when the host has waited for all of it, nothing runs.
func idleAfter(s *stage, j *workJob) {
	s.enqueue(j)
	x := s.streams(j, 0, 0.7, nil)
	s.say(j, 0, 0.7, "")
	x.end()
	s.do(j.Job, ttnn.Step{"do": "finish"})
	if j.witness == byProbe {
		s.untilCause(j, model.WorkSilent)
		return
	}
	s.until("it is idle", func() bool {
		w := &s.daemonSnapshot(j.d).Devices[0].Chips[0].Work
		return w.Busy.Known() && w.Busy.V == 0 && w.Bound == model.Exact
	})
	s.fact("busy", "0 %, exact", "0 %, exact")
}

// untilCause waits for the reason why a figure is missing, or not exact.
func (s *stage) untilCause(j *workJob, want model.WorkCause) (w *model.Work) {
	s.Helper()
	s.until(fmt.Sprintf("the reason is %q", want), func() bool {
		w = &s.daemonSnapshot(j.d).Devices[0].Chips[0].Work
		return w.Cause == want
	})
	s.fact("reason", string(want), string(w.Cause))
	return w
}

func withoutID(s *stage, j *workJob) {
	s.enqueue(j)
	c := j.feed.Chips[0]
	s.streams(j, 0, 0.5, func() { c.Record(0, 5, 6) })
	s.say(j, 0, 1, model.WorkUnprofiled) // what they took is not known
}

func onlySyncs(s *stage, j *workJob) {
	for range 100 {
		j.feed.Chips[0].Sync()
	}
	nothingRan(s, j)
}

func divided(s *stage, j *workJob) {
	s.enqueue(j)
	s.do(j.Job, ttnn.Step{"do": "divide", "parts": 2})
	s.streams(j, 0, 0.5, nil)
	s.say(j, 0, 1, model.WorkSubDevices)
}

// besideAnother: what runs on a second command queue is not reported, and may run
// at the same time as what is, or not.
func besideAnother(s *stage, j *workJob) {
	// In mock mode a queue never gives the device up to another one. What the first
	// one runs is made up anyway.
	s.do(j.Job, alloc("a", "dram", 65536), ttnn.Step{"do": "add", "name": "c", "of": []string{"a", "a"}, "queue": 1})
	s.streams(j, 0, 0.5, nil)
	snap := s.say(j, 0, 1, model.WorkQueues)
	w := &snap.Devices[0].Chips[0].Work
	s.fact("busy of the first queue", "50 %, at least", fmt.Sprintf("%.0f %%, %s", 100*w.Busy.V, strings.ReplaceAll(w.Bound.String(), "_", " ")))
}

// longProgram: what runs has no record until it ends, and is not called idle.
func longProgram(s *stage, j *workJob) {
	s.enqueue(j)
	c := j.feed.Chips[0]
	c.Program(1, 0, 1000)
	s.untilCause(j, model.WorkSilent)
	begun := time.Now()
	for time.Since(begun) < 3*time.Second {
		w := &s.daemonSnapshot(j.d).Devices[0].Chips[0].Work
		if w.Busy.Known() {
			v, why := judgeWork(1, w)
			s.enter(row{what: "busy, while it runs", truth: percent(1), said: saidOf(w), verdict: v, why: why})
		}
	}
	c.Program(1, 0, uint64(time.Since(begun)))
	w := &s.daemonSnapshot(j.d).Devices[0].Chips[0].Work
	v, why := judgeWork(1, w)
	s.enter(row{what: "busy, when it has ended", truth: "at most 100 %", said: saidOf(w), verdict: v, why: why})
}

// forgedPages: a program that reports nonsense is never more than all the time
// busy, and its nonsense is not called exact.
func forgedPages(s *stage, j *workJob) {
	c := j.feed.Chips[0]
	s.enqueue(j)
	var forge atomic.Bool
	s.streams(j, 0, 0.5, func() {
		if forge.CompareAndSwap(true, false) {
			c.Record(1, c.Clock, c.Clock+uint64(time.Hour)) // longer than there was time
		}
	})
	s.say(j, 0, 0.5, "")
	forge.Store(true)
	w := s.untilCause(j, model.WorkTooMuch)
	v, why := judgeWork(1, w)
	s.enter(row{what: "busy of an hour in a second", truth: "at most 100 %", said: saidOf(w), verdict: v, why: why})
	snap := s.daemonSnapshot(j.d)
	if total := snap.Devices[0].Work.BusyTime; total.Known() && total.V > uint64(time.Minute*10) {
		s.fact("busy time in all", "no more than has passed", time.Duration(total.V).String())
	}
	s.do(j.Job, ttnn.Step{"do": "ping"})
}
