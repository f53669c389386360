package mem

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ttmon/ttmon/internal/config"
	"github.com/ttmon/ttmon/internal/golden"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/act"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
	"github.com/ttmon/ttmon/internal/view/tui/tuitest"
	"github.com/ttmon/ttmon/internal/words"
)

func TestMain(m *testing.M) {
	time.Local = time.UTC
	os.Exit(m.Run())
}

type stage struct {
	t       *testing.T
	s       *State
	g       *cells.Grid
	effects []tui.Effect
	n, sec  int
}

func open(t *testing.T, n, w, h int, only ...string) *stage {
	return openAfter(t, 120, n, w, h, only...)
}

func openAfter(t *testing.T, seconds, n, w, h int, only ...string) *stage {
	st := &stage{t: t, s: New(Options{Config: config.Default(), Only: only}), g: cells.NewGrid(w, h), n: n}
	st.send(tui.Resize{W: w, H: h})
	st.run(seconds)
	return st
}

// made keeps hosts: making one takes longer than drawing it, and no test
// changes them.
var made = map[[2]int]*model.Snapshot{}

func (st *stage) run(seconds int) {
	for range seconds {
		key := [2]int{st.n, st.sec}
		if made[key] == nil {
			made[key] = tuitest.Host(st.n, st.sec)
		}
		st.send(tui.Sample{Snapshot: made[key]})
		st.sec++
	}
}

func (st *stage) send(ev tui.Event) { st.effects = append(st.effects, st.s.Update(ev)...) }

func (st *stage) keys(keys ...tui.Key) *stage {
	for _, k := range keys {
		st.draw()
		st.send(k)
	}
	return st
}

func (st *stage) draw() string {
	st.g.Resize(st.g.W, st.g.H)
	st.s.Draw(st.g)
	return st.g.String()
}

func (st *stage) has(text string) bool { return strings.Contains(st.draw(), text) }

var modes = []struct {
	name  string
	keys  []tui.Key
	after []tui.Key // some seconds later
}{
	{"overview", nil, nil},
	{"chip", []tui.Key{"enter"}, nil},
	{"l1", []tui.Key{"down", "enter", "c", "+"}, nil},
	{"marked", []tui.Key{"d"}, []tui.Key{"enter"}},
	{"holder", []tui.Key{"enter", "enter"}, nil},
	{"help", []tui.Key{"?"}, nil},
}

func TestGolden(t *testing.T) {
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			var b strings.Builder
			for _, size := range [][2]int{{80, 24}, {120, 40}, {200, 50}} {
				for _, n := range []int{0, 1, 4, 8, 32} {
					st := open(t, n, size[0], size[1]).keys(m.keys...)
					st.run(10)
					st.keys(m.after...)
					fmt.Fprintf(&b, "-- %dx%d, %d devices --\n%s", size[0], size[1], n, st.draw())
				}
			}
			golden.Check(t, filepath.Join("testdata", m.name+".txt"), []byte(b.String()))
		})
	}
}

func TestEveryKeyDoesSomething(t *testing.T) {
	situations := []func(*stage){
		func(st *stage) {},
		func(st *stage) { st.keys("down", "down") },
		func(st *stage) { st.keys("enter") },
		func(st *stage) { st.keys("end", "up", "enter", "down") },
		func(st *stage) { st.keys("enter", "enter") },
		func(st *stage) { st.keys("f1", "down") },
	}
	seen := map[tui.Key]bool{}
	for _, prepare := range situations {
		st := open(t, 4, 100, 20)
		prepare(st)
		for _, b := range append(st.s.Keys(), st.s.alone()...) {
			for _, k := range b.Keys {
				seen[k] = seen[k] || doesSomething(t, prepare, k)
			}
		}
		for _, k := range []tui.Key{"up", "down", "pgup", "pgdn", "home", "end"} {
			seen[k] = seen[k] || doesSomething(t, prepare, k)
		}
	}
	for k, ok := range seen {
		if !ok {
			t.Errorf("%s does nothing anywhere", k)
		}
	}
}

func doesSomething(t *testing.T, prepare func(*stage), k tui.Key) bool {
	st := openAfter(t, 20, 4, 100, 20)
	prepare(st)
	look := func() string {
		s := st.draw()
		for i := range st.g.H * st.g.W {
			s += st.g.At(i%st.g.W, i/st.g.W).Style.String()
		}
		return s
	}
	before := look()
	st.effects = nil
	st.send(k)
	st.run(1) // peaks and marks show with the next sample
	after := look()
	st2 := openAfter(t, 20, 4, 100, 20)
	prepare(st2)
	st2.run(1)
	return len(st.effects) > 0 || after != before && after != func() string {
		st = st2
		return look()
	}()
}

