package runtext

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/book/callsite"
	"github.com/ttmon/ttmon/internal/book/runreport"
	"github.com/ttmon/ttmon/internal/book/runs"
	"github.com/ttmon/ttmon/internal/field/story"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/lines"
	"github.com/ttmon/ttmon/internal/view/runwords"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
	"github.com/ttmon/ttmon/internal/view/why"
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
	p.start = r.Run.Start
	groups := alike(&r.Run)
	if len(groups) == 0 {
		return p.dst
	}
	p.table(groups)
	p.peaks(groups)
	p.left(groups)
	p.works(&r.Run)
	p.processes(&r.Run)
	if !r.Judged() {
		p.line(" not judged: samples do not tell what was left behind, nor peaks between them")
	}
	for i := range r.Exceeded {
		e := &r.Exceeded[i]
		p.line(" over the limit: %s had %s at its peak, more than %s", words.PoolName(e.Pool), words.Figure(e.Peak.PeakBytes()), words.Bytes(e.Limit))
	}
	for i := range r.Uncertain {
		e := &r.Uncertain[i]
		p.line(" limit not certain: %s had %s at its peak; whether that was more than %s is not known", words.PoolName(e.Pool), words.Figure(e.Peak.PeakBytes()), words.Bytes(e.Limit))
	}
	return p.dst
}

type printer struct {
	o     Options
	dst   []byte
	start time.Time // of the run
}

// clock is a moment of the run, as the time since its start.
func (p *printer) clock(t time.Time) string { return clock(max(t.Sub(p.start), 0).Seconds()) }

func (p *printer) line(format string, args ...any) {
	s := strings.TrimRight(fmt.Sprintf(format, args...), " ")
	if p.o.ASCII {
		s = cells.ASCII(s)
	}
	p.dst = append(append(p.dst, s...), '\n')
}

func (p *printer) head(r *runreport.Report) {
	end := "exit " + strconv.Itoa(r.Run.End.ExitCode())
	if n := r.Run.End.Signal; n != 0 {
		end = "killed by " + runwords.Signal(n)
	}
	how := "the program used no device"
	switch r.Method {
	case runreport.Opened:
		how = "opened a device, no device memory seen"
	case runreport.Ledger:
		how = "exact (" + strings.Join(append([]string{"libttmon"}, r.Releases()...), ", ") + ")"
		if r.Unsure() {
			how = "at least (libttmon: see below)"
		}
	case runreport.Sampled:
		how = "sampled from shared memory: peaks may be missed"
	}
	p.line("ttmon: %s   %s   %s   %s", words.CommandLine(r.Run.Command, max(20, p.o.Width-60)), words.Duration(r.Run.Took()), end, how)
}

// failures shows the last request that failed, and names the others.
func (p *printer) failures(r *runreport.Report) {
	if len(r.Failures) == 0 {
		return
	}
	now := p.o.Now
	if now.IsZero() {
		now = r.Run.Last
	}
	last := r.Failures[len(r.Failures)-1]
	p.line("")
	p.dst = why.Append(p.dst, last, why.Options{Top: p.o.Top, Now: now, Brief: len(r.Run.Processes) == 1}, lines.Options{Width: p.o.Width, ASCII: p.o.ASCII, Color: p.o.Color})
	if n := len(r.Failures) - 1; n > 0 {
		p.line("  before it")
		for _, f := range r.Failures[max(0, n-4):n] {
			p.line("    %s  %s", clock(f.Time.Sub(r.Run.Start).Seconds()), words.Truncate(story.Event(f, true), max(p.o.Width-12, 20)))
		}
		if n > 4 {
			p.line("    and %d earlier ones: --json has them", n-4)
		}
	}
	p.line("")
}

// poolOf is a pool of a chip. Blocks is never nil: what ledgers do not say is nothing.
type poolOf struct {
	pool model.Pool
	runs.Pool
	known bool // what was left
}

// chipOf is a chip, and the device that it is on.
type chipOf struct {
	*runs.Device
	*runs.Chip
}

// group is one or several chips with the same rows.
type group struct {
	label string
	pools []poolOf
}

