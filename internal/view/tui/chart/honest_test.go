package chart

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/model/history"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
)

// Whatever a line is made of: a column without a value has no dot, one with an
// exact value has some, one with a doubtful value has some in it or beside it,
// and so has a neighbour of every gap nothing of the other side.
func TestLinesAreHonest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const columns = 24
		states := rapid.SliceOfN(rapid.SampledFrom([]history.State{history.Empty, history.Gap, history.Away, history.Sampled, history.Sampled, history.Held}), columns, columns).Draw(t, "states")
		values := rapid.SliceOfN(rapid.Float32Range(0, 100), columns, columns).Draw(t, "values")
		bounds := rapid.SliceOfN(rapid.SampledFrom([]model.Bound{model.Exact, model.AtLeast, model.Unsure}), columns, columns).Draw(t, "bounds")
		c := Chart{
			Scale: Scale{0, 100}, Filled: rapid.Bool().Draw(t, "filled"), Reverse: rapid.Bool().Draw(t, "reverse"), Cursor: -1,
			Lines: []Line{{Style: cells.Series0, Buckets: make([]history.Bucket, columns)}},
		}
		b := c.Lines[0].Buckets
		for i := range b {
			b[i].State = states[i]
			if b[i].Known() {
				b[i] = history.Bucket{State: states[i], Min: values[i], Max: values[i], Last: values[i], Bound: bounds[i]}
			}
		}
		dots := newCanvas(columns/dotsX, 5)
		c.trace(dots, &c.Lines[0])
		rows := 5 * dotsY
		for i := range b {
			drawn, lowest, highest := column(dots, c.x(i, columns), rows)
			switch {
			case drawn && !b[i].Known():
				t.Fatalf("column %d is %v, and something is drawn there", i, b[i].State)
			case !drawn && b[i].Known() && b[i].Bound == model.Exact:
				t.Fatalf("column %d has the value %v, and nothing is drawn there", i, b[i].Last)
			}
			alone := i == 0 || !b[i-1].Known()
			own := c.Scale.row(float64(b[i].Last), rows)
			if drawn && alone && (highest != own || !c.Filled && lowest != own) {
				t.Fatalf("column %d begins a line at row %d, and is drawn from %d to %d", i, own, lowest, highest)
			}
		}
	})
}

// column is from where to where a column of dots is drawn.
func column(dots *canvas, x, rows int) (drawn bool, lowest, highest int) {
	for y := range rows {
		top := rows - 1 - y
		if dots.bits[top/dotsY*dots.w+x/dotsX]&dotBits[top%dotsY][x%dotsX] != 0 {
			if !drawn {
				lowest = y
			}
			drawn, highest = true, y
		}
	}
	return drawn, lowest, highest
}

// A series that is in doubt looks different from one that is exact, however it
// jumps about.
func TestDoubtSurvivesNoise(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const columns = 40
		values := rapid.SliceOfN(rapid.Float32Range(0, 100), columns, columns).Draw(t, "values")
		count := func(bound model.Bound) (n int) {
			c := Chart{Scale: Scale{0, 100}, Filled: true, Cursor: -1, Lines: []Line{{}}}
			for _, v := range values {
				c.Lines[0].Buckets = append(c.Lines[0].Buckets, history.Bucket{State: history.Sampled, Min: v, Max: v, Last: v, Bound: bound})
			}
			dots := newCanvas(columns/dotsX, 5)
			c.trace(dots, &c.Lines[0])
			for x := range columns {
				if drawn, _, _ := column(dots, x, 5*dotsY); drawn {
					n++
				}
			}
			return n
		}
		if exact, doubtful := count(model.Exact), count(model.Unsure); exact != columns || doubtful != columns/2 {
			t.Fatalf("%d columns of an exact series, %d of a doubtful one", exact, doubtful)
		}
	})
}
