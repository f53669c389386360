package cells

import "testing"

// TestJoin: frames that share an edge meet, and text is left alone.
func TestJoin(t *testing.T) {
	g := NewGrid(9, 7)
	g.Area().Sub(0, 0, 5, 4).Box("", Axis)
	g.Area().Sub(4, 0, 5, 4).Box("", Axis)
	g.Area().Sub(0, 3, 9, 4).Box("", Axis)
	g.Area().Put(2, 3, "x", Text)
	g.Area().Join()
	want := "┌───┬───┐\n│   │   │\n│   │   │\n├─x─┴───┤\n│       │\n│       │\n└───────┘\n"
	if got := g.String(); got != want {
		t.Errorf("%s", got)
	}
}
