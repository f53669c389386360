package wire

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	gostrings "strings"
	"time"
	"unsafe"

	"github.com/ttmon/ttmon/internal/model"
)

// decoder fills a snapshot in from a tree. The first thing that is wrong ends
// up in err; the walk continues, and its result is thrown away.
type decoder struct {
	tree    tree
	strings *interned
	err     error

	cur   int32 // the value to visit next
	stack []frame
	path  []string

	scratch model.Reading[uint64] // of figure
}

// frame is an open object or list. after is where the search for the next
// member starts: they mostly come in the order in which we ask for them.
type frame struct {
	node             int32
	after            int32
	scope            bool
	missing, nominal nameList // the scope's
	at               int      // length of path where the scope began
}

// nameList is a scope's "missing" or "nominal": the names in it are those of members
// below the scope, with dots between.
type nameList struct {
	node  int32   // its first entry; 0: there is none
	names nameSet // what is behind the last dot of each
}

// namesIn reads the names of the list of a scope, which is at a node; -1: nowhere.
func (d *decoder) namesIn(at int32, kind byte) (l nameList) {
	if at < 0 || d.tree.nodes[at].kind != kind || d.tree.nodes[at].size == 0 {
		return l
	}
	l.node = at + 1
	for i := l.node; i != 0; i = d.tree.nodes[i].next {
		name := d.nameAt(i)
		l.names |= nameBit(name[bytes.LastIndexByte(name, '.')+1:])
	}
	return l
}

// nameAt is the name that an entry of a list is about.
func (d *decoder) nameAt(i int32) []byte {
	n := &d.tree.nodes[i]
	if n.key >= 0 {
		return d.tree.text[n.key:n.keyEnd]
	}
	return d.tree.text[n.start:n.end]
}

func (d *decoder) reads() bool { return true }

func (d *decoder) fail(err error) {
	if d.err != nil {
		return
	}
	if where := gostrings.Join(d.path, "."); where != "" {
		err = fmt.Errorf("%s: %w", where, err)
	}
	d.err = err
}

func (d *decoder) top() *frame { return &d.stack[len(d.stack)-1] }

// find looks a member of the object up, from the frame's cursor around.
func (d *decoder) find(f *frame, key string) int32 {
	n := &d.tree.nodes[f.node]
	if n.kind != '{' || n.size == 0 || n.names&nameBit(key) == 0 {
		return -1
	}
	first := f.node + 1
	start := f.after
	if start == 0 {
		start = first
	}
	for i := start; ; {
		m := &d.tree.nodes[i]
		if string(d.tree.text[m.key:m.keyEnd]) == key {
			if f.after = m.next; f.after == 0 {
				f.after = first
			}
			return i
		}
		if i = m.next; i == 0 {
			i = first
		}
		if i == start {
			return -1
		}
	}
}

func (d *decoder) key(key string) bool {
	if d.err != nil {
		return false
	}
	i := d.find(d.top(), key)
	if i < 0 {
		return false
	}
	d.cur = i
	d.name(key)
	return true
}

// name notes the member being visited, for errors and for "missing".
func (d *decoder) name(key string) {
	d.path = append(d.path[:len(d.stack)-1], key)
}

func (d *decoder) null(key string, _ bool) bool {
	return !d.key(key) || d.tree.nodes[d.cur].kind == 'n'
}

func (d *decoder) reading(key string, r status, _ bool) bool {
	*r.s, *r.nominal, *r.why = model.Absent, false, ""
	if !d.key(key) {
		return false
	}
	f := d.scopeFrame()
	if d.tree.nodes[d.cur].kind != 'n' {
		*r.s = model.Known
		*r.nominal = d.entry(f.nominal, f.at) != 0
		return true
	}
	if i := d.entry(f.missing, f.at); i != 0 && d.tree.nodes[i].kind == '"' {
		reason := d.text(i)
		word, why, _ := gostrings.Cut(reason, ": ")
		// A word from a newer ttmon is at least absent, and why says it.
		s, ok := model.ParseStatus(word)
		if !ok || s == model.Known {
			s, why = model.Absent, reason
		}
		*r.s, *r.why = s, why
	}
	return false
}

func (d *decoder) maybe(key string, _ bool) bool { return d.key(key) }

// figure reads a number and its bound. One without a bound is of a ttmond that
// did not know how sure it was.
func (d *decoder) figure(key, boundKey string, b *model.Bytes) {
	if !d.reading(key, statusOf(&d.scratch), true) {
		*b = model.NoBytes(d.scratch.Status)
		return
	}
	d.value(&d.scratch.V)
	bound := model.Unsure
	if !d.null(boundKey, false) {
		n := &d.tree.nodes[d.cur]
		switch string(d.tree.text[n.start:n.end]) {
		case "exact":
			bound = model.Exact
		case "at_least":
			bound = model.AtLeast
		}
	}
	*b = model.BoundBytes(d.scratch.V, bound)
}

