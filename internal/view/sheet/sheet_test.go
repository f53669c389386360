package sheet

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
)

// Of more blocks than a screen has points the largest are drawn, by address.
func TestMapIsBounded(t *testing.T) {
	l := blocks.NewList(blocks.Geometry{Pool: model.DRAM, Banks: 8, Base: 64, Capacity: 1 << 32, Align: 64, Smallest: 64}, blocks.FromStart)
	for i := range uint64(2 * MaxSpans) {
		l.Alloc(blocks.Block{Addr: 64 + i*4096, Size: 64 + i%2*64})
	}
	m := MapOf(l, func(blocks.Block) int { return 0 }, time.Time{}, MaxSpans)
	if len(m.Spans) != MaxSpans || m.LeftOut != MaxSpans || m.Spans[0][1] != 128 {
		t.Fatalf("%d spans, %d left out, the first is %v", len(m.Spans), m.LeftOut, m.Spans[0])
	}
	for i := 1; i < len(m.Spans); i++ {
		if m.Spans[i][0] <= m.Spans[i-1][0] {
			t.Fatal("they are not in the order of their addresses")
		}
	}
}

// A page of a screen has a rule behind each title, its values below each other, and
// nothing beyond its edge.
func TestScreen(t *testing.T) {
	drawn := Screen(37, Part{Title: "One", Pairs: []Pair{{Name: "name", Value: Text("a value that is longer than the line")}, {Name: "path", Value: Text("/a/word/without/a/blank")}}},
		Part{Title: "None"}, Part{Title: "Two", Notes: []Note{{Text: "a sentence"}}}, Part{Title: "Below it", Below: true, Pairs: []Pair{{Name: "x", Value: Value{Text: "–", Gone: true}}}})
	var got []string
	for _, l := range drawn {
		got = append(got, l.String())
	}
	want := []string{
		" One ───────────────────────────────", "  name            a value that is", "                  longer than the line", "  path            /a/word/without/a/", "                  blank", "",
		" Two ───────────────────────────────", "  a sentence", "", "  Below it", "  x               –",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// What is broken into lines loses nothing but is nowhere wider than a line.
func FuzzBroken(f *testing.F) {
	f.Add("some text to break 日本語", 7)
	f.Fuzz(func(t *testing.T, s string, w int) {
		s, w = words.Escape(s), 2+(w&0xff)%40
		out := broken(s, w)
		for _, word := range strings.Split(out, " ") {
			if words.Width(word) > w {
				t.Fatalf("%q takes %d of %d cells", word, words.Width(word), w)
			}
		}
		if strings.ReplaceAll(out, " ", "") != strings.ReplaceAll(s, " ", "") {
			t.Fatalf("something of %q is lost: %q", s, out)
		}
	})
}
