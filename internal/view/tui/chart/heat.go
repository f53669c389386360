package chart

import (
	"strconv"

	"github.com/ttmon/ttmon/internal/history"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
)

// Heat is a map of many series over time: a row for each, or for as many
// neighbours together as there are too few rows, named by the first; the highest
// of them counts.
type Heat struct {
	Series  [][]history.Bucket // a bucket per dot column
	Names   []int              // of the series
	Scale   Scale              // of the colours
	Reverse bool               // newest at the left
	Hold    int                // dot columns for which a value holds
	Mark    int                // the series whose row is named in strong letters; negative: none
}

// bands is how many series share a row of a map with the given number of rows.
func (h *Heat) bands(rows int) int {
	return max((len(h.Series)+rows-1)/max(rows, 1), 1)
}

// Draw draws the map into an area that is divided like the chart above it.
func (h *Heat) Draw(r Room) {
	per := h.bands(r.Plot.H)
	for y := 0; y < r.Plot.H && y*per < len(h.Series); y++ {
		from, to := y*per, min((y+1)*per, len(h.Series))
		style := cells.Axis
		if h.Mark >= from && h.Mark < to {
			style = cells.Strong
		}
		r.axis.PutRight(axisWidth-1, y, strconv.Itoa(h.Names[from]), style)
		for x := range r.Plot.W {
			if v, ok := h.highest(h.Series[from:to], h.column(x, r.Columns)); ok {
				h.cell(r.Plot, x, y, v)
			}
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

// highest is the highest value of some series in the dot columns of a cell. As
// in a line, a value holds until the next sample.
func (h *Heat) highest(list [][]history.Bucket, at int) (float64, bool) {
	most, ok := 0.0, false
	for _, b := range list {
		last := min(at+dotsX, len(b)) - 1
		for i := last; i >= max(at-h.Hold, 0) && b[i].State != history.Gap; i-- {
			if b[i].State != history.Sampled {
				continue
			}
			if v := float64(b[i].Max); !ok || v > most {
				most, ok = v, true
			}
			if i <= at {
				break
			}
		}
	}
	return most, ok
}

// cell draws a value as a shade and a colour: without colours the shade is
// still there.
func (h *Heat) cell(a cells.Area, x, y int, v float64) {
	share := 0.0
	if h.Scale.Top > h.Scale.Bottom {
		share = min(max((v-h.Scale.Bottom)/(h.Scale.Top-h.Scale.Bottom), 0), 1)
	}
	shades := []rune("░▒▓█")
	a.Set(x, y, shades[min(int(share*4), 3)], cells.RampAt(share))
}
