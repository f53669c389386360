package chart

import (
	"math"
	"slices"
	"strconv"

	"github.com/ttmon/ttmon/internal/model/history"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
)

// Heat is a map of many series over time. Each series has a row; where there
// are too few rows, two or four share one, each with its own dots of a braille
// cell; and where those are too few, so many neighbours as it takes are drawn as
// the one that is furthest from all others. A row is named by its first series.
type Heat struct {
	Series  [][]history.Bucket // a bucket per dot column
	Names   []int              // of the series
	Scale   Scale              // of the colours
	Reverse bool               // newest at the left
	Mark    int                // the series whose row is named in strong letters; negative: none
}

// lanes is how many series have dots of their own in a row, and band how many
// neighbours are drawn as one.
func (h *Heat) lanes(rows int) (lanes, band int) {
	n := len(h.Series)
	rows = max(rows, 1)
	for _, lanes := range []int{1, 2, 4} {
		if n <= lanes*rows {
			return lanes, 1
		}
	}
	return 4, (n + 4*rows - 1) / (4 * rows)
}

// Draw draws the map into an area that is divided like the chart above it.
func (h *Heat) Draw(r Room) {
	lanes, band := h.lanes(r.Plot.H)
	per := lanes * band
	row := make([]level, lanes)
	for y := 0; y < r.Plot.H && y*per < len(h.Series); y++ {
		from := y * per
		style := cells.Axis
		if h.Mark >= from && h.Mark < from+per {
			style = cells.Strong
		}
		r.axis.PutRight(axisWidth-1, y, strconv.Itoa(h.Names[from]), style)
		for x := range r.Plot.W {
			at, usual := h.column(x, r.Columns), 0.0
			if band > 1 {
				usual = h.median(at)
			}
			for i := range row {
				row[i] = h.level(from+i*band, from+(i+1)*band, at, usual)
			}
			h.cell(r.Plot, x, y, row)
		}
	}
}

// column is the first of the two dot columns of a cell.
func (h *Heat) column(x, columns int) int {
	if h.Reverse {
		return columns - dotsX*(x+1)
	}
	return dotsX * x
}

// level is what a lane shows in a cell.
type level struct {
	share   float64 // of the scale
	known   bool
	away    bool // not sampled
	there   bool // it has a series
	partial bool // one of its series is not known, and another is
}

// level is what some neighbours show: the one that is furthest from what is
// usual, and whether one of them is unknown.
func (h *Heat) level(from, to, at int, usual float64) (l level) {
	furthest := -1.0
	for i := from; i < min(to, len(h.Series)); i++ {
		l.there = true
		v, state := h.value(h.Series[i], at)
		switch {
		case state == history.Sampled:
			if d := math.Abs(v - usual); d > furthest {
				furthest, l.share = d, h.share(v)
			}
			l.known = true
		case state == history.Away:
			l.away = true
		case state == history.Gap:
			l.partial = true
		}
	}
	l.partial = l.partial && l.known
	return l
}

// value is the highest value of a series in the dot columns of a cell.
func (h *Heat) value(b []history.Bucket, at int) (v float64, state history.State) {
	for i := max(at, 0); i < min(at+dotsX, len(b)); i++ {
		switch {
		case b[i].Known() && (state != history.Sampled || float64(b[i].Max) > v):
			v, state = float64(b[i].Max), history.Sampled
		case !b[i].Known() && state != history.Sampled:
			state = b[i].State
		}
	}
	return v, state
}

// median is the value that half of the series are below.
func (h *Heat) median(at int) float64 {
	var known []float64
	for _, b := range h.Series {
		if v, state := h.value(b, at); state == history.Sampled {
			known = append(known, v)
		}
	}
	if len(known) == 0 {
		return h.Scale.Bottom
	}
	slices.Sort(known)
	return known[len(known)/2]
}

func (h *Heat) share(v float64) float64 {
	if h.Scale.Top <= h.Scale.Bottom {
		return 0
	}
	return min(max((v-h.Scale.Bottom)/(h.Scale.Top-h.Scale.Bottom), 0), 1)
}

// cell draws the lanes of a row: shades and colours for one, dots for several.
// Without colours the shade, or the number of dots, is still there.
func (h *Heat) cell(a cells.Area, x, y int, row []level) {
	most, known, away, partial := 0.0, false, false, false
	for _, l := range row {
		if l.known {
			most, known = max(most, l.share), true
		}
		away, partial = away || l.away, partial || l.partial
	}
	switch {
	case partial:
		a.Set(x, y, '×', cells.Warn) // neighbours that are drawn as one, and one is unknown
	case !known && away:
		if (x+y)%2 == 0 {
			a.Set(x, y, '╱', cells.Faint)
		}
	case !known:
	case len(row) == 1:
		shades := []rune("░▒▓█")
		a.Set(x, y, shades[min(int(most*4), 3)], cells.RampAt(most))
	default:
		a.Set(x, y, '⠀'+rune(laneDots(row)), cells.RampAt(most))
	}
}

// laneDots are the dots of several lanes in one cell: the more, the higher.
func laneDots(row []level) (bits uint8) {
	high := dotsY / len(row) // rows of dots of a lane
	for i, l := range row {
		if !l.known {
			continue
		}
		n := 1 + min(int(l.share*float64(high*dotsX)), high*dotsX-1)
		for k := range n { // from the bottom
			bits |= dotBits[(i+1)*high-1-k/dotsX][k%dotsX]
		}
	}
	return bits
}
