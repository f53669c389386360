package runreport

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// Work is what ran on a chip during the run, as tt-metal's real-time profiler
// reports it. Where Known is false nothing was reported, and Cause says why.
type Work struct {
	Known    bool            `json:"known"`
	Busy     float64         `json:"busy_s"`     // time in which a program ran
	Open     float64         `json:"open_s"`     // from when the chip was first opened until it was closed for good
	Ratio    float64         `json:"busy_ratio"` // Busy of Open, as in runs.Device
	Bound    model.Bound     `json:"-"`          // of Busy, Ratio and Programs; see MarshalJSON
	Cause    model.WorkCause `json:"cause,omitempty"`
	Programs uint64          `json:"programs"`
	Late     float64         `json:"host_late_s"` // between programs that follow within 100 ms: the chip waited for the host

	Longest     float64 `json:"longest_s"` // program
	LongestName string  `json:"longest_operation,omitempty"`
	LongestGap  float64 `json:"longest_gap_s"` // between two programs
	// GapAt is when the longest gap ended; nil: not known. Without Gaps it is when the
	// gap was noticed, up to a quarter of a second later.
	GapAt *float64 `json:"longest_gap_at_s,omitempty"`
	// Gaps are the longest ones, the longest first. GapsCause is why there are none,
	// or why a program may have run in one.
	Gaps      []Gap          `json:"gaps,omitempty"`
	GapsCause model.GapCause `json:"gaps_cause,omitempty"`
	// Operations are sorted by their time, the longest first.
	Operations []Operation `json:"operations,omitempty"`

	opened, closed float64 // when, in seconds of the run
}

// Operation is what the programs of one operation took of a chip.
type Operation struct {
	Name    string  `json:"operation"` // empty: not known
	Calls   uint64  `json:"calls"`
	Seconds float64 `json:"time_s"`
	Longest float64 `json:"longest_s"`
}

// Gap is a pause between two programs.
type Gap struct {
	Seconds float64 `json:"length_s"`
	Until   float64 `json:"until_s"`         // of the run
	After   string  `json:"after,omitempty"` // the operation before it; empty: not known
}

type plainWork Work

// MarshalJSON writes the bound as a word.
func (w Work) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		plainWork
		Bound string `json:"busy_bound,omitempty"`
	}{plainWork(w), w.boundWord()})
}

func (w *Work) boundWord() string {
	if !w.Known {
		return ""
	}
	return w.Bound.String()
}

// gap is the longest pause between two programs, and when it was seen.
type gap struct {
	length time.Duration
	at     float64
}

// AddWork notes what a process's ledger says of its programs.
func (b *Builder) AddWork(path string, w *ledgerfile.Work, at time.Time) {
	b.works = true
	e, ok := b.last[path]
	if !ok {
		return // not a process of this run
	}
	e.seen = at
	b.last[path] = e
	if w == nil {
		return
	}
	if e.gaps == nil {
		e.gaps = map[int]gap{}
	}
	for i := range w.Chips {
		c := &w.Chips[i]
		if c.LongestGap > e.gaps[c.Logical].length {
			e.gaps[c.Logical] = gap{c.LongestGap, b.seconds(at)}
		}
	}
	e.work = w
	b.last[path] = e
}

// addWork adds to the report of a process what it had its chips do.
func (b *Builder) addWork(p *Process, e entry, ended float64) {
	if !b.works {
		return
	}
	if e.work != nil {
		for i := range e.work.Chips {
			b.addChip(p, &e, &e.work.Chips[i], ended)
		}
	}
	for i := range p.Chips {
		if c := &p.Chips[i]; c.Work == nil {
			c.Work = &Work{Cause: silentCause(p.Release)}
			c.Work.opened, c.Work.closed = b.use(&e, c.ID, ended)
		}
	}
}

func (b *Builder) addChip(p *Process, e *entry, c *ledgerfile.ChipWork, ended float64) {
	id, ok := e.ledger.ChipNumbered(c.Logical)
	if !ok || c.Programs == 0 && c.State == ledgerfile.WorkOff {
		return
	}
	chip := chipIn(&p.Chips, id)
	chip.Logical = c.Logical
	w := chipWork(c, e.work)
	w.opened, w.closed = b.use(e, id, ended)
	w.finish()
	if g, ok := e.gaps[c.Logical]; ok {
		w.GapAt = &g.at
	}
	b.addGaps(&w, c, e.work)
	chip.Work = &w
}

