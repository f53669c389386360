// Package mem answers the questions of ttmon mem about allocators: what a process
// has in each bank, and what would still fit. It asks the ledger that a process
// keeps itself, or ttmond.
package mem

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/base/exit"
	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/book/callsite"
	"github.com/ttmon/ttmon/internal/cli/console"
	"github.com/ttmon/ttmon/internal/cli/host"
	"github.com/ttmon/ttmon/internal/cli/selection"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/model/apitype"
	"github.com/ttmon/ttmon/internal/node/api/client"
	"github.com/ttmon/ttmon/internal/view/bankmap"
	"github.com/ttmon/ttmon/internal/view/lines"
	"github.com/ttmon/ttmon/internal/view/tui/bank"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
)

// Answer is what is known of the allocators of some processes.
type Answer struct {
	Processes []*blocks.Process
	Snapshot  *model.Snapshot
	Time      time.Time
	// Place is where a block was asked for; nil: not known.
	Place func(blocks.Block) string
	// Tensor is what a block is for; nil: not known.
	Tensor func(blocks.Block) string
	// Refresh asks again, for a screen; nil: the answer does not change.
	Refresh func(ctx context.Context) bank.Answer

	// Reported are the buffers of a process that reports them itself and is not
	// watched: there are no Processes then.
	Reported *apitype.Buffers

	sites []callsite.Site // of its blocks, by number; nil: not known
}

// Question is about the allocators of one process, or of all that use the chosen
// devices.
type Question struct {
	PID  int // 0: all
	Only selection.Selection
}

// Fetch answers the question from the ledgers of the processes, or else from ttmond.
func (q Question) Fetch(h *host.Host) (*Answer, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if q.PID != 0 {
		if a, err := h.Allocators(ctx, model.ProcessID{PID: q.PID}); err == nil && a.Ledger != nil {
			return fromLedger(h, *a.Ledger, nextOf(h)), nil
		}
	}
	path := h.Socket()
	if q.PID == 0 {
		if a, err := q.fromLedgers(ctx, h, path == ""); a != nil || err != nil {
			return a, err
		}
	}
	if path == "" {
		return nil, exit.With(exit.Unsupported, "%sallocators can only be read through ttmond, which is not running: start it as root, or start the program with ttmon run, which needs no root", q.known(ctx, h))
	}
	c := client.New(path)
	defer c.Close()
	snap, err := c.Snapshot(ctx)
	if err != nil {
		return nil, exit.With(exit.Internal, "%w", err)
	}
	found, sites, err := q.processes(ctx, c, snap)
	if errors.Is(err, client.ErrNotFound) {
		if reported, _ := q.reported(ctx, c); reported != nil {
			return &Answer{Snapshot: snap, Time: time.Now(), Reported: reported}, nil
		}
	}
	if err != nil {
		return nil, err
	}
	a := &Answer{Processes: found, Snapshot: snap, Time: time.Now(), Refresh: refresh(path, q.PID), sites: sites}
	a.Place, a.Tensor = callSites(sites)
	return a, nil
}

// known is what is known of the process without its allocator, as the beginning of a
// sentence.
func (q Question) known(ctx context.Context, h *host.Host) string {
	if q.PID == 0 {
		return ""
	}
	snap, err := h.Next(ctx)
	if err != nil {
		return "" // the sentence says why allocators are not known
	}
	return q.knownOf(snap)
}

func (q Question) knownOf(snap *model.Snapshot) string {
	if q.PID == 0 {
		return ""
	}
	i := slices.IndexFunc(snap.Processes, func(p model.Process) bool { return p.PID == q.PID })
	if i < 0 {
		return fmt.Sprintf("process %d uses no device, as far as can be seen; ", q.PID)
	}
	var on []string
	for _, u := range snap.Processes[i].Devices {
		if u.Device != model.NoDevice {
			on = append(on, fmt.Sprintf("%s of DRAM and %s of L1 on device %d", words.FigureOr(u.Memory[model.DRAM], u.Tracking), words.FigureOr(u.Memory[model.L1], u.Tracking), u.Device))
		}
	}
	if len(on) == 0 {
		return ""
	}
	return fmt.Sprintf("process %d holds %s; ", q.PID, strings.Join(on, ", "))
}

// refresh asks ttmond again about a process.
func refresh(path string, pid int) func(context.Context) bank.Answer {
	return func(ctx context.Context) bank.Answer {
		c := client.New(path) // the screen asks from another goroutine than Next
		defer c.Close()
		answer := bank.Answer{At: time.Now(), Options: bankmap.Options{}}
		var sites []callsite.Site
		if answer.Process, sites, answer.Err = c.Blocks(ctx, pid); answer.Err != nil {
			return answer
		}
		if snap, err := c.Snapshot(ctx); err == nil {
			answer.Options = bankmap.Options{Title: title(snap, pid), Chip: words.ChipNames(snap)}
		}
		answer.Options.Place, answer.Options.Tensor = callSites(sites)
		return answer
	}
}

// callSites says where blocks were asked for, and what for; nil: not known.
func callSites(sites []callsite.Site) (place, tensor func(blocks.Block) string) {
	if sites == nil {
		return nil, nil
	}
	return bankmap.CallSites(sites)
}