// alike joins chips that had the same, as those of a mesh do.
func alike(r *runs.Run) []group {
	var out []group
	var members [][]chipOf
	for d, c := range r.Chips() {
		pools := poolsOf(c)
		if len(pools) == 0 {
			continue
		}
		i := slices.IndexFunc(out, func(g group) bool { return slices.EqualFunc(g.pools, pools, sameRow) })
		if i < 0 {
			out, members = append(out, group{pools: pools}), append(members, nil)
			i = len(out) - 1
		}
		members[i] = append(members[i], chipOf{d, c})
	}
	for i := range out {
		out[i].label = label(members[i])
	}
	return out
}

// poolsOf are the pools of a chip in their order.
func poolsOf(c *runs.Chip) (list []poolOf) {
	for _, pool := range model.Pools() {
		p, used := c.Pools[pool.String()]
		if !used || p.Blocks == nil && p.Peak == 0 {
			continue
		}
		x := poolOf{pool, p, p.Blocks != nil}
		if !x.known {
			x.Blocks = &runs.Blocks{}
		}
		list = append(list, x)
	}
	return list
}

func sameRow(x, y poolOf) bool {
	return x.pool == y.pool && x.PeakBytes() == y.PeakBytes() && x.PeakAt.Equal(y.PeakAt) && x.known == y.known &&
		x.Blocks.Left == y.Blocks.Left && x.Blocks.Held == y.Blocks.Held && x.Blocks.Capacity == y.Blocks.Capacity
}

func label(chips []chipOf) string {
	if len(chips) == 1 {
		return chipName(chips[0])
	}
	var numbers []int
	board := chips[0].Board
	for _, c := range chips {
		switch {
		case c.Index >= 0:
			numbers = append(numbers, c.Index)
		case c.Logical != nil:
			numbers = append(numbers, *c.Logical)
		}
		if c.Board != board {
			board = ""
		}
	}
	slices.Sort(numbers)
	switch numbers = slices.Compact(numbers); len(numbers) {
	case 0:
		return fmt.Sprintf("each of %d chips", len(chips))
	case 1: // all on one board
		return strings.TrimSpace(fmt.Sprintf("each chip of %d %s", numbers[0], board))
	}
	return strings.TrimSpace(fmt.Sprintf("each of %s %s", words.Ranges(numbers), board))
}

func chipName(c chipOf) string {
	switch {
	case c.Index >= 0:
		return strings.TrimSpace(fmt.Sprintf("%d %s %s", c.Index, words.Escape(c.Board), words.Escape(c.Chip.Name)))
	case c.ID == "":
		return "chip unknown"
	}
	return "chip " + words.Escape(c.ID)
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
			if x.Blocks.Capacity > 0 {
				of = words.Bytes(x.Blocks.Capacity)
			}
			left := model.NoBytes(model.Absent)
			if x.known {
				left = x.LeftBytes()
			}
			p.line(" %s  %-8s  %s  %6s  %s  %s%s", words.Pad(label, width), words.PoolName(x.pool), words.PadLeft(words.Figure(x.Pool.PeakBytes()), 10), p.clock(x.PeakAt),
				words.PadLeft(of, 10), words.PadLeft(words.Figure(left), 10), p.remarks(x.Blocks))
			label = ""
		}
	}
}

func (p *printer) remarks(x *runs.Blocks) string {
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
			places := runs.ByLine(x.Blocks.AtPeak)
			if !named(places) {
				continue
			}
			p.line(" peak of %s on %s, by %s", words.PoolName(x.pool), g.label, by(places))
			p.places(places, x.Peak, func(runs.Place) string { return "" })
		}
	}
}

// named reports whether places say more than that something was allocated.
func named(places []runs.Place) bool {
	return slices.ContainsFunc(places, func(x runs.Place) bool { return x.Tag != "" || len(x.Stack) > 0 })
}

func by(places []runs.Place) string {
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
	p.leftLines(groups, " leak: grew in each quarter of the run, and was not freed", true)
	p.leftLines(groups, " still allocated when the device was closed, or at exit", false)
}

