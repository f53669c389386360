package top

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ttmon/ttmon/internal/base/config"
	"github.com/ttmon/ttmon/internal/field/metric"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/act"
	"github.com/ttmon/ttmon/internal/view/tui/tuitest"
)

// situations are states in which keys may have something to do.
var situations = []func(st *stage){
	func(st *stage) {},
	func(st *stage) { st.keys("down", " ", "up") },                        // tagged
	func(st *stage) { st.keys("right", "right", "end") },                  // scrolled
	func(st *stage) { st.keys("tab", "down") },                            // devices
	func(st *stage) { st.keys("tab", "tab", "left", "left", "left") },     // charts, with a cursor
	func(st *stage) { st.keys("tab", "tab", "+", "+", "+", ",", "down") }, // charts, in the past
	func(st *stage) { st.keys("C", "left") },                              // page of charts
	func(st *stage) { st.keys("enter", "down") },                          // a process
	func(st *stage) { st.keys("tab", "right", "enter", "down", "down") },  // a device
	func(st *stage) { st.keys("e") },
}

// Every key that the help names does something somewhere: changes the
// screen, or asks for an effect.
func TestEveryKeyDoesSomething(t *testing.T) {
	all := slices.Concat(everywhere(), onMain(), chartKeys(), chartPage{}.keys(), (&processPage{}).keys(), (&devicePage{}).keys())
	for _, k := range []tui.Key{"up", "down", "left", "right", "pgup", "pgdn", "home", "end", "h", "j", "k", "l", "g", "G", "ctrl-b", "ctrl-f", "ctrl-u", "ctrl-d"} {
		all = append(all, binding{keys: []tui.Key{k}})
	}
	for _, b := range all {
		for _, k := range b.keys {
			if !doesSomething(t, k) {
				t.Errorf("%s (%s) does nothing anywhere", k, b.help)
			}
		}
	}
}

func doesSomething(t *testing.T, k tui.Key) bool {
	for _, prepare := range situations {
		st := openAfter(t, 45, 8, 120, 40)
		prepare(st)
		before := st.draw() + styles(st.g)
		st.effects = nil
		st.send(k)
		if st.draw()+styles(st.g) != before || len(st.effects) > 0 {
			return true
		}
	}
	return false
}

// Esc or q lead back to the main page from everywhere, and from there out.
func TestWayOut(t *testing.T) {
	for _, out := range []tui.Key{"esc", "q"} {
		for _, in := range [][]tui.Key{{"?"}, {"f2"}, {"f6"}, {"a"}, {"e"}, {"C"}, {"enter"}, {"tab", "enter"}, {"f9"}, {"f9", "enter"}, {"f2", "tab", "tab", "tab", "down", "enter"}} {
			t.Run(fmt.Sprint(in, " ", out), func(t *testing.T) {
				st := open(t, 4, 80, 24)
				st.keys(in...)
				st.effects = nil
				for range 3 {
					st.keys(out)
					if s := st.s; s.page == nil && s.dialog == nil {
						break
					}
				}
				if st.s.page != nil || st.s.dialog != nil || st.s.frozen || len(st.effects) != 0 {
					t.Errorf("%v then %s leaves page %T, dialog %T, frozen %v, effects %v", in, out, st.s.page, st.s.dialog, st.s.frozen, st.effects)
				}
				st.keys(out)
				if out == "esc" { // pressed once too often, it says how to quit
					if len(st.effects) != 0 || !st.has("q quits") {
						t.Errorf("esc on the main page gives %v:\n%s", st.effects, st.draw())
					}
					return
				}
				if !reflect.DeepEqual(st.effects, []tui.Effect{tui.Quit{}}) {
					t.Errorf("%s on the main page gives %v", out, st.effects)
				}
			})
		}
	}
}

// Text pasted into the terminal is no command.
func TestPaste(t *testing.T) {
	st := open(t, 4, 120, 40)
	st.effects = nil
	st.send(tui.Paste("q\nf9y"))
	if len(st.effects) != 0 || st.s.dialog != nil {
		t.Error("pasted text acted as keys")
	}
	st.keys("/")
	st.send(tui.Paste("user=alice\n"))
	if !st.has("Filter: user=alice") || st.s.proc.matching() != 1 {
		t.Errorf("pasted filter:\n%s", st.draw())
	}
}

