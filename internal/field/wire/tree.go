package wire

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// tree is a parsed JSON text: its values in the order of the text, each with
// the number of the value that follows it on its level. One allocation for all
// of them is what makes a daemon's client cheap.
type tree struct {
	text  []byte
	nodes []node
}

type node struct {
	kind       byte  // one of { [ " 0 t n: the value's first byte, 0 for numbers, t for both bools
	start, end int32 // the value's text; of a string, without its quotes
	key        int32 // where the member's name starts, after its quote; -1 in a list
	keyEnd     int32
	next       int32 // the next value on this level, 0 if none
	size       int32 // members or items
	names      nameSet
}

// nameSet has a bit for each name in it, and some names share one: it says for sure
// only that a name is not there. Most of the members that a snapshot may have are not
// there, and finding that out would mean to compare with all that are.
type nameSet uint64

// nameBit is the set of one name.
func nameBit[T string | []byte](name T) nameSet {
	if len(name) == 0 {
		return 1
	}
	return 1 << ((int(name[0]) + 5*int(name[len(name)-1]) + 11*len(name)) & 63)
}

// maxDepth keeps hostile text from exhausting the stack; the contract needs 7.
const maxDepth = 64

var errSyntax = errors.New("no valid JSON")

type parser struct {
	tree
	at int
}

// parse parses text into room, which may be nil.
func parse(text []byte, room []node) (tree, error) {
	if len(text) > 1<<30 {
		return tree{}, fmt.Errorf("%d bytes are too many", len(text))
	}
	if room == nil {
		room = make([]node, 0, len(text)/16+8)
	}
	p := parser{tree: tree{text: text, nodes: room[:0]}}
	p.blank()
	if !p.value(-1, -1, 0) {
		return tree{}, fmt.Errorf("%w at byte %d", errSyntax, p.at)
	}
	p.blank()
	if p.at != len(text) {
		return tree{}, fmt.Errorf("%w: more after its end, at byte %d", errSyntax, p.at)
	}
	return p.tree, nil
}

func (p *parser) blank() {
	for p.at < len(p.text) {
		switch p.text[p.at] {
		case ' ', '\t', '\n', '\r':
			p.at++
		default:
			return
		}
	}
}

// next consumes c, if it is there.
func (p *parser) next(c byte) bool {
	if p.at < len(p.text) && p.text[p.at] == c {
		p.at++
		return true
	}
	return false
}

func (p *parser) value(key, keyEnd int32, depth int) bool {
	if p.at >= len(p.text) || depth > maxDepth {
		return false
	}
	n := len(p.nodes)
	p.nodes = append(p.nodes, node{kind: p.text[p.at], start: int32(p.at), key: key, keyEnd: keyEnd})
	ok := false
	switch c := p.text[p.at]; {
	case c == '{':
		ok = p.members(n, depth)
	case c == '[':
		ok = p.items(n, depth)
	case c == '"':
		p.nodes[n].start++
		ok = p.string()
		p.nodes[n].end = int32(p.at - 1)
		return ok
	case c == 't':
		ok = p.literal("true")
	case c == 'f':
		p.nodes[n].kind, ok = 't', p.literal("false")
	case c == 'n':
		ok = p.literal("null")
	default:
		p.nodes[n].kind, ok = '0', p.number()
	}
	p.nodes[n].end = int32(p.at)
	return ok
}

func (p *parser) members(parent, depth int) bool {
	p.at++
	p.blank()
	if p.next('}') {
		return true
	}
	for last := -1; ; {
		key := int32(p.at + 1)
		if p.at >= len(p.text) || p.text[p.at] != '"' || !p.string() {
			return false
		}
		keyEnd := int32(p.at - 1)
		p.nodes[parent].names |= nameBit(p.text[key:keyEnd])
		p.blank()
		if !p.next(':') {
			return false
		}
		if last = p.child(parent, last, key, keyEnd, depth); last < 0 {
			return false
		}
		if p.next('}') {
			return true
		}
		if !p.next(',') {
			return false
		}
		p.blank()
	}
}

func (p *parser) items(parent, depth int) bool {
	p.at++
	p.blank()
	if p.next(']') {
		return true
	}
	for last := -1; ; {
		if last = p.child(parent, last, -1, -1, depth); last < 0 {
			return false
		}
		if p.next(']') {
			return true
		}
		if !p.next(',') {
			return false
		}
	}
}

// child parses one value of parent and links it after last.
func (p *parser) child(parent, last int, key, keyEnd int32, depth int) int {
	p.blank()
	n := len(p.nodes)
	if !p.value(key, keyEnd, depth+1) {
		return -1
	}
	if last >= 0 {
		p.nodes[last].next = int32(n)
	}
	p.nodes[parent].size++
	p.blank()
	return n
}

func (p *parser) literal(word string) bool {
	if len(p.text)-p.at < len(word) || string(p.text[p.at:p.at+len(word)]) != word {
		return false
	}
	p.at += len(word)
	return true
}

// string passes over a string, quotes included.
func (p *parser) string() bool {
	text := p.text
	for i := p.at + 1; i < len(text); i++ { // a tenth of decoding: in registers
		switch c := text[i]; {
		case c == '"':
			p.at = i + 1
			return true
		case c < ' ':
			p.at = i
			return false
		case c == '\\':
			if p.at = i; !p.escape() {
				return false
			}
			i = p.at - 1
		}
	}
	p.at = len(text)
	return false
}

func (p *parser) escape() bool {
	if p.at+1 >= len(p.text) {
		return false
	}
	switch p.text[p.at+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		p.at += 2
		return true
	case 'u':
		if _, ok := hex4(p.text[p.at+2:]); ok {
			p.at += 6
			return true
		}
	}
	return false
}

func (p *parser) number() bool {
	p.next('-')
	if !p.next('0') && !p.digits() {
		return false
	}
	if p.next('.') && !p.digits() {
		return false
	}
	if p.next('e') || p.next('E') {
		if !p.next('+') {
			p.next('-')
		}
		return p.digits()
	}
	return true
}

func (p *parser) digits() bool {
	from := p.at
	for p.at < len(p.text) && p.text[p.at] >= '0' && p.text[p.at] <= '9' {
		p.at++
	}
	return p.at > from
}

func hex4(b []byte) (rune, bool) {
	if len(b) < 4 {
		return 0, false
	}
	v, err := strconv.ParseUint(string(b[:4]), 16, 16)
	return rune(v), err == nil && b[0] != '+' && b[0] != '_'
}

// unquote turns the inside of a JSON string into the string.
func unquote(b []byte) string {
	if bytes.IndexByte(b, '\\') < 0 && utf8.Valid(b) {
		return string(b)
	}
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); {
		if b[i] != '\\' {
			r, size := utf8.DecodeRune(b[i:])
			out = utf8.AppendRune(out, r)
			i += size
			continue
		}
		switch c := b[i+1]; c {
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r, _ := hex4(b[i+2:])
			if utf16.IsSurrogate(r) {
				pair := rune(utf8.RuneError)
				if rest := b[i+6:]; len(rest) >= 6 && rest[0] == '\\' && rest[1] == 'u' {
					low, _ := hex4(rest[2:])
					pair = utf16.DecodeRune(r, low)
				}
				if pair != utf8.RuneError {
					i += 6
				}
				r = pair
			}
			out = utf8.AppendRune(out, r)
			i += 4
		default: // a quote, a slash or a backslash
			out = append(out, c)
		}
		i += 2
	}
	return string(out)
}
