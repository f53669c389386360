package top

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/base/config"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/view/tui"
)

// The columns that show are ticked, and ticking one takes none away.
func TestColumnsTicked(t *testing.T) {
	st := open(t, 4, 120, 40)
	usual := st.s.usualColumns()
	st.keys("f2", "shift-tab", "down", "enter")
	for _, name := range usual {
		if !st.has("[x] " + name) {
			t.Errorf("%s shows and is not ticked:\n%s", name, st.draw())
		}
	}
	if slices.Contains(usual, "threads") || !st.has("[ ] threads") {
		t.Fatalf("threads should be off:\n%s", st.draw())
	}
	menu := st.s.dialog.(*over).menu
	menu.list.Sel = slices.IndexFunc(menu.items, func(i menuItem) bool { return i.text == "threads" })
	st.keys(" ")
	got := st.s.cfg.Top.Processes.Columns
	for _, name := range append(usual, "threads") {
		if !slices.Contains(got, name) {
			t.Errorf("ticking threads removed %s: %v", name, got)
		}
	}
	if got[len(got)-1] != "command" {
		t.Errorf("the command takes the rest of the line and must be last: %v", got)
	}
	st.keys(" ")
	if !slices.Equal(st.s.cfg.Top.Processes.Columns, usual) {
		t.Errorf("unticked, it is %v, want %v", st.s.cfg.Top.Processes.Columns, usual)
	}
}

// Help is never cut: on 80 columns every word of it is on the screen.
func TestHelpFits(t *testing.T) {
	st := open(t, 4, 80, 500)
	st.keys("?")
	screen := strings.Join(strings.Fields(strings.NewReplacer("│", " ", "├", " ", "┤", " ", "\n", " ").Replace(st.draw())), " ")
	for _, l := range st.s.helpLines() {
		if text := strings.Join(strings.Fields(l.Text), " "); !strings.Contains(screen, text) {
			t.Errorf("%q is cut", text)
		}
	}
}

func TestPace(t *testing.T) {
	st := open(t, 4, 80, 24)
	st.effects = nil
	st.keys("+")
	if !slices.Contains(st.effects, tui.Effect(tui.SetInterval(2*time.Second))) || !st.has("updates every 2s") {
		t.Errorf("+ gives %v:\n%s", st.effects, st.draw())
	}
	st.keys("-", "-")
	if got := time.Duration(st.s.cfg.Top.Interval); got != 500*time.Millisecond {
		t.Errorf("- leads to %v", got)
	}
	st.keys("-", "-", "-", "-")
	if got := time.Duration(st.s.cfg.Top.Interval); got != 100*time.Millisecond {
		t.Errorf("the shortest is %v", got)
	}
}

// A filter leaves the titles of the columns alone, whatever the width.
func TestFilterBesideTitles(t *testing.T) {
	for w := 40; w <= 200; w += 5 {
		st := open(t, 4, w, 24, func(c *config.Config) { c.Top.Processes.Filter = "user=root or user=alice or cmd~llama" })
		var titles []string
		for _, c := range st.s.proc.fitted(w) {
			titles = append(titles, c.Head)
		}
		last := titles[len(titles)-1]
		if !slices.ContainsFunc(strings.Split(st.draw(), "\n"), func(l string) bool {
			return strings.Contains(l, "PID") && strings.Contains(l, words.Truncate(last, max(w-70, 7)))
		}) {
			t.Errorf("%d columns: %s is covered:\n%s", w, last, st.draw())
		}
	}
}

// k and S do what F9 and F2 do.
func TestWithoutFunctionKeys(t *testing.T) {
	st := open(t, 4, 120, 40)
	st.keys("k")
	if _, ok := st.s.dialog.(*killDialog); !ok {
		t.Errorf("k opens %T", st.s.dialog)
	}
	st.keys("esc", "S")
	if _, ok := st.s.dialog.(*setup); !ok {
		t.Errorf("S opens %T", st.s.dialog)
	}
}
