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
	entries []entry
	used    int    // slots ever used; those above are free and in no list
	free    uint32 // index+1 of the first free slot below used
	live    int
	listed  bool // in table.roomy
}

// table holds the live buffers of one process: a linear-hashing index of
// 4-byte heads over slabs of entries. It grows and shrinks by one bucket at a
// time, so that no event ever waits for a rehash; entries never move (except
// in a first slab that is still growing), so that a reader may walk the slabs
// one at a time; and it costs 40 to 48 bytes a buffer.
type table struct {
	seed    uint64
	heads   [][]uint32 // slot+1 of each bucket's first entry
	buckets int
	mask    uint64 // to the next power of two above buckets
	slabs   []slab
	current int     // slab that new entries go to
	roomy   []int   // slabs that had a free slot when they were added
	holes   []int   // indices of slabs that were freed
	spare   []entry // an empty slab kept, so that a queue of buffers does not churn the heap
	live    int
}

func newTable() table {
	t := table{
		seed:  rand.Uint64(), // so that no client can choose colliding addresses
		heads: [][]uint32{make([]uint32, firstLen)},
		slabs: []slab{{entries: make([]entry, firstLen)}},
	}
	t.setBuckets(firstLen)
	return t
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

func (t *table) head(b int) *uint32 { return &t.heads[b/headLen][b%headLen] }

func (t *table) at(slot uint32) *entry {
	return &t.slabs[slot>>slabBits].entries[slot&(slabLen-1)]
}

// find returns the entry and the link that leads to it, or nil and the head
// of the bucket it would be in. Both are valid until the next change.
func (t *table) find(k kind, dev uint16, id uint64) (e *entry, link *uint32) {
	head := t.head(t.bucket(t.hash(k, dev, id)))
	for link = head; *link != 0; link = &e.next {
		e = t.at(*link - 1)
		if e.id == id && e.dev == dev && e.kind == k {
			return e, link
		}
	}
	return nil, head
}

// insert adds an entry that find does not know, at the head that find gave. The
// caller sets the rest: composing an entry and copying it takes twice as long.
func (t *table) insert(k kind, dev uint16, id uint64, head *uint32) *entry {
	slot := t.allocSlot()
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

// allocSlot returns a free slot.
func (t *table) allocSlot() uint32 {
	s := &t.slabs[t.current]
	if s.live == slabLen {
		t.current = t.nextSlab()
		s = &t.slabs[t.current]
	}
	s.live++
	if s.free != 0 {
		i := s.free - 1
		s.free = s.entries[i].next
		return uint32(t.current)<<slabBits | i
	}
	if s.used == len(s.entries) { // only a first slab is ever shorter than slabLen
		grown := make([]entry, min(2*len(s.entries), slabLen))
		copy(grown, s.entries)
		s.entries = grown
	}
	s.used++
	return uint32(t.current)<<slabBits | uint32(s.used-1)
}

// nextSlab returns a slab with room.
func (t *table) nextSlab() int {
	for n := len(t.roomy); n > 0; n = len(t.roomy) {
		i := t.roomy[n-1]
		t.roomy = t.roomy[:n-1]
		s := &t.slabs[i]
		s.listed = false
		if s.entries != nil && s.live < slabLen {
			return i
		}
	}
	if n := len(t.holes); n > 0 {
		i := t.holes[n-1]
		t.holes = t.holes[:n-1]
		t.slabs[i] = slab{entries: t.newEntries(), listed: t.slabs[i].listed}
		return i
	}
	t.slabs = append(t.slabs, slab{entries: t.newEntries()})
	return len(t.slabs) - 1
}

func (t *table) newEntries() []entry {
	if e := t.spare; e != nil {
		t.spare = nil
		return e
	}
	return make([]entry, slabLen)
}

// freeSlot returns a slot to its slab, and an empty slab to the runtime.
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
		if len(s.entries) == slabLen {
			t.spare = s.entries
		}
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
	t.addHead()
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

func (t *table) addHead() {
	n := t.buckets
	if n < headLen {
		if n == len(t.heads[0]) {
			grown := make([]uint32, 2*n)
			copy(grown, t.heads[0])
			t.heads[0] = grown
		}
		return
	}
	if n%headLen == 0 && n/headLen == len(t.heads) {
		t.heads = append(t.heads, make([]uint32, headLen))
	}
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
		t.heads[n/headLen] = nil
		t.heads = t.heads[:n/headLen]
	}
}
