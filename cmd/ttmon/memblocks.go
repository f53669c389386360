package main

import (
	"context"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/base/exit"
	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/cli/console"
	"github.com/ttmon/ttmon/internal/cli/host"
	"github.com/ttmon/ttmon/internal/cli/mem"
	"github.com/ttmon/ttmon/internal/view/bankmap"
	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/bank"
)

// blockFlags are those of ttmon mem that ask about allocators: what a process
// has in each bank, and what would still fit.
type blockFlags struct {
	pid    int
	json   bool
	report string

	fits                               string
	shape, dtype, layout, shard, where string

	perCore, spread bool
	cores           string
}

func (b *blockFlags) add(m *memCmd) {
	f := m.cmd.Flags()
	f.IntVarP(&b.pid, "pid", "p", 0, "show the allocators of process `PID`: a map of each bank, its largest blocks and holes")
	f.BoolVar(&b.json, "json", false, "with -p, --fits, --shape or --stale: print JSON and exit")
	f.StringVar(&b.report, "report", "", "with -p: write tt-metal's memory reports (CSV) of this moment to `DIR`")
	f.StringVar(&b.fits, "fits", "", "would a buffer of `SIZE` (512M, 1.5G, 4096) still fit?")
	f.StringVar(&b.shape, "shape", "", "would a tensor of this `SHAPE` (1,1,4096,4096) still fit?")
	f.StringVar(&b.dtype, "dtype", "bfloat16", "data `TYPE` of the tensor: "+strings.Join(blocks.ElementTypes(), ", "))
	f.StringVar(&b.layout, "layout", "tile", "`LAYOUT` of the tensor: tile or row_major")
	f.StringVar(&b.shard, "shard", "", "with --shape: sharded, by `SHARD`: the shape of a shard (64x512) or the core grid (height:8, width:8, block:4x4)")
	f.StringVar(&b.where, "memory", "dram", "from which `POOL`: dram, l1, l1_small or trace")
	f.BoolVar(&b.perCore, "per-core", false, "with HYBRID: SIZE, or a shard, wherever each core has room")
	f.BoolVar(&b.spread, "range", false, "the same at one address of --cores only")
	f.StringVar(&b.cores, "cores", "", "with --per-core or --range: the `CORES`, as 0,0-7,0")
}

// asked reports whether the question is about allocators.
func (b *blockFlags) asked() bool { return b.pid != 0 || b.fits != "" || b.shape != "" }

// question is what --fits or --shape ask for; nil: neither was given.
func (b *blockFlags) question() (*bankmap.FitRequest, error) {
	flag := "--fits"
	switch {
	case b.shard != "" && b.shape == "":
		return nil, exit.Usage("--shard needs --shape")
	case b.fits == "" && b.shape == "":
		return nil, nil
	case b.fits != "" && b.shape != "":
		return nil, exit.Usage("--fits and --shape cannot be used together")
	case b.shape != "":
		flag = "--shape"
	}
	w, err := bankmap.FitQuery{
		Size: b.fits, Shape: b.shape, Type: b.dtype, Layout: b.layout, Shard: b.shard, Pool: b.where,
		PerCore: b.perCore, Range: b.spread, Cores: b.cores,
	}.Parse()
	if err != nil {
		return nil, exit.Usage("%s: %w", flag, err)
	}
	return &w, nil
}

// runBlocks answers a question about allocators.
func (m *memCmd) runBlocks() error {
	wanted, err := m.blocks.question()
	if err != nil {
		return err
	}
	h, err := host.Open(m.where)
	if err != nil {
		return err
	}
	defer h.Close()
	answer, err := mem.Question{PID: m.blocks.pid, Only: m.ids}.Fetch(h)
	if err != nil {
		return err
	}
	_, _, terminal := console.Size(m.Stdout)
	switch {
	case m.blocks.report != "":
		return answer.WriteReports(m.blocks.report)
	case m.blocks.json:
		return m.printBlocksJSON(answer, wanted)
	case terminal && wanted == nil && answer.Reported == nil && !m.once && !m.plain:
		return m.showBlocks(h, answer)
	}
	return m.printBlocks(answer, wanted)
}

// showBlocks draws the allocators of a process on the screen, again and again.
func (m *memCmd) showBlocks(h *host.Host, answer *mem.Answer) error {
	_, c, err := m.configure()
	if err != nil {
		return err
	}
	do := func(ctx context.Context, _ tui.Effect) tui.Event {
		return answer.Refresh(ctx)
	}
	return m.show(source{}, bank.New(c.Display.Theme), tui.Options{Source: h, Interval: time.Duration(c.Top.Interval), Do: do})
}

// printBlocks prints maps of banks.
func (a *app) printBlocks(answer *mem.Answer, wanted *bankmap.FitRequest) error {
	o, err := a.TextOptions(a.Stdout)
	if err != nil {
		return err
	}
	return a.PrintText(answer.Append(nil, wanted, o.Options))
}

// printBlocksJSON prints allocators for scripts.
func (a *app) printBlocksJSON(answer *mem.Answer, wanted *bankmap.FitRequest) error {
	b, err := answer.AppendJSON(nil, wanted)
	if err != nil {
		return err
	}
	return a.Output("").Write(b)
}
