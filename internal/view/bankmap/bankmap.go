// Package bankmap shows the state of allocators: the map of a bank, its largest
// blocks, what is free and what would fit, and tt-metal's own memory reports.
//
// It is a view: it reads internal/book/blocks and makes text of it, for `ttmon mem`
// on a screen and off it.
package bankmap

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/base/sorted"
	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/lines"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
)

// Options say how a process is shown.
type Options struct {
	Width int // cells of a line; 0 means 100
	Top   int // how many of the largest blocks; 0 means 8
	Now   time.Time
	Title string // of the process: its name or command line
	// Chip names a chip for people ("device 0", "device 0 L"); nil: by its id.
	Chip func(id uint64) string
	// Place says where in the program a block was asked for; nil: it is not known.
	Place func(b blocks.Block) string
	// Tensor names what a block is for; nil: it is not known.
	Tensor func(b blocks.Block) string
}

// Lines shows a process: its allocators with their pools.
func Lines(p *blocks.Process, o Options) (out []lines.Line) {
	if o.Width == 0 {
		o.Width = 100
	}
	if o.Top == 0 {
		o.Top = 8
	}
	title := fmt.Sprintf("process %d", p.PID)
	if o.Title != "" {
		title += "  " + words.Escape(o.Title)
	}
	out = append(out, lines.Styled(title, cells.Strong))
	shown := 0
	for _, x := range Pools(p) {
		if x.Capacity == 0 && x.Exact() && x.Usage().Blocks == 0 {
			continue // the program asked for no such pool
		}
		out = append(append(out, nil), listLines(p, x, o)...)
		shown++
	}
	if shown == 0 {
		out = append(out, nil, lines.Plain("It has no allocator that is known: it has opened no chip, or did so before it was watched."))
	}
	if list := Doubts(p); len(list) > 0 {
		out = append(out, nil)
		for _, text := range list {
			out = append(out, lines.Plain(text))
		}
	}
	return out
}

// OnChip shows one pool of one chip in a few lines: how full the bank is, its
// map, and whether a buffer would fit. It is empty where nothing is known of it.
func OnChip(p *blocks.Process, chip uint64, pool model.Pool, fit blocks.Request, o Options) (out []lines.Line) {
	for _, x := range Pools(p) {
		if x.Pool != pool || !slices.Contains(x.Of.Chips, chip) {
			continue
		}
		o.Top = -1
		out = append(out, listLines(p, x, o)...)
		if answer, known := x.Fits(fit); known && p.Lost == 0 && x.Cores == "" {
			out = append(out, lines.Plain(fitLine(words.Bytes(fit.Bytes), x.List, answer)))
		}
	}
	return out
}

// Doubts says what the figures leave out.
func Doubts(p *blocks.Process) (out []string) {
	switch all := InUse(p); {
	case p.Late && len(all) > 0 && !slices.ContainsFunc(all, func(a *blocks.Allocator) bool { return !p.Whole(a) }):
		out = append(out, "It ran before ttmond watched it; the chips above were opened since, and are known whole.")
	case p.Late:
		out = append(out, "It ran before ttmond watched it: what it allocated then is known only of pools that it has allocated from since.")
	}
	if _, known := p.PerCore(); !known && slices.ContainsFunc(p.Allocators, (*blocks.Allocator).PerCore) {
		out = append(out, "Its allocator gives out L1 core by core (HYBRID), and not all of that was seen: L1 is not shown.")
	}
	if p.Lost > 0 {
		out = append(out, fmt.Sprintf("%d events of its allocators were lost: the map may show what is gone and lack what is there.", p.Lost))
	}
	return out
}

// InUse are the allocators that a process allocates from. Each chip of a mesh
// has one of its own as well, which stays empty; so of those without a block
// only the last one counts, and that only if there is no other.
func InUse(p *blocks.Process) (list []*blocks.Allocator) {
	for _, a := range p.Allocators {
		for _, l := range a.Lists {
			if l.Usage().Blocks > 0 {
				list = append(list, a)
				break
			}
		}
	}
	if len(list) == 0 && len(p.Allocators) > 0 {
		list = p.Allocators[len(p.Allocators)-1:]
	}
	return list
}

// Pool is one that is shown: a list, and whose it is.
type Pool struct {
	*blocks.List
	Of *blocks.Allocator
	// Cores names those of the chip that hold this, where they differ (HYBRID): then
	// the list is what is taken on each of them.
	Cores string
	// Common says how much all cores of the chip have free at one address; empty: there
	// is no more to say.
	Common string
}