// use returns from when to when a process used a chip: while it had an allocator for
// it. Without one that is known to be the chip's it is the whole run.
func (b *Builder) use(e *entry, chip uint64, ended float64) (from, to float64) {
	if !e.running { // it may have ended before the run, without closing anything
		ended = min(ended, b.seconds(e.seen))
	}
	from = ended
	for i := range e.ledger.Lists {
		l := &e.ledger.Lists[i]
		if l.State == ledgerfile.Unused || !slices.Contains(chipsOf(e.ledger, l), chip) {
			continue
		}
		from = min(from, b.seconds(l.Made))
		if l.State == ledgerfile.Open {
			to = ended
		} else {
			to = max(to, b.seconds(l.Closed))
		}
	}
	if to == 0 {
		return 0, ended
	}
	return from, to
}

// addGaps lists the longest gaps, and why they are in doubt: a program that is not
// reported may have run in one.
func (b *Builder) addGaps(w *Work, c *ledgerfile.ChipWork, of *ledgerfile.Work) {
	if !w.Known {
		return
	}
	for _, g := range c.LongestGaps {
		w.Gaps = append(w.Gaps, Gap{g.Length.Seconds(), b.seconds(g.End), g.After})
	}
	switch _, cause := workBound(c, of); {
	case len(w.Gaps) == 0:
	case cause == model.WorkLossy, cause == model.WorkQueues, cause == model.WorkSubDevices, cause == model.WorkUnprofiled:
		w.GapsCause = model.GapCause(cause)
	}
	if !c.GapsKept {
		w.GapsCause = model.GapsNotKept
	}
	if len(w.Gaps) > 0 {
		w.GapAt = &w.Gaps[0].Until
	}
}

// silentCause returns why a chip reports nothing: releases before 0.71 have no
// real-time profiler.
func silentCause(release string) model.WorkCause {
	_, version, _ := strings.Cut(release, " ")
	parts := strings.Split(version, ".")
	if len(parts) > 1 && parts[0] == "0" {
		if minor, err := strconv.Atoi(parts[1]); err == nil && minor < 71 {
			return model.WorkNoProfiler
		}
	}
	return model.WorkProfilerOff
}

func chipWork(c *ledgerfile.ChipWork, of *ledgerfile.Work) Work {
	if c.Loss == ledgerfile.WorkUnreadable {
		return Work{Cause: model.WorkLayout}
	}
	w := Work{
		Known: true, Busy: c.Busy.Seconds(), Programs: c.Programs, Late: c.Gap.Seconds(),
		Longest: c.Longest.Seconds(), LongestName: c.LongestName, LongestGap: c.LongestGap.Seconds(),
	}
	if w.Bound, w.Cause = workBound(c, of); w.Bound == model.AtLeast && c.Programs == 0 { // it says nothing
		return Work{Cause: w.Cause}
	}
	for _, o := range c.Ops {
		w.addOperation(Operation{o.Name, o.Calls, o.Time.Seconds(), o.Longest.Seconds()})
	}
	return w
}

// workBound says how far the busy time of a process can be trusted.
func workBound(c *ledgerfile.ChipWork, of *ledgerfile.Work) (model.Bound, model.WorkCause) {
	host, heard := &of.Host, uint64(0) // of all chips: which of them a program is for is not known
	for i := range of.Chips {
		heard += of.Chips[i].Programs + of.Chips[i].Unprofiled
	}
	switch {
	case c.Loss == ledgerfile.WorkLossy && c.Programs > 0:
		return model.AtLeast, model.WorkLossy
	case host.Queues > 1 || host.Queues == 0 && c.Programs > 0: // how many there are was not seen
		return model.AtLeast, model.WorkQueues
	case host.SubDevices > 1:
		return model.AtLeast, model.WorkSubDevices
	case c.Unprofiled > 0:
		return model.AtLeast, model.WorkUnprofiled
	case len(host.Waiting) > 0 || host.LastFinish.Before(host.LastEnqueue) || heard < host.Enqueued+host.Replayed:
		return model.AtLeast, model.WorkUnreported
	}
	return model.Exact, ""
}

func (w *Work) addOperation(o Operation) {
	i := slices.IndexFunc(w.Operations, func(x Operation) bool { return x.Name == o.Name })
	if i < 0 {
		w.Operations = append(w.Operations, o)
		return
	}
	x := &w.Operations[i]
	x.Calls, x.Seconds, x.Longest = x.Calls+o.Calls, x.Seconds+o.Seconds, max(x.Longest, o.Longest)
}

// finish sorts the operations and computes the share of the time in which the chip was
// open. It cannot have been busy for longer: up to 2 % more is tolerated.
func (w *Work) finish() {
	slices.SortStableFunc(w.Operations, func(a, b Operation) int { return cmp.Compare(b.Seconds, a.Seconds) })
	w.Open = w.closed - w.opened
	if !w.Known || w.Open <= 0 {
		return
	}
	if w.Busy > w.Open*1.02 {
		w.Bound, w.Cause = model.Unsure, model.WorkTooMuch
	}
	w.Busy = min(w.Busy, w.Open)
	w.Ratio = w.Busy / w.Open
}

