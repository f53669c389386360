package lines

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
)

func table() *Table {
	t := &Table{Indent: 1, Columns: []Column{
		{Head: "PID", Least: 6, Right: true},
		{Head: "User", Rank: 2},
		{Bar: true, Least: MinBar, Rank: 3},
		{Head: "DRAM", Right: true, Rank: 1, Tight: true},
		{Head: "Command", Least: 8, Rest: true},
	}}
	bar := Cell{Bar: &Bar{Ratio: 0.5, Bound: model.AtLeast}}
	t.Rows = []Row{
		{Cells: []Cell{C("7"), C("anna", cells.Faint), bar, C("1.0 GiB"), C("python3 serve.py --model llama-70b")}},
		{Cells: []Cell{C("120034"), C("bob"), {}, C("≥12 MiB"), C("sleep")}},
	}
	return t
}

// The highest rank goes first, the last column takes what is left and is cut there.
func TestTable(t *testing.T) {
	for width, want := range map[int]string{
		0: `
    PID  User  DRAM                          Command
      7  anna  ▓▓▓▓▓▓▓▓▓▒░░░░░░░░░░ 1.0 GiB  python3 serve.py --model llama-70b
 120034  bob                        ≥12 MiB  sleep
`,
		48: `
    PID  User  DRAM               Command
      7  anna  ▓▓▓▓▒░░░░ 1.0 GiB  python3 serve…
 120034  bob             ≥12 MiB  sleep
`,
		36: `
    PID  User     DRAM  Command
      7  anna  1.0 GiB  python3 ser…
 120034  bob   ≥12 MiB  sleep
`,
		20: `
    PID  Command
      7  python3 se…
 120034  sleep
`,
		10: `
    PID  Command
      7  python3…
 120034  sleep
`,
	} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			p := Printer{Options: Options{Width: width}}
			p.Table(table())
			if diff := cmp.Diff(want[1:], string(p.Buf)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Columns of a screen keep their places, whatever is in them: a value that is too long is
// cut and never touches its neighbour. What is left goes to what may grow, then to the rest.
func TestFixed(t *testing.T) {
	x := &Table{Fixed: true, Columns: []Column{{Head: "A", Least: 4, Right: true}, {Head: "Name", Least: 6, Most: 10, Tight: true}, {Head: "Rest", Least: 2, Rest: true, Tight: true}}}
	x.Add("123456", "n", "r")
	if diff := cmp.Diff([]Place{{0, 4}, {5, 10}, {16, 14}}, x.Layout(30)); diff != "" {
		t.Error(diff)
	}
	if got := x.Line(x.Layout(30), &x.Rows[0], true).String(); got != "123… n          r" {
		t.Errorf("%q", got)
	}
}

func TestHang(t *testing.T) {
	list := Hang(Plain("  why  "), "one two three four five six seven", cells.Warn, 27, 2)
	var got []string
	for _, l := range list {
		got = append(got, l.String())
	}
	if diff := cmp.Diff([]string{"  why  one two three four", "         five six seven"}, got); diff != "" {
		t.Error(diff)
	}
	if list := Hang(nil, strings.Repeat("long ", 50), cells.Text, 0, 2); len(list) != 1 {
		t.Errorf("a file has %d lines", len(list))
	}
}

// Colours are on the text alone, so that blanks at the end of a line can go.
func TestColour(t *testing.T) {
	p := Printer{Options: Options{Color: true, ASCII: true}}
	p.Lines(Line{S("≥1", cells.Bad), S("  ", cells.Text), S("x", cells.Series(1)), S("   ", cells.Text)})
	if got := string(p.Buf); got != "\x1b[1;31m>=1\x1b[0m  \x1b[33mx\x1b[0m\n" {
		t.Errorf("%q", got)
	}
}
