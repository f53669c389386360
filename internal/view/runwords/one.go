package runwords

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/runs"
	"github.com/ttmon/ttmon/internal/words"
)

// How much is shown of one run.
const (
	maxOperations = 8
	maxGaps       = 5
)

// PresentOne completes a run, which Present has completed, with what is shown of one
// run only.
func PresentOne(r *runs.Run) {
	r.Formatted.Operations = Operations(r)
	r.Formatted.Gaps, r.Formatted.GapNotes = Gaps(r)
	r.Formatted.Lines, r.Formatted.LinesNote = Lines(r)
}

// Operations are those that took most of the run's chips, in words.
func Operations(r *runs.Run) (out []runs.SaidOperation) {
	list := r.Operations()
	busy, _ := r.Busy()
	if r.End.Kind != runs.Running { // what ran after the last snapshot is not in it
		busy.Bound = max(busy.Bound, model.AtLeast)
	}
	mark := words.Mark(busy.Bound)
	for _, o := range list[:min(len(list), maxOperations)] {
		out = append(out, runs.SaidOperation{
			Name: words.Escape(o.Name), Time: mark + programTime(o.Seconds), Calls: mark + strconv.FormatUint(o.Calls, 10), Mean: programTime(o.Seconds / float64(max(o.Calls, 1))),
		})
	}
	return out
}

func programTime(s float64) string { return words.ProgramTime(time.Duration(s * float64(time.Second))) }

// Gaps are the longest times between two programs, in words, and why some are not
// listed or not certain.
func Gaps(r *runs.Run) (out []runs.SaidGap, notes []string) {
	list := r.Gaps()
	if missing := r.GapsMissing(); missing != "" {
		which := "the longest gaps"
		if len(list) > 0 {
			which = "some of the longest gaps"
		}
		notes = append(notes, fmt.Sprintf("%s are not listed: %s", which, missing.Why()))
	}
	for _, g := range list[:min(len(list), maxGaps)] {
		length := programTime(g.Seconds)
		if g.Cause != "" {
			length = words.Mark(model.Unsure) + length
			if why := "gaps are not certain: " + g.Cause.Why(); !slices.Contains(notes, why) {
				notes = append(notes, why)
			}
		}
		ended := words.Nothing
		if !g.End.IsZero() {
			ended = words.Duration(max(g.End.Sub(r.Start), 0))
		}
		device := words.Nothing
		if g.Device >= 0 {
			device = strings.TrimSpace(strconv.Itoa(g.Device) + " " + words.Escape(g.Chip))
		}
		out = append(out, runs.SaidGap{Length: length, Device: device, Ended: ended, After: cmp.Or(words.Escape(g.After), words.Nothing)})
	}
	return out, notes
}

// Lines are the lines of code that held the most at the peak, in words; note is why
// they are not known, or not all.
func Lines(r *runs.Run) (out []runs.SaidLine, note string) {
	if r.Lines == nil {
		return nil, noLines(r.NoLines)
	}
	mark := ""
	if r.Lines.Lost > 0 {
		mark, note = words.Mark(model.Unsure), fmt.Sprintf("allocations and frees that are missing in these lines: %d", r.Lines.Lost)
	}
	for i := range r.Lines.Lines {
		l := &r.Lines.Lines[i]
		pool := strings.ToUpper(l.Pool)
		out = append(out, runs.SaidLine{Line: Line(&l.Line), Pool: words.Escape(pool), AtPeak: mark + words.Bytes(l.AtPeak), Allocs: strconv.FormatUint(l.Allocs, 10)})
	}
	return out, note
}

// noLines says why no lines are known; empty: they were not asked for.
func noLines(why runs.NoLines) string {
	switch why {
	case runs.NotTraced:
		return "lines of code are not known: only a program that runs under ttmon run --stacks reports which line allocates"
	case runs.OtherUser:
		return "lines of code are shown only to the user of the run and to root"
	}
	return ""
}
