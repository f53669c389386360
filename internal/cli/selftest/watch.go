package selftest

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/cli/selftest/report"
	"github.com/ttmon/ttmon/internal/cli/ttnnjob"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/model/apitype"
	"github.com/ttmon/ttmon/internal/node/api/client"
	"github.com/ttmon/ttmon/internal/source/track"
)

// watcher is one way in which ttmon learns what a program holds.
type watcher struct {
	source     model.Source
	snapshot   func(context.Context) (*model.Snapshot, error)
	allocators func(ctx context.Context, pid int) (*blocks.Process, error) // nil: it knows sums only
}

func (w watcher) String() string {
	switch w.source {
	case model.FromShm:
		return "shared memory"
	case model.FromUprobe:
		return "uprobes"
	default:
		return "libttmon"
	}
}

// plainWatchers are those who see a program that was started as it is.
func (t *test) plainWatchers() []watcher {
	list := []watcher{t.directly(model.FromShm)}
	if t.watchesThroughKernel() {
		list = append(list, watcher{
			source: model.FromUprobe, snapshot: t.host.ReadSnapshot,
			allocators: func(ctx context.Context, pid int) (*blocks.Process, error) {
				c := client.New(t.host.Socket())
				defer c.Close()
				p, _, err := c.Blocks(ctx, pid)
				return p, err
			},
		})
	}
	return list
}

// watchesThroughKernel reports whether there is a ttmond that sees the allocations of
// unmodified programs.
func (t *test) watchesThroughKernel() bool {
	if t.health == nil || t.health.Uprobe == nil {
		return false
	}
	state := t.health.Uprobe.State
	return state == apitype.WatchOn || state == apitype.WatchStarting
}

// directly reads the host without a daemon.
func (t *test) directly(source model.Source) watcher {
	w := watcher{source: source, snapshot: func(ctx context.Context) (*model.Snapshot, error) { return t.snapshot(ctx), nil }}
	if source == model.FromTrack {
		w.allocators = func(_ context.Context, pid int) (*blocks.Process, error) {
			r := track.NewReader(track.Options{})
			defer r.Close()
			for _, p := range r.Read(nil).Processes {
				if p.PID == pid {
					return p.State, nil
				}
			}
			return nil, fmt.Errorf("process %d keeps no ledger", pid)
		}
	}
	return w
}

// settle is how long a watcher may take to notice.
const settle = 6 * time.Second

// until asks until all is known and right, or time is up.
func until(ctx context.Context, ask func() []report.Row) (rows []report.Row) {
	for limit := time.Now().Add(settle); ; sleep(ctx, 250*time.Millisecond) {
		rows = ask()
		again := false
		for i := range rows {
			again = again || rows[i].Verdict == report.Wrong || rows[i].Verdict == report.Unknown
		}
		if !again || time.Now().After(limit) || ctx.Err() != nil {
			return rows
		}
	}
}

// compare holds what every watcher says against the program's own account.
func (p *play) compare(ctx context.Context, what string, truth ttnnjob.Reply) error {
	for _, w := range p.watchers {
		rows := until(ctx, func() []report.Row { return p.held(ctx, w, what, truth.Held) })
		if ctx.Err() != nil { // a snapshot that was cut short contradicts everybody
			return ctx.Err()
		}
		p.report.Add(rows...)
		if w.allocators == nil {
			continue
		}
		reply, err := p.job.Do(ttnnjob.Step{"do": "table"})
		if err != nil {
			return err
		}
		rows = until(ctx, func() []report.Row { return p.tables(ctx, w, what, reply.Table) })
		if ctx.Err() != nil {
			return ctx.Err()
		}
		p.report.Add(rows...)
	}
	return nil
}

var heldPools = []model.Pool{model.DRAM, model.L1, model.L1Small, model.Trace}