func (p *printer) leftLines(groups []group, heading string, grew bool) {
	for _, g := range groups {
		for _, x := range g.pools {
			places := slices.DeleteFunc(runs.ByLine(x.Blocks.LeftBy), func(q runs.Place) bool { return q.Grew != grew })
			if !named(places) {
				continue
			}
			if heading != "" {
				p.line("%s", heading)
				heading = ""
			}
			p.places(places, 0, func(q runs.Place) string {
				step := ""
				if grew && q.Blocks > 0 {
					step = each(&q)
				}
				return fmt.Sprintf("%s, %s%s, oldest %s", words.PoolName(x.pool), count(q.Blocks, "block"), step, p.clock(q.Oldest))
			})
		}
	}
}

// places prints the largest places, and the rest as one line.
func (p *printer) places(places []runs.Place, of uint64, remark func(runs.Place) string) {
	shown := places[:min(len(places), p.o.Top)]
	var rest runs.Amount
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
		p.line("   %s  %s  %s  %s", words.Fit(a, where), words.Fit(b, function), words.PadLeft(words.Bytes(shown[i].Bytes), 10), bar(shown[i].Bytes, of)+remark(shown[i]))
	}
	if n := len(places) - len(shown); n > 0 {
		p.line("   %s  %s  %s  %s", words.Fit(fmt.Sprintf("(%s)", count(uint64(n), "other")), where), words.Fit("", function), words.PadLeft(words.Bytes(rest.Bytes), 10), bar(rest.Bytes, of))
	}
}

func bar(n, of uint64) string {
	if of == 0 {
		return ""
	}
	return strings.Repeat("▓", int(float64(n)/float64(of)*20))
}

// describe names a place: its tag or line, and its function.
func describe(x *runs.Place) (where, function string) {
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
func Line(f runs.Frame) string {
	return words.Escape(callsite.Name(f))
}

// processes lists them where there were several, or where something is wrong.
func (p *printer) processes(r *runs.Run) {
	list := slices.Clone(r.Processes)
	list = slices.DeleteFunc(list, func(q runs.Process) bool { return q.Ledger == nil })
	if len(list) > 1 {
		p.line(" %d processes", len(list))
		for i := range list {
			if i == 2*p.o.Top {
				p.line("   … and %d more", len(list)-i)
				break
			}
			p.line("   %7d  %s  %s", list[i].PID, words.Pad(words.Escape(list[i].Name), 16), p.ownPeaks(list[i].Ledger))
		}
	}
	for _, q := range list {
		if q.Ledger.Lost > 0 {
			p.line(" process %d: %s found no room in the ledger: its figures are too low", q.PID, count(q.Ledger.Lost, "event"))
		}
		if q.Ledger.PerCoreL1 {
			p.line(" process %d: its allocator gave out L1 core by core (HYBRID), of which peaks are not kept: its L1 is not in the figures", q.PID)
		}
		if q.Ledger.Unsure {
			p.line(" process %d: its allocator was in use before libttmon came, or events contradict each other", q.PID)
		}
	}
}

// ownPeaks says what a process held at its peaks: of several chips the most that
// one of them had.
func (p *printer) ownPeaks(q *runs.ProcessLedger) string {
	var first []poolOf
	var most [model.NumPools]runs.Pool
	same, chips := true, 0
	own := runs.Run{Devices: q.Devices}
	for _, c := range own.Chips() {
		list := poolsOf(c)
		if chips++; chips == 1 {
			first = list
		}
		same = same && slices.EqualFunc(list, first, func(x, y poolOf) bool { return x.pool == y.pool && x.Peak == y.Peak })
		for _, x := range list {
			if most[x.pool].PeakBound == "" || x.Peak > most[x.pool].Peak {
				most[x.pool] = x.Pool
			}
		}
	}
	var out []string
	for _, pool := range model.Pools() {
		if most[pool].PeakBound != "" {
			out = append(out, words.PoolName(pool)+" "+words.Figure(most[pool].PeakBytes()))
		}
	}
	switch {
	case chips > 1 && same:
		out = append(out, fmt.Sprintf("on each of %d chips", chips))
	case chips > 1:
		out = append(out, fmt.Sprintf("at most on one of %d chips", chips))
	}
	if q.Killed {
		out = append(out, "killed")
	}
	if q.Running {
		out = append(out, "still running")
	}
	return strings.Join(out, "  ")
}
