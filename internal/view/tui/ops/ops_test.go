package ops

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/field/metric"
	"github.com/ttmon/ttmon/internal/lab/golden"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
	"github.com/ttmon/ttmon/internal/view/tui/tuitest"
	"github.com/ttmon/ttmon/internal/view/tui/widget"
)

func TestMain(m *testing.M) {
	time.Local = time.UTC
	os.Exit(m.Run())
}

// working is a host whose chips report: to the digit, in part, or not at all.
// Its figures move with the second.
func working(n, sec int) *model.Snapshot {
	s := tuitest.Well(n, sec)
	operation := func(name string, share, rate float64, mean time.Duration) model.Operation {
		calls := uint64(rate) * uint64(60+sec)
		return model.Operation{Name: name, Calls: calls, Time: calls * uint64(mean), Longest: uint64(5 * mean), Share: model.Value(share), Rate: model.Value(rate)}
	}
	for i := range s.Devices {
		s.Devices[i].Work = model.NoWork(model.WorkNoIOMMU)
	}
	for i := range s.Processes {
		s.Processes[i].Work = model.ProcessWork{}
	}
	if n == 0 {
		return s
	}
	s.Devices[0].Work = model.Work{Busy: model.Value(0.91), Window: 1}
	if n > 1 {
		s.Devices[1].Work = model.Work{Busy: model.Value(0.183), Bound: model.AtLeast, Cause: model.WorkLossy, Window: 1}
	}
	s.Processes[0].Work = model.ProcessWork{Watched: true, Chips: []model.ChipWork{{
		Device: 0, Chip: "L", LastName: "LayerNorm", LastRecord: s.Time,
		Work: model.Work{Busy: model.Value(0.91), Late: model.Value(0.09)},
		Operations: []model.Operation{
			operation("MatmulDeviceOperation", 0.412, 1204, 342*time.Microsecond),
			operation("ScaledDotProductAttentionDecodeWithPagedCache", 0.227, 301, 754*time.Microsecond),
			operation("evil\x1b[31mname", 0.0004, 2, 150*time.Nanosecond),
			{Others: 12, Calls: 5, Time: 10, Longest: 4, Share: model.Value(0.0), Rate: model.Value(0.0)},
		},
	}}}
	if len(s.Processes) > 1 && n > 1 {
		s.Processes[1].Work = model.ProcessWork{Watched: true, Chips: []model.ChipWork{{
			Device: 1, Work: s.Devices[1].Work, Operations: []model.Operation{operation("AllGather", 0.183, 20, 9*time.Millisecond)},
		}}}
	}
	s.Assessed, s.Conditions = true, []model.Condition{{
		Kind: model.ConditionStuck, Level: model.Warning, Device: 0, Process: s.Processes[0].ID(), Cause: model.WaitsInFinish, Remedy: model.RemedyOperations,
		Facts: []model.Fact{{Kind: model.FactSilence, Value: 41, Limit: 0.8}, {Kind: model.FactWaited, Value: 41}},
	}}
	return s
}

type stage struct {
	t      *testing.T
	s      *Screen
	n, sec int
	w, h   int
}

func open(t *testing.T, n, w, h int) *stage {
	st := &stage{t: t, s: New(Options{Interval: time.Second, Which: metric.OpChoice{Sort: "share"}}), n: n, w: w, h: h}
	st.s.Update(tui.Resize{W: w, H: h})
	return st.sample()
}

func (st *stage) sample() *stage {
	st.s.Update(tui.Sample{Snapshot: working(st.n, st.sec)})
	st.sec++
	return st
}

func (st *stage) keys(keys ...tui.Key) *stage {
	for _, k := range keys {
		st.s.Update(k)
	}
	return st
}

func (st *stage) screen() string {
	g := cells.NewGrid(st.w, st.h)
	st.s.Draw(g)
	return g.String()
}

