package runtext

import (
	"fmt"
	"time"

	"github.com/ttmon/ttmon/internal/book/runs"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
)

// opsShown is how many operations of a chip the summary has, of a few chips or
// of many.
const (
	opsShown     = 5
	opsShownMany = 3
	manyChips    = 4
)

// works says how busy each chip was and with what.
func (p *printer) works(r *runs.Run) {
	type chip struct {
		name string
		w    runs.ChipWork
	}
	var known []chip
	silent := map[model.WorkCause][]chipOf{}
	var causes []model.WorkCause
	for i := range r.Devices {
		d := &r.Devices[i]
		for _, w := range d.WorkOfChips() {
			c := chipOf{d, &runs.Chip{ID: w.Chip, Name: w.Name, Logical: logical(d, w.Chip)}}
			switch {
			case w.Known:
				known = append(known, chip{chipName(c), w})
			default:
				if silent[w.Cause] == nil {
					causes = append(causes, w.Cause)
				}
				silent[w.Cause] = append(silent[w.Cause], c)
			}
		}
	}
	most := opsShown
	if len(known) >= manyChips {
		most = opsShownMany
	}
	for i := range known {
		p.work(known[i].name, &known[i].w, most)
	}
	for _, cause := range causes {
		p.line(" busy unknown on %s: %s", label(silent[cause]), words.WorkCause(cause))
	}
}

// logical is the number that the program gives a chip.
func logical(d *runs.Device, id string) *int {
	for i := range d.Chips {
		if d.Chips[i].ID == id {
			return d.Chips[i].Logical
		}
	}
	return nil
}

// work is what ran on one chip.
func (p *printer) work(name string, w *runs.ChipWork, most int) {
	figure := model.Work{Busy: model.Value(w.Ratio), Bound: w.Bound, Cause: w.Cause}
	text := fmt.Sprintf(" %s  busy %s of the time it was open: %s of %s in %s", name, words.Busy(&figure),
		span(min(w.Seconds, w.Open)), span(w.Open), words.Mark(w.Bound)+count(w.Programs, "program"))
	p.line("%s", text)
	for _, o := range w.Operations[:min(len(w.Operations), most)] {
		name := words.Operation(&model.Operation{Name: o.Name})
		mean := o.Seconds / float64(max(o.Calls, 1))
		p.line("   %s  %s  %s calls, mean %s, longest %s", words.Fit(name, 32), words.PadLeft(words.Share(o.Seconds/max(w.Open, 1e-9)), 7),
			words.PadLeft(fmt.Sprint(o.Calls), 7), span(mean), span(o.Longest))
	}
	if n := len(w.Operations) - most; n > 0 {
		rest := 0.0
		for _, o := range w.Operations[most:] {
			rest += o.Seconds
		}
		p.line("   %s  %s", words.Fit("("+count(uint64(n), "other")+")", 32), words.PadLeft(words.Share(rest/max(w.Open, 1e-9)), 7))
	}
	for _, text := range append([]string{p.between(w)}, append(p.gaps(w), p.doubt(w))...) {
		if text != "" {
			p.line("%s", text)
		}
	}
}

// gapsShown is how many gaps of a chip the summary has.
const gapsShown = 3

// gaps lists the longest times between two programs, and why a program may have
// run in one.
func (p *printer) gaps(w *runs.ChipWork) (lines []string) {
	title, mark := "longest gaps", ""
	if w.GapsCause != "" {
		mark = words.Mark(model.Unsure)
	}
	for _, g := range w.Gaps[:min(len(w.Gaps), gapsShown)] {
		text := fmt.Sprintf("   %s  %s  until %s", words.Fit(title, 32), words.PadLeft(mark+span(g.Seconds), 7), p.clock(g.End))
		if g.After != "" {
			text += ", after " + words.Operation(&model.Operation{Name: g.After})
		}
		lines, title = append(lines, text), ""
	}
	switch {
	case w.GapsCause == "" || model.WorkCause(w.GapsCause) == w.Cause || w.Gap == 0:
		return lines
	case len(w.Gaps) == 0:
		return append(lines, "   gaps are not listed: "+w.GapsCause.Why())
	}
	return append(lines, "   gaps are not certain: "+w.GapsCause.Why())
}

// between is the time between programs.
func (p *printer) between(w *runs.ChipWork) string {
	if w.Programs < 2 {
		return ""
	}
	text := fmt.Sprintf("   %s  %s  of the time, the chip waited for the host", words.Fit("(between programs)", 32), words.PadLeft(words.Share(w.Late/max(w.Open, 1e-9)), 7))
	if w.Gap > 0 && len(w.Gaps) == 0 {
		text += "; longest gap " + span(w.Gap)
	}
	return text
}

// doubt says why the figure is not exact.
func (p *printer) doubt(w *runs.ChipWork) string {
	if w.Bound == model.Exact || w.Cause == "" {
		return ""
	}
	return "   busy is " + p.boundWords(w.Bound) + ": " + words.WorkCause(w.Cause)
}

func (p *printer) boundWords(b model.Bound) string {
	if b == model.Unsure {
		return "not certain"
	}
	return "at least that"
}

func span(seconds float64) string {
	return words.ProgramTime(time.Duration(seconds * float64(time.Second)))
}