// processes asks ttmond for the processes that are meant, and for the call sites of
// one: a number of a site is one in its own ledger.
func (q Question) processes(ctx context.Context, c *client.Client, snap *model.Snapshot) (found []*blocks.Process, sites []callsite.Site, err error) {
	if q.PID != 0 {
		p, sites, err := c.Blocks(ctx, q.PID)
		if errors.Is(err, client.ErrNotFound) {
			return nil, nil, exit.With(exit.NoDevice, "%w; ttmond watches programs that use libtt_metal.so (ttmon doctor --daemons says if it cannot)", err)
		}
		if err != nil {
			return nil, nil, exit.With(exit.Internal, "%w", err)
		}
		return []*blocks.Process{p}, sites, nil
	}
	chosen, err := q.Only.From(snap)
	if err != nil {
		return nil, nil, err
	}
	for i := range chosen.Processes {
		p, of, err := c.Blocks(ctx, chosen.Processes[i].PID)
		if errors.Is(err, client.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, nil, exit.With(exit.Internal, "%w", err)
		}
		found, sites = append(found, p), of
	}
	if len(found) > 1 {
		sites = nil
	}
	if len(found) == 0 {
		return nil, nil, exit.With(exit.NoDevice, "no program that ttmond watches uses these devices, so there is no allocator to ask")
	}
	return found, sites, nil
}

// Append prints the maps of the banks, and what would fit; nil: nothing is asked.
func (a *Answer) Append(dst []byte, wanted *bankmap.FitRequest, to lines.Options) []byte {
	if a.Reported != nil {
		return a.appendReported(dst, to)
	}
	p := lines.Printer{Options: to, Buf: dst}
	view := bankmap.Options{Width: to.LayoutWidth(), Now: a.Time, Chip: words.ChipNames(a.Snapshot), Place: a.Place, Tensor: a.Tensor}
	for _, of := range a.Processes {
		view.Title = title(a.Snapshot, of.PID)
		p.Lines(bankmap.Lines(of, view)...)
		if wanted != nil {
			p.Newline()
			for _, x := range answersTo(of, wanted, view.Chip) {
				p.Line(x.line, cells.Text)
			}
		}
	}
	return p.Buf
}

// AppendJSON prints the answer as a document (ttmon.blocks/1).
func (a *Answer) AppendJSON(dst []byte, wanted *bankmap.FitRequest) ([]byte, error) {
	doc := map[string]any{"schema": "ttmon.blocks/1", "time": a.Time.UTC().Format(time.RFC3339Nano), "processes": a.Processes}
	if a.sites != nil {
		doc["sites"] = a.sites
	}
	if a.Reported != nil {
		doc["processes"], doc["reported"] = []*blocks.Process{}, a.Reported
	}
	if wanted != nil {
		fits := []answerTo{}
		for _, p := range a.Processes {
			fits = append(fits, answersTo(p, wanted, nil)...)
		}
		doc["fits"] = fits
	}
	b, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return nil, exit.With(exit.Internal, "encoding allocators: %w", err)
	}
	return append(append(dst, b...), '\n'), nil
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

func answersTo(p *blocks.Process, q *bankmap.FitRequest, chip func(id uint64) string) (list []answerTo) {
	for _, a := range q.Answers(p, chip) {
		list = append(list, answerTo{Chips: a.Of.Chips, Known: a.Fit != nil, Fit: a.Fit, line: a.Line})
	}
	if len(list) == 0 {
		list = append(list, answerTo{line: fmt.Sprintf("would %s fit?  process %d has no such pool", q.What, p.PID)})
	}
	return list
}

// WriteReports writes the files that tt-metal itself writes on demand.
func (a *Answer) WriteReports(dir string) error {
	if a.Reported != nil {
		return exit.With(exit.Unsupported, "process %d reports its buffers over the allocation socket, which says nothing of banks: tt-metal's reports cannot be written of it", a.Reported.PID)
	}
	p := a.Processes[0]
	used := bankmap.InUse(p)
	if len(used) == 0 {
		return exit.With(exit.NoDevice, "no allocator of process %d is known", p.PID)
	}
	if slices.ContainsFunc(used, (*blocks.Allocator).PerCore) { // its own have what all cores have in common, and call it all
		return exit.With(exit.Unsupported, "process %d gives out L1 core by core (HYBRID), which tt-metal's reports have no room for: ttmon mem -p %d shows it", p.PID, p.PID)
	}
	for _, x := range used { // tt-metal's reports have no way to say that something is not known
		if p.Lost > 0 || !bankmap.Reportable(x) {
			return exit.With(exit.Unsupported, "not all blocks of process %d are known, so tt-metal's reports of it would be wrong: ttmon mem -p %d says what is known", p.PID, p.PID)
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return console.FileError(err)
	}
	for i, x := range used {
		prefix := ""
		if len(used) > 1 {
			prefix = fmt.Sprintf("allocator_%d_", i)
		}
		for name, content := range bankmap.Reports(x) {
			if err := os.WriteFile(filepath.Join(dir, prefix+name), content, 0o644); err != nil {
				return console.FileError(err)
			}
		}
	}
	return nil
}
