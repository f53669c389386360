package ledger

import (
	"math/bits"
	"math/rand/v2"
)

// kind distinguishes things that may have the same number.
type kind uint8

const (
	noKind     kind = iota // a free slot
	buffer                 // DRAM, TRACE, host memory, and L1 where no address says so
	l1Buffer               // L1 at an address where L1 can be
	circular               // circular buffer
	kernelCode             // kernel
)

// entry is one live buffer: 32 bytes.
type entry struct {
	id   uint64
	size uint64
	next uint32 // slot+1 of the next entry of the bucket, or of the next free slot of the slab
	born uint32 // ticks after the process's epoch
	dev  uint16 // index into Process.devices
	kind kind
	pool uint8
}

const (
	slabBits = 10
	slabLen  = 1 << slabBits // entries per slab: 32 KiB
	headLen  = 1 << 10       // bucket heads per chunk: 4 KiB
	firstLen = 8             // the first slab and chunk start small: most processes are

	// bucketsPerEntry keeps the chains short: a miss costs half an entry.
	bucketsPerEntry = 2
)

// slab is a block of entries with a list of its free slots.
type slab struct {
	entries []entry // in the arena
	at      place   // there
	used    int     // slots ever used; those above are free and in no list
	free    uint32  // index+1 of the first free slot below used
	live    int
	listed  bool // in table.roomy
}

// table holds the live buffers of one process: a linear-hashing index of
// 4-byte heads over slabs of entries. It grows and shrinks by one bucket at a
// time, so that no event ever waits for a rehash; entries never move (except
// in a first slab that is still growing), so that a reader may walk the slabs
// one at a time; and it costs 40 to 48 bytes a buffer. It has no memory before it
// has a buffer.
type table struct {
	arena   *arena
	seed    uint64
	heads   []headChunk
	buckets int
	mask    uint64 // to the next power of two above buckets
	slabs   []slab
	current int   // slab that new entries go to
	roomy   []int // slabs that had a free slot when they were added
	holes   []int // indices of slabs that were freed
	slots   int   // of all slabs
	live    int
}

// headChunk is slot+1 of the first entry of some buckets, in the arena.
type headChunk struct {
	first []uint32
	at    place
}

func newTable(a *arena) table {
	return table{arena: a, seed: rand.Uint64()} // so that no client can choose colliding addresses
}

// begin takes the first memory; false if there is none.
func (t *table) begin() bool {
	if !t.addSlab(firstLen) {
		return false
	}
	chunk, ok := t.newHeads(firstLen)
	if !ok {
		t.drop()
		return false
	}
	t.heads = []headChunk{chunk}
	t.setBuckets(firstLen)
	return true
}

// drop gives all memory back.
func (t *table) drop() {
	for i := range t.slabs {
		if s := &t.slabs[i]; s.entries != nil {
			t.arena.give(s.at, len(s.entries)*entryBytes/unit)
		}
	}
	for _, c := range t.heads {
		t.arena.give(c.at, len(c.first)*headBytes/unit)
	}
	*t = newTable(t.arena)
}

func (t *table) hash(k kind, dev uint16, id uint64) uint64 {
	hi, lo := bits.Mul64(id^t.seed, 0x9e3779b97f4a7c15^uint64(dev)<<8^uint64(k))
	return (hi ^ lo) * 0xd6e8feb86659fd93 >> 20
}

// bucket is the place of a hash.
func (t *table) bucket(hash uint64) int {
	b := int(hash & t.mask)
	if b >= t.buckets {
		b &= int(t.mask >> 1)
	}
	return b
}

func (t *table) setBuckets(n int) {
	t.buckets = n
	t.mask = 1<<bits.Len(uint(n-1)) - 1
}

func (t *table) head(b int) *uint32 { return &t.heads[b/headLen].first[b%headLen] }

func (t *table) at(slot uint32) *entry {
	return &t.slabs[slot>>slabBits].entries[slot&(slabLen-1)]
}

// find returns the entry and the link that leads to it, or nil and the head
// of the bucket it would be in. Both are valid until the next change. A table
// without memory has no buckets.
func (t *table) find(k kind, dev uint16, id uint64) (e *entry, link *uint32) {
	if t.buckets == 0 {
		return nil, nil
	}
	head := t.head(t.bucket(t.hash(k, dev, id)))
	for link = head; *link != 0; link = &e.next {
		e = t.at(*link - 1)
		if e.id == id && e.dev == dev && e.kind == k {
			return e, link
		}
	}
	return nil, head
}

// insert adds an entry that find does not know, at the head that find gave; nil
// if there is no memory. The caller sets the rest: composing an entry and copying
// it takes twice as long.
func (t *table) insert(k kind, dev uint16, id uint64, head *uint32) *entry {
	if t.buckets == 0 {
		if !t.begin() {
			return nil
		}
		head = t.head(t.bucket(t.hash(k, dev, id)))
	}
	slot, ok := t.allocSlot()
	if !ok {
		return nil
	}
	e := t.at(slot)
	e.id, e.dev, e.kind = id, dev, k
	e.next, *head = *head, slot+1
	t.live++
	if t.live*bucketsPerEntry > t.buckets {
		t.split()
		t.split()
	}
	return e
}