// Pools are the lists of the allocators that a process allocates from.
func Pools(p *blocks.Process) (list []Pool) {
	perCore, known := p.PerCore()
	for _, a := range InUse(p) {
		if known && a.PerCore() && !slices.ContainsFunc(perCore.Meshes, func(m *blocks.CoreMesh) bool { return m.Allocator == a }) {
			continue // a chip's own, which has L1 only
		}
		for _, pool := range model.Pools() {
			for _, l := range a.Pool(pool) {
				list = append(list, Pool{List: l, Of: a})
			}
		}
	}
	if !known {
		return list
	}
	for _, c := range perCore.Chips {
		for i, g := range perCore.Groups(c) {
			x := Pool{List: g.List, Of: &blocks.Allocator{Chips: []uint64{c.ID}}, Cores: coreNames(perCore, g)}
			if i == 0 {
				x.Common = fmt.Sprintf("at one address on all %d cores: largest hole %s", perCore.Banks, words.Bytes(perCore.Holes(c).Lockstep))
			}
			list = append(list, x)
		}
	}
	return list
}

// coreNames names the cores of a group, in the order of the grid.
func coreNames(l *blocks.CoreL1, g *blocks.CoreGroup) string {
	const most = 4
	switch {
	case len(g.Banks) == int(l.Banks):
		return fmt.Sprintf("all %d cores", len(g.Banks))
	case len(g.Banks) > most:
		return fmt.Sprintf("%d of %d cores", len(g.Banks), l.Banks)
	}
	type place struct{ y, x int }
	var places []place
	for _, bank := range g.Banks {
		x, y, known := l.Place(bank)
		if !known {
			return fmt.Sprintf("%d of %d cores", len(g.Banks), l.Banks)
		}
		places = append(places, place{y, x})
	}
	slices.SortFunc(places, func(a, b place) int { return cmp.Or(cmp.Compare(a.y, b.y), cmp.Compare(a.x, b.x)) })
	var names []string
	for _, at := range places {
		names = append(names, fmt.Sprintf("(%d,%d)", at.x, at.y))
	}
	if len(names) == 1 {
		return "core " + names[0]
	}
	return "cores " + strings.Join(names, " ")
}

// listLines shows one pool: a heading, the map with its legend, the largest
// holes and blocks.
func listLines(p *blocks.Process, x Pool, o Options) (out []lines.Line) {
	l := x.List
	what, state := Heading(x, o.Chip)
	if p.Lost == 0 && l.Exact() && !l.Inherited { // the pool has what the parent took, too
		state += "   exact"
	}
	if words.Width(what)+2+words.Width(state) <= o.Width {
		out = append(out, lines.Styled(what+": "+state, cells.Label))
	} else {
		out = append(out, lines.Styled(what+":", cells.Label), lines.Styled("  "+state, cells.Label))
	}
	if x.Common != "" {
		out = append(out, lines.Plain("  "+x.Common))
	}
	who, by := Holders(l, o.Place)
	if l.Capacity > 0 {
		if drawn := mapLine(l, by, o); drawn != nil {
			out = append(out, drawn)
		}
	}
	if o.Top > 0 {
		out = append(out, legend(who, o)...)
	}
	for _, text := range programs(p, x, o) {
		out = append(out, lines.Plain(text))
	}
	if o.Top > 0 {
		out = append(out, holes(l, o)...)
	}
	return append(out, largestLines(l, o)...)
}

// largestLines lists the largest blocks.
func largestLines(l *blocks.List, o Options) []lines.Line {
	largest := Largest(l, max(o.Top, 0))
	if len(largest) == 0 {
		return nil
	}
	t := &lines.Table{Indent: 2, Columns: []lines.Column{{Head: "block at", Least: 14}, {Head: "a bank", Least: 9, Right: true, Tight: true}, {Head: "asked", Least: 10, Right: true, Tight: true}, {Head: "age", Least: 8}}}
	if o.Place != nil || o.Tensor != nil {
		t.Columns = append(t.Columns, lines.Column{Head: "where", Least: 8, Rest: true, Tight: true})
	}
	for _, b := range largest {
		asked, age := words.Nothing, words.Nothing
		if b.Asked > 0 {
			asked = words.Bytes(b.Asked)
		}
		if b.Born > 0 {
			age = words.Duration(o.Now.Sub(time.Unix(0, b.Born)))
		}
		t.Add(address(b.Addr), words.Bytes(b.Size), asked, age, whereOf(b, o))
	}
	out := t.All(o.Width)
	if more := int(l.Usage().Blocks) - len(largest); more > 0 {
		out = append(out, lines.Plain(fmt.Sprintf("  and %d more, none of them larger", more)))
	}
	return out
}

// whereOf says where a block was asked for, and for which tensor.
func whereOf(b blocks.Block, o Options) string {
	var parts []string
	for _, f := range []func(blocks.Block) string{o.Place, o.Tensor} {
		if f != nil {
			parts = append(parts, f(b))
		}
	}
	return strings.TrimSpace(strings.Join(parts, "  "))
}

