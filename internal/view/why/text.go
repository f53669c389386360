package why

import (
	"fmt"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/blocks"
	"github.com/ttmon/ttmon/internal/callsite"
	"github.com/ttmon/ttmon/internal/failure"
	"github.com/ttmon/ttmon/internal/view/words"
)

// Options say for which terminal a record is shown.
type Options struct {
	Width int // cells; 0 means 100
	ASCII bool
	Color bool
	Now   time.Time
	Top   int  // holders to list; 0 means 8
	Stack bool // the whole stack of the request, too
	// User names the owner; nil: by number.
	User func(uid int) string
	// Brief leaves out who the process is: the caller has said so.
	Brief bool
}

// Append appends a record as text.
func Append(dst []byte, r *failure.Record, o Options) []byte {
	if o.Width == 0 {
		o.Width = 100
	}
	if o.Top == 0 {
		o.Top = 8
	}
	p := printer{o: o, dst: dst, r: r, holders: Holders(r)}
	p.head()
	p.request()
	p.bank()
	p.holding()
	p.fixes()
	p.notes()
	return p.dst
}

type printer struct {
	o       Options
	dst     []byte
	r       *failure.Record
	holders []Holder
}

func (p *printer) line(s string) {
	p.dst = append(append(p.dst, strings.TrimRight(p.plain(s), " ")...), '\n')
}

// wrapped prints a sentence behind a label, in as many lines as it takes.
func (p *printer) wrapped(label, sentence string) {
	indent := strings.Repeat(" ", words.Width(label))
	for i, line := range words.Wrap(sentence, max(p.o.Width-words.Width(label), 20)) {
		if i > 0 {
			label = indent
		}
		p.line(label + line)
	}
}

func (p *printer) head() {
	r := p.r
	who := fmt.Sprintf("%s (%d", Program(r), r.Process.PID)
	if p.o.User != nil && r.Process.UID >= 0 {
		who += ", " + words.Escape(p.o.User(r.Process.UID))
	}
	parts := []string{who + ")", ago(p.o.Now, r.Time), Where(r), What(r)}
	if p.o.Brief {
		parts = []string{What(r) + " on " + Where(r), ago(p.o.Now, r.Time)}
	}
	if head := strings.Join(parts, "   "); words.Width(head) <= p.o.Width {
		p.line(p.bold(head))
	} else {
		p.line(p.bold(words.Truncate(parts[0], p.o.Width)))
		p.wrapped("  ", strings.Join(parts[1:], ", "))
	}
	if r.Count > 1 {
		p.wrapped("  ", fmt.Sprintf("%d times from %s to %s; this is the one of %s", r.Count, clock(r.First), clock(r.Last), clock(r.Time)))
	}
}

func ago(now, at time.Time) string {
	if now.Before(at) || now.Sub(at) < time.Second {
		return "just now"
	}
	return words.Duration(now.Sub(at)) + " ago"
}

func clock(t time.Time) string { return t.Local().Format("15:04:05") }

func (p *printer) request() {
	asked := Requested(p.r)
	if line, function := Requester(p.r); line != "" {
		asked += ", by " + strings.TrimSpace(line+" "+function)
	}
	p.wrapped("  asked for   ", asked)
	if p.o.Stack {
		for _, f := range p.r.Stack {
			p.line(words.Truncate("              "+Line(f)+"  "+words.Escape(f.Function), p.o.Width))
		}
	} else if around := around(p.r); around != "" {
		p.line(words.Truncate("              "+around, p.o.Width))
	}
	p.wrapped("  free        ", Free(p.r))
	arrow := "→ "
	if p.o.ASCII {
		arrow = "> "
	}
	p.wrapped("  "+arrow, Verdict(p.r))
}

// around names the lines of the program inside and outside the one that asked.
func around(r *failure.Record) string {
	requester, _ := Requester(r)
	var parts, through, callers []string
	to := &through
	for _, f := range callsite.Own(r.Stack) {
		if line := Line(f); line == requester && to == &through {
			to = &callers
		} else {
			*to = append(*to, line)
		}
	}
	if len(through) > 0 {
		parts = append(parts, "through "+strings.Join(through, ", "))
	}
	if len(callers) > 0 {
		parts = append(parts, "called from "+strings.Join(callers, ", "))
	}
	return strings.Join(parts, ", ")
}