// held compares bytes of tensors.
func (p *play) held(ctx context.Context, w watcher, what string, truth ttnnjob.Held) (rows []report.Row) {
	s, err := w.snapshot(ctx)
	if err != nil || s == nil {
		return []report.Row{{Part: report.Program, What: what, By: w.String(), Verdict: report.Wrong, Note: "no snapshot"}}
	}
	sums, source := p.sums(s)
	for _, pool := range heldPools {
		out := report.Row{
			Part: report.Program, What: fmt.Sprintf("%s of the program (%s): %s", words.PoolName(pool), w, what),
			Group: fmt.Sprintf("bytes of its tensors (%s)", w),
			Ours:  words.Figure(sums[pool]), Witness: words.Bytes(truth[pool.String()] * uint64(p.chipsOpen)), By: "its own account",
		}
		out.Verdict, out.Note = judge(sums[pool], truth[pool.String()]*uint64(p.chipsOpen))
		switch {
		case source == "":
			out.Verdict, out.Note = report.Wrong, "the program is not seen"
		case source != w.source:
			out.Verdict, out.Note = report.Unknown, fmt.Sprintf("ttmon's figure comes from %s", source)
		}
		rows = append(rows, out)
	}
	return rows
}

// slack is what a figure that may be too high may be too high by: tt-metal's own
// buffers, such as program binaries, which the program does not count.
const slack = 4 * mib

// judge compares a figure, which may be marked, with the truth.
func judge(b model.Bytes, truth uint64) (report.Verdict, string) {
	n, bound, known := b.Best()
	switch {
	case !known:
		return report.Unknown, "ttmon does not know it: " + string(b.Status())
	case bound == model.Exact:
		return agree(n == truth), ""
	case bound == model.AtLeast && n > truth, n > truth+slack:
		return report.Wrong, "ttmon shows more than the program holds: what it read may be false"
	default:
		return report.Bounded, "marked by ttmon"
	}
}

// sums are the program's bytes by pool over all its chips, and whose they are.
func (p *play) sums(s *model.Snapshot) (sums model.PoolBytes, source model.Source) {
	var totals [model.NumPools]model.Sum
	for i := range s.Processes {
		if s.Processes[i].PID != p.job.PID {
			continue
		}
		for j := range s.Processes[i].Devices {
			u := &s.Processes[i].Devices[j]
			if u.Source == "" {
				continue
			}
			source = u.Source
			for _, pool := range heldPools {
				totals[pool].Add(u.Memory[pool])
			}
		}
	}
	for _, pool := range heldPools {
		sums[pool] = totals[pool].Bytes()
	}
	return sums, source
}

// tables compares the allocators: banks, capacity, allocated, free and the
// largest hole of every pool.
func (p *play) tables(ctx context.Context, w watcher, what string, truth map[string]ttnnjob.Table) (rows []report.Row) {
	state, err := w.allocators(ctx, p.job.PID)
	for _, pool := range heldPools {
		want, ok := truth[pool.String()]
		if !ok {
			continue // the release does not report it
		}
		out := report.Row{
			Part: report.Program, What: fmt.Sprintf("allocator of %s (%s): %s", words.PoolName(pool), w, what),
			Group:   fmt.Sprintf("its allocators: allocated, largest hole … (%s)", w),
			Witness: tableText(want), By: "get_memory_view",
		}
		if err != nil {
			out.Verdict, out.Note = report.Unknown, strings.TrimSpace(err.Error())
			rows = append(rows, out)
			continue
		}
		got, known := listOf(state, pool)
		if want.Banks == 0 {
			got.Banks = 0
		}
		out.Ours, out.Verdict = tableText(got), agree(known && equalTables(got, want))
		rows = append(rows, out)
	}
	return rows
}

func equalTables(a, b ttnnjob.Table) bool {
	return a.Banks == b.Banks && a.Capacity == b.Capacity && a.Allocated == b.Allocated && a.Free == b.Free && a.Largest == b.Largest
}

func tableText(t ttnnjob.Table) string {
	return fmt.Sprintf("%s a bank, largest hole %s", words.Bytes(t.Allocated), words.Bytes(t.Largest))
}