// programs says how the circular buffers of programs lie to the buffers of L1:
// a program whose circular buffers reach into one cannot be run.
func programs(p *blocks.Process, x Pool, o Options) []string {
	l := x.List
	reach, ok := p.Reach()
	if l.Pool != model.L1 || !ok {
		return nil
	}
	what := fmt.Sprintf("%d programs", len(p.Programs))
	if len(p.Programs) == 1 {
		what = "1 program"
	}
	if !p.Whole(x.Of) {
		what = "at least " + what
	}
	line := fmt.Sprintf("  circular buffers of %s: up to %s a core, below %#x", what, words.Bytes(reach.End-reach.Base), reach.End)
	relation := ""
	for b := range l.All() { // the lowest one
		relation = fmt.Sprintf("%s to the lowest buffer", words.Bytes(b.Addr-min(reach.End, b.Addr)))
		if b.Addr < reach.End {
			relation = fmt.Sprintf("they clash with the buffer at %#x", b.Addr)
			if x.Cores != "" { // which cores they run on is not known
				relation = fmt.Sprintf("on %s they would clash with the buffer at %#x", x.Cores, b.Addr)
			}
		}
		break
	}
	switch {
	case relation == "" || !oneDevice(p): // whose device they are laid out for is not known
		return []string{line}
	case words.Width(line)+2+words.Width(relation) <= o.Width:
		return []string{line + "; " + relation}
	}
	return []string{line, "  " + relation}
}

// oneDevice reports whether a process allocates from one device, or mesh, only.
func oneDevice(p *blocks.Process) bool {
	if l, known := p.PerCore(); known {
		return len(l.Chips) == 1
	}
	return len(InUse(p)) == 1
}

// Heading says what a pool is, and how full. chip names a chip; nil: by its id.
func Heading(x Pool, chip func(id uint64) string) (what, state string) {
	l, where := x.List, "bank"
	if l.Pool == model.L1 || l.Pool == model.L1Small {
		where = "core" // a core's L1 is a bank
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s of %s", strings.ToUpper(l.Pool.String()), chips(x.Of, chip))
	if x.Cores != "" {
		fmt.Fprintf(&b, ", %s, each %s", x.Cores, words.Bytes(l.Capacity))
	} else if l.Banks > 0 && l.Capacity > 0 {
		fmt.Fprintf(&b, ", %d %ss of %s", l.Banks, where, words.Bytes(l.Capacity))
	}
	what = b.String()
	b.Reset()
	fmt.Fprintf(&b, "used %s", words.Bytes(l.Usage().BankBytes))
	if space, known := l.Space(); known {
		fmt.Fprintf(&b, ", free %s, largest hole %s a %s", words.Bytes(space.Free), words.Bytes(space.Largest), where)
	} else {
		b.WriteString(" or more a " + where)
	}
	return what, b.String()
}

func chips(a *blocks.Allocator, name func(id uint64) string) string {
	if name == nil {
		name = func(id uint64) string { return fmt.Sprintf("chip %d", id) }
	}
	switch n := len(a.Chips); {
	case n == 0:
		return "a chip that is not known"
	case n <= 2:
		names := make([]string, n)
		for i, id := range a.Chips {
			names[i] = name(id)
		}
		return strings.Join(names, " and ")
	default:
		return fmt.Sprintf("each of %d chips", n)
	}
}

// Largest are the largest blocks of a list, the largest first.
func Largest(l *blocks.List, n int) []blocks.Block {
	all := slices.Collect(l.All())
	sorted.Stable(all, func(a, b *blocks.Block) int { return cmp.Compare(b.Size, a.Size) })
	return all[:min(n, len(all))]
}

// fitLine answers whether a buffer would fit.
func fitLine(what string, l *blocks.List, f blocks.Fit) string {
	where := "bank"
	if l.Pool == model.L1 || l.Pool == model.L1Small {
		where = "core"
	}
	switch f.Refused {
	case blocks.NotInterleaved:
		return fmt.Sprintf("would %s fit?  no: %s has sharded buffers only; ask with --shape and --shard", what, words.PoolName(l.Pool))
	case blocks.TooManyShards:
		return fmt.Sprintf("would %s fit?  no: it has more shards than there are %ss (%d)", what, where, l.Banks)
	}
	if f.Fits {
		return fmt.Sprintf("would %s fit?  yes: %s in each %s, the largest hole has %s", what, words.Bytes(f.BankBytes), where, words.Bytes(f.Largest))
	}
	holes := fmt.Sprintf("%d holes", f.Holes)
	if f.Holes == 1 {
		holes = "one hole"
	}
	return fmt.Sprintf("would %s fit?  no: %s a %s, the largest hole has %s; %s are free in %s",
		what, words.Bytes(f.BankBytes), where, words.Bytes(f.Largest), words.Bytes(f.Free), holes)
}
