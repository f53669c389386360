package recording

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// A snapshot's JSON is taken apart into chunks: one for each element of the
// lists at its top (a device, a process), and what stands between them. A chunk
// is a sequence of tokens, each a member with its value or a bracket. A change
// tells, chunk by chunk, what the new document is made of:
//
//	0 n             the next n chunks are the old ones
//	1 k count …     an old chunk with count changes, each: tokens passed over,
//	                tokens replaced, bytes kept of the first of those, length, bytes
//	2 length bytes  a chunk that is written out
//
// The old chunk is the one behind the last one used; k (a signed varint) says
// how many are passed over before. So a document is exactly restored, whatever
// is in it, and one in which only values moved costs a few bytes for each.
const (
	opSame = iota
	opPatch
	opWhole
)

// document is a snapshot's JSON, chunk by chunk. Chunks are never changed, so
// that documents share those that are equal.
type document struct {
	chunks [][]byte
	size   int
	whole  []byte // all of it; nil until it was asked for
}

func newDocument(text []byte) *document {
	return &document{chunks: chunks(text), size: len(text), whole: text}
}

// text is the whole document.
func (d *document) text() []byte {
	if d.whole == nil {
		d.whole = make([]byte, 0, d.size)
		for _, c := range d.chunks {
			d.whole = append(d.whole, c...)
		}
	}
	return d.whole
}

func (d *document) add(chunk []byte) {
	d.chunks = append(d.chunks, chunk)
	d.size += len(chunk)
}

// stringEnd is the position behind the string that begins at i.
func stringEnd(text []byte, i int) int {
	for i++; i < len(text); i++ {
		n := bytes.IndexByte(text[i:], '"')
		if n < 0 {
			return len(text)
		}
		i += n
		slashes := 0
		for text[i-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return i + 1
		}
	}
	return len(text)
}

// chunks cuts a text before each object that is an element of a list at the top,
// and behind the last of them.
func chunks(text []byte) (list [][]byte) {
	depth, last := 0, 0
	cut := func(at int) {
		if at > last {
			list, last = append(list, text[last:at:at]), at
		}
	}
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			i = stringEnd(text, i) - 1
		case '{', '[':
			if depth == 2 && text[i] == '{' {
				cut(i)
			}
			depth++
		case '}', ']':
			if depth--; depth == 1 && text[i] == ']' {
				cut(i)
			}
		}
	}
	cut(len(text))
	return list
}

// tokens appends the ends of the tokens of a chunk.
func tokens(ends []int, text []byte) []int {
	last := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			i = stringEnd(text, i) - 1
		case '{', '[', ',':
			ends, last = append(ends, i+1), i+1
		case '}', ']':
			if i > last {
				ends, last = append(ends, i), i
			}
		}
	}
	if len(text) > last {
		ends = append(ends, len(text))
	}
	return ends
}

// cutAt is the text of token i.
func cutAt(text []byte, ends []int, i int) []byte {
	if i == 0 {
		return text[:ends[0]]
	}
	return text[ends[i-1]:ends[i]]
}

// name is what a token is about: its key with the colon, or all of it.
func name(token []byte) []byte {
	if len(token) > 0 && token[0] == '"' {
		if end := stringEnd(token, 0); end < len(token) && token[end] == ':' {
			return token[:end+1]
		}
	}
	return token
}

// identity is the beginning of a chunk by which it is known again: the
// elements of lists begin with what tells them apart.
func identity(chunk []byte) []byte {
	end, left := 0, 2
	for end < len(chunk) {
		switch chunk[end] {
		case '"':
			end = stringEnd(chunk, end)
			continue
		case ',', '[':
			if left--; left == 0 {
				return chunk[:end]
			}
		}
		end++
	}
	return chunk
}

// differ makes changes; it keeps its buffers.
type differ struct {
	a, b  []int
	found map[string]int
	body  []byte
}

// diff appends to dst what makes b of a.
func (d *differ) diff(dst []byte, a, b *document) []byte {
	clear(d.found)
	cursor, same := 0, 0
	flush := func() {
		if same > 0 {
			dst = binary.AppendUvarint(append(dst, opSame), uint64(same))
			same = 0
		}
	}
	for _, text := range b.chunks {
		if cursor < len(a.chunks) && bytes.Equal(a.chunks[cursor], text) {
			same++
			cursor++
			continue
		}
		flush()
		k := d.match(a, cursor, text)
		if k < 0 {
			dst = binary.AppendUvarint(append(dst, opWhole), uint64(len(text)))
			dst = append(dst, text...)
			continue
		}
		dst = binary.AppendVarint(append(dst, opPatch), int64(k-cursor))
		dst = d.patch(dst, a.chunks[k], text)
		cursor = k + 1
	}
	flush()
	return dst
}

// match is the old chunk that a new one came from, or −1.
func (d *differ) match(a *document, cursor int, text []byte) int {
	id := identity(text)
	if cursor < len(a.chunks) && bytes.Equal(identity(a.chunks[cursor]), id) {
		return cursor
	}
	if len(d.found) == 0 {
		if d.found == nil {
			d.found = map[string]int{}
		}
		for i, chunk := range a.chunks {
			d.found[string(identity(chunk))] = i
		}
	}
	if k, ok := d.found[string(id)]; ok {
		return k
	}
	return -1
}

