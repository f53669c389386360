package truth

import (
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/book/runs"
	"github.com/ttmon/ttmon/internal/lab/e2e/ttnn"
	"github.com/ttmon/ttmon/internal/model"
)

// knownGaps: the longest pauses between programs are those that were, in every view.
func knownGaps(s *stage, j *workJob) {
	s.startServer(j.d, 0)
	s.enqueue(j)
	c, begun := j.feed.Chips[0], time.Now()
	clock := c.Clock
	// step reports a program of a millisecond when it has ended, and returns how long
	// the chip had nothing to do before.
	step := func(wait time.Duration) uint64 {
		time.Sleep(wait + time.Millisecond) // the pause that is measured
		pause := clock + uint64(time.Since(begun)) - uint64(time.Millisecond) - c.Clock
		c.Program(1, pause, uint64(time.Millisecond))
		return pause
	}
	step(0)
	var gaps []uint64
	for _, long := range []time.Duration{400 * time.Millisecond, 700 * time.Millisecond, 250 * time.Millisecond} {
		for range 20 {
			gaps = append(gaps, step(2*time.Millisecond))
		}
		gaps = append(gaps, step(long))
	}
	if err := c.Flush(); err != nil {
		s.Fatal(err)
	}
	slices.Sort(gaps)
	slices.Reverse(gaps)
	want := fmt.Sprint(gaps[:3])
	var work model.ChipWork
	s.until("all programs are known", func() bool {
		chips := processOf(s.daemonSnapshot(j.d), j.PID).Work.Chips
		if len(chips) == 0 || chips[0].Work.ProgramSum.V < uint64(len(gaps)+1) {
			return false
		}
		work = chips[0]
		return true
	})
	var got []uint64
	for _, g := range work.Gaps[:min(3, len(work.Gaps))] {
		got = append(got, uint64(g.Length))
	}
	s.fact("the three longest gaps, ns", want, fmt.Sprint(got))
	s.fact("why they are not certain", "", string(work.GapsCause))
	s.fact("the longest gap, ns", fmt.Sprint(gaps[0]), fmt.Sprint(uint64(math.Round(work.LongestGap*1e9))))
	seconds := func(text string) string { // to a microsecond
		x, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return text
		}
		return fmt.Sprintf("%.6f", x)
	}
	longest := fmt.Sprintf("%.6f", float64(gaps[0])/1e9)
	s.factSoon("runs --json, s", longest, func() string {
		var a runs.Answer
		_ = json.Unmarshal([]byte(s.run(filepath.Join(bin, "ttmon"), "runs", "--json", "--daemon", j.d.api).out), &a)
		for i := range a.Runs {
			if list := a.Runs[i].Gaps(); len(list) > 0 {
				return seconds(fmt.Sprint(list[0].Seconds))
			}
		}
		return ""
	})
}

// factSoon is fact for what a view says within a minute.
func (s *stage) factSoon(what, truth string, get func() string) {
	s.Helper()
	said := get()
	for limit := time.Now().Add(time.Minute); said != truth && time.Now().Before(limit); time.Sleep(200 * time.Millisecond) {
		said = get()
	}
	s.fact(what, truth, said)
}

// stuckOutside: the host waits in a finish and nothing completes: the probes alone
// raise the suspicion, with its evidence, and end it when the chip completes again.
func stuckOutside(s *stage, j *workJob) {
	s.enqueue(j)
	c := j.feed.Chips[0]
	s.ctl("load", "0", "0.9") // power tells work from waiting
	x := s.streams(j, 0, 0.7, nil)
	s.until("it is known what the chip draws at work", func() bool {
		d := &s.daemonSnapshot(j.d).Devices[0]
		return d.Chips[0].Work.Busy.Known() && d.Power.V > 40 && time.Since(j.begun) > 12*time.Second
	})
	stuck := func() (found bool, snap *model.Snapshot) {
		snap = s.daemonSnapshot(j.d)
		return slices.ContainsFunc(snap.Conditions, func(c model.Condition) bool {
			return c.Kind == model.ConditionStuck && c.Process.PID == j.PID
		}), snap
	}
	if found, _ := stuck(); found {
		s.fact("stuck, while it works", "no", "yes")
	}
	c.Hold(true)
	s.Cleanup(func() { c.Hold(false) })
	s.enqueue(j)
	x.end()
	s.ctl("load", "0", "0")
	s.do(j.Job, ttnn.Step{"do": "finish", "later": true})
	var snap *model.Snapshot
	waited := time.Now()
	s.until("it seems stuck", func() (found bool) {
		if found, snap = stuck(); !found && time.Since(waited) > 2*time.Minute {
			s.Fatalf("it does not seem stuck:\n%s", s.run(filepath.Join(bin, "ttmon"), "why", strconv.Itoa(j.PID), "--daemon", j.d.api).out)
		}
		return found
	})
	host := processOf(snap, j.PID).Work.Host
	s.fact("the host waits for", string(model.WaitsForFinish), string(host.WaitingFor))
	by := ""
	if chips := processOf(snap, j.PID).Work.Chips; len(chips) > 0 {
		by = string(chips[0].Source)
	}
	s.fact("by", string(model.FromUprobe), by)
	why := s.run(filepath.Join(bin, "ttmon"), "why", strconv.Itoa(j.PID), "--daemon", j.d.api).out
	s.fact("ttmon why names the wait", "yes", map[bool]string{true: "yes", false: why}[strings.Contains(why, "in a finish")])
	c.Hold(false)
	s.streams(j, 0, 0.7, nil)
	s.until("it no longer seems stuck", func() bool { found, _ := stuck(); return !found })
	s.fact("stuck, when it works again", "no", "no")
}
