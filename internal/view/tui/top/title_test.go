package top

import (
	"errors"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
)

// However narrow the screen: trouble is in the title, and DRAM goes after power,
// power after all the rest.
func TestTitlePriority(t *testing.T) {
	for w := 30; w <= 200; w += 3 {
		st := open(t, 8, w, 10)
		title, _, _ := strings.Cut(st.draw(), "\n")
		if !strings.Contains(title, "1 hung") {
			t.Errorf("%d columns: no trouble in %q", w, title)
		}
		dram, power, host := strings.Contains(title, "DRAM"), strings.Contains(title, " W"), strings.Contains(title, "lab-3")
		if power && !dram || host && !power {
			t.Errorf("%d columns: %q", w, title)
		}
	}
}

// What is old is dimmed, and how old it is, is said.
func TestOldIsDimmed(t *testing.T) {
	st := open(t, 1, 80, 24)
	at := st.s.live.Time.Add(12e9)
	st.send(tui.Lost{Err: errors.New("no answer"), At: at})
	if !st.has("NO DATA 12 s") {
		t.Errorf("no age:\n%s", st.draw())
	}
	x, y := st.find("DRAM")
	if y == 0 {
		_, y = st.find("Power")
	}
	if got := st.g.At(x, max(y, 2)).Style; got != cells.Faint {
		t.Errorf("an old value has the style %v", got)
	}
	st.send(tui.Sample{Snapshot: func() *model.Snapshot { s := *st.s.live; s.Time = at; return &s }()})
	if st.has("NO DATA") {
		t.Error("still no data")
	}
}

// No line is wider than the screen, and when only values change nothing but
// values moves: every frame, title and name stays where it was.
func TestNothingJumps(t *testing.T) {
	for _, n := range []int{0, 1, 3, 8, 32} {
		for _, size := range [][2]int{{40, 10}, {80, 24}, {100, 30}, {120, 40}, {200, 50}, {300, 80}} {
			st := open(t, n, size[0], size[1])
			before := rules(st)
			for range 20 {
				st.run(1)
				for i, row := range strings.Split(strings.TrimSuffix(st.draw(), "\n"), "\n") {
					if len([]rune(row)) > size[0] || i >= size[1] {
						t.Fatalf("%d devices at %v: row %d is %q", n, size, i, row)
					}
				}
				if after := rules(st); after != before {
					t.Fatalf("%d devices at %v: the frames moved:\n%s\n%s", n, size, before, after)
				}
			}
		}
	}
}

// rules is a screen with nothing left but its frames and headings.
func rules(st *stage) string {
	st.draw()
	var b strings.Builder
	for y := 1; y < st.g.H-1; y++ {
		for x := range st.g.W {
			c := st.g.At(x, y)
			switch {
			case c.Style == cells.Heading, c.Style == cells.Sorted, strings.ContainsRune("┌┐└┘├┤┬┴┼│", c.Rune):
				b.WriteRune(c.Rune)
			default:
				b.WriteByte(' ')
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}
