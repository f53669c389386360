package widget

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ttmon/ttmon/internal/view/lines"
	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
)

func TestLine(t *testing.T) {
	for _, c := range []struct {
		keys []tui.Key
		want string
	}{
		{[]tui.Key{"x"}, "one two日x|"},
		{[]tui.Key{"left", "x"}, "one twox|日"},
		{[]tui.Key{"left", "right", "right", "x"}, "one two日x|"},
		{[]tui.Key{"home", "x"}, "x|one two日"},
		{[]tui.Key{"ctrl-a", "right", "x", "end", "y"}, "oxne two日y|"},
		{[]tui.Key{"backspace"}, "one two|"},
		{[]tui.Key{"home", "backspace", "delete"}, "|ne two日"},
		{[]tui.Key{"ctrl-w"}, "one |"},
		{[]tui.Key{"ctrl-w", "ctrl-w", "ctrl-w"}, "|"},
		{[]tui.Key{"left", "ctrl-u"}, "|日"},
		{[]tui.Key{"home", "right", "ctrl-k"}, "o|"},
		{[]tui.Key{"end", "delete", "ctrl-d"}, "one two日|"},
	} {
		t.Run(fmt.Sprint(c.keys), func(t *testing.T) {
			l := NewLine("one two日")
			for _, k := range c.keys {
				if !l.Key(k) {
					t.Errorf("%s is not taken", k)
				}
			}
			if got := l.Text[:l.at] + "|" + l.Text[l.at:]; got != c.want {
				t.Errorf("%v gives %q, want %q", c.keys, got, c.want)
			}
		})
	}
	if NewLine("x").Key("f5") {
		t.Error("F5 edits")
	}
	l := NewLine("")
	l.Insert("a\x1b[2J\nb\xff")
	if l.Text != "a [2J b?" {
		t.Errorf("inserted %q", l.Text)
	}
}

func TestLineDraw(t *testing.T) {
	g := cells.NewGrid(6, 1)
	NewLine("abcdefgh").Draw(g.Area(), cells.Text)
	if g.Row(0) != "defgh" || g.CursorX != 5 {
		t.Errorf("%q, cursor %d: the end is not in view", g.Row(0), g.CursorX)
	}
}

func FuzzLine(f *testing.F) {
	f.Add("user=root", "left,x,ctrl-w,日,backspace")
	f.Fuzz(func(t *testing.T, text, keys string) {
		l := NewLine(strings.ToValidUTF8(text, ""))
		for k := range strings.SplitSeq(keys, ",") {
			l.Key(tui.Key(k))
			if l.at < 0 || l.at > len(l.Text) {
				t.Fatalf("cursor at %d of %q", l.at, l.Text)
			}
		}
		g := cells.NewGrid(7, 1)
		l.Draw(g.Area(), cells.Text)
	})
}

func TestList(t *testing.T) {
	var h Hits
	l := List{N: 10}
	draw := func() string {
		g := cells.NewGrid(4, 3)
		h.Reset()
		l.Draw(&h, g.Area(), cells.Selected, func(i int, row cells.Area) { row.Put(0, 0, string(rune('a'+i)), cells.Text) },
			func(int) []tui.Effect { return []tui.Effect{tui.Quit{}} })
		out := ""
		for y := range 3 {
			c := string(g.At(0, y).Rune)
			if g.At(0, y).Style == cells.Selected {
				c = strings.ToUpper(c)
			}
			out += c
		}
		return out
	}
	for _, c := range []struct {
		m    Motion
		want string
	}{
		{Up, "Abc"}, {Down, "aBc"}, {Down, "abC"}, {Down, "bcD"}, {PageDown, "deF"}, {Last, "hiJ"}, {Down, "hiJ"}, {PageUp, "Hij"}, {Up, "Ghi"}, {First, "Abc"}, {Left, "Abc"},
	} {
		draw()
		l.Move(c.m)
		if got := draw(); got != c.want {
			t.Errorf("after %v: %s, want %s", c.m, got, c.want)
		}
	}
	if e := h.Send(tui.Mouse{X: 1, Y: 2, Action: tui.Press}); len(e) != 1 || l.Sel != 2 {
		t.Errorf("a press gives %v and selects %d", e, l.Sel)
	}
	h.Send(tui.Mouse{X: 1, Y: 2, Action: tui.WheelDown})
	if l.Sel != 3 {
		t.Errorf("the wheel selects %d", l.Sel)
	}
	l.N = 2
	l.Clamp()
	if l.Sel != 1 {
		t.Errorf("after shrinking, %d is selected", l.Sel)
	}
}