// plain leaves nothing but ASCII, where that is asked for.
func (p *printer) plain(s string) string {
	if p.o.ASCII {
		s = strings.NewReplacer("≥", ">=", "–", "-", "…", "...", "·", "-", "×", "x").Replace(s)
	}
	return s
}

// bank draws the bank, and below it the missing piece to the same scale.
func (p *printer) bank() {
	l := p.r.State
	if l == nil || l.Capacity == 0 {
		return
	}
	end := " " + words.Bytes(l.Capacity)
	width := p.o.Width - 4 - words.Width(end)
	if width < 10 {
		return
	}
	p.line("")
	p.line("  0 " + p.row(l, width) + end)
	p.piece(l, width)
}

// piece draws what was asked for below the bank, to the same scale, from where the
// largest hole begins.
func (p *printer) piece(l *blocks.List, width int) {
	need, hole, label := piece(p.r)
	at := int(float64(hole-l.Base) / float64(l.Capacity) * float64(width))
	mark := "▒"
	if p.o.ASCII {
		mark = "="
	}
	cells := max(int(float64(need)/float64(l.Capacity)*float64(width)+0.5), 1)
	if cells > width {
		p.line("    " + p.missing(strings.Repeat(mark, width)+">"))
		p.line("    " + words.Truncate(label, width))
		return
	}
	at = min(at, width-cells)
	drawn, taken := p.missing(strings.Repeat(mark, cells)), words.Width(label)+1
	switch {
	case at+cells+taken <= width:
		p.line("    " + strings.Repeat(" ", at) + drawn + " " + label)
	case taken <= at:
		p.line("    " + strings.Repeat(" ", at-taken) + label + " " + drawn)
	default:
		p.line("    " + strings.Repeat(" ", at) + drawn)
		p.line("    " + words.Truncate(label, width))
	}
}

// row draws a bank: each cell in the colour of who has most of it.
func (p *printer) row(l *blocks.List, width int) string {
	cells := Cells(l, p.holders, width)
	full, part, free := "█", "▓", "░"
	if p.o.ASCII {
		full, part, free = "#", "+", "."
	}
	if !l.Exact() {
		free = "?" // what lies there may not be known
	}
	var b strings.Builder
	color := 0
	for _, c := range cells {
		mark := free
		switch {
		case c.Used >= 0.995:
			mark = full
		case c.Used > 0:
			mark = part
		}
		want := 0
		if c.Used > 0 {
			want = c.Holder
		}
		if p.o.Color && want != color {
			b.WriteString(sgr(want))
			color = want
		}
		b.WriteString(mark)
	}
	if p.o.Color && color != 0 {
		b.WriteString(sgr(0))
	}
	return b.String()
}

// Cell is a part of a bank.
type Cell struct {
	Used   float64 // part of it
	Holder int     // number of the largest holder; 0: none
}

// Cells divides a bank.
func Cells(l *blocks.List, holders []Holder, width int) []Cell {
	cells := make([]Cell, width)
	most := make([]float64, width)
	size := float64(l.Capacity) / float64(width)
	fill := func(from, to uint64, holder int) {
		a, b := float64(from-l.Base)/size, float64(to-l.Base)/size
		for i := max(int(a), 0); i < width && float64(i) < b; i++ {
			part := min(b, float64(i+1)) - max(a, float64(i))
			cells[i].Used += part
			if part > most[i] {
				most[i], cells[i].Holder = part, holder
			}
		}
	}
	if l.Cut > 0 {
		fill(l.Base, l.Base+l.Cut, 0)
	}
	number := numbers(holders)
	for b := range l.All() {
		n := number[b.Site]
		if b.Addr >= l.Base {
			fill(b.Addr, min(b.End(), l.Base+l.Capacity), n)
		}
	}
	return cells
}

// palette are the colours of holders; all others share the last one.
var palette = []int{36, 33, 35, 32, 34, 31, 96, 93}

