package assess

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/lab/golden"
	"github.com/ttmon/ttmon/internal/model"
)

// phase is what a job does for a while.
type phase struct {
	lasts time.Duration
	// program is how long each of its programs takes; 0: none runs.
	program time.Duration
	// waits: a thread waits for the chips all the time.
	waits bool
	// low: the chip draws what it draws idle, whatever else.
	low     bool
	stopped bool
	cpu     float64 // of the process, percent; 0 stands for 100
	host    float64 // of the host, percent
}

// Kinds of phases.
func works(lasts, program time.Duration) phase {
	return phase{lasts: lasts, program: program, waits: true}
}
func idles(lasts time.Duration) phase { return phase{lasts: lasts, low: true} }
func hangs(lasts time.Duration) phase { return phase{lasts: lasts, waits: true, low: true} }

// job is a rhythm that is played in simulated time, again and again.
type job struct {
	name   string
	phases []phase
	// hangAt is when it really hangs; 0: never.
	hangAt time.Duration
	// noPower: the device does not tell its power.
	noPower bool
}

const (
	atWork, atIdle = 80.0, 35.0 // W
	played         = 10 * time.Minute
)

// play plays a job for ten minutes, a snapshot a second, and says when it was
// first suspected, and the longest program it had completed by then.
func (j *job) play() (suspected time.Duration, longest float64) {
	var judge Judge
	start := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	host := model.HostWork{LastEnqueue: start, LastFinish: start}
	chip := model.ChipWork{Device: 0, Since: start, LastRecord: start}
	at, n := time.Duration(0), 0
	since := time.Duration(0) // of the phase
	var done time.Duration    // up to which programs of the phase completed
	for ; at < played; at += time.Second {
		p := j.phases[n%len(j.phases)]
		hung := j.hangAt > 0 && at >= j.hangAt
		if hung {
			p = hangs(played)
		}
		if at-since >= p.lasts && !hung {
			n++
			since, done = at, at
			p = j.phases[n%len(j.phases)]
		}
		now := start.Add(at)
		busy := 0.0
		if p.program > 0 && !p.stopped {
			before := done
			for done+p.program <= at {
				done += p.program
				chip.LastRecord = start.Add(done)
				chip.Longest = max(chip.Longest, p.program.Seconds())
			}
			if done > before {
				busy = min(1, (done - before).Seconds())
			}
		}
		host.WaitingSince, host.WaitingFor = time.Time{}, model.WaitsForNothing
		if p.waits {
			from := max(since, done)
			if hung {
				from = max(j.hangAt, done)
			}
			host.WaitingSince, host.WaitingFor = start.Add(from), model.WaitsForFinish
		}
		s := j.snapshot(now, &p, host, chip, busy)
		judge.Assess(s)
		for _, c := range s.Conditions {
			if c.Kind == model.ConditionStuck {
				return at, chip.Longest
			}
		}
	}
	return 0, chip.Longest
}

func (j *job) snapshot(now time.Time, p *phase, host model.HostWork, chip model.ChipWork, busy float64) *model.Snapshot {
	power := model.Value(atWork)
	if p.low {
		power = model.Value(atIdle)
	}
	if j.noPower {
		power = model.Missing[float64](model.Absent, "")
	}
	chip.Work = model.Work{Busy: model.Value(busy)}
	cpu := p.cpu
	if cpu == 0 {
		cpu = 100
	}
	x := model.Process{
		PID: 5, StartTicks: 7, State: model.Running, CPU: model.Value(cpu),
		Devices: []model.DeviceUse{{Device: 0, OpenFDs: model.Value(1)}},
		Work:    model.ProcessWork{Watched: true, Host: host, Chips: []model.ChipWork{chip}},
	}
	if p.stopped {
		x.Condition = model.Stopped
	}
	return &model.Snapshot{
		Time: now, Host: model.Host{CPU: model.Value(p.host)},
		Devices:   []model.Device{{Index: 0, BusID: "0000:01:00.0", State: model.StateOK, Power: power}},
		Processes: []model.Process{x},
	}
}

const ms = time.Millisecond

