package runtext

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/callsite"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/runreport"
	"github.com/ttmon/ttmon/internal/view/lines"
	"github.com/ttmon/ttmon/internal/view/why"
	"github.com/ttmon/ttmon/internal/view/words"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// Options say for whom the summary is printed.
type Options struct {
	Width int // of the terminal; 0: not one
	ASCII bool
	Color bool
	Top   int       // places to list; 0: ten
	Now   time.Time // for how long ago a request failed; zero: when the run ended
}

// Append appends the summary of a run.
func Append(dst []byte, r *runreport.Report, o Options) []byte {
	p := printer{o: o, dst: dst}
	if p.o.Width == 0 {
		p.o.Width = 100
	}
	if p.o.Top == 0 {
		p.o.Top = 10
	}
	p.head(r)
	for _, c := range r.Complaints {
		p.line(" note: %s", words.Escape(c))
	}
	p.failures(r)
	if len(r.Chips) == 0 {
		return p.dst
	}
	groups := alike(r.Chips)
	p.table(groups)
	p.peaks(groups)
	p.left(groups)
	p.works(r.Chips)
	p.processes(r)
	if !r.Judged() {
		p.line(" not judged: samples do not tell what was left behind, nor peaks between them")
	}
	for _, e := range r.Exceeded {
		p.line(" over the limit: %s had %s at its peak, more than %s", words.PoolName(e.Pool), words.Bytes(e.Peak), words.Bytes(e.Limit))
	}
	return p.dst
}

type printer struct {
	o   Options
	dst []byte
}

func (p *printer) line(format string, args ...any) {
	s := strings.TrimRight(fmt.Sprintf(format, args...), " ")
	p.dst = append(append(p.dst, s...), '\n')
}

func (p *printer) head(r *runreport.Report) {
	end := "exit " + strconv.Itoa(r.ExitCode)
	if r.Signal != "" {
		end = "killed by " + r.Signal
	}
	how := "no use of a device seen"
	switch r.Method {
	case runreport.Opened:
		how = "opened a device, no device memory seen"
	case runreport.Ledger:
		how = "exact (" + strings.Join(append([]string{"libttmon"}, r.Releases...), ", ") + ")"
		if unsure(r) {
			how = "at least (libttmon: see below)"
		}
	case runreport.Sampled:
		how = "sampled from shared memory: peaks may be missed"
	}
	p.line("ttmon: %s   %s   %s   %s", words.CommandLine(strings.Join(r.Command, " "), max(20, p.o.Width-60)),
		words.Duration(time.Duration(r.Seconds*float64(time.Second))), end, how)
}

// failures shows the last request that failed, and names the others.
func (p *printer) failures(r *runreport.Report) {
	if len(r.Failures) == 0 {
		return
	}
	now := p.o.Now
	if now.IsZero() {
		now = r.Started.Add(time.Duration(r.Seconds * float64(time.Second)))
	}
	last := r.Failures[len(r.Failures)-1]
	p.line("")
	p.dst = why.Append(p.dst, last, why.Options{Top: p.o.Top, Now: now, Brief: len(r.Processes) == 1}, lines.Options{Width: p.o.Width, ASCII: p.o.ASCII, Color: p.o.Color})
	if n := len(r.Failures) - 1; n > 0 {
		p.line("  before it")
		for _, f := range r.Failures[max(0, n-4):n] {
			p.line("    %s  %s", clock(f.Time.Sub(r.Started).Seconds()), words.Truncate(why.Event(f, true), max(p.o.Width-12, 20)))
		}
		if n > 4 {
			p.line("    and %d earlier ones: --json has them", n-4)
		}
	}
	p.line("")
}

func unsure(r *runreport.Report) bool {
	return slices.ContainsFunc(r.Processes, func(p runreport.Process) bool { return p.Lost > 0 || p.Unsure || p.PerCoreL1 })
}

// group is one or several chips with the same rows.
type group struct {
	label string
	pools []runreport.Pool
}

// alike joins chips that had the same, as those of a mesh do.
func alike(chips []runreport.Chip) []group {
	var out []group
	var members [][]runreport.Chip
	for _, c := range chips {
		i := slices.IndexFunc(out, func(g group) bool { return sameRows(g.pools, c.Pools) })
		if i < 0 {
			out = append(out, group{pools: c.Pools})
			members = append(members, nil)
			i = len(out) - 1
		}
		members[i] = append(members[i], c)
	}
	for i := range out {
		out[i].label = label(members[i])
	}
	return out
}

func sameRows(a, b []runreport.Pool) bool {
	return slices.EqualFunc(a, b, func(x, y runreport.Pool) bool {
		return x.Pool == y.Pool && x.Peak == y.Peak && x.Bound == y.Bound && x.PeakAt == y.PeakAt && x.Left == y.Left && x.Held == y.Held && x.Capacity == y.Capacity
	})
}