func TestSheet(t *testing.T) {
	var p Sheet
	var h Hits
	var drawn []lines.Line
	for i := range 9 {
		drawn = append(drawn, lines.Plain(fmt.Sprintf(" line %d", i)))
	}
	draw := func() string {
		g := cells.NewGrid(36, 6)
		h.Reset()
		p.Draw(&h, g.Area(), drawn)
		return g.String()
	}
	want := strings.Join([]string{" line 0", " line 1", " line 2", " line 3", " line 4", " line 5                      ↓ more", ""}, "\n")
	if diff := cmp.Diff(want, draw()); diff != "" {
		t.Error(diff)
	}
	p.Move(Last)
	if out := draw(); !strings.Contains(out, " line 8") || strings.Contains(out, " line 2") || !strings.Contains(out, "↑") {
		t.Error(out)
	}
	p.Move(First)
	h.Send(tui.Mouse{X: 1, Y: 1, Action: tui.WheelDown})
	if p.scroll != 3 {
		t.Errorf("the wheel scrolls to %d of 3", p.scroll)
	}
}

func TestHitsTopmostFirst(t *testing.T) {
	var h Hits
	g := cells.NewGrid(10, 10)
	got := ""
	h.Add(g.Area(), func(tui.Mouse) []tui.Effect { got = "below"; return nil })
	h.AddPress(g.Area().Sub(2, 2, 3, 3), func() []tui.Effect { got = "above"; return nil })
	h.Add(cells.Area{}, func(tui.Mouse) []tui.Effect { got = "nowhere"; return nil })
	for _, c := range []struct {
		x, y int
		want string
	}{{0, 0, "below"}, {2, 2, "above"}, {4, 4, "above"}, {5, 5, "below"}, {20, 20, ""}} {
		t.Run(fmt.Sprintf("at %d,%d", c.x, c.y), func(t *testing.T) {
			got = ""
			h.Send(tui.Mouse{X: c.x, Y: c.y, Action: tui.Press})
			if got != c.want {
				t.Errorf("at %d,%d: %q, want %q", c.x, c.y, got, c.want)
			}
		})
	}
}

func TestFooterAndKeyNames(t *testing.T) {
	for k, want := range map[tui.Key]string{"f1": "F1", " ": "Space", "pgup": "PgUp", "ctrl-l": "Ctrl-L", "shift-tab": "Shift-Tab", "q": "q", "-": "-"} {
		t.Run(fmt.Sprint(k), func(t *testing.T) {
			if got := KeyName(k); got != want {
				t.Errorf("KeyName(%q) = %q, want %q", k, got, want)
			}
		})
	}
	var h Hits
	pressed := ""
	list := []Binding{
		{Keys: []tui.Key{"f1", "?"}, Foot: "Help", Do: func() []tui.Effect { pressed = "help"; return nil }},
		{Keys: []tui.Key{"x"}},
		{Keys: []tui.Key{"f10"}, Foot: "Quit", Do: func() []tui.Effect { pressed = "quit"; return nil }},
		{Keys: []tui.Key{"f12"}, Foot: "No room left", Do: func() []tui.Effect { return nil }},
	}
	g := cells.NewGrid(20, 1)
	Footer(&h, g.Area(), list)
	if g.Row(0) != "F1Help   F10Quit" { // the room that is left is theirs
		t.Errorf("footer %q", g.Row(0))
	}
	h.Send(tui.Mouse{X: 9, Action: tui.Press})
	if pressed != "quit" {
		t.Errorf("pressed %q", pressed)
	}
	if b := Find(list, "?"); b == nil || b.Foot != "Help" || Find(list, "y") != nil {
		t.Error("Find")
	}
}

func TestHelp(t *testing.T) {
	var h Hits
	var p Help
	lines := HelpOf("Keys", []Binding{{Keys: []tui.Key{"f1", "?"}, Help: "this help"}})
	for range 30 {
		lines = append(lines, HelpLine{Key: "x", Text: "text"})
	}
	g := cells.NewGrid(40, 10)
	closed := false
	p.Draw(&h, g.Area(), lines, func() { closed = true })
	if !strings.Contains(g.String(), "F1 ?") || !strings.Contains(g.String(), "this help") {
		t.Error(g)
	}
	for _, k := range []tui.Key{"down", "up", "pgdn", "pgup", " ", "end", "home", "j", "k"} {
		if p.Key(k) {
			t.Errorf("%s closes the help", k)
		}
		p.Draw(&h, g.Area(), lines, func() { closed = true })
	}
	if !p.Key("q") || !p.Key("enter") {
		t.Error("other keys do not close it")
	}
	h.Send(tui.Mouse{X: 20, Y: 5, Action: tui.WheelDown})
	h.Send(tui.Mouse{X: 20, Y: 5, Action: tui.Press})
	if !closed {
		t.Error("a press does not close it")
	}
}