// jobs are the rhythms of the table in docs/work.md.
var jobs = []job{
	{name: "inference, programs of 2 ms, always busy", phases: []phase{works(played, 2*ms)}},
	{name: "server with a request every 40 s, idle between", phases: []phase{works(2*time.Second, 5*ms), idles(38 * time.Second)}},
	{name: "server that is idle all night", phases: []phase{works(5*time.Second, 5*ms), idles(played)}},
	{name: "training, 0.8 s a step", phases: []phase{works(played, 800*ms)}},
	{name: "training with a checkpoint of 45 s every 2 minutes", phases: []phase{works(2*time.Minute, 800*ms), idles(45 * time.Second)}},
	{name: "compilation of 90 s before each new model", phases: []phase{idles(90 * time.Second), works(30*time.Second, 10*ms)}},
	{name: "a storm of short compilations", phases: []phase{idles(12 * time.Second), works(time.Second, ms)}},
	{name: "one program of 5 minutes, the first of its kind", phases: []phase{works(20*time.Second, 10*ms), works(301*time.Second, 5*time.Minute), works(played, 10*ms)}},
	{name: "nothing but programs of 40 s", phases: []phase{works(played, 40*time.Second)}},
	{name: "programs of 1 ms, now and then one of 30 s", phases: []phase{works(50*time.Second, ms), works(31*time.Second, 30*time.Second)}},
	{name: "traces of 20,000 programs, replayed", phases: []phase{works(19*time.Second, 100*time.Microsecond), idles(3 * time.Second)}},
	{name: "suspended with SIGSTOP for 2 minutes while it waits", phases: []phase{works(60*time.Second, 10*ms), {lasts: 2 * time.Minute, waits: true, low: true, stopped: true}}},
	{name: "in a debugger every 20 s", phases: []phase{works(20*time.Second, 10*ms), {lasts: 30 * time.Second, waits: true, low: true, stopped: true}}},
	{name: "starved by other programs for a minute", phases: []phase{works(60*time.Second, 10*ms), {lasts: time.Minute, waits: true, low: true, cpu: 2, host: 100}}},
	{name: "records delivered late by a busy host", phases: []phase{works(60*time.Second, 10*ms), {lasts: 20 * time.Second, waits: true, low: true, host: 100}}},
	{name: "a wait of 7 s for a slow disk in the middle of a step", phases: []phase{works(30*time.Second, 50*ms), {lasts: 7 * time.Second, waits: true, low: true}}},
	{name: "a board that does not tell its power, with pauses of 4 minutes", phases: []phase{works(60*time.Second, 10*ms), {lasts: 4 * time.Minute, waits: true}}, noPower: true},
	{name: "hangs in its first minute", phases: []phase{works(played, 2*ms)}, hangAt: 50 * time.Second},
	{name: "hangs after 8 minutes of training", phases: []phase{works(played, 800*ms)}, hangAt: 8 * time.Minute},
	{name: "hangs after programs of 40 s", phases: []phase{works(played, 40*time.Second)}, hangAt: 5 * time.Minute},
	{name: "hangs after an idle night", phases: []phase{works(5*time.Second, 5*ms), idles(5 * time.Minute)}, hangAt: 310 * time.Second},
	{name: "hangs after a checkpoint", phases: []phase{works(2*time.Minute, 800*ms), idles(45 * time.Second)}, hangAt: 170 * time.Second},
}

// TestStuck plays every rhythm for ten minutes: none is suspected that does not
// hang, and each that does is found in time.
func TestStuck(t *testing.T) {
	for i := range jobs {
		j := &jobs[i]
		t.Run(j.name, func(t *testing.T) {
			at, longest := j.play()
			limit := j.hangAt + time.Duration(3*longest*float64(time.Second)) + 10*time.Second
			switch {
			case j.hangAt == 0 && at != 0:
				t.Errorf("suspected after %v", at)
			case j.hangAt != 0 && (at == 0 || at < j.hangAt || at > limit):
				t.Errorf("it hangs at %v, and is suspected at %v; limit %v", j.hangAt, at, limit)
			}
		})
	}
}

