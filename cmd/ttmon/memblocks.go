package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/api/client"
	"github.com/ttmon/ttmon/internal/blocks"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/runreport"
	"github.com/ttmon/ttmon/internal/view/bankmap"
	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/bank"
	"github.com/ttmon/ttmon/internal/view/words"
)

// blockFlags are those of ttmon mem that ask about allocators: what a process
// has in each bank, and what would still fit.
type blockFlags struct {
	pid    int
	json   bool
	report string

	fits                        string
	shape, dtype, layout, where string
}

func (b *blockFlags) add(m *memCmd) {
	f := m.cmd.Flags()
	f.IntVarP(&b.pid, "pid", "p", 0, "the allocators of process `PID`: a map of each bank, its largest blocks and holes")
	f.BoolVar(&b.json, "json", false, "with -p, --fits or --shape: print once, as JSON")
	f.StringVar(&b.report, "report", "", "with -p: write tt-metal's memory reports (CSV) of this moment to `DIR`")
	f.StringVar(&b.fits, "fits", "", "would a buffer of `SIZE` (512M, 1.5G, 4096) still fit?")
	f.StringVar(&b.shape, "shape", "", "would a tensor of this `SHAPE` (1,1,4096,4096) still fit?")
	f.StringVar(&b.dtype, "dtype", "bfloat16", "`TYPE` of its elements: "+strings.Join(blocks.ElementTypes(), ", "))
	f.StringVar(&b.layout, "layout", "tile", "its `LAYOUT`: tile or row_major")
	f.StringVar(&b.where, "memory", "dram", "the `POOL` it is to be in: dram, l1, l1_small or trace")
}

// asked tells whether the question is about allocators.
func (b *blockFlags) asked() bool { return b.pid != 0 || b.fits != "" || b.shape != "" }

// question is what --fits or --shape ask for; nil: neither was given.
func (b *blockFlags) question() (*bankmap.Wanted, error) {
	flag := "--fits"
	switch {
	case b.fits == "" && b.shape == "":
		return nil, nil
	case b.fits != "" && b.shape != "":
		return nil, usage("--fits and --shape cannot be used together")
	case b.shape != "":
		flag = "--shape"
	}
	w, err := bankmap.Ask{Size: b.fits, Shape: b.shape, Type: b.dtype, Layout: b.layout, Pool: b.where}.Parse()
	if err != nil {
		return nil, usage("%s: %w", flag, err)
	}
	return &w, nil
}

// runBlocks answers a question about allocators.
func (m *memCmd) runBlocks() error {
	q, err := m.blocks.question()
	if err != nil {
		return err
	}
	h, err := m.openHost()
	if err != nil {
		return err
	}
	defer h.Close()
	if p, ok := m.fromLedger(m.blocks.pid); ok {
		return m.runLedger(h, p, q)
	}
	path := h.socket()
	if path == "" {
		return exitWith(exitUnsupported, "allocators are known through ttmond, which is not running here: start it as root; or start the program with ttmon run, which needs no root")
	}
	c := client.New(path)
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	snap, err := c.Snapshot(ctx)
	if err != nil {
		return exitWith(exitInternal, "%w", err)
	}
	found, err := m.processes(ctx, c, snap)
	if err != nil {
		return err
	}
	switch {
	case m.blocks.report != "":
		return m.writeReports(found[0])
	case m.blocks.json:
		return m.printJSON(found, q, nil)
	}
	if _, _, terminal := size(m.stdout); terminal && q == nil && !m.once && !m.plain {
		return m.showBlocks(h, m.fromDaemon(path))
	}
	return m.printBlocks(found, snap, q)
}

// showBlocks draws the allocators of a process on the screen, again and again.
func (m *memCmd) showBlocks(h *host, ask func(context.Context) bank.Answer) error {
	_, c, err := m.load(m.app)
	if err != nil {
		return err
	}
	theme := c.Display.Theme
	if m.color == "never" {
		theme = "mono"
	}
	interval := time.Duration(c.Mem.Interval)
	if m.cmd.Flags().Changed("refresh") {
		interval = max(time.Duration(m.refresh)*time.Millisecond, 100*time.Millisecond)
	}
	do := func(ctx context.Context, _ tui.Effect) tui.Event {
		answer := ask(ctx)
		answer.Options.ASCII = m.ascii || asciiLocale(m.getenv)
		return answer
	}
	return m.show(source{}, bank.New(string(theme)), tui.Options{Source: h, Interval: interval, Do: do})
}

// fromDaemon answers the screen from ttmond.
func (m *memCmd) fromDaemon(path string) func(context.Context) bank.Answer {
	return func(ctx context.Context) bank.Answer {
		asked := client.New(path) // the screen asks from another goroutine than Next
		defer asked.Close()
		answer := bank.Answer{At: time.Now()}
		if answer.Process, answer.Err = asked.Blocks(ctx, m.blocks.pid); answer.Err != nil {
			return answer
		}
		if snap, err := asked.Snapshot(ctx); err == nil {
			answer.Options = bankmap.Options{Title: title(snap, m.blocks.pid), Chip: words.ChipNames(snap)}
		}
		return answer
	}
}

