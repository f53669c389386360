package words

import (
	"math"
	"strconv"
	"time"

	"github.com/ttmon/ttmon/internal/model"
)

// WorkCause says why it is not known, or not exactly, how busy a chip is. It has
// no full stop, and is empty where there is nothing to say.
func WorkCause(c model.WorkCause) string { return c.Why() }

// Busy is how busy a chip is, with its mark: "62 %", "≥ 62 %", "~100 %"; a word
// where it is not known.
func Busy(w *model.Work) string {
	v, ok := w.Busy.Get()
	if !ok {
		return missingBusy(w)
	}
	if w.Bound == model.AtLeast {
		v = roundDown(v)
	}
	return Mark(w.Bound) + Share(v)
}

// roundDown takes off what Share would round: "at least 63 %" would say too
// much of 62.5 %.
func roundDown(ratio float64) float64 {
	if digits := 100.0; ratio >= 0.01 && ratio <= 0.99 {
		return math.Floor(ratio*digits+1e-9) / digits
	}
	return math.Floor(ratio*1000+1e-9) / 1000
}

// Share is a part of the time: "62 %", "0.4 %". What is not nothing is never 0.
func Share(ratio float64) string {
	switch {
	case ratio > 0 && ratio < 0.0005:
		return "<0.1 %"
	case ratio > 0 && ratio < 0.01, ratio > 0.99 && ratio < 1:
		return Fixed(ratio*100, 1) + " %"
	}
	return Percent(ratio)
}

// OperationShare is the share of an operation with its mark: "12.5%", "≥12.5%".
func OperationShare(ratio float64, b model.Bound) string {
	switch {
	case ratio > 0 && ratio < 0.0005:
		return "<0.1 %"
	case b == model.AtLeast:
		ratio = math.Floor(ratio*1000) / 1000
	}
	return Mark(b) + Fixed(ratio*100, 1) + " %"
}

// missingBusy stands for no figure, where it is short with the reason.
func missingBusy(w *model.Work) string {
	if w.Cause == model.WorkSilent {
		return "silent"
	}
	return Nothing
}

// ProgramTime is a duration for a column: "342 µs", "1.9 ms", "4.2 s".
func ProgramTime(d time.Duration) string {
	n := float64(d)
	switch {
	case d < 0:
		return "–"
	case d < time.Microsecond:
		return strconv.Itoa(int(d)) + " ns"
	case d < time.Millisecond:
		return three(n/1e3) + " µs"
	case d < time.Second:
		return three(n/1e6) + " ms"
	case d < 100*time.Second:
		return three(n/1e9) + " s"
	}
	return Duration(d)
}

// three writes a number with two or three digits.
func three(n float64) string {
	if n < 9.95 {
		return strconv.FormatFloat(n, 'f', 1, 64)
	}
	return strconv.FormatFloat(n, 'f', 0, 64)
}

// Operation is the name of an operation, or what stands for those without one.
func Operation(o *model.Operation) string {
	switch {
	case o.Others > 0:
		return "(" + strconv.Itoa(o.Others) + " others)"
	case o.Name == "":
		return "(no name known)"
	}
	return Escape(o.Name)
}
