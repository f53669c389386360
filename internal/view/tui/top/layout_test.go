package top

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/ttmon/ttmon/internal/base/config"
)

func TestPlan(t *testing.T) {
	base := request{layout: "auto", charts: "auto", processes: true}
	for _, c := range []struct {
		name   string
		r      request
		level  level
		charts bool
	}{
		{"one board, small", request{w: 80, h: 24, devices: 1}, blocks, true},
		{"four boards, small", request{w: 80, h: 24, devices: 4}, compact, false},
		{"three boards, small", request{w: 80, h: 24, devices: 3}, compact, true},
		{"eight boards, small", request{w: 80, h: 24, devices: 8}, lines, true},
		{"a Galaxy, small", request{w: 80, h: 24, devices: 32, groups: 4}, grid, true},
		{"two boards", request{w: 120, h: 40, devices: 2, multichip: true}, blocks, true},
		{"eight boards", request{w: 120, h: 40, devices: 8}, compact, true},
		{"a Galaxy", request{w: 120, h: 40, devices: 32, groups: 4}, grid, true},
		{"a Galaxy, large", request{w: 200, h: 50, devices: 32, groups: 4}, grid, true},
		{"twelve boards, large", request{w: 200, h: 50, devices: 12}, blocks, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := c.r
			r.layout, r.charts, r.processes = base.layout, base.charts, base.processes
			p := makePlan(r)
			if p.level != c.level || (p.charts > 0) != c.charts {
				t.Errorf("%v with %d rows of charts, want %v, charts %v", p.level, p.charts, c.level, c.charts)
			}
			if p.processes < 6 {
				t.Errorf("only %d rows for processes", p.processes)
			}
		})
	}
}

// Asked for charts, devices give way; asked for none, there are none.
func TestPlanCharts(t *testing.T) {
	r := request{w: 80, h: 24, devices: 4, layout: "auto", charts: "always", processes: true}
	if p := makePlan(r); p.charts == 0 || p.level <= compact {
		t.Errorf("charts asked for: %+v", p)
	}
	r = request{w: 200, h: 50, devices: 1, layout: "auto", charts: "never", processes: true}
	if p := makePlan(r); p.charts != 0 {
		t.Errorf("charts not wanted: %+v", p)
	}
	r.processes, r.charts = false, "auto"
	if p := makePlan(r); p.processes != 0 || p.charts < 30 {
		t.Errorf("without processes charts take the room: %+v", p)
	}
}

// However small the screen and however many the devices: the parts fit, and
// a layout that was asked for is taken.
func TestPlanAlwaysFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := request{
			w: rapid.IntRange(0, 300).Draw(t, "w"), h: rapid.IntRange(0, 100).Draw(t, "h"),
			devices: rapid.IntRange(0, 64).Draw(t, "devices"), multichip: rapid.Bool().Draw(t, "multichip"),
			layout: rapid.SampledFrom(layouts).Draw(t, "layout"), charts: rapid.SampledFrom([]string{"auto", "always", "never"}).Draw(t, "charts"),
			processes: rapid.Bool().Draw(t, "processes"),
		}
		r.groups = rapid.IntRange(0, max(r.devices, 1)).Draw(t, "groups")
		p := makePlan(r)
		// Blocks are not cut in half: a single one may be taller than the screen.
		if sum := p.devices + p.charts + p.processes; sum > max(r.h-2, 0) && p.devices > p.height+1 {
			t.Fatalf("%+v needs %d of %d rows: %+v", r, sum, r.h-2, p)
		}
		if p.perRow < 1 || p.height < 1 || p.charts < 0 || p.processes < 0 || p.devices < 0 {
			t.Fatalf("%+v: %+v", r, p)
		}
		if r.layout != "auto" && r.devices > 0 && p.level.String() != r.layout {
			t.Fatalf("%+v: %v", r, p.level)
		}
		if p.charts > 0 && p.charts < minCharts {
			t.Fatalf("%+v: charts in %d rows", r, p.charts)
		}
	})
}

// A tall screen has four charts; charts that the user chose stay.
func TestTallScreen(t *testing.T) {
	st := open(t, 3, 200, 80)
	for _, title := range []string{" DRAM GiB", " Power W", " Temperature °C", " Activity"} {
		if !st.has(title) {
			t.Errorf("no chart %q:\n%s", title, st.draw())
		}
	}
	st = open(t, 3, 200, 80, func(c *config.Config) { c.Top.Charts.Metrics = []string{"dram"} })
	if st.has(" Temperature °C") {
		t.Error("a chart that was not chosen")
	}
	if st = open(t, 3, 200, 40); st.has(" Temperature °C") {
		t.Error("four charts on a screen that is not tall")
	}
}
