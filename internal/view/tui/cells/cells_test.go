package cells

import (
	"math"
	"strings"
	"testing"
)

func draw(w, h int, f func(Area)) *Grid {
	g := NewGrid(w, h)
	f(g.Area())
	return g
}

func TestPut(t *testing.T) {
	for _, c := range []struct {
		name, in, want string
		x, w, end      int
	}{
		{"plain", "abc", "abc", 0, 6, 3},
		{"cut at the right", "abcdef", "abcd", 0, 4, 4},
		{"cut at the left", "abcdef", "cdef", -2, 6, 4},
		{"wide", "日本", "日本", 0, 6, 4},
		{"half a wide one is none", "日本", "日", 0, 3, 3},
		{"combining mark", "e\u0301x", "e\u0301x", 0, 4, 2},
		{"control characters never arrive", "a\x1b[2Jb", "a?[2Jb", 0, 8, 6},
		{"invisible marks never arrive", "a\u202eb", "a?b", 0, 8, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			var end int
			g := draw(c.w, 1, func(a Area) { end = a.Put(c.x, 0, c.in, Text) })
			if got := g.Row(0); got != c.want || end != c.end {
				t.Errorf("Put(%q) draws %q and ends at %d, want %q and %d", c.in, got, end, c.want, c.end)
			}
		})
	}
}

// Drawing over half a wide character must not leave the other half: the
// terminal would shift the rest of the line.
func TestOverwriteHalfOfWide(t *testing.T) {
	for x, want := range []string{"x 本", " x本", "日x", "日 x"} {
		g := draw(4, 1, func(a Area) {
			a.Put(0, 0, "日本", Text)
			a.Set(x, 0, 'x', Text)
		})
		if got := g.Row(0); got != want {
			t.Errorf("x at %d gives %q, want %q", x, got, want)
		}
	}
	g := draw(5, 1, func(a Area) {
		a.Put(0, 0, "日本x", Text)
		a.Put(1, 0, "語", Text)
	})
	if got := g.Row(0); got != " 語 x" {
		t.Errorf("wide over the middle of two wide gives %q", got)
	}
}

func TestAreasClip(t *testing.T) {
	g := draw(6, 3, func(a Area) {
		in := a.Sub(1, 1, 3, 9)
		in.Fill('.', Faint)
		in.Put(-1, 0, "abcdef", Text)
		in.Put(0, 7, "below", Text)
		in.PutRight(3, 1, "long", Text)
		in.Paint(-4, 0, 99, Bad)
	})
	want := "\n bcd\n ong\n"
	if got := g.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if g.At(0, 1).Style != Text || g.At(1, 1).Style != Bad || g.At(3, 1).Style != Bad || g.At(4, 1).Style != Text {
		t.Error("Paint went over the edge")
	}
}

func TestBox(t *testing.T) {
	g := draw(12, 4, func(a Area) {
		in := a.Box("a very long title", Text)
		in.Fill('x', Text)
	})
	want := strings.Join([]string{"┌ a very lo┐", "│xxxxxxxxxx│", "│xxxxxxxxxx│", "└──────────┘", ""}, "\n")
	if got := g.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if !draw(1, 1, func(a Area) { a.Box("t", Text) }).Area().Box("", Text).Empty() {
		t.Error("a box in no room has an inside")
	}
}

func TestBar(t *testing.T) {
	for _, c := range []struct {
		b    Bar
		want string
	}{
		{Bar{Ratio: 0.5, Text: "5/10"}, "[███▌   ] 5/10"},
		{Bar{Ratio: 0.5, Text: "5/10", Soft: true}, "[███▒   ] 5/10"},
		{Bar{Ratio: 0.5, Text: "5/10", Beside: 6}, "[██▌  ]   5/10"},
		{Bar{Ratio: 0.001, Text: "~0 %", Mark: ':'}, "[:      ] ~0 %"},
		{Bar{Ratio: 0.999}, "[███████████▉]"},
		{Bar{Ratio: 7}, "[████████████]"},
		{Bar{Ratio: math.NaN(), Text: "8 MiB"}, "         8 MiB"},
		{Bar{Text: "much too long for it"}, " much too lon…"},
	} {
		t.Run(c.want, func(t *testing.T) {
			g := draw(14, 1, func(a Area) { a.Bar(0, 0, 14, c.b) })
			if got := g.Row(0); got != c.want {
				t.Errorf("%+v draws %q, want %q", c.b, got, c.want)
			}
		})
	}
}

// A longer bar is never drawn for a smaller value; only nothing is empty and
// only everything is full.
func TestBarsGrow(t *testing.T) {
	for w := 1; w < 40; w++ {
		last := 0
		for i := range 1001 {
			n := Eighths(float64(i)/1000, w)
			if n < last || (n == 0) != (i == 0) || (n == 8*w) != (i == 1000) {
				t.Fatalf("%d of 1000 in %d cells: %d eighths after %d", i, w, n, last)
			}
			last = n
		}
	}
}

func TestDiff(t *testing.T) {
	a, b := NewGrid(10, 2), NewGrid(10, 2)
	none := func(x, y int, c Cell) { t.Errorf("cell %d,%d drawn without need", x, y) }
	if n := b.Diff(a, none); n != 0 {
		t.Errorf("two blank grids differ in %d cells", n)
	}
	b.Area().Put(3, 1, "hi", Good)
	var at [][2]int
	if n := b.Diff(a, func(x, y int, c Cell) { at = append(at, [2]int{x, y}) }); n != 2 || at[0] != [2]int{3, 1} {
		t.Errorf("%d cells differ: %v", n, at)
	}
	c := NewGrid(4, 4)
	if n := c.Diff(a, func(int, int, Cell) {}); n != 16 {
		t.Errorf("after a resize %d of 16 cells are drawn", n)
	}
}

func TestStyleNames(t *testing.T) {
	seen := map[string]bool{}
	for s := range NumStyles {
		if seen[s.String()] || s.String() == "" {
			t.Errorf("style %d is called %q", s, s)
		}
		seen[s.String()] = true
	}
}

func BenchmarkDiff200x50(b *testing.B) {
	x, y := NewGrid(200, 50), NewGrid(200, 50)
	b.ReportAllocs()
	for b.Loop() {
		x.Diff(y, func(int, int, Cell) {})
	}
}

func FuzzPut(f *testing.F) {
	f.Add("日本語 text", 3)
	f.Add("\x1b[31m\u202e", 0)
	f.Add("e\u0301👩‍👩‍👧", 1)
	f.Fuzz(func(t *testing.T, s string, x int) {
		g := NewGrid(8, 2)
		g.Area().Put(x%20, 0, s, Text)
		g.Area().Put((x+1)%20, 0, s, Text)
		for y := range 2 {
			for x := range 8 {
				c := g.At(x, y)
				if c.Rune < ' ' && c.Rune != 0 || c.Rune == 0x7f {
					t.Fatalf("control character %q on the screen", c.Rune)
				}
				if c.Rune == 0 && (x == 0 || g.At(x-1, y).Rune == 0) {
					t.Fatalf("half a character at %d", x)
				}
				if y == 1 && c != blank {
					t.Fatal("drawn outside the row")
				}
			}
		}
	})
}
