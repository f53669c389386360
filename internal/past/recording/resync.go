package recording

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
)

// gapEvent tells that nothing is known from a time on.
func gapEvent(ns int64) model.Event {
	return model.Event{Time: time.Unix(0, ns), Kind: model.EventDamaged, Level: model.Warning, Short: "damaged", Text: words.RecordingGap}
}

// resync finds the next whole block where the chain of headers breaks. Either the
// header at r.next is wrong, or that of the block before, which led there. It
// returns false where nothing follows: what a killed writer leaves, or one that is
// at it.
func (r *Reader) resync(size int64) bool {
	if size == r.searched {
		return false
	}
	from := r.next
	if n := len(r.blocks); n > 0 && !r.sound(r.blocks[n-1]) {
		from = r.blocks[n-1].offset + 1
	}
	b, ok := r.search(from, size)
	if !ok {
		r.searched = size
		return false
	}
	if from != r.next {
		r.blocks = r.blocks[:len(r.blocks)-1]
	}
	b.gap = true
	r.blocks, r.next = append(r.blocks, b), b.end()
	r.Damaged++
	return true
}

// sound reports whether the checksum of a block is right.
func (r *Reader) sound(b block) bool {
	_, err := r.check(b)
	return err == nil
}

// falseStarts bounds the search in a file that is made to be searched for ever.
const falseStarts = 1000

// search finds the first block from a position on whose checksum is right.
func (r *Reader) search(from, size int64) (block, bool) {
	magic := binary.LittleEndian.AppendUint32(nil, blockMagic)
	last := int64(0)
	if n := len(r.blocks); n > 0 && r.blocks[n-1].end() <= from {
		last = r.blocks[n-1].last
	} else if n > 1 {
		last = r.blocks[n-2].last
	}
	tries := 0
	window := make([]byte, min(1<<20, max(size-from, 0)))
	for at := from; at+blockHeader <= size; {
		n, err := r.f.ReadAt(window[:min(int64(len(window)), size-at)], at)
		if n < blockHeader || err != nil && !errors.Is(err, io.EOF) {
			return block{}, false
		}
		i := bytes.Index(window[:n], magic)
		if i < 0 {
			at += int64(n - len(magic) + 1)
			continue
		}
		if n-i < blockHeader && i > 0 { // the window ends within it
			at += int64(i)
			continue
		}
		if b, ok := parseBlock(window[i:n], at+int64(i)); ok && b.end() <= size && b.first >= last {
			if r.sound(b) {
				return b, true
			}
			if tries++; tries > falseStarts {
				return block{}, false
			}
		}
		at += int64(i) + 1
	}
	return block{}, false
}

// lose notes that a block is missing: the programs that told their blocks do so
// no longer, as far as anybody knows, up to the next key block.
func (c *Cursor) lose() {
	if c.lost {
		return
	}
	c.lost = true
	e := gapEvent(c.ns)
	c.told = append(c.told, Record{Time: e.Time, Kind: KindEvent, Event: &e})
	for _, id := range slices.Sorted(maps.Keys(c.processes)) {
		if p := c.processes[id]; !p.ended {
			c.told = append(c.told, Record{Time: e.Time, Kind: KindEnded, ID: id, Moves: c.End(id)})
		}
	}
}

// again are the records of what a key block behind a gap restates: for who
// follows records it begins there.
func (c *Cursor) again(rec Record, kind Kind, body []byte) {
	switch kind {
	case KindProcess, KindList, KindSite:
		c.told = append(c.told, rec)
	case kindHeld:
		held := cursor{b: body}
		id := uint32(held.uint())
		if l := c.lists[id]; l != nil {
			for b := range l.live.All() {
				c.told = append(c.told, Record{Time: rec.Time, Kind: KindAlloc, ID: id, Block: b, Again: b.Born < rec.Time.UnixNano(), Moves: []Move{{&l.def, b, false}}})
			}
		}
	}
}
