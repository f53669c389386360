package fleet

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/collect/assess"
	"github.com/ttmon/ttmon/internal/field/sums"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
)

// engine answers as one with n hosts of 32 chips would; every hundredth has a
// hung chip.
type engine struct {
	t     *testing.T
	s     *Screen
	n     int
	asked []tui.Effect
	fail  error
}

func (e *engine) send(ev tui.Event) {
	e.t.Helper()
	for _, eff := range e.s.Update(ev) {
		e.asked = append(e.asked, eff)
		switch q := eff.(type) {
		case Fetch:
			e.send(Answer{Fleet: e.fleet(), At: time.Unix(1_800_000_000, 0), Err: e.fail})
		case FetchCells:
			got := Cells{Chips: map[string][]sums.Chip{}, Err: e.fail}
			for _, name := range q.Hosts {
				got.Chips[name] = chips(name)
			}
			e.send(got)
		case FetchHost:
			e.send(Host{Name: q.Name, Host: &sums.Host{Name: q.Name, Chips: assess.Tally{model.ConditionOK: 32}, States: chips(q.Name), Used: math.NaN()}, Err: e.fail})
		}
	}
}

func chips(name string) (list []sums.Chip) {
	for i := range 32 {
		c := sums.Chip{Device: i, Board: "tt-galaxy-bh", State: model.ConditionOK, Temperature: 50, Power: 100, Clock: math.NaN(), Used: 1 << 30, Size: 32 << 30}
		if i == 3 && strings.HasSuffix(name, "00") {
			c.State = model.ConditionHung
		}
		list = append(list, c)
	}
	return list
}

func (e *engine) fleet() *sums.Fleet {
	f := &sums.Fleet{Simulated: 1}
	alert := sums.Alert{Name: "ChipHung", Severity: "critical", PerHost: map[string]int{}}
	for i := range e.n {
		h := sums.Host{
			Name: fmt.Sprintf("node%04d", i), Chips: assess.Tally{model.ConditionOK: 32}, Temperature: float64(40 + i%30), Power: float64(1000 + i),
			Busy: float64(i%100) / 100, BusyBound: model.AtLeast, Used: 1 << 35, Size: 1 << 40, Bound: model.AtLeast,
		}
		if i%100 == 0 {
			h.Chips = assess.Tally{model.ConditionOK: 31, model.ConditionHung: 1}
			h.Alerts = 1
			alert.Count++
			alert.Hosts = append(alert.Hosts, h.Name)
			alert.PerHost[h.Name] = 1
		}
		f.Hosts = append(f.Hosts, h)
	}
	f.Alerts = []sums.Alert{alert}
	return f
}

func open(t *testing.T, n, w, h int) *engine {
	e := &engine{t: t, n: n, s: New(Options{Engine: "prometheus:9090", Interval: 5 * time.Second})}
	e.send(tui.Resize{W: w, H: h})
	e.send(tui.Sample{})
	return e
}

func (e *engine) screen() string {
	g := cells.NewGrid(e.s.w, e.s.h)
	e.s.Draw(g)
	return g.String()
}

func (e *engine) keys(keys ...tui.Key) *engine {
	for _, k := range keys {
		e.send(k)
	}
	return e
}

func (e *engine) has(wants ...string) {
	e.t.Helper()
	got := e.screen()
	for _, want := range wants {
		if !strings.Contains(got, want) {
			e.t.Errorf("no %q on the screen:\n%s", want, got)
		}
	}
}

// A thousand hosts: totals, alerts, the worst first, and the engine is asked
// for the chips of those in view alone.
func TestThousandHosts(t *testing.T) {
	e := open(t, 1000, 140, 40)
	e.has("1000 hosts  32000 devices  10 hung  31990 ok", "SIMULATED 1", "ChipHung ×10", "node0000", "■■■H■■■", "1 hung 1 alert", "≥32.0/1024.0 GiB")
	for _, a := range e.asked {
		if q, ok := a.(FetchCells); ok && len(q.Hosts) > 80 {
			t.Errorf("asks for the chips of %d hosts", len(q.Hosts))
		}
	}
	if first := strings.Index(e.screen(), "node0900"); first < 0 || first > strings.Index(e.screen(), "node0029") && strings.Contains(e.screen(), "node0029") {
		t.Error("the worst are not first")
	}
	e.keys("end").has("node0", "■■■■")
	e.keys("home", "n")
	if e.s.hosts[0].Name != "node0000" || e.s.hosts[999].Name != "node0999" {
		t.Error("not sorted by name")
	}
	if e.keys("p"); e.s.hosts[0].Name != "node0999" {
		t.Error("not sorted by power")
	}
	if e.keys("b"); e.s.hosts[0].Busy != 0.99 {
		t.Error("not sorted by busy")
	}
	e.has("BUSY", "≥99 %", "busy ≥49 %")
	if e.keys("!"); len(e.s.hosts) != 10 {
		t.Errorf("%d hosts are in trouble", len(e.s.hosts))
	}
	e.keys("esc", "/", "9", "9", "enter")
	if len(e.s.hosts) != 19 {
		t.Errorf("%d hosts have 99 in their name", len(e.s.hosts))
	}
	e.keys("/", "x").has("No host has \"99x\"")
	e.keys("esc")
	if len(e.s.hosts) != 1000 {
		t.Error("Esc does not end the filter")
	}
}

// Enter opens a host, and updates keep coming; an engine that does not answer is
// reported beside the last known state.
func TestOneHost(t *testing.T) {
	e := open(t, 200, 80, 24)
	e.keys("enter").has("node0100", "tt-galaxy-bh", "hung", "ChipHung ×1")
	e.send(tui.Sample{})
	if _, ok := e.asked[len(e.asked)-1].(FetchHost); !ok {
		t.Errorf("the open host is not asked for again: %T", e.asked[len(e.asked)-1])
	}
	e.keys("esc").has("200 hosts")
	e.fail = errors.New("connection refused")
	e.send(tui.Sample{})
	e.has("connection refused", "node0000")
	e.fail = nil
	e.send(tui.Sample{})
	if strings.Contains(e.screen(), "refused") {
		t.Error("the failure stays")
	}
	if got := e.s.Update(tui.Key("q")); len(got) != 1 || got[0] != (tui.Quit{}) {
		t.Errorf("q does %v", got)
	}
}

// The selected host stays selected when others come before it, and the top
// stays the top.
func TestSelectionStays(t *testing.T) {
	e := open(t, 50, 100, 20)
	e.keys("n", "down", "down", "down")
	name := e.s.hosts[e.s.list.Sel].Name
	e.keys("p")
	if got := e.s.hosts[e.s.list.Sel].Name; got != name {
		t.Errorf("%s is selected, was %s", got, name)
	}
	e.keys("home", "t")
	if e.s.list.Sel != 0 {
		t.Error("the top is not the top any more")
	}
}

// No size and no key makes it panic.
func TestSizes(t *testing.T) {
	for _, size := range [][2]int{{1, 1}, {20, 5}, {80, 24}, {300, 100}} {
		e := open(t, 3, size[0], size[1])
		for _, k := range []tui.Key{"enter", "esc", "/", "a", "enter", "?", "x", "end", "pgup", "!", "w", "n", "t", "p", "m"} {
			e.keys(k)
			e.screen()
		}
	}
}
