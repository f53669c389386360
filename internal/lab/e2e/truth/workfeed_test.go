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
	"time"

	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/lab/e2e/ttnn"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/lib/libtest"
)

// fed starts a ttmond and a job with all devices of a host open, whose chips
// report at the scenario's will.
func (s *stage) fed(boards, release string, w witness, open ttnn.Step) *workJob {
	s.Helper()
	s.on(boards)
	var d *daemon
	switch w {
	case byLibrary:
		d = s.daemonWith("--no-uprobe")
	case byWaits:
		d = s.watchingWith("waits = true\n", ttnnLibrary(s, release))
	default:
		d = s.watching(ttnnLibrary(s, release))
	}
	feed, err := ttnn.NewFeed(s.TempDir(), len(s.chips), 1)
	if err != nil {
		s.Skip(err)
	}
	var before []string
	if w == byLibrary || w == byBoth {
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
					Bound     string  `json:"share_bound"`
				}
			}
			_ = json.Unmarshal([]byte(ttmon("ops", "--once", "--json")), &x)
			for _, o := range x.Operations {
				if o.Operation == "eltwise/binary_ng" {
					return words.Mark(model.ParseBound(o.Bound)) + percent(o.Share)
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
	socket := s.startServer(d, 0)
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