// lookAhead is how many tokens are searched for where two chunks part.
const lookAhead = 48

// patch appends the changes from one chunk to another.
func (d *differ) patch(dst, a, b []byte) []byte {
	d.a, d.b, d.body = tokens(d.a[:0], a), tokens(d.b[:0], b), d.body[:0]
	count, at := uint64(0), 0 // at: tokens of a that are told already
	change := func(from, to int, text []byte) {
		count++
		keep := 0
		if to > from {
			old := cutAt(a, d.a, from)
			for keep < len(old) && keep < len(text) && old[keep] == text[keep] {
				keep++
			}
		}
		for _, n := range []int{from - at, to - from, keep, len(text) - keep} {
			d.body = binary.AppendUvarint(d.body, uint64(n))
		}
		d.body = append(d.body, text[keep:]...)
		at = to
	}
	i, j := 0, 0
	for i < len(d.a) || j < len(d.b) {
		if i < len(d.a) && j < len(d.b) {
			old, now := cutAt(a, d.a, i), cutAt(b, d.b, j)
			if bytes.Equal(old, now) {
				i, j = i+1, j+1
				continue
			}
			if bytes.Equal(name(old), name(now)) {
				change(i, i+1, now)
				i, j = i+1, j+1
				continue
			}
		}
		di, dj := d.resync(a, b, i, j)
		start := 0
		if j > 0 {
			start = d.b[j-1]
		}
		end := start
		if j+dj > 0 {
			end = d.b[j+dj-1]
		}
		change(i, i+di, b[start:end])
		i, j = i+di, j+dj
	}
	dst = binary.AppendUvarint(dst, count)
	return append(dst, d.body...)
}

// resync tells how many tokens to give up on each side until they fit again.
func (d *differ) resync(a, b []byte, i, j int) (di, dj int) {
	left, right := len(d.a)-i, len(d.b)-j
	if left == 0 || right == 0 {
		return left, right
	}
	fit := func(x, y int) bool {
		return x < left && y < right && bytes.Equal(name(cutAt(a, d.a, i+x)), name(cutAt(b, d.b, j+y)))
	}
	for n := 1; n <= lookAhead; n++ {
		for m := 0; m <= n; m++ {
			if fit(m, n) {
				return m, n
			}
			if fit(n, m) {
				return n, m
			}
		}
	}
	return left, right
}

// maxDocument bounds what a damaged file can make of a change.
const maxDocument = 64 << 20

// patcher restores documents; it keeps its buffers.
type patcher struct{ ends []int }

const errPatch = damage("a change that fits nothing")

// apply is the document that a change makes of an old one.
func (p *patcher) apply(a *document, change []byte) (*document, error) {
	r := cursor{b: change}
	out := &document{chunks: make([][]byte, 0, len(a.chunks)+8)}
	at := 0 // the old chunk that comes next
	for len(r.b) > 0 && !r.bad {
		switch r.byte() {
		case opSame:
			n := r.uint()
			if n > uint64(len(a.chunks)-at) {
				return nil, errPatch
			}
			for range n {
				out.add(a.chunks[at])
				at++
			}
		case opPatch:
			k := at + int(r.int())
			if r.bad || k < 0 || k >= len(a.chunks) {
				return nil, errPatch
			}
			old := a.chunks[k]
			if out.add(p.chunk(make([]byte, 0, len(old)+16), old, &r)); r.bad {
				return nil, errPatch
			}
			at = k + 1
		case opWhole:
			out.add(slices.Clone(r.bytes(r.uint())))
		default:
			return nil, errPatch
		}
		if out.size > maxDocument {
			return nil, errPatch
		}
	}
	if r.bad {
		return nil, errPatch
	}
	return out, nil
}

func (p *patcher) chunk(out, old []byte, r *cursor) []byte {
	p.ends = tokens(p.ends[:0], old)
	end := func(i int) int {
		if i == 0 {
			return 0
		}
		return p.ends[i-1]
	}
	at := 0
	for range r.uint() {
		skip, drop, keep := r.uint(), r.uint(), r.uint()
		if r.bad || skip > uint64(len(p.ends)-at) || drop > uint64(len(p.ends)-at)-skip {
			r.bad = true
			return out
		}
		from, to := at+int(skip), at+int(skip+drop)
		if keep > uint64(end(to)-end(from)) {
			r.bad = true
			return out
		}
		out = append(out, old[end(at):end(from)+int(keep)]...)
		out = append(out, r.bytes(r.uint())...)
		if at = to; len(out) > maxDocument {
			r.bad = true
		}
		if r.bad {
			return out
		}
	}
	return append(out, old[end(at):]...)
}

// cursor reads numbers and bytes; what is not there makes it bad.
type cursor struct {
	b   []byte
	bad bool
}

func (r *cursor) byte() byte {
	if len(r.b) == 0 {
		r.bad = true
		return 0
	}
	x := r.b[0]
	r.b = r.b[1:]
	return x
}

func (r *cursor) uint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *cursor) int() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *cursor) bytes(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.bad, r.b = true, nil
		return nil
	}
	x := r.b[:n]
	r.b = r.b[n:]
	return x
}