func TestOneChipOpensAtOnce(t *testing.T) {
	if st := open(t, 1, 80, 24); !st.has("who holds DRAM") {
		t.Error(st.draw())
	}
	if st := open(t, 4, 80, 24, "1"); !st.has("who holds DRAM") || !st.has("device 1 p150a") {
		t.Error(st.draw())
	}
	st := open(t, 4, 80, 24, "0")
	if st.has("who holds") || !st.has("0 n300 L") || !st.has("0 n300 R") || st.has("p150a") {
		t.Errorf("both chips of device 0, and nothing else:\n%s", st.draw())
	}
	st.effects = nil
	st.keys("q")
	if len(st.effects) != 1 {
		t.Error("q does not quit")
	}
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
	st := open(t, 1, 100, 30)
	s = tuitest.Host(1, 200)
	more(&s.Devices[0].Chips[0].Memory.Pools[model.DRAM].Used)
	st.send(tui.Sample{Snapshot: s})
	if !st.has("(others)") {
		t.Error(st.draw())
	}
}

func TestDeniedAndGhosts(t *testing.T) {
	st := open(t, 4, 110, 30, "3")
	if !st.has("denied") || !st.has("memory of other users is hidden") || !st.has("190011 bob") {
		t.Error(st.draw())
	}
	st = open(t, 4, 110, 30, "2")
	if !st.has("(dead) 4242 python") || !st.has("not counted, wrote 3 h ago") {
		t.Error(st.draw())
	}
}

func TestHolder(t *testing.T) {
	st := open(t, 4, 110, 40, "1")
	st.effects = nil
	st.keys("enter")
	want := act.Inspect{Target: act.Target{PID: 182034, StartTicks: 182034 * 7}}
	if len(st.effects) != 1 || st.effects[0] != want {
		t.Fatalf("effects %v", st.effects)
	}
	st.send(act.Inspected{Target: want.Target, Buffers: []act.Buffer{
		{Device: 1, Pool: "dram", Bytes: 1 << 20, Age: time.Hour},
		{Device: 1, Pool: "dram", Bytes: 1 << 30, Age: time.Minute, Note: "matmul.cpp:12"},
		{Device: 0, Pool: "dram", Bytes: 1 << 34},
	}})
	out := st.draw()
	large, small := strings.Index(out, "1.0 GiB  "), strings.Index(out, "1.0 MiB  ")
	if large < 0 || small < large || !strings.Contains(out, "matmul.cpp:12") || strings.Contains(out, "16.0 GiB") {
		t.Errorf("buffers of this chip, the largest first:\n%s", out)
	}
	st.send(act.Inspected{Target: act.Target{PID: 1}, BufferErr: act.ErrUnknown})
	if !st.has("matmul.cpp:12") {
		t.Error("the answer about another process was taken")
	}
	st.n = 0
	st.run(1)
	if !st.has("is gone") && !st.has("no device to show") {
		t.Error(st.draw())
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

func TestAnythingGoes(t *testing.T) {
	keys := []tui.Key{"up", "down", "left", "right", "pgup", "pgdn", "home", "end", "enter", "esc", "d", "z", "c", "+", "-", "p", "f1", "r", "n", "b"}
	rapid.Check(t, func(rt *rapid.T) {
		st := openAfter(t, 3, rapid.SampledFrom([]int{0, 1, 4, 32}).Draw(rt, "devices"), 80, 24)
		for range rapid.IntRange(1, 40).Draw(rt, "events") {
			switch rapid.IntRange(0, 7).Draw(rt, "kind") {
			case 0:
				st.g.Resize(rapid.IntRange(0, 210).Draw(rt, "w"), rapid.IntRange(0, 60).Draw(rt, "h"))
			case 1:
				st.n = rapid.SampledFrom([]int{0, 1, 2, 4, 8, 32}).Draw(rt, "now devices")
				st.run(1)
			case 2:
				st.send(tui.Mouse{X: rapid.IntRange(0, 210).Draw(rt, "x"), Y: rapid.IntRange(0, 60).Draw(rt, "y"), Action: tui.Action(rapid.IntRange(0, 5).Draw(rt, "action"))})
			case 3:
				st.send(tui.Lost{Err: errors.New("gone"), At: tuitest.Start})
			default:
				st.send(rapid.SampledFrom(keys).Draw(rt, "key"))
			}
			st.draw()
		}
	})
}
