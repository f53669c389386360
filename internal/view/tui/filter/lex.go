package filter

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Error says what is wrong in a filter, and where.
type Error struct {
	Pos int // byte offset
	Msg string
}

func (e *Error) Error() string { return fmt.Sprintf("at %d: %s", e.Pos+1, e.Msg) }

func errorAt(pos int, format string, args ...any) *Error {
	return &Error{Pos: pos, Msg: fmt.Sprintf(format, args...)}
}

type kind uint8

const (
	end   kind = iota
	word       // also quoted text
	op         // = != < <= > >= ~ !~
	open       // (
	shut       // )
	andOp      // and & &&
	orOp       // or | ||
	notOp      // not !
)

type token struct {
	kind   kind
	text   string
	pos    int
	quoted bool
}

// lex splits a filter into tokens; the last one is always end.
func lex(s string) ([]token, *Error) {
	var out []token
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if unicode.IsSpace(r) {
			i += size
			continue
		}
		t, n, err := next(s, i)
		if err != nil {
			return nil, err
		}
		out = append(out, t)
		i += n
	}
	return append(out, token{kind: end, pos: len(s)}), nil
}

// next reads one token at s[i:] and says how many bytes it takes.
func next(s string, i int) (token, int, *Error) {
	at := func(k kind, n int) (token, int, *Error) { return token{kind: k, text: s[i : i+n], pos: i}, n, nil }
	rest := s[i:]
	switch {
	case rest[0] == '(':
		return at(open, 1)
	case rest[0] == ')':
		return at(shut, 1)
	case rest[0] == '"' || rest[0] == '\'':
		return quoted(s, i)
	case strings.HasPrefix(rest, "&&"):
		return at(andOp, 2)
	case strings.HasPrefix(rest, "||"):
		return at(orOp, 2)
	case rest[0] == '&':
		return at(andOp, 1)
	case rest[0] == '|':
		return at(orOp, 1)
	}
	for _, o := range []string{"==", "!=", "<=", ">=", "!~", "=~", "=", "<", ">", "~"} {
		if strings.HasPrefix(rest, o) {
			return at(op, len(o))
		}
	}
	if rest[0] == '!' {
		return at(notOp, 1)
	}
	n := strings.IndexFunc(rest, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(`()=<>~!&|"'`, r) })
	if n < 0 {
		n = len(rest)
	}
	switch strings.ToLower(rest[:n]) {
	case "and":
		return at(andOp, n)
	case "or":
		return at(orOp, n)
	case "not":
		return at(notOp, n)
	}
	return at(word, n)
}

// quoted reads text in quotes; a backslash keeps the character after it.
func quoted(s string, i int) (token, int, *Error) {
	var b strings.Builder
	q := s[i]
	for j := i + 1; j < len(s); j++ {
		switch {
		case s[j] == q:
			return token{kind: word, text: b.String(), pos: i, quoted: true}, j + 1 - i, nil
		case s[j] == '\\' && j+1 < len(s) && (s[j+1] == q || s[j+1] == '\\'):
			j++
		}
		b.WriteByte(s[j])
	}
	return token{}, 0, errorAt(i, "this quote is never closed")
}