func sgr(holder int) string {
	if holder == 0 {
		return "\x1b[0m"
	}
	return sgrCode(palette[min(holder, len(palette))-1])
}

// missingColor is no holder's colour.
const missingColor = 91

func (p *printer) missing(s string) string {
	if p.o.Color {
		return sgrCode(missingColor) + s + sgr(0)
	}
	return s
}

func (p *printer) bold(s string) string {
	if p.o.Color {
		return "\x1b[1m" + s + "\x1b[0m"
	}
	return s
}

// holding lists who holds the pool, by line.
func (p *printer) holding() {
	if len(p.holders) == 0 {
		return
	}
	p.line("")
	shown := p.holders[:min(len(p.holders), p.o.Top)]
	t := p.holderTable(shown)
	for i := range shown {
		p.holder(&shown[i], t)
	}
	if n := len(p.holders) - len(shown); n > 0 {
		var rest uint64
		for i := range p.holders[len(shown):] {
			rest += p.holders[len(shown)+i].Bytes
		}
		p.line(fmt.Sprintf("  and %d more lines with %s", n, words.Bytes(rest)))
	}
}

// holderTable is how wide the columns of the holders are.
type holderTable struct {
	name, function, bar int
	most                uint64
}

// The widths that a holder's row takes beside its name, function and bar, and what
// the latter three have at most and at least.
const (
	holderRest                     = 2 + 2 + 11 + 2 + 2 + len("10 blocks, 10m00s")
	maxName, maxFunction, maxBar   = 28, 24, 16
	minName, minFunction, minOfBar = 12, 0, 4
)

// holderTable fits the columns into the width: first the bar gives way, then the
// function, then the name.
func (p *printer) holderTable(shown []Holder) holderTable {
	t := holderTable{bar: maxBar, most: max(shown[0].Bytes, 1)}
	for i := range shown {
		t.name, t.function = max(t.name, words.Width(shown[i].Name())), max(t.function, words.Width(shown[i].Function))
	}
	t.name, t.function = min(t.name, maxName), min(t.function, maxFunction)
	over := holderRest + t.name + t.function + t.bar - p.o.Width
	for _, c := range []struct {
		width *int
		least int
	}{{&t.bar, minOfBar}, {&t.function, minFunction}, {&t.name, minName}, {&t.bar, 0}} {
		if give := min(over, *c.width-c.least); give > 0 {
			*c.width -= give
			over -= give
		}
	}
	return t
}

func (p *printer) holder(h *Holder, t holderTable) {
	mark := "█"
	if p.o.ASCII {
		mark = "#"
	}
	bar := words.Pad(strings.Repeat(mark, int(float64(h.Bytes)/float64(t.most)*float64(t.bar)+0.5)), t.bar)
	if p.o.Color {
		bar = sgr(h.Number) + bar + sgr(0)
	}
	remark := words.Count(h.Blocks, "block")
	if !h.Oldest.IsZero() {
		remark += ", " + words.Duration(p.r.Time.Sub(h.Oldest))
	}
	if h.Tensor != "" {
		remark += ", " + h.Tensor
	}
	head := fmt.Sprintf("  %s  %s %s  ", words.Fit(h.Name(), t.name), words.Fit(h.Function, t.function), words.PadLeft(words.Bytes(h.Bytes), 10))
	p.line(head + bar + "  " + words.Truncate(remark, max(p.o.Width-words.Width(head)-t.bar-2, 1)))
}

func (p *printer) fixes() {
	list := Fixes(p.r, p.o.Now)
	if len(list) == 0 {
		return
	}
	p.line("")
	p.line("  " + fixLabel(p.r))
	for _, s := range list {
		p.wrapped("    - ", s)
	}
}

func (p *printer) notes() {
	if p.r.Verdict.Cause != failure.Unknown {
		for _, s := range Doubts(p.r) {
			p.wrapped("  note: ", s)
		}
	}
	for _, text := range Others(p.r) {
		p.wrapped("  note: ", text)
	}
}

func sgrCode(n int) string { return fmt.Sprintf("\x1b[%dm", n) }