func TestMouse(t *testing.T) {
	st := open(t, 4, 120, 40)
	press := func(text string) {
		x, y := st.find(text)
		st.send(tui.Mouse{X: x, Y: y, Action: tui.Press})
		st.send(tui.Mouse{X: x, Y: y, Action: tui.Release})
	}
	press("183377")
	if st.s.proc.sel.pid != 183377 {
		t.Error("a press does not select a process")
	}
	press("183377")
	if _, ok := st.s.page.(*processPage); !ok {
		t.Error("a second press does not open it")
	}
	st.keys("q")
	press("Time")
	if st.s.cfg.Top.Processes.Sort != "time" || !st.s.cfg.Top.Processes.Descending {
		t.Error("a press on a title does not sort")
	}
	press("Time▼")
	if st.s.cfg.Top.Processes.Descending {
		t.Error("a second press does not reverse")
	}
	press("Command")
	if st.s.cfg.Top.Processes.Sort != "command" || st.s.cfg.Top.Processes.Descending {
		t.Error("text does not sort from A to Z")
	}
	press("0000:03:00.0")
	if st.s.focus != devices || st.s.dev.selected(st.s).Index != 2 {
		t.Error("a press does not select a device")
	}
	press("0000:03:00.0")
	if _, ok := st.s.page.(*devicePage); !ok {
		t.Error("a second press does not open the device")
	}
	st.keys("q")
	x, y := st.find("now ┘")
	st.send(tui.Mouse{X: x - 10, Y: y - 3, Action: tui.Press})
	st.send(tui.Mouse{X: x - 20, Y: y - 3, Action: tui.Drag})
	if st.s.focus != charts || st.s.chart.at.IsZero() {
		t.Error("a press does not set the cursor of a chart")
	}
	span := st.s.cfg.Top.Charts.Span
	st.draw()
	st.send(tui.Mouse{X: x - 10, Y: y - 3, Action: tui.WheelUp})
	if st.s.cfg.Top.Charts.Span >= span {
		t.Error("the wheel does not zoom")
	}
	st.draw()
	st.send(tui.Mouse{X: x - 10, Y: y - 3, Action: tui.RightPress})
	if !st.s.chart.at.IsZero() {
		t.Error("the right button does not remove the cursor")
	}
	px, py := st.find("182034")
	st.send(tui.Mouse{X: px, Y: py, Action: tui.WheelDown})
	if st.s.proc.cursor == 0 {
		t.Error("the wheel does not move in the table")
	}
	st.draw()
	st.send(tui.Mouse{X: px, Y: py, Action: tui.RightPress})
	if len(st.s.proc.tagged) != 1 {
		t.Error("the right button does not tag")
	}
	press("Setup")
	if _, ok := st.s.dialog.(*setup); !ok {
		t.Error("a press on the footer does nothing")
	}
	press("Charts")
	if u := st.s.dialog.(*setup); sections[u.section].title != "Charts" {
		t.Errorf("a press on a tab leads to %s", sections[u.section].title)
	}
	press("Newest left")
	if !st.s.cfg.Top.Charts.Reverse {
		t.Error("a press on a setting does not change it")
	}
}

func TestSetupSaves(t *testing.T) {
	st := open(t, 4, 80, 24)
	st.effects = nil
	st.keys("f2", "right", "tab", "right", "f12")
	want := config.Default()
	want.Display.Theme = "dark"
	want.Top.Interval = config.Duration(2 * time.Second)
	if diff := cmp.Diff([]tui.Effect{tui.SetInterval(2 * time.Second), act.Save{Config: want}}, st.effects); diff != "" {
		t.Error(diff)
	}
	st.send(act.Saved{Path: "/home/u/.config/ttmon/config.toml"})
	if !st.has("saved to /home/u/.config/ttmon/config.toml") {
		t.Error(st.draw())
	}
	st.send(act.Saved{Err: errors.New("read-only file system")})
	if !st.has("not saved: read-only file system") {
		t.Error(st.draw())
	}
}

// A wrong value typed into the setup changes nothing and is explained.
func TestSetupRefuses(t *testing.T) {
	st := open(t, 4, 80, 24)
	st.keys("f2", "tab", "enter", "ctrl-u", "0", "enter")
	if !st.has("not a duration") && !st.has("is not between") {
		t.Errorf("no explanation:\n%s", st.draw())
	}
	if st.s.cfg.Top.Interval != config.Default().Top.Interval {
		t.Error("a wrong interval was taken")
	}
	st.keys("esc", "shift-tab", "shift-tab", "end", "enter", "d", "r", "a", "m", ">", "enter")
	if !st.has("a value is missing after dram>") {
		t.Errorf("no explanation:\n%s", st.draw())
	}
}

