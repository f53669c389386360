package wire

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/ttmon/ttmon/internal/model"
)

// encoder writes the walk as JSON into buf. It allocates nothing but buf.
type encoder struct {
	buf    []byte
	indent bool
	depth  int
	more   bool // the next member needs a comma before it
	last   string

	// The keys of open objects, and where each open scope began in them.
	path   []string
	scopes []scope
}

// scope collects the "missing" and "nominal" of one object while its members
// are written.
type scope struct {
	depth   int // of the encoder's path
	missing []byte
	nominal []byte
}

func (e *encoder) reads() bool { return false }

func (e *encoder) separate() {
	if e.more {
		e.buf = append(e.buf, ',')
	}
	e.more = true
	e.newline()
}

func (e *encoder) newline() {
	if !e.indent {
		return
	}
	e.buf = append(e.buf, '\n')
	for range e.depth {
		e.buf = append(e.buf, ' ', ' ')
	}
}

func (e *encoder) key(key string) bool {
	e.separate()
	e.name(key)
	e.last = key
	return true
}

func (e *encoder) name(key string) {
	e.buf = append(e.buf, '"')
	e.buf = append(e.buf, key...)
	e.buf = append(e.buf, '"', ':')
	if e.indent {
		e.buf = append(e.buf, ' ')
	}
}

func (e *encoder) null(key string, is bool) bool {
	e.key(key)
	if is {
		e.buf = append(e.buf, "null"...)
	}
	return is
}

func (e *encoder) reading(key string, r status, quiet bool) bool {
	e.key(key)
	s := &e.scopes[len(e.scopes)-1]
	switch {
	case *r.s == model.Known:
		if *r.nominal {
			s.nominal = append(e.nextEntry(s.nominal), '"')
			s.nominal = append(e.dotted(s.nominal, s.depth, key), '"')
		}
		return true
	case quiet && *r.s == model.Absent && *r.why == "":
	default:
		e.noteMissing(key, (model.Reading[bool]{Status: *r.s, Why: *r.why}).Reason())
	}
	e.buf = append(e.buf, "null"...)
	return false
}

// noteMissing enters the reason why a member has no value.
func (e *encoder) noteMissing(key, reason string) {
	s := &e.scopes[len(e.scopes)-1]
	s.missing = append(e.nextEntry(s.missing), '"')
	s.missing = append(e.dotted(s.missing, s.depth, key), '"', ':')
	if e.indent {
		s.missing = append(s.missing, ' ')
	}
	s.missing = appendString(s.missing, reason)
}

func (e *encoder) maybe(key string, is bool) bool { return is && e.key(key) }

func (e *encoder) figure(key, boundKey string, b *model.Bytes) {
	n, bound, known := b.Best()
	e.key(key)
	if !known {
		if b.Status() != model.Absent {
			e.noteMissing(key, b.Status().String())
		}
		e.buf = append(e.buf, "null"...)
		e.null(boundKey, true)
		return
	}
	e.buf = strconv.AppendUint(e.buf, n, 10)
	e.key(boundKey)
	e.buf = appendString(e.buf, bound.String())
}

// nextEntry begins the next entry of a scope's list.
func (e *encoder) nextEntry(b []byte) []byte {
	if len(b) > 0 {
		b = append(b, ',')
	}
	if e.indent {
		b = append(b, '\n')
		for range e.scopes[len(e.scopes)-1].depth + 1 {
			b = append(b, ' ', ' ')
		}
	}
	return b
}

// dotted appends the name of a member as seen from its scope: "pcie.gen".
func (e *encoder) dotted(b []byte, from int, key string) []byte {
	for _, k := range e.path[from:] {
		b = append(b, k...)
		b = append(b, '.')
	}
	return append(b, key...)
}

func (e *encoder) begin() {
	e.path = append(e.path, e.last)
	e.buf = append(e.buf, '{')
	e.depth++
	e.more = false
}

func (e *encoder) close() {
	e.path = e.path[:len(e.path)-1]
	e.end('}')
}

func (e *encoder) end(bracket byte) {
	e.depth--
	if e.more {
		e.newline()
	}
	e.buf = append(e.buf, bracket)
	e.more = true
}

func (e *encoder) list(n int) int {
	e.path = append(e.path, e.last)
	e.buf = append(e.buf, '[')
	e.depth++
	e.more = false
	return n
}

func (e *encoder) item() { e.separate() }

func (e *encoder) endList() {
	e.path = e.path[:len(e.path)-1]
	e.end(']')
}

