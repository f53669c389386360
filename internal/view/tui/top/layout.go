package top

import "slices"

// level is how much room a device gets.
type level int

// The levels, roomiest first.
const (
	blocks  level = iota // framed: six or seven rows, and one for the last edge
	compact              // three rows, as nvtop has them
	lines                // one row
	grid                 // a cell in a row
	numLevels
)

var layouts = []string{"auto", "blocks", "compact", "lines", "grid"}

func (l level) String() string { return layouts[l+1] }

// plan is how the rows of the main page are shared out.
type plan struct {
	level     level
	perRow    int // devices side by side
	height    int // rows of a device
	devices   int // rows of the device area, heading included
	charts    int // rows of the charts; 0: none
	processes int // rows of the process table, heading included; 0: none
}

// request is what the plan depends on. Values and the number of processes are
// not in it: nothing moves because something changed.
type request struct {
	w, h      int // of the whole screen
	devices   int
	groups    int  // trays; 0: none
	multichip bool // some device has several chips
	layout    string
	charts    string // auto, always, never
	processes bool
}

// Sizes of the parts.
const (
	minBlock  = 56 // columns of a block
	minLine   = 78
	minCell   = 19
	minCharts = 6 // rows, frame included
	maxCharts = 16
	// tallScreen is the height from which charts take half of the screen, and
	// charts of fullCharts rows are four instead of two.
	tallScreen = 60
	fullCharts = 24
	maxBlocks  = 12 // devices; more than that in blocks is a wall
)

func (s *State) plan() plan {
	r := request{
		w: s.w, h: s.h, layout: s.cfg.Top.Devices.Layout, charts: s.cfg.Top.Charts.Show,
		processes: s.cfg.Top.Processes.Show,
	}
	if len(s.cfg.Top.Charts.Metrics) == 0 {
		r.charts = "never"
	}
	list := s.dev.list(s)
	r.devices = len(list)
	trays := map[int]bool{}
	for _, d := range list {
		if d.Tray > 0 {
			trays[d.Tray] = true
		}
		r.multichip = r.multichip || len(d.Chips) > 1
	}
	if s.grouped() {
		r.groups = len(trays)
	}
	return makePlan(r)
}

// makePlan shares the rows out. The process table takes what is left; charts
// give way first, then devices get less room each.
func makePlan(r request) plan {
	free := max(r.h-2, 0) // title and footer
	procs := 0
	if r.processes {
		procs = 1 + max(5, min(free/4, 3*r.devices))
		procs = min(procs, max(free-3, 0))
	}
	if r.devices == 0 {
		p := plan{level: blocks, perRow: 1, height: 3, devices: min(3, free)}
		return p.rest(r, free, procs)
	}
	levels := r.levels()
	for _, l := range levels { // with charts
		if p := fit(r, l); r.charts != "never" && r.mayChart(l) && p.devices+minCharts+procs <= free {
			return p.rest(r, free, procs)
		}
	}
	for _, l := range levels { // without
		if p := fit(r, l); r.charts != "always" && p.devices+procs <= free {
			return p.rest(r, free, procs)
		}
	}
	return scrolled(r, fit(r, levels[len(levels)-1]), free, procs).rest(r, free, procs)
}

// levels are those that devices may be shown at, roomiest first.
func (r *request) levels() []level {
	if i := slices.Index(layouts[1:], r.layout); i >= 0 {
		return []level{level(i)}
	}
	switch {
	case r.groups > 1 && r.w/minCell >= r.groups:
		return []level{grid} // a column per tray, side by side
	case r.devices > maxBlocks:
		return []level{lines, grid}
	}
	return []level{blocks, compact, lines, grid}
}

// mayChart reports whether devices give way to charts down to a level: few of
// them stay readable only in blocks.
func (r *request) mayChart(l level) bool {
	return l <= compact || r.devices > maxBlocks || r.charts == "always"
}

// scrolled is a plan for more devices than fit: their area scrolls.
func scrolled(r request, p plan, free, procs int) plan {
	keep := procs
	if r.charts == "always" {
		keep += minCharts
	}
	room := max(free-keep, min(free, p.height+1))
	switch p.level {
	case blocks:
		room = max((room-1)/p.height, 1)*p.height + 1
	case compact:
		room = max(room/p.height, 1) * p.height
	}
	p.devices = min(p.devices, room)
	return p
}

// fit is how devices are placed at a level, and the rows that takes.
func fit(r request, l level) plan {
	p := plan{level: l}
	heading := 0
	switch l {
	case blocks:
		p.height, heading = 6, 1 // the last edge
		if r.multichip {
			p.height = 7
		}
		p.perRow = max(r.w/minBlock, 1)
	case compact:
		p.height = 3
		p.perRow = max(r.w/minBlock, 1)
	case lines:
		p.height, heading = 1, 1
		p.perRow = 1
		if r.devices > 8 {
			p.perRow = max(r.w/minLine, 1)
		}
	case grid:
		p.height = 1
		p.perRow = max(r.w/minCell, 1)
	}
	if l == grid && r.groups > 1 {
		// A column per tray, its name above; trays that do not fit side by
		// side go below.
		p.perRow = min(p.perRow, r.groups)
		depth := (r.devices + r.groups - 1) / r.groups
		p.devices = (r.groups + p.perRow - 1) / p.perRow * (depth + 1)
		return p
	}
	p.perRow = min(p.perRow, r.devices)
	rows := (r.devices + p.perRow - 1) / p.perRow
	p.perRow = (r.devices + rows - 1) / rows // spread evenly
	p.devices = rows*p.height + heading
	return p
}

// rest shares what the devices left between charts and processes.
func (p plan) rest(r request, free, procs int) plan {
	left := max(free-p.devices, 0)
	p.charts = 0
	if r.charts != "never" && r.devices > 0 {
		most := max(maxCharts, r.h*2/5)
		share := (left + 1) / 2
		if r.h >= tallScreen {
			most, share = r.h*3/5, left*3/5
		}
		if !r.processes {
			most = left
		}
		if room := left - procs; room >= minCharts {
			p.charts = min(room, most)
		}
		// A tall screen gives processes a share before charts grow.
		if r.processes && p.charts > minCharts {
			p.charts = max(minCharts, min(p.charts, share))
		}
	}
	if r.processes {
		p.processes = left - p.charts
	}
	return p
}