func TestConfigErrors(t *testing.T) {
	for want, change := range map[string]func(*config.Config){
		`unknown metric "x"`:   func(c *config.Config) { c.Top.Charts.Metrics = []string{"x"} },
		`unknown column "x"`:   func(c *config.Config) { c.Top.Processes.Columns = []string{"x"} },
		`unknown column "y"`:   func(c *config.Config) { c.Top.Processes.Sort = "y" },
		`top.processes.filter`: func(c *config.Config) { c.Top.Processes.Filter = "dram>" },
	} {
		t.Run(want, func(t *testing.T) {
			c := config.Default()
			change(&c)
			if _, err := New(Options{Config: c}); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want %s", err, want)
			}
		})
	}
}

// When nothing changes, nothing is drawn differently.
func TestIdleScreenStandsStill(t *testing.T) {
	st := open(t, 4, 120, 40)
	snap := tuitest.Host(4, 500)
	for range 5 {
		next := *snap
		next.Time = snap.Time.Add(time.Second)
		snap = &next
		st.send(tui.Sample{Snapshot: snap})
	}
	first := st.draw()
	next := *snap
	next.Time = snap.Time.Add(time.Second / 4)
	st.send(tui.Sample{Snapshot: &next})
	if diff := cmp.Diff(strings.Split(first, "\n"), strings.Split(st.draw(), "\n")); diff != "" {
		t.Errorf("an idle screen changes:\n%s", diff)
	}
}

// Whatever is pressed, clicked, resized or sampled, in any order and at any
// size: no panic, and the process selected is one that is listed.
func TestAnythingGoes(t *testing.T) {
	hermetic.Long(t)
	keys := []tui.Key{
		"up", "down", "left", "right", "pgup", "pgdn", "home", "end", "enter", " ", "tab", "shift-tab", "esc", "backspace", "delete",
		"f1", "f2", "f3", "f5", "f6", "f9", "f12", "/", "a", "c", "C", "d", "e", "s", "m", "v", "w", "P", "p", "T", "U", "I", "t", "+", "-", ",", ".",
		"y", "n", "r", "1", "2", "3", "9", "=", ">", "x", "ctrl-w", "ctrl-u", "g", "G", "R", "o",
	}
	rapid.Check(t, func(rt *rapid.T) {
		st := openAfter(t, 3, rapid.SampledFrom([]int{0, 1, 4, 8, 32}).Draw(rt, "devices"), 80, 24)
		for range rapid.IntRange(1, 60).Draw(rt, "events") {
			switch rapid.IntRange(0, 9).Draw(rt, "kind") {
			case 0:
				st.g.Resize(rapid.IntRange(0, 210).Draw(rt, "w"), rapid.IntRange(0, 60).Draw(rt, "h"))
				st.send(tui.Resize{W: st.g.W, H: st.g.H})
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
			if r := st.s.proc.selected(); r != nil && r.id() != st.s.proc.sel {
				rt.Fatalf("row %d is %v, selected is %v", st.s.proc.cursor, r.id(), st.s.proc.sel)
			}
			if r := st.s.proc.selected(); r == nil && len(st.s.proc.rows) > 0 {
				rt.Fatal("nothing is selected")
			}
		}
	})
}

// Devices of one board stand together and are seen to.
func TestGroupByBoard(t *testing.T) {
	st := open(t, 8, 120, 40, func(c *config.Config) { c.Top.Devices.Group, c.Top.Devices.Layout = "board", "lines" })
	snap := tuitest.Host(8, 200)
	for _, i := range []int{1, 6} {
		snap.Devices[i].Serial = snap.Devices[3].Serial
	}
	st.send(tui.Sample{Snapshot: snap})
	var order []string
	for row := range strings.Lines(st.draw()) {
		if f := []rune(row); len(f) > 9 && f[2] >= '0' && f[2] <= '9' && f[1] == ' ' {
			order = append(order, string(f[0])+string(f[2]))
		}
		if len(order) == 8 {
			break
		}
	}
	if got := strings.Join(order, ","); got != " 0,┌1,├3,└6, 2, 4, 5, 7" {
		t.Errorf("order %q\n%s", got, st.g)
	}
}

func TestColumnsHaveText(t *testing.T) {
	snap := tuitest.Host(4, 0)
	hidden := model.Process{State: model.Hidden, Devices: []model.DeviceUse{{Device: 1}}}
	bare := model.Process{PID: 5, State: model.Running}
	for _, p := range append(snap.Processes, hidden, bare) {
		r := row{p: &p}
		for _, c := range metric.Processes() {
			text, _ := cellOf(&c, snap, &r)
			if text == "" {
				t.Errorf("column %s of %d is empty", c.Name, p.PID)
			}
			if c.Width > 0 && words.Width(text) > c.Width && c.Right() {
				t.Errorf("column %s: %q does not fit into %d", c.Name, text, c.Width)
			}
		}
	}
}