func (d *decoder) scopeFrame() *frame {
	for i := len(d.stack) - 1; ; i-- {
		if d.stack[i].scope {
			return &d.stack[i]
		}
	}
}

// entry is where a list of a scope names the current member; 0: nowhere.
func (d *decoder) entry(l nameList, from int) int32 {
	if l.names&nameBit(d.path[len(d.path)-1]) == 0 {
		return 0
	}
	for i := l.node; i != 0; i = d.tree.nodes[i].next {
		if d.named(d.nameAt(i), from) {
			return i
		}
	}
	return 0
}

// named reports whether name is the dotted name of the current member, as seen
// from a scope.
func (d *decoder) named(name []byte, from int) bool {
	for i, part := range d.path[from:] {
		if i > 0 {
			if len(name) == 0 || name[0] != '.' {
				return false
			}
			name = name[1:]
		}
		if len(name) < len(part) || string(name[:len(part)]) != part {
			return false
		}
		name = name[len(part):]
	}
	return len(name) == 0
}

func (d *decoder) begin() {
	if d.tree.nodes[d.cur].kind != '{' {
		d.fail(errors.New("not an object"))
	}
	d.stack = append(d.stack, frame{node: d.cur})
}

func (d *decoder) close() {
	d.stack = d.stack[:len(d.stack)-1]
	d.path = d.path[:len(d.stack)]
}

func (d *decoder) list(int) int {
	n := &d.tree.nodes[d.cur]
	size := n.size
	if n.kind != '[' {
		if n.kind != 'n' {
			d.fail(errors.New("not a list"))
		}
		size = 0
	}
	d.stack = append(d.stack, frame{node: d.cur})
	return int(size)
}

func (d *decoder) item() {
	f := d.top()
	if f.after == 0 {
		d.cur = f.node + 1
	} else {
		d.cur = d.tree.nodes[f.after].next
	}
	f.after = d.cur
	d.name("[]")
}

func (d *decoder) endList() { d.close() }

func (d *decoder) scope() {
	f := d.top()
	f.scope, f.at = true, len(d.stack)-1
	cursor := f.after
	f.missing, f.nominal = d.namesIn(d.find(f, "missing"), '{'), d.namesIn(d.find(f, "nominal"), '[')
	f.after = cursor
}

func (d *decoder) endScope() {}

// token is the text of the value being visited, if it is of the given kind. It is not
// copied: it holds until the next text is decoded.
func (d *decoder) token(kind byte, what string) (string, bool) {
	n := &d.tree.nodes[d.cur]
	if n.kind != kind {
		d.fail(errors.New("not a " + what))
		return "", false
	}
	if n.start == n.end {
		return "", true
	}
	return unsafe.String(&d.tree.text[n.start], n.end-n.start), true
}

func (d *decoder) text(i int32) string {
	n := &d.tree.nodes[i]
	return d.strings.of(d.tree.text[n.start:n.end])
}

func (d *decoder) value(v any) {
	switch v := v.(type) {
	case *float64:
		*v = number(d, func(s string) (float64, error) { return strconv.ParseFloat(s, 64) })
	case *int:
		*v = number(d, strconv.Atoi)
	case *uint64:
		*v = d.unsigned('0', 10, 64)
	case *uint32:
		*v = uint32(d.unsigned('0', 10, 32))
	case *bool:
		s, _ := d.token('t', "bool")
		*v = s == "true"
	case *string:
		if _, ok := d.token('"', "string"); ok {
			*v = d.text(d.cur)
		}
	case *model.Bound:
		s, _ := d.token('"', "string")
		*v = model.ParseBound(s)
	case *decimal:
		*v = decimal(d.unsigned('"', 10, 64))
	case *hex:
		*v = hex(d.unsigned('"', 16, 16))
	case *time.Time:
		if s, ok := d.token('"', "time"); ok {
			t, err := time.Parse(time.RFC3339, s)
			if err != nil {
				d.fail(err)
			}
			*v = t.UTC()
		}
	}
}

// number reads a number; 0 where there is none.
func number[T any](d *decoder, parse func(string) (T, error)) (v T) {
	if s, ok := d.token('0', "number"); ok {
		var err error
		if v, err = parse(s); err != nil {
			d.fail(err)
		}
	}
	return v
}

func (d *decoder) unsigned(kind byte, base, bits int) uint64 {
	s, ok := d.token(kind, "number")
	if !ok {
		return 0
	}
	if base == 16 {
		s = gostrings.TrimPrefix(s, "0x")
	}
	u, err := strconv.ParseUint(s, base, bits)
	if err != nil {
		d.fail(err)
	}
	return u
}
