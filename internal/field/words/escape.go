package words

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Escape makes foreign text safe to print on a terminal: control characters
// (ESC, CR, C1 …), invalid UTF-8, and everything invisible that changes how
// other text looks (bidi overrides, zero-width characters, odd spaces, line
// separators) become visible escapes: \x1b, \n, \u202e. A combining mark at the
// very beginning is escaped too: it would change what stands before the text.
//
// Backslashes are left alone: command lines full of them stay copyable, and a
// terminal does nothing with them.
func Escape(s string) string {
	i := firstUnsafe(s)
	if i < 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 16)
	b.WriteString(s[:i])
	for i < len(s) {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			writeHex(&b, 'x', uint32(s[i]), 2)
		case safe(r) && !(i == 0 && unicode.IsMark(r)):
			b.WriteString(s[i : i+size])
		default:
			escapeRune(&b, r)
		}
		i += size
	}
	return b.String()
}

// firstUnsafe is where escaping has to begin, or -1. Nearly all text is plain
// ASCII, so that is checked first.
func firstUnsafe(s string) int {
	for i := 0; i < len(s); {
		if c := s[i]; c >= ' ' && c < 0x7f {
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 || !safe(r) || i == 0 && unicode.IsMark(r) {
			return i
		}
		i += size
	}
	return -1
}

// safe reports whether a rune shows as itself and nothing more. unicode.IsPrint
// already refuses controls, format characters (bidi, zero width) and every
// space but the plain one; the two Hangul fillers are letters that show nothing.
func safe(r rune) bool {
	switch r {
	case 0x115f, 0x1160, 0x3164, 0xffa0:
		return false
	}
	return unicode.IsPrint(r)
}

func escapeRune(b *strings.Builder, r rune) {
	switch {
	case r == '\n':
		b.WriteString(`\n`)
	case r == '\t':
		b.WriteString(`\t`)
	case r == '\r':
		b.WriteString(`\r`)
	case r < 0x80:
		writeHex(b, 'x', uint32(r), 2)
	case r <= 0xffff:
		writeHex(b, 'u', uint32(r), 4)
	default:
		writeHex(b, 'U', uint32(r), 8)
	}
}

func writeHex(b *strings.Builder, kind byte, v uint32, width int) {
	const hex = "0123456789abcdef"
	b.WriteByte('\\')
	b.WriteByte(kind)
	for shift := 4 * (width - 1); shift >= 0; shift -= 4 {
		b.WriteByte(hex[v>>shift&0xf])
	}
}