// processes asks for the processes that are meant: the one of -p, or all that
// use the chosen devices.
func (m *memCmd) processes(ctx context.Context, c *client.Client, snap *model.Snapshot) (found []*blocks.Process, err error) {
	if m.blocks.pid != 0 {
		p, err := c.Blocks(ctx, m.blocks.pid)
		if errors.Is(err, client.ErrNotFound) {
			return nil, exitWith(exitNoDevice, "%w; ttmond watches programs that use tt-metal (libtt_metal.so), and its health says why where it cannot", err)
		}
		if err != nil {
			return nil, exitWith(exitInternal, "%w", err)
		}
		return []*blocks.Process{p}, nil
	}
	chosen, err := selection(m.ids).from(snap)
	if err != nil {
		return nil, err
	}
	for i := range chosen.Processes {
		p, err := c.Blocks(ctx, chosen.Processes[i].PID)
		if errors.Is(err, client.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, exitWith(exitInternal, "%w", err)
		}
		found = append(found, p)
	}
	if len(found) == 0 {
		return nil, exitWith(exitNoDevice, "no program that ttmond watches uses these devices: what fits is up to the allocator of the program that asks")
	}
	return found, nil
}

func (m *memCmd) printBlocks(found []*blocks.Process, snap *model.Snapshot, q *bankmap.Wanted) error {
	o, err := m.textOptions(m.stdout)
	if err != nil {
		return err
	}
	width, _, _ := size(m.stdout)
	if width == 0 {
		width = 100
	}
	view := bankmap.Options{Width: width, ASCII: o.ASCII, Now: m.time(), Chip: words.ChipNames(snap), Place: m.place}
	var out []byte
	for _, p := range found {
		view.Title = title(snap, p.PID)
		lines := bankmap.Lines(p, view)
		if q != nil {
			lines = append(lines, "")
			for _, a := range answers(p, q) {
				lines = append(lines, a.line)
			}
		}
		out = append(out, strings.Join(lines, "\n")+"\n"...)
	}
	return m.printText(out)
}

// time is the moment that is shown.
func (m *memCmd) time() time.Time {
	if m.now.IsZero() {
		return time.Now()
	}
	return m.now
}

func title(s *model.Snapshot, pid int) string {
	for i := range s.Processes {
		if p := &s.Processes[i]; p.PID == pid {
			if p.Cmdline.V != "" {
				return p.Cmdline.V
			}
			return p.Name.V
		}
	}
	return ""
}

// answerTo is the answer of one allocator.
type answerTo struct {
	Chips []uint64    `json:"chips"`
	Known bool        `json:"known"`
	Fit   *blocks.Fit `json:"fit"`
	line  string
}

func answers(p *blocks.Process, q *bankmap.Wanted) (list []answerTo) {
	for _, a := range bankmap.InUse(p) {
		for _, l := range a.Pool(q.Pool) {
			line, fit := q.Answer(p, l)
			list = append(list, answerTo{Chips: a.Chips, Known: fit != nil, Fit: fit, line: line})
		}
	}
	if len(list) == 0 {
		list = append(list, answerTo{line: fmt.Sprintf("would %s fit?  process %d has no such pool", q.What, p.PID)})
	}
	return list
}

// printJSON prints processes; sites are those that their blocks have by number.
func (m *memCmd) printJSON(found []*blocks.Process, q *bankmap.Wanted, sites []runreport.Site) error {
	doc := map[string]any{"schema": "ttmon.blocks/1", "time": m.time().UTC().Format(time.RFC3339Nano), "processes": found}
	if sites != nil {
		doc["sites"] = sites
	}
	if q != nil {
		fits := []answerTo{}
		for _, p := range found {
			fits = append(fits, answers(p, q)...)
		}
		doc["fits"] = fits
	}
	b, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return exitWith(exitInternal, "%w", err)
	}
	return m.output("").write(append(b, '\n'))
}

// writeReports writes the files that tt-metal itself writes on demand.
func (m *memCmd) writeReports(p *blocks.Process) error {
	used := bankmap.InUse(p)
	if len(used) == 0 {
		return exitWith(exitNoDevice, "process %d has no allocator that is known", p.PID)
	}
	for _, a := range used { // tt-metal's reports have no way to say that something is not known
		if p.Lost > 0 || !bankmap.Reportable(a) {
			return exitWith(exitUnsupported, "not all blocks of process %d are known, so tt-metal's reports of it would be wrong: ttmon mem -p %d says what is known", p.PID, p.PID)
		}
	}
	if err := os.MkdirAll(m.blocks.report, 0o755); err != nil {
		return fileError(err)
	}
	for i, a := range used {
		prefix := ""
		if len(used) > 1 {
			prefix = fmt.Sprintf("allocator_%d_", i)
		}
		for name, content := range bankmap.Reports(a) {
			if err := os.WriteFile(filepath.Join(m.blocks.report, prefix+name), content, 0o644); err != nil {
				return fileError(err)
			}
		}
	}
	return nil
}