func label(chips []runreport.Chip) string {
	if len(chips) == 1 {
		return chipName(&chips[0])
	}
	var numbers []int
	board := chips[0].Board
	for i := range chips {
		n := chips[i].Logical
		if chips[i].Device != nil {
			n = *chips[i].Device
		}
		numbers = append(numbers, n)
		if chips[i].Board != board {
			board = ""
		}
	}
	slices.Sort(numbers)
	if numbers = slices.Compact(numbers); len(numbers) == 1 { // all on one board
		return strings.TrimSpace(fmt.Sprintf("each chip of %d %s", numbers[0], board))
	}
	return strings.TrimSpace(fmt.Sprintf("each of %s %s", words.Ranges(numbers), board))
}

func chipName(c *runreport.Chip) string {
	switch {
	case c.Unknown:
		return "chip unknown"
	case c.Device != nil:
		return strings.TrimSpace(fmt.Sprintf("%d %s %s", *c.Device, c.Board, c.Name))
	}
	return fmt.Sprintf("chip %d", c.ID)
}

func (p *printer) table(groups []group) {
	width := 0
	for _, g := range groups {
		width = max(width, words.Width(g.label))
	}
	p.line(" %s  %-8s  %10s  %6s  %10s  %10s", strings.Repeat(" ", width), "", "peak", "at", "of", "left")
	for _, g := range groups {
		label := g.label
		for _, x := range g.pools {
			of := ""
			if x.Capacity > 0 {
				of = words.Bytes(x.Capacity)
			}
			p.line(" %s  %-8s  %s  %6s  %s  %s%s", words.Pad(label, width), words.PoolName(x.Pool), words.PadLeft(p.peak(x), 10), clock(x.PeakAt),
				words.PadLeft(of, 10), words.PadLeft(words.Figure(x.LeftFigure()), 10), p.remarks(x))
			label = ""
		}
	}
}

// peak is the most that was held of a pool, with its doubt.
func (p *printer) peak(x runreport.Pool) string {
	figure := words.Figure(x.PeakFigure())
	if p.o.ASCII {
		figure = strings.Replace(figure, words.Mark(model.AtLeast), ">=", 1)
	}
	return figure
}

func (p *printer) remarks(x runreport.Pool) string {
	var out []string
	if x.Left.Blocks > 0 {
		out = append(out, "in "+count(x.Left.Blocks, "block"))
	}
	if x.Held.Blocks > 0 {
		out = append(out, words.Bytes(x.Held.Bytes)+" held by processes that still run")
	}
	if x.Failed > 0 {
		out = append(out, count(x.Failed, "request")+" found no room")
	}
	if len(out) == 0 {
		return ""
	}
	return "   " + strings.Join(out, ", ")
}

func count(n uint64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.FormatUint(n, 10) + " " + what + "s"
}

// clock is a moment of the run: 0:31, 12:05, 1:02:03.
func clock(seconds float64) string {
	s := int(seconds)
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}

// peaks lists who held what at the peak of each pool, where that is known.
func (p *printer) peaks(groups []group) {
	for _, g := range groups {
		for _, x := range g.pools {
			places := runreport.ByLine(x.AtPeak)
			if !named(places) {
				continue
			}
			p.line(" peak of %s on %s, by %s", words.PoolName(x.Pool), g.label, by(places))
			p.places(places, x.Peak, func(runreport.Place) string { return "" })
		}
	}
}

// named reports whether places say more than that something was allocated.
func named(places []runreport.Place) bool {
	return slices.ContainsFunc(places, func(x runreport.Place) bool { return x.Tag != "" || len(x.Stack) > 0 })
}

func by(places []runreport.Place) string {
	var tags, lines bool
	for _, x := range places {
		tags, lines = tags || x.Tag != "", lines || len(x.Stack) > 0
	}
	switch {
	case tags && lines:
		return "tag and line"
	case tags:
		return "tag"
	}
	return "line"
}

// left lists what was left behind: first what grew step by step, then what was
// alive when the device was closed.
func (p *printer) left(groups []group) {
	p.leftLines(groups, " left behind: grew step by step, and was not freed", true)
	p.leftLines(groups, " left behind: alive when the device was closed, or the program ended", false)
}

func (p *printer) leftLines(groups []group, heading string, grew bool) {
	for _, g := range groups {
		for _, x := range g.pools {
			places := slices.DeleteFunc(runreport.ByLine(x.LeftBy), func(q runreport.Place) bool { return q.Grew != grew })
			if !named(places) {
				continue
			}
			if heading != "" {
				p.line("%s", heading)
				heading = ""
			}
			p.places(places, 0, func(q runreport.Place) string {
				return fmt.Sprintf("%s, %s, oldest %s", words.PoolName(x.Pool), count(q.Blocks, "block"), clock(q.Oldest))
			})
		}
	}
}

