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
	chunks []chunk
	size   int
	whole  []byte  // all of it; nil until it was asked for
	ends   []int32 // of all chunks, where the text was scanned
}

// chunk is a part of a document.
type chunk struct {
	text []byte
	ends []int32 // where its tokens end; nil: see tokens
}

// tokens are the ends of the chunk's tokens. Those that are not known yet are written
// into room, and hold until it is used again.
func (c *chunk) tokens(room *[]int32) []int32 {
	if c.ends != nil {
		return c.ends
	}
	s := scanner{text: c.text, ends: (*room)[:0]}
	s.run(func(int) {})
	s.endChunk(len(c.text))
	*room = s.ends
	return s.ends
}

// newDocument takes a text apart. It must not change any more. room is for the ends of
// tokens; it may be nil.
func newDocument(text []byte, room []int32) *document {
	d := &document{size: len(text), whole: text}
	s := scanner{text: text, ends: room[:0]}
	first := 0 // of the ends of the chunk
	cut := func(at int) {
		if at > s.begin {
			from := s.begin
			s.endChunk(at)
			d.chunks = append(d.chunks, chunk{text[from:at:at], s.ends[first:len(s.ends):len(s.ends)]})
			first = len(s.ends)
		}
	}
	s.run(cut)
	cut(len(text))
	d.ends = s.ends
	return d
}

// text is the whole document.
func (d *document) text() []byte {
	if d.whole == nil {
		d.whole = make([]byte, 0, d.size)
		for _, c := range d.chunks {
			d.whole = append(d.whole, c.text...)
		}
	}
	return d.whole
}

func (d *document) add(c chunk) {
	d.chunks = append(d.chunks, c)
	d.size += len(c.text)
}

// stringEnd is the position behind the string that begins at i.
func stringEnd(text []byte, i int) int {
	for i++; i < len(text); i++ {
		switch text[i] { // most strings are too short for bytes.IndexByte
		case '"':
			return i + 1
		case '\\':
			i++
		}
	}
	return len(text)
}

// scanner finds chunks and tokens in one pass. The ends of tokens count from where
// their chunk begins.
type scanner struct {
	text        []byte
	ends        []int32
	begin, last int // of the chunk; where the last token ended
}

func (s *scanner) endToken(at int) {
	s.ends, s.last = append(s.ends, int32(at-s.begin)), at
}

// endChunk ends a chunk, and its last token.
func (s *scanner) endChunk(at int) {
	if at > s.last {
		s.endToken(at)
	}
	s.begin, s.last = at, at
}

// run calls cut before each object that is an element of a list at the top, and
// behind the last of them.
func (s *scanner) run(cut func(at int)) {
	depth, text := 0, s.text
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			i = stringEnd(text, i) - 1
		case '{', '[':
			if depth == 2 && text[i] == '{' {
				cut(i)
			}
			depth++
			s.endToken(i + 1)
		case ',':
			s.endToken(i + 1)
		case '}', ']':
			if depth--; depth == 1 && text[i] == ']' {
				cut(i)
			}
			if i > s.last {
				s.endToken(i)
			}
		}
	}
}

// cutAt is the text of token i.
func cutAt(text []byte, ends []int32, i int) []byte {
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
func identity(text []byte) []byte {
	end, left := 0, 2
	for end < len(text) {
		switch text[end] {
		case '"':
			end = stringEnd(text, end)
			continue
		case ',', '[':
			if left--; left == 0 {
				return text[:end]
			}
		}
		end++
	}
	return text
}

// differ makes changes; it keeps its buffers.
type differ struct {
	a, b         []int32 // ends of the tokens of two chunks
	roomA, roomB []int32
	found        map[string]int
	body         []byte
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
	for i := range b.chunks {
		text := b.chunks[i].text
		if cursor < len(a.chunks) && bytes.Equal(a.chunks[cursor].text, text) {
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
		dst = d.patch(dst, &a.chunks[k], &b.chunks[i])
		cursor = k + 1
	}
	flush()
	return dst
}

// match is the old chunk that a new one came from, or −1.
func (d *differ) match(a *document, cursor int, text []byte) int {
	id := identity(text)
	if cursor < len(a.chunks) && bytes.Equal(identity(a.chunks[cursor].text), id) {
		return cursor
	}
	if len(d.found) == 0 {
		if d.found == nil {
			d.found = map[string]int{}
		}
		for i := range a.chunks {
			d.found[string(identity(a.chunks[i].text))] = i
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
func (d *differ) patch(dst []byte, old, now *chunk) []byte {
	d.a, d.b, d.body = old.tokens(&d.roomA), now.tokens(&d.roomB), d.body[:0]
	a, b := old.text, now.text
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
		start := int32(0)
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
type patcher struct{ room []int32 }

const errPatch = damage("a change that fits nothing")

// apply is the document that a change makes of an old one.
func (p *patcher) apply(a *document, change []byte) (*document, error) {
	r := cursor{b: change}
	out := &document{chunks: make([]chunk, 0, len(a.chunks)+8)}
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
			old := &a.chunks[k]
			if out.add(chunk{text: p.chunk(make([]byte, 0, len(old.text)+16), old, &r)}); r.bad {
				return nil, errPatch
			}
			at = k + 1
		case opWhole:
			out.add(chunk{text: slices.Clone(r.bytes(r.uint()))})
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

func (p *patcher) chunk(out []byte, from *chunk, r *cursor) []byte {
	ends, old := from.tokens(&p.room), from.text
	end := func(i int) int {
		if i == 0 {
			return 0
		}
		return int(ends[i-1])
	}
	at := 0
	for range r.uint() {
		skip, drop, keep := r.uint(), r.uint(), r.uint()
		if r.bad || skip > uint64(len(ends)-at) || drop > uint64(len(ends)-at)-skip {
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
