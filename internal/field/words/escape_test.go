package words_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/ttmon/ttmon/internal/field/words"
)

func TestEscape(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", ""},
		{"python3 serve.py --model llama", "python3 serve.py --model llama"},
		{`grep '\.go$'`, `grep '\.go$'`},
		{"\x1b[2J\x1b]0;owned\a", `\x1b[2J\x1b]0;owned\x07`},
		{"a\tb\nc\rd\x00", `a\tb\nc\rd\x00`},
		{"bad \xff utf8 \xc3", `bad \xff utf8 \xc3`},
		{"\u202egnp.exe", `\u202egnp.exe`},
		{"zero\u200bwidth\ufeff", `zero\u200bwidth\ufeff`},
		{"c1 \u009b31m", `c1 \u009b31m`},
		{"line\u2028sep", `line\u2028sep`},
		{"tag\U000e0041", `tag\U000e0041`},
		{"日本語 naïve 🚀", "日本語 naïve 🚀"},
		{"e\u0301", "e\u0301"},       // an accent on its letter stays
		{"\u0301abc", `\u0301abc`},   // and one without a letter does not
		{"x\u3164y", `x\u3164y`},     // Hangul filler: a letter that shows nothing
		{"nbsp\u00a0", `nbsp\u00a0`}, // looks like a blank, is none
		{"\ufffd", "\ufffd"},         // the replacement character itself is printable
	} {
		t.Run(c.in, func(t *testing.T) {
			if got := words.Escape(c.in); got != c.want {
				t.Errorf("Escape(%q) = %q, want %q", c.in, got, c.want)
			}
		})
	}
}

func TestTruncateAndPad(t *testing.T) {
	for _, c := range []struct {
		in    string
		width int
		want  string
	}{
		{"abcdef", 6, "abcdef"},
		{"abcdef", 5, "abcd…"},
		{"abcdef", 1, "…"},
		{"abcdef", 0, ""},
		{"日本語", 6, "日本語"},
		{"日本語", 5, "日本…"},
		{"日本語", 4, "日…"},
		{"日本語", 2, "…"},
		{"e\u0301e\u0301e\u0301", 2, "e\u0301…"},
		{"👩‍👩‍👧x", 2, "…"},
		{"👩‍👩‍👧x", 3, "👩‍👩‍👧x"},
	} {
		t.Run(fmt.Sprintf("%s to %d", c.in, c.width), func(t *testing.T) {
			if got := words.Truncate(c.in, c.width); got != c.want {
				t.Errorf("Truncate(%q, %d) = %q, want %q", c.in, c.width, got, c.want)
			}
		})
	}
	if got := words.Fit("日本語", 4); got != "日… " {
		t.Errorf("Fit leaves %q: a wide character must not shift the next column", got)
	}
	if got := words.FitLeft("ab", 4); got != "  ab" {
		t.Errorf("FitLeft = %q", got)
	}
	if got := words.Pad("x", 100); len(got) != 100 {
		t.Errorf("Pad to 100 gives %d", len(got))
	}
}

func FuzzEscape(f *testing.F) {
	for _, s := range []string{"plain", "\x1b[31m", "\u202e", "\xff\xfe", "日本語", "\u0301", "\u009b", "\U000e0001", `\x1b`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := words.Escape(s)
		if !utf8.ValidString(got) {
			t.Fatalf("Escape(%q) = %q is not UTF-8", s, got)
		}
		for _, r := range got {
			if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r) {
				t.Fatalf("Escape(%q) lets %U through", s, r)
			}
		}
		if again := words.Escape(got); again != got {
			t.Fatalf("Escape is not stable: %q then %q", got, again)
		}
		if !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) && got != s {
			t.Fatalf("Escape(%q) = %q changes plain ASCII", s, got)
		}
	})
}

func FuzzTruncate(f *testing.F) {
	f.Add("日本語abc", 4)
	f.Add("👩‍👩‍👧x", 2)
	f.Add("e\u0301", 1)
	f.Fuzz(func(t *testing.T, s string, width int) {
		if width > 1000 {
			return
		}
		s = words.Escape(s) // as every caller does
		got := words.Truncate(s, width)
		if w := words.Width(got); w > max(width, 0) {
			t.Fatalf("Truncate(%q, %d) = %q takes %d cells", s, width, got, w)
		}
		if got != s && !strings.HasPrefix(s, strings.TrimSuffix(got, "…")) {
			t.Fatalf("Truncate(%q, %d) = %q is no beginning of it", s, width, got)
		}
		if width >= 0 && words.Width(words.Fit(s, width)) != width {
			t.Fatalf("Fit(%q, %d) takes %d cells", s, width, words.Width(words.Fit(s, width)))
		}
	})
}
