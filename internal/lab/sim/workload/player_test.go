package workload

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const ms = time.Millisecond

func TestParseWork(t *testing.T) {
	got, err := parseWork("gap 300us; matmul 2ms x40;softmax 1ms ; idle 3s;hang 30s; hang;")
	want := []workStep{
		{gap, "", 300 * time.Microsecond, 0},
		{programs, "matmul", 2 * ms, 40},
		{programs, "softmax", ms, 1},
		{idle, "", 3 * time.Second, 0},
		{hang, "", 30 * time.Second, 0},
		{hang, "", 0, 0},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(workStep{})); diff != "" || err != nil {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
	for text, want := range map[string]string{
		"":                     "without a program",
		"gap 3ms":              "without a program",
		"matmul":               "a word and a time",
		"matmul 2ms 40":        "x40",
		"matmul 2ms x0":        "x0",
		"matmul 2ms x40 y":     "a word and a time",
		"matmul soon":          "soon",
		"matmul 10ns":          "10ns",
		"idle -3s":             "-3s",
		"idle":                 "a word and a time",
		"matmul 2ms x99999999": "x99999999",
	} {
		t.Run(text, func(t *testing.T) {
			if _, err := parseWork(text); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v, want an error with %q", text, err, want)
			}
		})
	}
}

// play lists what happens, a line for each turn of 10 ms.
func play(t *testing.T, p *player, from, to time.Duration) (busy time.Duration, programs int, states map[workState]int) {
	t.Helper()
	states = map[workState]int{}
	end := time.Duration(0)
	for now := from; now <= to; now += 10 * ms {
		done, state, _ := p.Play(now)
		for _, x := range done {
			if x.End > now || x.Start < end || x.End < x.Start {
				t.Fatalf("program %+v at %v, after one that ended at %v", x, now, end)
			}
			end = x.End
			busy += x.End - x.Start
		}
		programs += len(done)
		states[state]++
	}
	return busy, programs, states
}

func TestPlay(t *testing.T) {
	steps := func(text string) []workStep {
		s, err := parseWork(text)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for _, c := range []struct {
		script   string
		busy     time.Duration // of 10 s
		programs int
	}{
		{"matmul 2ms x10", 10 * time.Second, 5000},
		{"gap 2ms; matmul 2ms x10", 5 * time.Second, 2500},
		{"matmul 100ms x5; idle 500ms", 5 * time.Second, 50},
		{"training 2s; idle 3s", 4 * time.Second, 2},
		{"matmul 100ms; hang", 100 * ms, 1},
		{"matmul 100ms; hang 900ms", time.Second, 10},
	} {
		t.Run(c.script, func(t *testing.T) {
			busy, programs, _ := play(t, newPlayer(steps(c.script), 0), 0, 10*time.Second)
			if busy != c.busy || programs != c.programs {
				t.Errorf("%d programs in %v, want %d in %v", programs, busy, c.programs, c.busy)
			}
		})
	}
	_, _, states := play(t, newPlayer(steps("matmul 100ms; idle 100ms; hang 100ms"), 0), 10*ms, 300*ms)
	if diff := cmp.Diff(map[workState]int{working: 2, waiting: 18, resting: 10}, states); diff != "" {
		t.Errorf("states -want +got:\n%s", diff)
	}
}

func TestOrders(t *testing.T) {
	script, _ := parseWork("matmul 10ms x10; idle 100ms")
	p := newPlayer(script, 0)
	play(t, p, 0, time.Second)
	order := func(text string, at time.Duration) {
		t.Helper()
		if err := p.Order(text, at); err != nil {
			t.Fatal(err)
		}
	}
	order("hang", time.Second)
	if busy, _, states := play(t, p, 1010*ms, 5*time.Second); busy != 0 || len(states) != 1 || states[waiting] == 0 || !p.Hung() {
		t.Errorf("hangs: busy %v, %v", busy, states)
	}
	order("resume", 5*time.Second)
	if busy, _, _ := play(t, p, 5010*ms, 6*time.Second); busy < 400*ms || busy > 600*ms || p.Hung() {
		t.Errorf("resumed: busy %v of a second, want half of it", busy)
	}
	order("idle", 6*time.Second)
	if busy, _, states := play(t, p, 6010*ms, 7*time.Second); busy != 0 || len(states) != 1 || states[resting] == 0 {
		t.Errorf("idle: busy %v, %v", busy, states)
	}
	order("softmax 5ms", 7*time.Second)
	if _, programs, _ := play(t, p, 7010*ms, 8*time.Second); programs != 200 {
		t.Errorf("another script: %d programs, want 200", programs)
	}
	if p.Order("dance", 0) == nil || CheckWork("dance") == nil || CheckWork("hang") != nil || CheckWork("x 1ms") != nil {
		t.Error("an order is not checked")
	}
}

// A process that was stopped does not make up for it: its chips did nothing.
func TestPlayAfterStop(t *testing.T) {
	script, _ := parseWork("matmul 1ms")
	p := newPlayer(script, 0)
	play(t, p, 0, time.Second)
	if done, _, _ := p.Play(time.Hour); len(done) != 1000 {
		t.Errorf("%d programs after an hour, want those of the last second", len(done))
	}
}