// inUse is the allocator that a process allocates from: the last one that holds
// something. Each chip has one of its own, too, which stays empty.
func inUse(p *blocks.Process) (last *blocks.Allocator) {
	for _, a := range p.Allocators {
		for _, l := range a.Lists {
			if last == nil || l.Usage().Blocks > 0 {
				last = a
			}
		}
	}
	return last
}

func findList(p *blocks.Process, pool model.Pool) *blocks.List {
	a := inUse(p)
	if a == nil {
		return nil
	}
	for _, l := range a.Lists {
		if l.Pool == pool {
			return l
		}
	}
	return nil
}

func listOf(p *blocks.Process, pool model.Pool) (t ttnnjob.Table, known bool) {
	l := findList(p, pool)
	if l == nil {
		return t, false
	}
	space, known := l.Space()
	return ttnnjob.Table{Banks: l.Banks, Capacity: l.Capacity, Allocated: l.Usage().BankBytes, Free: space.Free, Largest: space.Largest}, known || l.Capacity == 0
}

// questions asks whether buffers would fit, and has the program try: one that
// does, and one that is a page too large. The second makes it run out of memory.
func (p *play) questions(ctx context.Context) error {
	for _, w := range p.watchers {
		if w.allocators == nil {
			continue
		}
		for _, pool := range []model.Pool{model.DRAM, model.L1} {
			if err := p.fits(ctx, w, pool); err != nil {
				return err
			}
		}
	}
	reply, err := p.job.Do(ttnnjob.Step{"do": "spin", "rounds": 2000})
	if err != nil {
		return err
	}
	p.report.Add(report.Row{
		Part: report.Cost, What: "an allocation and its release in ttnn, " + p.how, Verdict: report.Measured,
		Ours: fmt.Sprintf("%.1f µs", reply.Round/1e3), By: "CPU time of the program",
	})
	return nil
}

func (p *play) fits(ctx context.Context, w watcher, pool model.Pool) error {
	state, err := w.allocators(ctx, p.job.PID)
	if err != nil {
		return nil // said already
	}
	l := findList(state, pool)
	if l == nil || l.Banks == 0 {
		return nil
	}
	space, known := l.Space()
	if !known {
		return nil
	}
	const page = 4096
	each := space.Largest / page
	for _, pages := range []uint64{each * l.Banks, (each + 1) * l.Banks} {
		answer, known := l.Fits(blocks.Request{Bytes: pages * page, Page: page})
		if !known {
			continue
		}
		reply, err := p.job.Do(ttnnjob.Step{"do": "try", "pool": pool.String(), "pages": pages, "page": page})
		if err != nil {
			return err
		}
		p.report.Add(report.Row{
			Part: report.Program, What: fmt.Sprintf("would %s of %s fit? (%s)", words.Bytes(pages*page), words.PoolName(pool), w),
			Group: fmt.Sprintf("would a buffer fit? (%s)", w),
			Ours:  yesNo(answer.Fits), Witness: yesNo(reply.Fits), By: "tried", Verdict: agree(answer.Fits == reply.Fits),
		})
	}
	return nil
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// gone checks that nothing is shown of a program that has ended.
func (p *play) gone(ctx context.Context) {
	for _, w := range p.watchers {
		rows := until(ctx, func() []report.Row {
			out := report.Row{Part: report.Program, What: fmt.Sprintf("the program after its end (%s)", w), Ours: "gone", Witness: "gone", By: "its exit", Verdict: report.Right}
			s, err := w.snapshot(ctx)
			if err != nil || s == nil {
				out.Ours, out.Verdict, out.Note = "", report.Unknown, "no snapshot"
				return []report.Row{out}
			}
			for i := range s.Processes {
				if s.Processes[i].PID == p.job.PID && s.Processes[i].State == model.Running {
					out.Ours, out.Verdict = "still shown", report.Wrong
				}
			}
			return []report.Row{out}
		})
		if ctx.Err() == nil {
			p.report.Add(rows...)
		}
	}
}
