package chart

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ttmon/ttmon/internal/model/history"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
)

var t0 = time.Unix(1_800_000_000, 0)

func one(v float64) history.Bucket {
	return history.Bucket{State: history.Sampled, Min: float32(v), Max: float32(v), Last: float32(v)}
}

// Values that stand for states.
const (
	held = -1 // the one before
	away = -2
)

func line(label string, vs ...float64) Line {
	l := Line{Label: label, Style: cells.Series0}
	for _, v := range vs {
		switch {
		case math.IsNaN(v):
			l.Buckets = append(l.Buckets, history.Bucket{State: history.Gap})
		case v == away:
			l.Buckets = append(l.Buckets, history.Bucket{State: history.Away})
		case v < 0:
			b := history.Bucket{State: history.Held}
			b.Min = l.Buckets[len(l.Buckets)-1].Last
			b.Max, b.Last = b.Min, b.Min
			l.Buckets = append(l.Buckets, b)
		default:
			l.Buckets = append(l.Buckets, one(v))
		}
	}
	return l
}

func render(t *testing.T, w, h int, c Chart) (string, *cells.Grid) {
	t.Helper()
	c.Tick = func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
	c.From, c.Step = t0, time.Second
	g := cells.NewGrid(w, h)
	c.Draw(Divide(g.Area(), c.Labels))
	return g.String(), g
}

func rows(s ...string) string { return strings.Join(s, "\n") + "\n" }

func TestDraw(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		name string
		w, h int
		c    Chart
		want string
	}{
		{
			"a ramp touches bottom and top", 9, 3,
			Chart{Scale: Scale{0, 11}, Cursor: -1, Lines: []Line{line("", 0, 1, 3, 5, 7, 9, 10, 11)}},
			rows("  11   ⢠⠊", "      ⢠⠃", "   0 ⡠⠃"),
		},
		{
			"a step is a step", 9, 2,
			Chart{Scale: Scale{0, 7}, Cursor: -1, Lines: []Line{line("", 0, 0, 0, 7, 7, 0, 0, 0)}},
			rows("   7  ⢸⢱", "   0 ⣀⡸⢸⣀"),
		},
		{
			"a gap stays empty, what holds is drawn", 9, 1,
			Chart{Scale: Scale{0, 3}, Cursor: -1, Lines: []Line{line("", 3, 3, nan, nan, 3, held, held, 3)}},
			rows("   3 ⠉ ⠉⠉"),
		},
		{
			"a time without samples is hatched, a step in front of it stays", 13, 2,
			Chart{Scale: Scale{0, 7}, Cursor: -1, Lines: []Line{line("", 0, held, held, held, away, away, away, away, away, away, 7, 7)}},
			rows("   7   ╱ ╱⠉", "   0 ⣀⣀ ╱"),
		},
		{
			"a limit is dashed, and behind the lines", 9, 2,
			Chart{Scale: Scale{0, 7}, Limit: 7, Cursor: -1, Lines: []Line{line("", 0, 0, 0, 0, 7, 7, 0, 0)}},
			rows("   7 ╌╌⡏⡆", "   0 ⣀⣀⠇⣇"),
		},
		{
			"a line that has ended says since when", 15, 2,
			Chart{Scale: Scale{0, 7}, Labels: true, Cursor: -1, Value: func(float64) string { return "7" }, Lines: []Line{line("0", 0, 0), line("1", 7, nan)}},
			rows("   7 ⠁ 1 –1s", "   0 ⣀ 0 7"),
		},
		{
			"filled", 9, 1,
			Chart{Scale: Scale{0, 3}, Filled: true, Cursor: -1, Lines: []Line{line("", 0, 1, 2, 3, 3, 2, 1, 0)}},
			rows("   3 ⣠⣾⣷⣄"),
		},
		{
			"values outside the scale stick to its edge", 9, 1,
			Chart{Scale: Scale{10, 20}, Cursor: -1, Lines: []Line{line("", 0, 0, 99, 99)}},
			rows("  20 ⣀⠏"),
		},
		{
			"newest left", 9, 1,
			Chart{Scale: Scale{0, 3}, Reverse: true, Cursor: -1, Lines: []Line{line("", 0, 0, 0, 0, 3, 3, 3, 3)}},
			rows("   3 ⠉⠹⣀⣀"),
		},
		{
			"labels beside the newest values, none on top of another", 15, 3,
			Chart{Scale: Scale{0, 11}, Labels: true, Cursor: -1, Lines: []Line{line("0", 0, 0), line("1", 0, 0), line("12", 11, 11)}},
			rows("  11 ⠉ 12", "       0", "   0 ⣀ 1"),
		},
		{
			"cursor", 9, 2,
			Chart{Scale: Scale{0, 7}, Cursor: 4, Lines: []Line{line("", 0, 0, 0, 0, 0, 0, 0, 0)}},
			rows("   7   │", "   0 ⣀⣀⣀⣀"),
		},
		{
			"marks, the newest whole", 25, 6,
			Chart{
				Scale: Scale{0, 1}, Cursor: -1, Lines: []Line{line("")},
				Marks: []Mark{{At: t0, Text: "12 started"}, {At: t0.Add(10 * time.Second), Text: "12 gone"}, {At: t0.Add(30 * time.Second), Text: "reset"}},
			},
			rows("   1", "", "", "", "   0", "     ▲    ▲12 gone  ▲res…"),
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, _ := render(t, c.w, c.h, c.c)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// A cell has the style of the line that has most of it, not of the last one.
func TestCellsBelongToTheNearestLine(t *testing.T) {
	a, b := line("", 0, 3), line("", 3, 3)
	b.Style = cells.Series1
	for i, lines := range [][]Line{{a, b}, {b, a}} {
		t.Run(fmt.Sprint("order ", i), func(t *testing.T) {
			_, g := render(t, 7, 1, Chart{Scale: Scale{0, 3}, Cursor: -1, Lines: lines})
			if s := g.At(axisWidth, 0).Style; s != cells.Series0 {
				t.Errorf("style %v, want that of the line that climbs through the cell", s)
			}
		})
	}
}

// Labels stand in the order of their values, whatever the order of the lines,
// one in a row, and with their values.
func TestLabelsInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		height := rapid.IntRange(1, 12).Draw(t, "height")
		values := rapid.SliceOfN(rapid.Float64Range(0, 100), 1, 8).Draw(t, "values")
		var list []label
		for i, v := range values {
			row := height - 1 - Scale{0, 100}.row(v, height*dotsY)/dotsY
			list = append(list, label{line: &Line{Label: strconv.Itoa(i)}, value: v, row: row})
		}
		got := spread(list, height)
		if want := min(len(values), height); len(got) != want {
			t.Fatalf("%d labels in %d rows for %d lines", len(got), height, len(values))
		}
		for i, l := range got {
			if l.row < 0 || l.row >= height {
				t.Fatalf("row %d of %d", l.row, height)
			}
			if i > 0 && (l.row <= got[i-1].row || l.value > got[i-1].value) {
				t.Fatalf("%v in row %d stands below %v in row %d", l.value, l.row, got[i-1].value, got[i-1].row)
			}
		}
	})
}

