package bankmap

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
)

// FitQuery is a question as people write it: would a buffer of this size, or a tensor
// of this shape, still fit?
type FitQuery struct {
	Size         string // "512M"; empty: Shape says it
	Shape        string // "1,1,4096,4096"
	Type, Layout string // of the tensor; empty: bfloat16, tile
	Shard        string // "64x512", "height:8", "width:8", "block:4x4"; empty: interleaved
	Pool         string // empty: dram
	// PerCore and Range ask for a buffer of single cores, where L1 is given out core by
	// core (HYBRID): wherever each of them has room, or at one address of them. Size is
	// that on each core then.
	PerCore, Range bool
	Cores          string // "0,0-7,0"; empty: all
}

// FitRequest is a buffer that a program might allocate.
type FitRequest struct {
	What    string // for people
	Pool    model.Pool
	Request blocks.Request
	// PerCore and Range are as in the query.
	PerCore, Range bool
	Cores          *coreRange // nil: all
}

// coreRange is a rectangle of cores, both corners included.
type coreRange struct{ x1, y1, x2, y2 int }

// Parse reads the question.
func (a FitQuery) Parse() (w FitRequest, err error) {
	if w.Pool, err = parsePool(cmp.Or(a.Pool, model.DRAM.String())); err != nil {
		return w, err
	}
	if a.Shard != "" && a.Shape == "" {
		return w, fmt.Errorf("a shard is that of a tensor, which needs a shape")
	}
	if err := a.parseCores(&w); err != nil {
		return w, err
	}
	if a.Size != "" {
		n, ok := words.ParseBytes(a.Size)
		if !ok {
			return w, fmt.Errorf("%q is not a size such as 512M, 1.5G or 4096", a.Size)
		}
		w.What, w.Request = words.Bytes(n), blocks.Request{Bytes: n}
		if w.PerCore || w.Range {
			w.What, w.Request = words.Bytes(n)+" of a core", blocks.Request{Page: n, Shards: 1, ShardPages: 1}
		}
		return w, nil
	}
	t := blocks.Tensor{Type: cmp.Or(a.Type, "bfloat16"), Layout: cmp.Or(a.Layout, "tile")}
	for part := range strings.SplitSeq(a.Shape, ",") {
		n, err := strconv.ParseUint(strings.TrimSpace(part), 10, 64)
		if err != nil || n == 0 {
			return w, fmt.Errorf("%q is not a shape such as 1,1,4096,4096", a.Shape)
		}
		t.Shape = append(t.Shape, n)
	}
	how := t.Layout
	if a.Shard != "" {
		if t.Shard, err = parseShard(a.Shard, t); err != nil {
			return w, err
		}
		how += fmt.Sprintf(" in shards of %dx%d", t.Shard.Height, t.Shard.Width)
	}
	w.Request, err = t.Request()
	w.What = fmt.Sprintf("[%s] %s %s (%s)", words.Escape(a.Shape), t.Type, how, words.Bytes(w.Request.Bytes))
	return w, err
}

// parseCores reads what the question says of single cores.
func (a FitQuery) parseCores(w *FitRequest) error {
	w.PerCore, w.Range = a.PerCore, a.Range
	switch {
	case !a.PerCore && !a.Range && a.Cores == "":
		return nil
	case a.PerCore && a.Range:
		return fmt.Errorf("a buffer is given out core by core or at one address of a range of cores, not both")
	case !a.PerCore && !a.Range:
		return fmt.Errorf("cores are those of a buffer that is given out core by core, or at one address of a range")
	case w.Pool != model.L1:
		return fmt.Errorf("%s is not given out core by core: ask for l1", words.PoolName(w.Pool))
	case a.Shape != "" && a.Shard == "":
		return fmt.Errorf("a tensor on single cores needs a shard")
	case a.Cores == "":
		return nil
	}
	var c coreRange
	first, last, both := strings.Cut(a.Cores, "-")
	if !both {
		last = first
	}
	for _, corner := range []struct {
		text string
		x, y *int
	}{{first, &c.x1, &c.y1}, {last, &c.x2, &c.y2}} {
		x, y, pair := strings.Cut(corner.text, ",")
		var err, also error
		*corner.x, err = strconv.Atoi(x)
		*corner.y, also = strconv.Atoi(y)
		if !pair || err != nil || also != nil {
			return fmt.Errorf("%q are no cores such as 0,0-7,0", a.Cores)
		}
	}
	if c.x1 < 0 || c.y1 < 0 || c.x2 < c.x1 || c.y2 < c.y1 || c.x2 > 99 || c.y2 > 99 {
		return fmt.Errorf("%q are no cores such as 0,0-7,0: from the upper left to the lower right", a.Cores)
	}
	w.Cores = &c
	return nil
}

// banks are the banks of the cores that are asked for; nil: all. known is false where
// the chip has no such cores, or which bank is which is not known.
func (w *FitRequest) banks(l *blocks.CoreL1) (banks []int, known bool) {
	if w.Cores == nil {
		return nil, true
	}
	for y := w.Cores.y1; y <= w.Cores.y2; y++ {
		for x := w.Cores.x1; x <= w.Cores.x2; x++ {
			bank, ok := l.BankAt(x, y)
			if !ok {
				return nil, false
			}
			banks = append(banks, bank)
		}
	}
	return banks, true
}

// Answer is what can be said of one pool of a process. Fit is nil where it is not known.
type Answer struct {
	Of   *blocks.Allocator
	What string // the pool
	Line string
	Fit  *blocks.Fit
}

