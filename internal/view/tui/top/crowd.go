package top

import (
	"slices"

	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/model/history"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
	"github.com/ttmon/ttmon/internal/view/tui/chart"
)

// crowd reports whether a chart has more devices than lines can be told apart:
// it shows their average, and each of them in a map below.
func (sp *spec) crowd() bool { return len(sp.devices) > cells.NumSeries && len(sp.more) == 0 }

// splitCrowd divides a chart between the average and the map, which has what it
// needs for a row, half a row or a quarter of a row for each device. Where there
// is little room the map has it all.
func splitCrowd(a cells.Area, devices int) (line, heat cells.Area) {
	const leastLine = 4
	for _, share := range []int{1, 2, 4} {
		rows := (devices+share-1)/share + 1 // and one for marks
		if a.H-rows >= leastLine {
			return a.Top(a.H - rows)
		}
	}
	return a.Sub(0, 0, a.W, 0), a
}

// drawHeat draws a row per device, or per some, below the average.
func (a *chartArea) drawHeat(s *State, room chart.Room, sp spec, c *chart.Chart) {
	h := chart.Heat{Series: a.buckets[:len(sp.devices)], Scale: c.Scale, Reverse: c.Reverse, Mark: -1}
	for _, d := range sp.devices {
		h.Names = append(h.Names, d.Index)
	}
	if s.focus == devices {
		h.Mark = slices.IndexFunc(sp.devices, func(d *model.Device) bool { return d.BusID == s.dev.bus })
	}
	h.Draw(room)
}

// crowdLegend says the average, the sum where it means something, and the
// range, at the cursor or now.
func (a *chartArea) crowdLegend(s *State, sp spec, c *chart.Chart) string {
	var sum, lo, hi float64
	n := 0
	worst := model.Exact
	for _, b := range a.buckets[:len(sp.devices)] {
		at := len(b) - 1
		if c.Cursor >= 0 && c.Cursor < len(b) {
			at = c.Cursor
		}
		v, bound, ok := heldAt(b, at)
		if !ok {
			continue
		}
		worst = max(worst, bound)
		if n == 0 || v < lo {
			lo = v
		}
		if n == 0 || v > hi {
			hi = v
		}
		sum += v
		n++
	}
	if n == 0 {
		return words.Nothing
	}
	unit := sp.gauge.Form
	say := func(v float64) string { return words.Mark(worst) + unit.Format(v) }
	text := "avg " + say(sum/float64(n))
	if unit.Adds() {
		bound := worst
		if n < len(sp.devices) {
			bound = max(bound, model.AtLeast)
		}
		text += "  sum " + words.Mark(bound) + unit.Format(sum)
	}
	text += "  from " + say(lo) + " to " + say(hi)
	if n < len(sp.devices) {
		text += "  of " + count(n, "device", "devices")
	}
	return text
}

// heldAt is the value that held at a bucket, its own or the last before, and
// its bound.
func heldAt(b []history.Bucket, i int) (v float64, bound model.Bound, ok bool) {
	for ; i >= 0; i-- {
		switch {
		case b[i].Known():
			return float64(b[i].Last), b[i].Bound, true
		case b[i].State != history.Empty:
			return 0, model.Exact, false
		}
	}
	return 0, model.Exact, false
}