// addProcess adds what another process had the same chip do. Programs of two
// processes may have run at the same time; no record says so.
func (w *Work) addProcess(x *Work) {
	opened, closed := min(w.opened, x.opened), max(w.closed, x.closed)
	defer func() {
		w.opened, w.closed = opened, closed
		w.finish()
	}()
	switch {
	case !x.Known && !w.Known:
		return
	case !w.Known:
		cause := w.Cause
		*w = *x
		w.Operations, w.Gaps = slices.Clone(x.Operations), slices.Clone(x.Gaps)
		w.atLeast(cause)
		w.doubtGaps(model.GapsOtherProcess)
		return
	case !x.Known:
		w.atLeast(x.Cause)
		w.doubtGaps(model.GapsOtherProcess)
		return
	}
	w.Busy, w.Programs, w.Late = w.Busy+x.Busy, w.Programs+x.Programs, w.Late+x.Late
	if x.Longest > w.Longest {
		w.Longest, w.LongestName = x.Longest, x.LongestName
	}
	if x.LongestGap > w.LongestGap {
		w.LongestGap, w.GapAt = x.LongestGap, x.GapAt
	}
	if x.Bound > w.Bound {
		w.Bound, w.Cause = x.Bound, x.Cause
	}
	for _, o := range x.Operations {
		w.addOperation(o)
	}
	w.mergeGaps(x)
}

// mergeGaps adds the gaps of another process, which may have worked in those of
// this one.
func (w *Work) mergeGaps(x *Work) {
	w.Gaps = append(w.Gaps, x.Gaps...)
	slices.SortStableFunc(w.Gaps, func(a, b Gap) int { return cmp.Compare(b.Seconds, a.Seconds) })
	w.Gaps = w.Gaps[:min(len(w.Gaps), model.MaxGaps)]
	if x.GapsCause == model.GapsNotKept {
		w.GapsCause = model.GapsNotKept
	}
	w.doubtGaps(model.GapsProcesses)
}

// doubtGaps notes that another process may have used the chip in a gap.
func (w *Work) doubtGaps(cause model.GapCause) {
	if len(w.Gaps) > 0 && w.GapsCause == "" {
		w.GapsCause = cause
	}
}

func (w *Work) atLeast(cause model.WorkCause) {
	if w.Bound < model.AtLeast {
		w.Bound, w.Cause = model.AtLeast, cause
	}
}

// property is a figure of a run in a JUnit file.
type property struct{ name, value string }

// workProperties are what ran on each chip, for CI systems that show them.
func workProperties(r *Report) (list []property) {
	for i := range r.Chips {
		c := &r.Chips[i]
		if c.Work == nil {
			continue
		}
		add := func(name, value string) { list = append(list, property{fmt.Sprintf("chip%d.%s", c.ID, name), value}) }
		w := c.Work
		if w.Cause != "" {
			add("busy_cause", string(w.Cause))
		}
		if !w.Known {
			continue
		}
		seconds := func(s float64) string { return strconv.FormatFloat(s, 'f', 6, 64) }
		add("busy_ratio", strconv.FormatFloat(w.Ratio, 'f', 4, 64))
		add("busy_bound", w.boundWord())
		add("busy_s", seconds(w.Busy))
		add("programs", strconv.FormatUint(w.Programs, 10))
		add("host_late_s", seconds(w.Late))
		add("longest_gap_s", seconds(w.LongestGap))
		for n, g := range w.Gaps[:min(len(w.Gaps), topGaps)] {
			add(fmt.Sprintf("gap%d_s", n+1), seconds(g.Seconds))
			add(fmt.Sprintf("gap%d_until_s", n+1), seconds(g.Until))
			if g.After != "" {
				add(fmt.Sprintf("gap%d_after", n+1), g.After)
			}
		}
		if w.GapsCause != "" && w.LongestGap > 0 {
			add("gaps_cause", string(w.GapsCause))
		}
		for n, o := range w.Operations[:min(len(w.Operations), topOperations)] {
			add(fmt.Sprintf("operation%d", n+1), o.Name)
			add(fmt.Sprintf("operation%d_s", n+1), seconds(o.Seconds))
			add(fmt.Sprintf("operation%d_calls", n+1), strconv.FormatUint(o.Calls, 10))
		}
	}
	return list
}

// topGaps is how many gaps of a chip are properties.
const topGaps = 3

// topOperations limits the operations of a chip that are properties.
const topOperations = 5