// places prints the largest places, and the rest as one line.
func (p *printer) places(places []runreport.Place, of uint64, remark func(runreport.Place) string) {
	shown := places[:min(len(places), p.o.Top)]
	var rest runreport.Amount
	for _, x := range places[len(shown):] {
		rest.Bytes, rest.Blocks = rest.Bytes+x.Bytes, rest.Blocks+x.Blocks
	}
	where, function := 0, 0
	for i := range shown {
		a, b := describe(&shown[i])
		where, function = max(where, words.Width(a)), max(function, words.Width(b))
	}
	where, function = min(where, 32), min(function, 32)
	for i := range shown {
		a, b := describe(&shown[i])
		p.line("   %s  %s  %s  %s", words.Fit(a, where), words.Fit(b, function), words.PadLeft(words.Bytes(shown[i].Bytes), 10), p.bar(shown[i].Bytes, of)+remark(shown[i]))
	}
	if n := len(places) - len(shown); n > 0 {
		p.line("   %s  %s  %s  %s", words.Fit(fmt.Sprintf("(%s)", count(uint64(n), "other")), where), words.Fit("", function), words.PadLeft(words.Bytes(rest.Bytes), 10), p.bar(rest.Bytes, of))
	}
}

func (p *printer) bar(n, of uint64) string {
	if of == 0 {
		return ""
	}
	cells := int(float64(n) / float64(of) * 20)
	if p.o.ASCII {
		return strings.Repeat("#", cells)
	}
	return strings.Repeat("▓", cells)
}

// describe names a place: its tag or line, and its function.
func describe(x *runreport.Place) (where, function string) {
	f, ok := x.Where()
	if ok {
		where, function = Line(f), words.Escape(f.Function)
	}
	switch {
	case x.Tag == "" && !ok:
		return "(no tag)", ""
	case x.Tag == "":
		return where, function
	case !ok:
		return words.Escape(x.Tag), ""
	}
	return words.Escape(x.Tag), strings.TrimSpace(where + " " + function)
}

// Line is a frame in short: model.py:88, or libtt_metal.so+0x1234.
func Line(f ledgerfile.Frame) string {
	return words.Escape(callsite.Name(f))
}

// processes lists them where there were several, or where something is wrong.
func (p *printer) processes(r *runreport.Report) {
	if len(r.Processes) > 1 {
		p.line(" %d processes", len(r.Processes))
		for i, q := range r.Processes {
			if i == 2*p.o.Top {
				p.line("   … and %d more", len(r.Processes)-i)
				break
			}
			p.line("   %7d  %s  %s", q.PID, words.Pad(words.Escape(q.Name), 16), p.ownPeaks(q))
		}
	}
	for _, q := range r.Processes {
		if q.Lost > 0 {
			p.line(" process %d: %s found no room in the ledger: its figures are too low", q.PID, count(q.Lost, "event"))
		}
		if q.PerCoreL1 {
			p.line(" process %d: its allocator gave out L1 core by core (HYBRID), which ttmon cannot add up: its L1 is not in the figures", q.PID)
		}
		if q.Unsure {
			p.line(" process %d: its allocator was in use before libttmon came, or events contradict each other", q.PID)
		}
	}
}

// ownPeaks says what a process held at its peaks: of several chips the most that
// one of them had.
func (p *printer) ownPeaks(q runreport.Process) string {
	most, same := []runreport.Pool{}, true
	for i, c := range q.Chips {
		same = same && (i == 0 || slices.EqualFunc(c.Pools, most, func(x, y runreport.Pool) bool { return x.Pool == y.Pool && x.Peak == y.Peak }))
		for _, x := range c.Pools {
			switch j := slices.IndexFunc(most, func(y runreport.Pool) bool { return y.Pool == x.Pool }); {
			case j < 0:
				most = append(most, x)
			case x.Peak > most[j].Peak:
				most[j] = x
			}
		}
	}
	var out []string
	for _, x := range most {
		out = append(out, words.PoolName(x.Pool)+" "+p.peak(x))
	}
	switch {
	case len(q.Chips) > 1 && same:
		out = append(out, fmt.Sprintf("on each of %d chips", len(q.Chips)))
	case len(q.Chips) > 1:
		out = append(out, fmt.Sprintf("at most on one of %d chips", len(q.Chips)))
	}
	if q.Killed {
		out = append(out, "killed")
	}
	if q.Running {
		out = append(out, "still running")
	}
	return strings.Join(out, "  ")
}
