package picture

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

func wellFormed(t *testing.T, svg []byte) {
	t.Helper()
	for d := xml.NewDecoder(strings.NewReader(string(svg))); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("%v\n%s", err, svg)
		}
	}
}

func TestCapture(t *testing.T) {
	s := Capture("a\x1b[1;31mb\x1b[0m日\x1b[38;2;1;2;3;48;5;16mc\x1b[7md\x1b[m\ne\x1b[999mf\nout of sight", 8, 2, 0xd0d0d0, 0x101010)
	plain := Style{FG: 0xd0d0d0, BG: 0x101010}
	for i, want := range []Cell{
		{'a', "", plain},
		{'b', "", Style{FG: basic[1], BG: 0x101010, Bold: true}},
		{'日', "", plain},
		{0, "", plain},
		{'c', "", Style{FG: 0x010203, BG: 0}},
		{'d', "", Style{FG: 0, BG: 0x010203}},
		{' ', "", plain},
		{' ', "", plain},
		{'e', "", plain},
		{'f', "", plain},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			if got := s.Cells[i]; got != want {
				t.Errorf("cell %d is %+v, want %+v", i, got, want)
			}
		})
	}
}

// A row that stays is drawn once, however many screens show it.
func TestFilm(t *testing.T) {
	var frames []Frame
	for _, second := range []string{"one", "two", "<&>"} {
		frames = append(frames, Frame{Capture("the same\n"+second, 10, 2, 0xffffff, 0), time.Second})
	}
	got := Film(frames)
	wellFormed(t, got)
	text := string(got)
	for what, want := range map[string]int{">the same ": 1, "<use ": 6, "<g id=": 4, "&lt;&amp;&gt;": 1, "animation:film 3s step-end infinite": 1, "66.67%{": 1, "prefers-reduced-motion": 1} {
		t.Run(what, func(t *testing.T) {
			if n := strings.Count(text, what); n != want {
				t.Errorf("%d times %q, want %d:\n%s", n, what, want, text)
			}
		})
	}
	if Film(nil) != nil {
		t.Error("a film of nothing")
	}
}

// Whatever a terminal prints becomes a picture.
func FuzzCapture(f *testing.F) {
	f.Add("a\x1b[1;31mb\x1b[38;5;300m日\x1b[38;2;1mx\x1b[")
	f.Add("\x1b[;m\xff\x00▓⣿─╭")
	f.Fuzz(func(t *testing.T, text string) {
		s := Capture(text, 7, 3, 0, 0xffffff)
		if len(s.Cells) != 21 {
			t.Fatal(len(s.Cells))
		}
		wellFormed(t, Film([]Frame{{s, time.Second}}))
	})
}