// An axis never reads the same at its ends and in the middle.
func TestLegible(t *testing.T) {
	tick := func(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }
	for _, s := range []Scale{{2.98, 3.01}, {0, 0.001}, {100, 100.01}, {-0.01, 0.01}, {0, 24}} {
		t.Run(fmt.Sprint(s), func(t *testing.T) {
			got := Legible(s, tick)
			low, mid, high := tick(got.Bottom), tick((got.Bottom+got.Top)/2), tick(got.Top)
			if low == mid || mid == high || got.Bottom > s.Bottom || got.Top < s.Top {
				t.Errorf("%v became %v: %s %s %s", s, got, low, mid, high)
			}
		})
	}
	if got := Legible(Scale{0, 24}, tick); got != (Scale{0, 24}) {
		t.Errorf("a legible scale became %v", got)
	}
}

// Any size is fine, none at all included.
func TestTinyAreas(t *testing.T) {
	for w := range 12 {
		for h := range 6 {
			render(t, w, h, Chart{Scale: Scale{0, 1}, Cursor: 0, Labels: true, Lines: []Line{line("x", 0, 1, 2)}, Marks: []Mark{{At: t0, Text: "x"}}})
		}
	}
}

func TestScales(t *testing.T) {
	for _, c := range []struct {
		name      string
		got, want Scale
	}{
		{"UpTo(300, 61)", UpTo(300, 61), Scale{0, 300}},
		{"UpTo(300, 310)", UpTo(300, 310), Scale{0, 400}},
		{"UpTo(0, 0)", UpTo(0, 0), Scale{0, 1}},
		{"UpTo(0, 12)", UpTo(0, 12), Scale{0, 15}},
		{"UpTo(0, math.NaN())", UpTo(0, math.NaN()), Scale{0, 1}},
		{"Fit(50, 60)", Fit(50, 60), Scale{50, 60}},
		{"Fit(51, 58)", Fit(51, 58), Scale{50, 58}},
		{"Fit(52, 52)", Fit(52, 52), Scale{48, 56}},
		{"Fit(0, 0)", Fit(0, 0), Scale{0, 1}},
		{"Fit(math.NaN(), 1)", Fit(math.NaN(), 1), Scale{0, 1}},
		{"Fit(math.Inf(1), math.Inf(-1))", Fit(math.Inf(1), math.Inf(-1)), Scale{0, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.got != c.want {
				t.Errorf("scale %v, want %v", c.got, c.want)
			}
		})
	}
}