func (st *stage) has(wants ...string) {
	st.t.Helper()
	for _, want := range wants {
		if got := st.screen(); !strings.Contains(got, want) {
			st.t.Errorf("no %q on the screen:\n%s", want, got)
		}
	}
}

func (st *stage) hasNot(wants ...string) {
	st.t.Helper()
	for _, want := range wants {
		if got := st.screen(); strings.Contains(got, want) {
			st.t.Errorf("%q is on the screen:\n%s", want, got)
		}
	}
}

// selected is the name of the selected operation.
func (st *stage) selected() string { return st.s.rows[st.s.list.Sel].Name }

func TestGolden(t *testing.T) {
	for _, m := range []struct {
		name string
		keys []tui.Key
	}{
		{"main", nil},
		{"frozen", []tui.Key{" ", "down"}},
		{"bytime", []tui.Key{"t"}},
		{"filter", []tui.Key{"/", "M", "A", "T"}},
		{"nothing", []tui.Key{"/", "x", "y", "z", "enter"}},
		{"process", []tui.Key{"enter"}},
		{"help", []tui.Key{"?"}},
	} {
		t.Run(m.name, func(t *testing.T) {
			var b strings.Builder
			for _, size := range [][2]int{{60, 16}, {80, 24}, {200, 50}} {
				for _, n := range []int{0, 1, 4, 32} {
					fmt.Fprintf(&b, "-- %dx%d, %d devices --\n%s", size[0], size[1], n, open(t, n, size[0], size[1]).keys(m.keys...).screen())
				}
			}
			golden.Check(t, "testdata/"+m.name+".txt", []byte(b.String()))
		})
	}
}

// A frozen table stays as it is while samples come, can still be sorted, and
// continues with the newest one.
func TestFreeze(t *testing.T) {
	st := open(t, 4, 200, 50).keys(" ")
	st.has("FROZEN at 12:00:00", "72240")
	st.sample().sample()
	st.has("FROZEN at 12:00:00", "72240")
	st.keys("n").has("FROZEN at 12:00:00", "72240")
	st.keys(" ").hasNot("FROZEN")
	st.has("74648")
	st.keys(" ")
	st.s.Update(tui.Jumped{})
	st.sample().hasNot("FROZEN")
}

// Before there is a snapshot there is nothing to freeze.
func TestFreezeNothing(t *testing.T) {
	st := &stage{t: t, s: New(Options{Which: metric.OpChoice{Sort: "share"}}), n: 1, w: 80, h: 24}
	st.keys(" ", "enter", "down", ">").has("Waiting")
	st.sample().hasNot("FROZEN", "Waiting")
}

func TestSort(t *testing.T) {
	st := open(t, 4, 120, 40)
	first := func() string { return st.s.rows[0].Name }
	for _, c := range []struct {
		key  tui.Key
		want string
	}{
		{"m", "AllGather"},
		{"I", ""},
		{"s", "MatmulDeviceOperation"},
		{">", ""},
		{">", "MatmulDeviceOperation"},
		{"l", "AllGather"},
		{"<", "AllGather"},
		{"t", "MatmulDeviceOperation"},
		{"c", "MatmulDeviceOperation"},
		{"n", ""},
		{"n", "ScaledDotProductAttentionDecodeWithPagedCache"},
		{"<", "MatmulDeviceOperation"},
	} {
		if st.keys(c.key); first() != c.want {
			t.Errorf("after %s %q is first (%s), want %q", c.key, first(), st.s.which.Sort, c.want)
		}
	}
	if st.s.which.Sort != metric.OpOrders()[0] || st.s.which.Reverse {
		t.Errorf("after the first column, and back, it sorts by %s", st.s.which.Sort)
	}
	for _, k := range orderKeys {
		if st.keys(k.key); st.s.which.Sort != k.order {
			t.Errorf("%s sorts by %s", k.key, st.s.which.Sort)
		}
	}
}

