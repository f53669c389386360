package ledger

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"slices"
	"time"
)

// A ledger is sent to the next daemon as a stream of blocks, each a letter, a
// length and that many bytes. While it is being read slab by slab, it is in
// use: every change meanwhile is recorded in a note, and the notes follow. A
// buffer that was changed ends as its last note says, one that was not as its
// slab said; so in whatever order slabs and changes met, the copy ends the
// same.
const (
	stateMagic = "ttmon.ledger/2\n"

	blockProcess = 'P' // JSON processHead: its records may follow
	blockRecords = 'R' // records of recordLen bytes
	blockMark    = 'M' // everything has been sent once; what follows are late changes
	blockTail    = 'Q' // JSON processTail: what changes all the time
	blockLedger  = 'L' // JSON ledgerTail
	blockEnd     = 'E' // checksum of all before
)

// recordLen is the length of a record: 0 id, 8 size, 16 born, 20 device number,
// 24 kind, 25 pool, 26 what, 28 number of the process.
const recordLen = 32

// What a record says.
const (
	recordPut = iota + 1
	recordRemoved
	recordEnded // the process
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

type processHead struct {
	Number uint32    `json:"number"`
	Info   Info      `json:"info"`
	Epoch  time.Time `json:"epoch"`
}

type processTail struct {
	Number   uint32             `json:"number"`
	SentPID  int                `json:"sent_pid"`
	Last     time.Time          `json:"last"`
	Counters Counters           `json:"counters"`
	Devices  []int32            `json:"devices"`
	Peaks    [][NumPools]uint64 `json:"peaks"`
}

type ledgerTail struct {
	Events  uint64             `json:"events"`
	LeakSeq uint64             `json:"leak_seq"`
	Leaks   []Leftovers        `json:"leaks"`
	Devices []int32            `json:"devices"`
	Peaks   [][NumPools]uint64 `json:"peaks"`
}

// Copier copies a ledger that is in use to a successor.
type Copier struct {
	l      *Ledger
	onFull func()

	// Guarded by the ledger's lock.
	last  uint32     // the last process number
	fresh []*Process // opened since, and not announced
	notes [][]byte   // records of changes since, in chunks of up to chunkLen
	noted int        // bytes in notes
	full  bool       // onFull was called

	out checkedWriter
}

const (
	chunkLen = 64 << 10
	// maxNotes bounds the changes that wait for a slow successor.
	maxNotes = 32 << 20
	// fewNotes is when the successor has caught up.
	fewNotes = 256 << 10
)

// StartCopy starts to record changes for a successor, which reads the copy with
// ReadState. onFull, which may be nil, is called if there are too many of them
// to keep: the caller then stops the sources. There is one copy at a time.
func (l *Ledger) StartCopy(w io.Writer, onFull func()) *Copier {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.copy != nil {
		panic("BUG: two copies of a ledger at a time")
	}
	c := &Copier{l: l, onFull: onFull, out: checkedWriter{w: w, sum: crc32.New(castagnoli)}}
	for _, p := range l.procs {
		c.number(p)
	}
	c.fresh = slices.Collect(maps.Values(l.procs))
	l.copy = c
	return c
}

// Cancel ends a copy, whether or not it was finished.
func (c *Copier) Cancel() {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	if c.l.copy == c {
		c.l.copy = nil
	}
}

func (c *Copier) number(p *Process) {
	c.last++
	p.number = c.last
}

// The notes.

func (c *Copier) queueOpened(p *Process) {
	c.number(p)
	c.fresh = append(c.fresh, p)
}

func (c *Copier) queuePut(p *Process, e *entry) {
	c.queueNote(appendRecord(c.room(), p, e, recordPut))
}

func (c *Copier) queueRemoved(p *Process, e *entry) {
	c.queueNote(appendRecord(c.room(), p, e, recordRemoved))
}

func (c *Copier) queueEnded(p *Process) {
	c.queueNote(appendRecord(c.room(), p, &entry{}, recordEnded))
}

// room returns the chunk that has room for a record.
func (c *Copier) room() []byte {
	if n := len(c.notes); n > 0 && len(c.notes[n-1]) < chunkLen {
		return c.notes[n-1]
	}
	c.notes = append(c.notes, make([]byte, 0, chunkLen))
	return c.notes[len(c.notes)-1]
}

func (c *Copier) queueNote(chunk []byte) {
	c.notes[len(c.notes)-1] = chunk
	if c.noted += recordLen; c.noted > maxNotes && !c.full {
		c.full = true
		if c.onFull != nil {
			go c.onFull()
		}
	}
}

func appendRecord(b []byte, p *Process, e *entry, what byte) []byte {
	device := int32(-1)
	if int(e.dev) < len(p.ids) {
		device = p.ids[e.dev]
	}
	b = binary.LittleEndian.AppendUint64(b, e.id)
	b = binary.LittleEndian.AppendUint64(b, e.size)
	b = binary.LittleEndian.AppendUint32(b, e.born)
	b = binary.LittleEndian.AppendUint32(b, uint32(device))
	b = append(b, byte(e.kind), e.pool, what, 0)
	return binary.LittleEndian.AppendUint32(b, p.number)
}

// Send sends everything once, while the ledger is in use, and then changes
// until there are few left.
func (c *Copier) Send() error {
	if err := c.out.raw([]byte(stateMagic)); err != nil {
		return err
	}
	c.l.mu.Lock()
	procs := slices.Clone(c.fresh)
	c.l.mu.Unlock()
	if err := c.drain(); err != nil { // announces them
		return err
	}
	buf := make([]byte, 0, slabLen*recordLen)
	for _, p := range procs {
		for i := 0; ; i++ {
			records, more := c.slab(p, i, buf)
			if err := c.out.block(blockRecords, records); err != nil {
				return err
			}
			if !more {
				break
			}
			if err := c.drainIf(fewNotes); err != nil {
				return err
			}
		}
	}
	for range 8 { // more would not help: they come as fast as they go
		if err := c.drainIf(fewNotes); err != nil {
			return err
		}
	}
	return c.out.block(blockMark, nil)
}

// slab reads one slab of a process.
func (c *Copier) slab(p *Process, i int, buf []byte) (records []byte, more bool) {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	if p.ended || i >= len(p.table.slabs) {
		return nil, false
	}
	entries := p.table.slabs[i].entries
	for j := range entries {
		if entries[j].kind != noKind {
			buf = appendRecord(buf, p, &entries[j], recordPut)
		}
	}
	return buf, i+1 < len(p.table.slabs)
}

// drainIf sends the notes if there are many.
func (c *Copier) drainIf(many int) error {
	c.l.mu.Lock()
	n := c.noted
	c.l.mu.Unlock()
	if n < many {
		return nil
	}
	return c.drain()
}

// drain sends the notes taken so far. Processes come before their records.
func (c *Copier) drain() error {
	c.l.mu.Lock()
	heads, notes := make([]processHead, len(c.fresh)), c.notes
	for i, p := range c.fresh {
		heads[i] = processHead{p.number, p.info, p.epoch}
	}
	c.fresh, c.notes, c.noted = nil, nil, 0
	c.l.mu.Unlock()
	for _, h := range heads {
		if err := c.out.json(blockProcess, h); err != nil {
			return err
		}
	}
	for _, chunk := range notes {
		if err := c.out.block(blockRecords, chunk); err != nil {
			return err
		}
	}
	return nil
}

// Finish sends the rest. The sources have been stopped.
func (c *Copier) Finish() error {
	c.l.Wait()
	if err := c.drain(); err != nil {
		return err
	}
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	for _, p := range c.l.procs {
		t := processTail{Number: p.number, SentPID: p.info.SentPID, Last: p.last, Counters: p.counters, Devices: p.ids}
		for i := range p.devices {
			t.Peaks = append(t.Peaks, p.devices[i].peak)
		}
		if err := c.out.json(blockTail, t); err != nil {
			return err
		}
	}
	t := ledgerTail{Events: c.l.events, LeakSeq: c.l.leakSeq, Leaks: c.l.leaks}
	for id, u := range c.l.devices {
		t.Devices, t.Peaks = append(t.Devices, id), append(t.Peaks, u.peak)
	}
	if err := c.out.json(blockLedger, t); err != nil {
		return err
	}
	return c.out.block(blockEnd, binary.LittleEndian.AppendUint32(nil, c.out.sum.Sum32()))
}

// checkedWriter writes blocks and sums them up.
type checkedWriter struct {
	w   io.Writer
	sum interface {
		io.Writer
		Sum32() uint32
	}
}

func (w *checkedWriter) raw(b []byte) error {
	_, _ = w.sum.Write(b)
	if _, err := w.w.Write(b); err != nil {
		return fmt.Errorf("writing the ledger: %w", err)
	}
	return nil
}

func (w *checkedWriter) block(letter byte, b []byte) error {
	head := binary.LittleEndian.AppendUint32([]byte{letter}, uint32(len(b)))
	if err := w.raw(head); err != nil {
		return err
	}
	return w.raw(b)
}

func (w *checkedWriter) json(letter byte, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("writing the ledger: %w", err)
	}
	return w.block(letter, b)
}
