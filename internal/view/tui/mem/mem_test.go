package mem

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/lab/golden"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/tui/tuitest"
)

func TestMain(m *testing.M) {
	time.Local = time.UTC
	os.Exit(m.Run())
}

func TestRatesMarksAndPeaks(t *testing.T) {
	var l trend
	a, b := tuitest.Host(1, 0), tuitest.Host(1, 1)
	set := func(i int, v uint64) {
		s := []*model.Snapshot{a, b}[i]
		s.Devices[0].Chips[0].Memory.Pools[model.DRAM].Used = model.ExactBytes(v)
		s.Processes[0].Devices[0].Chips[0].Memory[model.DRAM] = model.ExactBytes(v)
	}
	k := chipKey{bus: "0000:01:00.0"}
	set(0, 1000)
	set(1, 400)
	l.addSample(a)
	if r := l.rate[k][model.DRAM]; r.Status != model.Pending {
		t.Errorf("a rate after one sample: %+v", r)
	}
	l.setMark()
	l.addSample(b)
	if r := l.rate[k][model.DRAM]; r.V != -600 || speed(r) != "−600 B/s" {
		t.Errorf("rate %+v", r)
	}
	if l.peak[k][model.DRAM] != model.ExactBytes(1000) {
		t.Errorf("peak %v", l.peak[k][model.DRAM])
	}
	if got := delta(l.last[k][model.DRAM], l.mark.chips[k][model.DRAM]); got != "−600 B" {
		t.Errorf("delta %q", got)
	}
	h := holderKey{k, a.Processes[0].PID, a.Processes[0].StartTicks}
	if l.top[h][model.DRAM] != model.ExactBytes(1000) {
		t.Errorf("peak of the holder %v", l.top[h][model.DRAM])
	}
	l.forgetPeaks()
	l.addSample(b)
	if l.peak[k][model.DRAM] != model.ExactBytes(400) {
		t.Errorf("peak after a reset %v", l.peak[k][model.DRAM])
	}
	l.setMark()
	if l.mark != nil {
		t.Error("a second mark does not end the first")
	}
	if got := delta(model.NoBytes(model.Denied), model.ExactBytes(1)); got != "" {
		t.Errorf("a change of the unknown: %q", got)
	}
}

// What a chip counts and no process has is shown, never spread over others.
func TestUnattributed(t *testing.T) {
	s := tuitest.Host(1, 0)
	c := chipsOf(s, nil)[0]
	if _, ok := unattributed(c, holders(s, c, model.DRAM), model.DRAM); ok {
		t.Error("something is left over where all is held")
	}
	more := func(u *model.Bytes) { *u = model.AddUp(*u, model.ExactBytes(5<<20)) }
	more(&c.mem().Pools[model.DRAM].Used)
	if n, ok := unattributed(c, holders(s, c, model.DRAM), model.DRAM); !ok || number(n) != 5<<20 {
		t.Errorf("left over %v, %v", n, ok)
	}
}

// Once explains a mark only where one is shown, in lines that fit the terminal.
func TestOnceExplainsMarks(t *testing.T) {
	s := tuitest.Host(4, 0)
	for i := range s.Processes {
		for j := range s.Processes[i].Devices {
			if u := &s.Processes[i].Devices[j]; u.Device == 0 {
				u.Doubts = append(u.Doubts, model.Doubt{Kind: model.OtherThreads})
			}
		}
	}
	for only, want := range map[string]bool{"0": true, "1": false} {
		t.Run(only, func(t *testing.T) {
			out := string((&Text{Only: []string{only}, Width: 60}).Once(nil, s))
			if strings.Contains(out, "\n~: tt-metal's own statistics") != want {
				t.Error(out)
			}
			for line := range strings.Lines(out) {
				if words.Width(strings.TrimSuffix(line, "\n")) > 60 && (strings.HasPrefix(line, "~") || strings.Contains(line, "CB counts")) {
					t.Errorf("wider than the terminal: %s", line)
				}
			}
		})
	}
}

func TestPlain(t *testing.T) {
	var b strings.Builder
	for _, n := range []int{0, 1, 4} {
		for _, bars := range []bool{false, true} {
			txt := Text{Bars: bars}
			fmt.Fprintf(&b, "-- once, %d devices, bars %v --\n%s", n, bars, txt.Once(nil, tuitest.Host(n, 0)))
		}
		log := Text{Only: []string{"0", "1", "2", "3"}}
		fmt.Fprintf(&b, "-- log, %d devices --\n", n)
		for s := range 2 {
			b.Write(log.Line(nil, tuitest.Host(n, s)))
		}
	}
	sim := tuitest.Host(1, 0)
	sim.Simulated = true
	b.Write((&Text{}).Line(nil, sim))
	golden.Check(t, filepath.Join("testdata", "plain.txt"), []byte(b.String()))
}