func (e *encoder) scope() {
	n := len(e.scopes)
	if n < cap(e.scopes) { // keep the buffers of an earlier scope
		e.scopes = e.scopes[:n+1]
	} else {
		e.scopes = append(e.scopes, scope{})
	}
	s := &e.scopes[n]
	s.depth, s.missing, s.nominal = len(e.path), s.missing[:0], s.nominal[:0]
}

func (e *encoder) endScope() {
	s := &e.scopes[len(e.scopes)-1]
	e.key("missing")
	e.collected('{', s.missing, '}')
	e.key("nominal")
	e.collected('[', s.nominal, ']')
	e.scopes = e.scopes[:len(e.scopes)-1]
}

func (e *encoder) collected(open byte, body []byte, end byte) {
	e.buf = append(e.buf, open)
	e.buf = append(e.buf, body...)
	if len(body) > 0 {
		e.newline()
	}
	e.buf = append(e.buf, end)
}

func (e *encoder) value(v any) {
	switch v := v.(type) {
	case *float64:
		e.buf = appendFloat(e.buf, *v)
	case *int:
		e.buf = strconv.AppendInt(e.buf, int64(*v), 10)
	case *uint64:
		e.buf = strconv.AppendUint(e.buf, *v, 10)
	case *uint32:
		e.buf = strconv.AppendUint(e.buf, uint64(*v), 10)
	case *bool:
		e.buf = strconv.AppendBool(e.buf, *v)
	case *string:
		e.buf = appendString(e.buf, *v)
	case *model.Bound:
		e.buf = appendString(e.buf, v.String())
	case *decimal:
		e.buf = append(strconv.AppendUint(append(e.buf, '"'), uint64(*v), 10), '"')
	case *hex:
		e.buf = fmt.Appendf(e.buf, `"0x%04x"`, uint16(*v))
	case *time.Time:
		e.buf = append(v.UTC().AppendFormat(append(e.buf, '"'), timeLayout), '"')
	}
}

const timeLayout = "2006-01-02T15:04:05.000Z"

// appendFloat writes the shortest decimal that reads back as v. JSON has no
// word for what is no number; the model never holds one as known.
func appendFloat(b []byte, v float64) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return append(b, "null"...)
	}
	format := byte('f')
	if a := math.Abs(v); a != 0 && (a < 1e-6 || a >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(b, v, format, -1, 64)
}

const hexDigits = "0123456789abcdef"

// appendString quotes s. Whatever would do something to a terminal (control
// and format characters) is written as \u escapes, which JSON reads back as the
// same characters: output that is only read does no harm. Bytes that are
// no UTF-8 become U+FFFD.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c < 0x7f && c != '"' && c != '\\' {
			b = append(b, c)
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c == '\n':
			b = append(b, '\\', 'n')
		case c == '\t':
			b = append(b, '\\', 't')
		case unicode.IsPrint(r) || r == utf8.RuneError:
			b = utf8.AppendRune(b, r)
		case r < 0x10000:
			b = appendUnicode(b, uint16(r))
		default:
			r -= 0x10000
			b = appendUnicode(appendUnicode(b, 0xd800|uint16(r>>10)), 0xdc00|uint16(r&0x3ff))
		}
		i += size
	}
	return append(b, '"')
}

// Harmless is a JSON document in which whatever would do something to a terminal is
// written as in appendString: for documents that encoding/json has made, which leaves
// all but the first control characters as they are.
func Harmless(doc []byte) []byte {
	if !bytes.ContainsFunc(doc, isHarmful) {
		return doc
	}
	out := make([]byte, 0, len(doc)+64)
	for len(doc) > 0 {
		r, size := utf8.DecodeRune(doc)
		switch {
		case !isHarmful(r):
			out = append(out, doc[:size]...)
		case r < 0x10000:
			out = appendUnicode(out, uint16(r))
		default:
			r -= 0x10000
			out = appendUnicode(appendUnicode(out, 0xd800|uint16(r>>10)), 0xdc00|uint16(r&0x3ff))
		}
		doc = doc[size:]
	}
	return out
}

// isHarmful: below 0x20 there is only the white space between members.
func isHarmful(r rune) bool { return r >= 0x7f && !unicode.IsPrint(r) && r != utf8.RuneError }

func appendUnicode(b []byte, v uint16) []byte {
	return append(b, '\\', 'u', hexDigits[v>>12], hexDigits[v>>8&0xf], hexDigits[v>>4&0xf], hexDigits[v&0xf])
}
