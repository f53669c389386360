package top

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ttmon/ttmon/internal/base/config"
	"github.com/ttmon/ttmon/internal/field/metric"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/model/history"
	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/act"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
	"github.com/ttmon/ttmon/internal/view/tui/gauge"
	"github.com/ttmon/ttmon/internal/view/tui/tuitest"
)

// What a process holds over several devices carries the doubts of each, and
// the unknown is never zero.
func TestHeld(t *testing.T) {
	gib, denied := model.ExactBytes(1<<30), model.NoBytes(model.Denied)
	for _, c := range []struct {
		parts []model.Bytes
		want  string
	}{
		{nil, "–"},
		{[]model.Bytes{model.ExactBytes(5 << 30)}, "  5.0 GiB"},
		{[]model.Bytes{model.ExactBytes(0)}, "    0 B  "},
		{[]model.Bytes{gib, gib}, "  2.0 GiB"},
		{[]model.Bytes{gib, model.BoundBytes(1<<30, model.Unsure)}, " ~2.0 GiB"},
		{[]model.Bytes{denied}, "denied"},
		{[]model.Bytes{denied, gib}, " ≥1.0 GiB"},
		{[]model.Bytes{{}, gib}, " ≥1.0 GiB"},
		{[]model.Bytes{{}, model.NoBytes(model.Hung)}, "hung"},
	} {
		t.Run(fmt.Sprint(c.parts), func(t *testing.T) {
			p := model.Process{State: model.Running}
			for i, b := range c.parts {
				p.Devices = append(p.Devices, model.DeviceUse{Device: i, Memory: model.PoolBytes{model.DRAM: b}})
			}
			dram := metric.ProcessNamed("dram")
			if got := dram.Cell(dram.Get(&model.Snapshot{}, &p)); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// process is a process for trees: pid and parent are all that counts.
func process(pid, ppid int) model.Process {
	return model.Process{PID: pid, PPID: ppid, StartTicks: 1, State: model.Running}
}

func treeOf(list ...model.Process) []string {
	rows := make([]row, len(list))
	for i := range list {
		rows[i] = row{p: &list[i]}
	}
	var out []string
	for _, r := range tree(rows, func(*model.Process) metric.Value { return metric.Value{} }, func(a, b *row) int { return a.p.PID - b.p.PID }) {
		text := fmt.Sprintf("%s%d", r.branch, r.p.PID)
		if r.parent {
			text += " stands for " + fmt.Sprint(r.below)
		}
		out = append(out, text)
	}
	return out
}

func TestTree(t *testing.T) {
	for _, c := range []struct {
		name string
		list []model.Process
		want []string
	}{
		{"flat", []model.Process{process(10, 1), process(20, 1)}, []string{"10", "20"}},
		{
			"children",
			[]model.Process{process(30, 10), process(10, 1), process(20, 10), process(40, 20)},
			[]string{"10", "├─ 20", "│  └─ 40", "└─ 30"},
		},
		{
			"a parent that uses no device",
			[]model.Process{process(20, 15), process(30, 15), process(40, 16)},
			[]string{"15 stands for 2", "├─ 20", "└─ 30", "40"},
		},
		{"a circle", []model.Process{process(20, 30), process(30, 20)}, []string{"20", "└─ 30"}},
		{"its own parent", []model.Process{process(20, 20)}, []string{"20"}},
		{"hidden ones have no parent", []model.Process{process(0, 0), process(0, 0)}, []string{"0", "0"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, treeOf(c.list...)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// No process is lost in a tree, and none is in it twice.
func TestTreeKeepsEverybody(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "processes")
		var list []model.Process
		for pid := 2; pid < 2+n; pid++ {
			list = append(list, process(pid, rapid.IntRange(0, n+4).Draw(t, "parent")))
		}
		seen := map[string]int{}
		for _, line := range treeOf(list...) {
			if !strings.Contains(line, "stands for") {
				seen[strings.TrimLeft(line, "│├└─ ")]++
			}
		}
		for _, p := range list {
			if seen[fmt.Sprint(p.PID)] != 1 {
				t.Fatalf("%d is listed %d times: %v", p.PID, seen[fmt.Sprint(p.PID)], treeOf(list...))
			}
		}
	})
}

// Rows without a value come last, whichever way the table is sorted.
func TestUnknownLast(t *testing.T) {
	for _, down := range []bool{false, true} {
		st := openAfter(t, 1, 4, 120, 40, func(c *config.Config) { c.Top.Processes.Descending = down })
		rows := st.s.proc.rows
		if last := rows[len(rows)-1].p.PID; last != 190011 {
			t.Errorf("descending %v: the denied process is not last but %d", down, last)
		}
		if want := map[bool]int{true: 182034, false: 183377}[down]; rows[0].p.PID != want {
			t.Errorf("descending %v: first is %d", down, rows[0].p.PID)
		}
	}
}

// Every column can be sorted by, both ways, and all rows stay.
func TestSortByEveryColumn(t *testing.T) {
	st := openAfter(t, 1, 8, 120, 40)
	for _, c := range metric.Processes() {
		for range 2 {
			st.s.sortBy(c.Name)
			if len(st.s.proc.rows) != 3 {
				t.Errorf("sorted by %s: %d rows", c.Name, len(st.s.proc.rows))
			}
			if c.Rank > 0 && c.Rank < 9 && !st.has(c.Head+"▲") && !st.has(c.Head+"▼") {
				t.Errorf("sorted by %s, and no title says so:\n%s", c.Name, st.draw())
			}
		}
	}
}

// The cursor stays on its process when the order changes, and goes to a
// neighbour when the process is gone.
func TestCursorFollowsProcess(t *testing.T) {
	st := openAfter(t, 2, 4, 120, 40)
	st.keys("down")
	if st.s.proc.sel.pid != 183377 {
		t.Fatal(st.s.proc.sel)
	}
	st.keys("I")
	if st.s.proc.sel.pid != 183377 || st.s.proc.selected().p.PID != 183377 {
		t.Errorf("after reversing, %v is selected", st.s.proc.sel)
	}
	snap := tuitest.Host(4, 3)
	snap.Processes = append(snap.Processes[:1:1], snap.Processes[2:]...)
	st.send(tui.Sample{Snapshot: snap})
	if r := st.s.proc.selected(); r == nil || r.p.PID == 183377 {
		t.Errorf("selected %v after it is gone", r)
	}
}

func TestProcessPage(t *testing.T) {
	st := openAfter(t, 2, 4, 100, 60)
	st.effects = nil
	st.keys("enter")
	want := act.Inspect{Target: act.Target{PID: 182034, StartTicks: 182034 * 7, Name: "python3 serve.py --model llama-70b --max-batch 32 --port 8000"}}
	if len(st.effects) != 1 || st.effects[0] != want {
		t.Fatalf("effects %+v", st.effects)
	}
	st.send(act.Inspected{
		Target:  want.Target,
		Environ: []string{"HOME=/root", "TT_METAL_HOME=/opt/tt-metal", "TT_LOGGER_LEVEL=\x1b[31mred", "AWS_SECRET=x", "MESH_DEVICE=N300"},
		Buffers: []act.Buffer{{Device: 0, Chip: "L", Pool: "dram", Bytes: 1 << 20, Age: time.Minute}, {Device: 0, Pool: "l1", Bytes: 1 << 30, Age: time.Hour}},
	})
	out := st.draw()
	for _, text := range []string{"/opt/tt-metal", "N300", `\x1b[31mred`, "slurmstepd.scope", "chip R", "1.0 GiB", "1h00m"} {
		if !strings.Contains(out, text) {
			t.Errorf("%q is missing:\n%s", text, out)
		}
	}
	for _, text := range []string{"AWS_SECRET", "HOME=/root"} {
		if strings.Contains(out, text) {
			t.Errorf("%q is shown", text)
		}
	}
	if strings.Index(out, "1.0 GiB ") > strings.Index(out, "1.0 MiB ") {
		t.Error("the largest buffer is not first")
	}
	st.send(act.Inspected{Target: want.Target, EnvErr: errors.New("denied: only its owner and root may see it"), BufferErr: act.ErrUnknown})
	if !st.has("denied: only its owner") || !st.has("buffers are known only where ttmond") {
		t.Error(st.draw())
	}
	st.n = 0
	st.run(1)
	if !st.has("gone: this is how it was seen last") || !st.has("llama-70b") {
		t.Errorf("a process that is gone:\n%s", st.draw())
	}
	st.keys("f9")
	if st.s.dialog != nil {
		t.Error("a process that is gone can be killed")
	}
}

// Every setting of every section can be changed with the keys shown, and the
// screen can be drawn with each of its values.
func TestSetupChangesEverything(t *testing.T) {
	for i, sec := range sections {
		u := &setup{section: i}
		for j, o := range u.options() {
			st := openAfter(t, 2, 4, 100, 30)
			before := o.Get(&st.s.cfg)
			st.keys("f2")
			for range i {
				st.keys("tab")
			}
			for range j {
				st.keys("down")
			}
			if !st.has(o.Title) || !st.has(o.Help[:min(len(o.Help), 20)]) {
				t.Errorf("%s is not on the screen:\n%s", o.Path, st.draw())
			}
			st.keys("right")
			switch d := st.s.dialog.(type) {
			case *over: // a menu of words
				st.keys(" ", "esc")
			case *setup:
				if d.edit != nil { // a text
					st.keys("7", "enter")
				}
			}
			if o.Get(&st.s.cfg) == before {
				t.Errorf("%s (%s) cannot be changed from %q:\n%s", o.Path, sec.title, before, st.draw())
			}
			st.keys("esc")
			st.draw()
		}
	}
}

func TestDevicePage(t *testing.T) {
	st := openAfter(t, 2, 4, 110, 160)
	st.keys("tab", "enter")
	for _, text := range []string{"Device 0  n300", "ASIC Temperature ", "the driver offers no fan on wormhole", "Chip L", "Chip R", "9956278468", "19.4.0.0", "(nominal)"} {
		if !st.has(text) {
			t.Errorf("%q is missing:\n%s", text, st.draw())
		}
	}
	st.keys("right")
	if !st.has("Device 1  p150a") {
		t.Error("→ does not lead to the next device")
	}
	st.keys("left", "left")
	if !st.has("Device 0  n300") {
		t.Error("← does not lead back")
	}
	st.n = 0
	st.run(1)
	if !st.has("0000:01:00.0 is gone") {
		t.Error(st.draw())
	}
}

// Only what is chosen is shown, with only its users.
func TestOnly(t *testing.T) {
	st := openAfter(t, 2, 4, 110, 40, func(c *config.Config) { c.Top.Devices.Only = []string{"0000:01:00.0"} })
	if st.has("p150a") || !st.has("n300") || st.has("bench.py") || !st.has("serve.py") {
		t.Error(st.draw())
	}
	st = openAfter(t, 2, 4, 110, 40, func(c *config.Config) { c.Top.Devices.Only = []string{"9"} })
	if !st.has("None of this host's devices is among those chosen") {
		t.Error(st.draw())
	}
}

// longer is a history that reaches further back than the run.
type longer struct{ *history.Store }

// Charts show whatever history they are given: that of a daemon was there
// before the screen was.
func TestHistoryFilledElsewhere(t *testing.T) {
	store := history.New()
	set := gauge.New()
	for i := range 600 {
		set.Record(store, tuitest.Host(1, i))
	}
	s, err := New(Options{Config: config.Default(), History: longer{store}})
	if err != nil {
		t.Fatal(err)
	}
	st := &stage{t: t, s: s, g: cells.NewGrid(120, 40), n: 1, sec: 600}
	st.send(tui.Resize{W: 120, H: 40})
	st.run(1)
	if !st.has("10 min") || strings.Count(st.draw(), "⣿") < 200 {
		t.Errorf("ten minutes of history are not drawn:\n%s", st.draw())
	}
}

// TestViewsByNumber: the views that tt_smi_umd had on 1, 2 and 3, from each other, too.
func TestViewsByNumber(t *testing.T) {
	st := open(t, 4, 120, 40)
	main := st.draw()
	for range 2 {
		if st.keys("2"); !st.has("Zoom in") || st.draw() == main {
			t.Errorf("2 is no charts:\n%s", st.draw())
		}
		if st.keys("3"); !st.has("Core Voltage") {
			t.Errorf("3 is no telemetry:\n%s", st.draw())
		}
	}
	if st.keys("1"); st.draw() != main {
		t.Errorf("1 is not the main page:\n%s", st.draw())
	}
}