// TestStuckTable: the table in the docs is what was played.
func TestStuckTable(t *testing.T) {
	var b strings.Builder
	b.WriteString("| rhythm, played for 10 minutes | hangs after | suspected after |\n|---|---|---|\n")
	for i := range jobs {
		j := &jobs[i]
		at, _ := j.play()
		hang, found := "–", "never"
		if j.hangAt > 0 {
			hang = fmt.Sprintf("%.0f s", j.hangAt.Seconds())
		}
		if at > 0 {
			found = fmt.Sprintf("%.0f s", math.Round((at - j.hangAt).Seconds()))
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", j.name, hang, found)
	}
	path := filepath.Join("..", "..", "..", "docs", "work.md")
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- rhythms -->\n", "<!-- end of rhythms -->\n"
	from, to := strings.Index(string(page), begin), strings.Index(string(page), end)
	if from < 0 || to < 0 {
		t.Fatalf("%s has no place for the table", path)
	}
	golden.Check(t, path, []byte(string(page[:from])+begin+b.String()+string(page[to:])))
}

// TestStuckSays: the suspicion comes with its evidence, and goes with it.
func TestStuckSays(t *testing.T) {
	var judge Judge
	j := job{}
	start := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	chip := model.ChipWork{Device: 0, Longest: 0.8}
	busy := works(0, 800*ms)
	for i := range 20 {
		at := start.Add(time.Duration(i) * time.Second)
		chip.LastRecord = at
		judge.Assess(j.snapshot(at, &busy, model.HostWork{WaitingSince: at}, chip, 1))
	}
	hung := hangs(0)
	wait := model.HostWork{WaitingSince: chip.LastRecord, WaitingFor: model.WaitsForEvent}
	s := j.snapshot(start.Add(time.Minute), &hung, wait, chip, 0)
	judge.Assess(s)
	if len(s.Conditions) != 1 {
		t.Fatalf("%+v", s.Conditions)
	}
	c := s.Conditions[0]
	if c.Kind != model.ConditionStuck || c.Process.PID != 5 || c.Device != 0 || c.Cause != model.WaitsInEvent || !c.Concluded ||
		!c.Since.Equal(chip.LastRecord) || c.Facts[0].Value != 41 || c.Facts[0].Limit != 0.8 || c.Facts[1].Value != 41 {
		t.Errorf("%+v", c)
	}
	if got := s.Processes[0].Condition; got != model.Stuck {
		t.Errorf("the process is %q", got)
	}
	chip.LastRecord = start.Add(61 * time.Second)
	s = j.snapshot(start.Add(61*time.Second), &busy, model.HostWork{}, chip, 0)
	judge.Assess(s)
	if len(s.Conditions) != 0 || s.Processes[0].Condition != "" {
		t.Errorf("it works again: %+v, %q", s.Conditions, s.Processes[0].Condition)
	}
}

// TestStuckEvidence: a look repeats what the judge went by, and no more.
func TestStuckEvidence(t *testing.T) {
	start := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		name    string
		noPower bool
		seen    int     // samples at work
		host    float64 // percent of its processors
		longest float64 // s
		after   time.Duration
		want    Waiting
		power   bool // a fact of what it draws at work
	}{
		{"power has fallen", false, 20, 10, 0.8, time.Minute, Waiting{Need: 9600 * ms, Rule: NeedPrograms, Resting: 1}, true},
		{"a busy host", false, 20, 100, 0.8, time.Minute, Waiting{Need: 28800 * ms, Rule: NeedBusyHost, Resting: 1}, true},
		{"no power", true, 20, 10, 0.8, 11 * time.Minute, Waiting{Need: stuckBlind, Rule: NeedBlind}, false},
		{"power at work hardly seen", false, 1, 10, 0.8, 11 * time.Minute, Waiting{Need: stuckBlind, Rule: NeedBlind}, false},
		{"no power, and programs of 6 minutes", true, 20, 10, 360, 13 * time.Minute, Waiting{Need: 728 * time.Second, Rule: NeedPrograms}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			var judge Judge
			j := job{noPower: test.noPower}
			chip := model.ChipWork{Device: 0, Longest: test.longest}
			busy, hung := works(0, 800*ms), hangs(0)
			hung.host = test.host
			for i := range test.seen {
				chip.LastRecord = start.Add(time.Duration(i) * time.Second)
				judge.Assess(j.snapshot(chip.LastRecord, &busy, model.HostWork{WaitingSince: chip.LastRecord}, chip, 1))
			}
			s := j.snapshot(chip.LastRecord.Add(test.after), &hung, model.HostWork{WaitingSince: chip.LastRecord, WaitingFor: model.WaitsForFinish}, chip, 0)
			judge.Assess(s)
			want := test.want
			want.Verdict, want.Silence, want.Longest, want.Device, want.Chips = WaitStuck, test.after, test.longest, model.NoDevice, 1
			if got := Wait(s, &s.Processes[0]); got != want {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
			for _, c := range s.Conditions {
				last := c.Facts[len(c.Facts)-1]
				if (last.Kind == model.FactWorkPower) != test.power {
					t.Errorf("%+v", c.Facts)
				}
			}
		})
	}
}
