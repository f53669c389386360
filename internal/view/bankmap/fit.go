package bankmap

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ttmon/ttmon/internal/blocks"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/words"
)

// FitQuery is a question as people write it: would a buffer of this size, or a tensor
// of this shape, still fit?
type FitQuery struct {
	Size         string // "512M"; empty: Shape says it
	Shape        string // "1,1,4096,4096"
	Type, Layout string // of the tensor; empty: bfloat16, tile
	Shard        string // "64x512", "height:8", "width:8", "block:4x4"; empty: interleaved
	Pool         string // empty: dram
}

// FitRequest is a buffer that a program might allocate.
type FitRequest struct {
	What    string // for people
	Pool    model.Pool
	Request blocks.Request
}

// Parse reads the question.
func (a FitQuery) Parse() (w FitRequest, err error) {
	if w.Pool, err = parsePool(cmp.Or(a.Pool, model.DRAM.String())); err != nil {
		return w, err
	}
	if a.Shard != "" && a.Shape == "" {
		return w, fmt.Errorf("a shard is that of a tensor, which needs a shape")
	}
	if a.Size != "" {
		n, ok := words.ParseBytes(a.Size)
		if !ok {
			return w, fmt.Errorf("%q is not a size such as 512M, 1.5G or 4096", a.Size)
		}
		w.What, w.Request = words.Bytes(n), blocks.Request{Bytes: n}
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

// Answer says whether it would fit into a pool of a process. The fit is nil where
// that is not known, since not all blocks of the pool are.
func (w *FitRequest) Answer(p *blocks.Process, l *blocks.List) (line string, fit *blocks.Fit) {
	f, known := l.Fits(w.Request)
	if !known || p.Lost > 0 {
		return fmt.Sprintf("would %s fit?  that is not known: not all blocks of the pool are", w.What), nil
	}
	return fitLine(w.What, l, f), &f
}