// The selection stays on its operation while the table is sorted and renewed;
// at the top it stays at the top.
func TestSelectionStays(t *testing.T) {
	st := open(t, 4, 120, 40).keys("down")
	name := st.selected()
	st.keys("m").sample()
	if got := st.selected(); got != name {
		t.Errorf("%s is selected, was %s", got, name)
	}
	st.keys("home", "s", "n", "n")
	if st.s.list.Sel != 0 {
		t.Error("the top is not the top any more")
	}
}

func TestNarrow(t *testing.T) {
	st := open(t, 4, 120, 40).keys("/", "m", "q", "backspace", "A", "T")
	if !st.s.Typing() || len(st.s.rows) != 1 {
		t.Errorf("typing %v, %d rows", st.s.Typing(), len(st.s.rows))
	}
	st.s.Update(tui.Paste("z"))
	st.has(`no operation has "mATz" in its name`)
	st.keys("esc").has("AllGather")
	st.keys("enter").has("only process")
	st.hasNot("AllGather")
	st.keys("esc").has("AllGather")
	if got := st.s.Update(tui.Key("q")); len(got) != 1 || got[0] != (tui.Quit{}) {
		t.Errorf("q does %v", got)
	}
	if st.keys("/", "a", "enter"); st.s.Update(tui.Key("q")) != nil || st.s.which.Filter != "" {
		t.Error("q does not end the filter first")
	}
}

// -p stays when the screen is widened again.
func TestPIDOfFlags(t *testing.T) {
	snap := working(4, 0)
	s := New(Options{Which: metric.OpChoice{Sort: "share", PID: snap.Processes[1].PID}})
	s.Update(tui.Sample{Snapshot: snap})
	for _, k := range []tui.Key{"enter", "enter", "esc"} {
		s.Update(k)
		if len(s.rows) != 1 || s.rows[0].Name != "AllGather" {
			t.Errorf("after %s: %d rows", k, len(s.rows))
		}
	}
}

func TestLost(t *testing.T) {
	st := open(t, 4, 120, 40)
	st.s.Update(tui.Lost{Err: errors.New("connection\x1brefused"), At: tuitest.Start.Add(5 * time.Second)})
	st.has("no update for 5", "refused", "MatmulDeviceOperation")
	st.sample().hasNot("refused")
	st = &stage{t: t, s: New(Options{}), w: 80, h: 24}
	st.s.Update(tui.Lost{Err: errors.New("connection refused"), At: tuitest.Start})
	st.has("no data: connection refused")
}

// In a recording the keys of the player are not told as those of the table.
func TestSurround(t *testing.T) {
	st := open(t, 1, 120, 60)
	st.s.Surround(widget.Around{Title: "The recording", Keys: []widget.Binding{{Keys: []tui.Key{">"}, Foot: "Later", Help: "a minute later"}}})
	st.keys("?").has("The recording", "a minute later", "sort by the next column")
}

// A press on a heading sorts by it.
func TestMouse(t *testing.T) {
	st := open(t, 1, 120, 40)
	for y, line := range strings.Split(st.screen(), "\n") {
		if x := strings.Index(line, "Longest"); x >= 0 {
			st.s.Update(tui.Mouse{X: x, Y: y, Action: tui.Press})
		}
	}
	if st.s.which.Sort != "longest" {
		t.Errorf("sorted by %s", st.s.which.Sort)
	}
}

// No size and no key makes it panic.
func TestSizes(t *testing.T) {
	for _, size := range [][2]int{{1, 1}, {5, 3}, {20, 5}, {80, 24}, {300, 100}} {
		for _, n := range []int{0, 1, 32} {
			st := open(t, n, size[0], size[1])
			for _, k := range []tui.Key{"enter", "esc", "/", "a", "enter", "?", "x", "end", "pgup", " ", "t", "n", "I", ">", "<", "f6"} {
				st.keys(k).sample().screen()
			}
		}
	}
}