// Answers says for each pool of a process that could have it whether it would fit.
func (w *FitRequest) Answers(p *blocks.Process, chip func(id uint64) string) (list []Answer) {
	if l, known := p.PerCore(); known && w.Pool == model.L1 {
		return w.coreAnswers(p, l, chip)
	}
	for _, x := range Pools(p) {
		if x.Pool != w.Pool {
			continue
		}
		a := Answer{Of: x.Of}
		a.What, _ = Heading(x, chip)
		a.Line, a.Fit = w.answer(p, x.List)
		if w.PerCore || w.Range {
			a.Line, a.Fit = fmt.Sprintf("would %s fit?  it has no buffers of single cores: that takes TT_METAL_ALLOCATOR_MODE_HYBRID=1", w.What), nil
		}
		list = append(list, a)
	}
	return list
}

// coreAnswers says whether it would fit where L1 is given out core by core: a buffer
// of single cores on each chip, any other one on all chips of a mesh.
func (w *FitRequest) coreAnswers(p *blocks.Process, l *blocks.CoreL1, chip func(id uint64) string) (list []Answer) {
	banks, known := w.banks(l)
	if !known {
		line := fmt.Sprintf("would %s fit?  there are no cores %d,%d to %d,%d, or where they are is not known", w.What, w.Cores.x1, w.Cores.y1, w.Cores.x2, w.Cores.y2)
		return []Answer{{Of: &blocks.Allocator{}, Line: line}}
	}
	if w.PerCore {
		for _, c := range l.Chips {
			list = append(list, w.onCores(l, c, banks, chip))
		}
		return list
	}
	cores := words.Count(int(l.Banks), "core")
	if banks != nil {
		cores = words.Count(len(banks), "core")
	}
	for _, m := range l.Meshes {
		a := Answer{Of: m.Allocator}
		common := l.Common(m, banks)
		a.What, _ = Heading(Pool{List: common, Of: m.Allocator, Cores: cores}, chip)
		a.Line, a.Fit = w.answer(p, common)
		list = append(list, a)
	}
	return list
}

// onCores says whether a buffer of single cores would fit on a chip: each of them needs
// a hole of its own.
func (w *FitRequest) onCores(l *blocks.CoreL1, c *blocks.CoreChip, banks []int, chip func(id uint64) string) Answer {
	if banks == nil {
		for k := range c.Cores {
			banks = append(banks, k)
		}
	}
	a := Answer{Of: &blocks.Allocator{Chips: []uint64{c.ID}}}
	a.What = fmt.Sprintf("%s of %s", words.PoolName(model.L1), chips(a.Of, chip))
	need, _ := l.Need(w.Request)
	without, least, most := &blocks.CoreGroup{}, l.Capacity, uint64(0)
	for _, k := range banks {
		n := l.CoreHole(c, k)
		least, most = min(least, n), max(most, n)
		if n < need {
			without.Banks = append(without.Banks, k)
		}
	}
	a.Fit = &blocks.Fit{Fits: len(without.Banks) == 0, BankBytes: need, Space: blocks.Space{Largest: least}}
	holes := "the largest hole of each has " + words.Bytes(least)
	if least < most {
		holes = fmt.Sprintf("the largest hole has %s to %s", words.Bytes(least), words.Bytes(most))
	}
	if a.Fit.Fits {
		a.Line = fmt.Sprintf("would %s fit?  yes: on all %d; %s", w.What, len(banks), holes)
	} else {
		a.Line = fmt.Sprintf("would %s fit?  no: %s on each, and %s have no such hole; %s", w.What, words.Bytes(need), coreNames(l, without), holes)
	}
	return a
}

// parseShard reads how a tensor is cut: the shape of a shard, or over how many
// cores.
func parseShard(text string, t blocks.Tensor) (s blocks.Shard, err error) {
	bad := fmt.Errorf("%q is not a shard such as 64x512, height:8, width:8 or block:4x4", text)
	strategy, size, cut := strings.Cut(text, ":")
	if !cut {
		strategy, size = "", text
	}
	first, second, pair := strings.Cut(size, "x")
	if pair != (strategy == "" || strategy == "block") {
		return s, bad
	}
	a, err := strconv.ParseUint(first, 10, 32)
	b := uint64(1)
	if err == nil && pair {
		b, err = strconv.ParseUint(second, 10, 32)
	}
	if err != nil || a == 0 || b == 0 {
		return s, bad
	}
	switch strategy {
	case "":
		return blocks.Shard{Height: a, Width: b}, nil
	case "height", "block":
		return t.Over(a, b)
	case "width":
		return t.Over(1, a)
	}
	return s, bad
}

// parsePool finds a pool that buffers can be asked for in.
func parsePool(name string) (model.Pool, error) {
	asked := []model.Pool{model.DRAM, model.L1, model.L1Small, model.Trace}
	if i := slices.IndexFunc(asked, func(p model.Pool) bool { return p.String() == name }); i >= 0 {
		return asked[i], nil
	}
	return 0, fmt.Errorf("%q is not one of dram, l1, l1_small and trace", name)
}

// answer says whether it would fit into a pool of a process. The fit is nil where
// that is not known, since not all blocks of the pool are.
func (w *FitRequest) answer(p *blocks.Process, l *blocks.List) (line string, fit *blocks.Fit) {
	f, known := l.Fits(w.Request)
	if !known || p.Lost > 0 {
		return fmt.Sprintf("would %s fit?  that is not known: not all blocks of the pool are", w.What), nil
	}
	return fitLine(w.What, l, f), &f
}