func FuzzScale(f *testing.F) {
	f.Add(1.0, 2.0)
	f.Add(-5.0, 1e300)
	f.Fuzz(func(t *testing.T, lo, hi float64) {
		for _, s := range []Scale{Fit(lo, hi), UpTo(lo, hi)} {
			if !(s.Top > s.Bottom) && !math.IsInf(s.Top, 0) && math.Abs(hi) < 1e15 && math.Abs(lo) < 1e15 {
				t.Fatalf("Fit/UpTo(%v, %v) = %v", lo, hi, s)
			}
			for _, v := range []float64{lo, hi, math.NaN(), math.Inf(1)} {
				if y := s.row(v, 12); y < 0 || y > 11 {
					t.Fatalf("row %d of 12 for %v in %v", y, v, s)
				}
			}
		}
	})
}

func BenchmarkChart100x10With32Lines(b *testing.B) {
	g := cells.NewGrid(100, 10)
	r := Divide(g.Area(), false)
	c := Chart{Scale: Scale{0, 100}, Cursor: -1, Tick: func(float64) string { return "x" }, From: t0, Step: time.Second}
	for range 32 {
		l := Line{Style: cells.Series0}
		for i := range r.Columns {
			l.Buckets = append(l.Buckets, one(float64(i%100)))
		}
		c.Lines = append(c.Lines, l)
	}
	b.ReportAllocs()
	for b.Loop() {
		c.Draw(r)
	}
}

func TestWindow(t *testing.T) {
	w := Window{End: t0.Add(7 * time.Second), Span: time.Minute}
	if s := w.Step(60); s != time.Second {
		t.Errorf("step %v", s)
	}
	if f := w.From(60); !f.Equal(t0.Add(7*time.Second - 59*time.Second)) {
		t.Errorf("from %v", f)
	}
	// Moving on by less than a step changes nothing: a line keeps its shape.
	a, b := Window{End: t0, Span: 10 * time.Minute}, Window{End: t0.Add(400 * time.Millisecond), Span: 10 * time.Minute}
	if !a.From(100).Equal(b.From(100)) {
		t.Error("the window moves by less than a step")
	}
	if s := (Window{Span: time.Minute}).Step(0); s <= 0 {
		t.Errorf("step %v without columns", s)
	}
}

func TestZoomAndGrow(t *testing.T) {
	for _, c := range []struct {
		name      string
		got, want time.Duration
	}{
		{"Zoom(10*Minute, 1)", Zoom(10*time.Minute, 1), 5 * time.Minute},
		{"Zoom(10*Minute, -1)", Zoom(10*time.Minute, -1), 30 * time.Minute},
		{"Zoom(7*Minute, 1)", Zoom(7*time.Minute, 1), 5 * time.Minute},
		{"Zoom(30*Second, 1)", Zoom(30*time.Second, 1), 30 * time.Second},
		{"Zoom(10*Second, 1)", Zoom(10*time.Second, 1), 10 * time.Second},
		{"Zoom(72*Hour, -1)", Zoom(72*time.Hour, -1), 72 * time.Hour},
		{"Grow(10*Minute, 0)", Grow(10*time.Minute, 0), time.Minute},
		{"Grow(10*Minute, 61*Second)", Grow(10*time.Minute, 61*time.Second), 90 * time.Second},
		{"Grow(10*Minute, Hour)", Grow(10*time.Minute, time.Hour), 10 * time.Minute},
		{"Grow(30*Second, 5*Second)", Grow(30*time.Second, 5*time.Second), 30 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.got != c.want {
				t.Errorf("%v, want %v", c.got, c.want)
			}
		})
	}
}

func TestFrames(t *testing.T) {
	g := cells.NewGrid(13, 7)
	frames := Frames(g.Area(), 2, 2)
	want := rows("┌─────┬─────┐", "│     │     │", "│     │     │", "├─────┼─────┤", "│     │     │", "│     │     │", "└─────┴─────┘")
	if diff := cmp.Diff(want, g.String()); diff != "" {
		t.Error(diff)
	}
	if len(frames) != 4 || frames[3].W != 7 || frames[3].H != 4 {
		t.Errorf("%d frames, the last %d by %d", len(frames), frames[len(frames)-1].W, frames[len(frames)-1].H)
	}
	if Frames(cells.NewGrid(2, 2).Area(), 1, 1) != nil {
		t.Error("a frame in no room")
	}
}

// The cursor tells where it is, and a press where it was.
func TestCursorAndTime(t *testing.T) {
	for _, reverse := range []bool{false, true} {
		c := Chart{Scale: Scale{0, 1}, Tick: func(float64) string { return "" }, From: t0, Step: time.Second, Reverse: reverse, Lines: []Line{line("")}}
		r := Divide(cells.NewGrid(25, 4).Area(), false)
		for column := range r.Plot.W {
			at := c.TimeAt(column, r.Columns)
			c.Cursor = int(at.Sub(t0) / time.Second)
			c.Draw(r)
			if got := c.CursorCell() - axisWidth; got != column {
				t.Errorf("reverse %v: a press in column %d puts the cursor into %d", reverse, column, got)
			}
		}
		c.Cursor = r.Columns
		c.Draw(r)
		if c.CursorCell() >= 0 {
			t.Error("a cursor out of view has a place")
		}
	}
}
