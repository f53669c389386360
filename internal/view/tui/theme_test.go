package tui

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/gdamore/tcell/v2"

	"github.com/ttmon/ttmon/internal/view/tui/cells"
	"github.com/ttmon/ttmon/internal/view/tui/theme"
)

func env(pairs ...string) func(string) string {
	return func(k string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == k {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func TestThemes(t *testing.T) {
	for _, c := range []struct {
		name string
		env  func(string) string
		want string
	}{
		{"auto", env(), "dark"},
		{"", env(), "dark"},
		{"dark", env(), "dark"},
		{"light", env(), "light"},
		{"mono", env(), "mono"},
		{"auto", env("COLORFGBG", "0;15"), "light"},
		{"auto", env("COLORFGBG", "15;0"), "dark"},
		{"auto", env("COLORFGBG", "12;default;7"), "light"},
		{"auto", env("COLORFGBG", "nonsense"), "dark"},
		{"light", env("NO_COLOR", "1"), "mono"},
		{"auto", env("NO_COLOR", "1", "COLORFGBG", "0;15"), "mono"},
	} {
		t.Run(fmt.Sprintf("%s, COLORFGBG=%s, NO_COLOR=%s", c.name, c.env("COLORFGBG"), c.env("NO_COLOR")), func(t *testing.T) {
			if got := themeOf(c.name, c.env); got.Name != c.want {
				t.Errorf("theme %q with %q: %s, want %s", c.name, c.env("COLORFGBG"), got.Name, c.want)
			}
		})
	}
	for i, s := range paletteOf(themeOf("mono", env()), true).styles {
		if fg, bg, _ := s.Decompose(); fg != tcell.ColorDefault || bg != tcell.ColorDefault {
			t.Errorf("mono has a colour for %v", cells.Style(i))
		}
	}
	for _, every := range []bool{false, true} { // tints are for terminals with every colour
		tinted := paletteOf(themeOf("dark", env()), every).of(cells.Cell{Tint: 3})
		if _, bg, _ := tinted.Decompose(); (bg != tcell.ColorDefault) != every {
			t.Errorf("every colour %t: a tint is %v", every, bg)
		}
	}
}

// What must be told apart is, in every theme: without colour too.
func TestStylesDiffer(t *testing.T) {
	for _, name := range theme.Names() {
		p := paletteOf(themeOf(name, env()), true).styles
		for _, pair := range [][2]cells.Style{
			{cells.Text, cells.Bad},
			{cells.Text, cells.Warn},
			{cells.Warn, cells.Bad},
			{cells.Text, cells.Selected},
			{cells.Selected, cells.Shadow},
			{cells.Text, cells.Tagged},
			{cells.Heading, cells.Sorted},
			{cells.Text, cells.Banner},
			{cells.Key, cells.KeyText},
		} {
			t.Run(fmt.Sprint(name, " ", pair), func(t *testing.T) {
				if p[pair[0]] == p[pair[1]] {
					t.Errorf("%v looks like %v", pair[0], pair[1])
				}
			})
		}
	}
}

// Everything the screens draw has a stand-in for terminals without UTF-8.
func TestASCII(t *testing.T) {
	files, err := filepath.Glob("*/testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden screens: %v", err)
	}
	missing := map[rune]string{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range string(b) {
			if r != '\n' && r != '?' && cells.ASCIIRune(r) == "?" {
				missing[r] = f
			}
		}
	}
	for r, f := range missing {
		t.Errorf("%q (%U) in %s has no stand-in", r, r, f)
	}
	for b, want := range map[rune]string{'⠀': " ", '⣿': "#", '⠉': "'", '⣀': ".", '⡇': ":", 'A': "A", '日': "?"} {
		t.Run(fmt.Sprint(b), func(t *testing.T) {
			if got := cells.ASCIIRune(b); got != want {
				t.Errorf("ascii(%q) = %q, want %q", b, got, want)
			}
		})
	}
}

func TestBrailleTable(t *testing.T) {
	for i := range rune(256) {
		if got := (&painter{}).text(cells.Cell{Rune: firstBraille + i}); got != string(firstBraille+i) {
			t.Fatalf("braille %d is %q", i, got)
		}
	}
}

// The kernel's console shows no braille and no eighths; what stands in for them
// is in its fonts, and blank stays blank.
func TestConsoleCharacters(t *testing.T) {
	for r, want := range map[rune]rune{'⠀': ' ', '⠉': '▀', '⣀': '▄', '⣿': '█', '▏': '▌', '▉': '█', '─': '─', 'x': 'x'} {
		t.Run(fmt.Sprint(r), func(t *testing.T) {
			if got := console(r); got != want {
				t.Errorf("%c is drawn as %c, want %c", r, got, want)
			}
		})
	}
	for _, r := range "■×▶‖●▴" { // of the fleet and the recordings, whose screens are not above
		if cells.ASCIIRune(r) == "?" {
			t.Errorf("%q is drawn as ?, which says that something is not known", r)
		}
	}
	if got := cells.ASCIIRune('°'); got != " " {
		t.Errorf("a degree sign is drawn as %q", got)
	}
}

// Round corners are drawn where they are wanted and can be, and nowhere else.
func TestRoundCorners(t *testing.T) {
	for _, c := range []struct {
		name string
		p    painter
		want string
	}{
		{"square", painter{}, "┌"},
		{"round", painter{look: Appearance{Round: true}}, "╭"},
		{"round on a console", painter{look: Appearance{Round: true}, console: true}, "┌"},
		{"round in ASCII", painter{look: Appearance{Round: true}, ascii: true}, "+"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.p.text(cells.Cell{Rune: '┌'}); got != c.want {
				t.Errorf("%+v draws %s, want %s", c.p.look, got, c.want)
			}
		})
	}
}