// remove removes the entry at a link that find returned.
func (t *table) remove(link *uint32) {
	slot := *link - 1
	*link = t.at(slot).next
	t.freeSlot(slot)
	t.live--
	// Twice as many at a time as are added: as many would never catch up with
	// frees in a row.
	for range 2 * bucketsPerEntry {
		if t.live*bucketsPerEntry < t.buckets/2 && t.buckets > firstLen {
			t.merge()
		}
	}
}

// allocSlot returns a free slot; false if there is no memory.
func (t *table) allocSlot() (slot uint32, ok bool) {
	s := &t.slabs[t.current]
	if s.live == slabLen {
		if !t.nextSlab() {
			return 0, false
		}
		s = &t.slabs[t.current]
	}
	if s.free == 0 && s.used == len(s.entries) && !t.growFirst(s) { // only a first slab is ever shorter than slabLen
		return 0, false
	}
	s.live++
	if s.free != 0 {
		i := s.free - 1
		s.free = s.entries[i].next
		return uint32(t.current)<<slabBits | i, true
	}
	s.used++
	return uint32(t.current)<<slabBits | uint32(s.used-1), true
}

// growFirst doubles a first slab.
func (t *table) growFirst(s *slab) bool {
	n := len(s.entries)
	at, ok := t.arena.take(2 * n * entryBytes / unit)
	if !ok {
		return false
	}
	grown := t.arena.entries(at, 2*n)
	copy(grown, s.entries)
	t.arena.give(s.at, n*entryBytes/unit)
	s.entries, s.at = grown, at
	t.slots += n
	return true
}

// nextSlab makes a slab with room the current one; false if there is no memory.
func (t *table) nextSlab() bool {
	for n := len(t.roomy); n > 0; n = len(t.roomy) {
		i := t.roomy[n-1]
		t.roomy = t.roomy[:n-1]
		s := &t.slabs[i]
		s.listed = false
		if s.entries != nil && s.live < slabLen {
			t.current = i
			return true
		}
	}
	return t.addSlab(slabLen)
}

// addSlab adds a slab, and makes it the current one.
func (t *table) addSlab(n int) bool {
	at, ok := t.arena.take(n * entryBytes / unit)
	if !ok {
		return false
	}
	added := slab{entries: t.arena.entries(at, n), at: at}
	t.slots += n
	if h := len(t.holes); h > 0 {
		t.current = t.holes[h-1]
		t.holes = t.holes[:h-1]
		added.listed = t.slabs[t.current].listed
		t.slabs[t.current] = added
		return true
	}
	t.current = len(t.slabs)
	t.slabs = append(t.slabs, added)
	return true
}

// freeSlot returns a slot to its slab, and an empty slab to the arena.
func (t *table) freeSlot(slot uint32) {
	n := int(slot >> slabBits)
	s := &t.slabs[n]
	i := slot & (slabLen - 1)
	s.entries[i].kind, s.entries[i].next = noKind, s.free
	s.free = i + 1
	s.live--
	switch {
	case n == t.current:
	case s.live == 0:
		t.arena.give(s.at, len(s.entries)*entryBytes/unit)
		t.slots -= len(s.entries)
		*s = slab{listed: s.listed}
		t.holes = append(t.holes, n)
	case !s.listed:
		s.listed = true
		t.roomy = append(t.roomy, n)
	}
}

// split adds one bucket and moves to it what belongs there.
func (t *table) split() {
	n := t.buckets
	if !t.addHead() {
		return // the chains get longer
	}
	t.setBuckets(n + 1)
	link := t.head(n &^ (1 << (bits.Len(uint(n)) - 1)))
	to := t.head(n)
	for *link != 0 {
		e := t.at(*link - 1)
		if t.bucket(t.hash(e.kind, e.dev, e.id)) != n {
			link = &e.next
			continue
		}
		slot := *link
		*link = e.next
		e.next, *to = *to, slot
	}
}

// addHead makes room for one more bucket; false if there is no memory.
func (t *table) addHead() bool {
	n := t.buckets
	if n < headLen {
		if n < len(t.heads[0].first) {
			return true
		}
		grown, ok := t.newHeads(2 * n)
		if !ok {
			return false
		}
		copy(grown.first, t.heads[0].first)
		t.arena.give(t.heads[0].at, n*headBytes/unit)
		t.heads[0] = grown
		return true
	}
	if n/headLen < len(t.heads) {
		return true
	}
	chunk, ok := t.newHeads(headLen)
	if ok {
		t.heads = append(t.heads, chunk)
	}
	return ok
}

func (t *table) newHeads(n int) (headChunk, bool) {
	at, ok := t.arena.take(n * headBytes / unit)
	if !ok {
		return headChunk{}, false
	}
	return headChunk{t.arena.heads(at, n), at}, true
}

// merge removes the last bucket.
func (t *table) merge() {
	n := t.buckets - 1
	from := t.head(n)
	link := t.head(n &^ (1 << (bits.Len(uint(n)) - 1)))
	for *link != 0 {
		link = &t.at(*link - 1).next
	}
	*link, *from = *from, 0
	t.setBuckets(n)
	if n%headLen == 0 && n > 0 {
		t.arena.give(t.heads[n/headLen].at, headLen*headBytes/unit)
		t.heads = t.heads[:n/headLen]
	}
}
