package ledgerfile

import (
	"bytes"
	"errors"
	"fmt"
	"time"
	"unsafe"
)

// Errors for a file that is not a readable ledger.
var (
	ErrNotReady = errors.New("the ledger is not written yet")
	ErrDamaged  = errors.New("damaged ledger")
	ErrTooLarge = errors.New("the ledger is too large")
)

// VersionError means that a ledger has an unknown layout.
type VersionError struct{ Version uint32 }

func (e *VersionError) Error() string {
	return fmt.Sprintf("ledger of layout version %d, known is %d: use a newer ttmon", e.Version, Version)
}

// section is where records of a kind lie.
type section struct {
	offset int64
	used   uint32
}

type header struct {
	raw      [failuresHeader]byte
	sections [numSections]section
	events   section // of the ring; used is how many it holds, 0 where there is none
	failures failures
}

func (h *header) epoch() uint64 { return le.Uint64(h.raw[offEpoch:]) }

// parse checks the header's bytes.
func (h *header) parse() error {
	if string(h.raw[:8]) != magic {
		if bytes.Equal(h.raw[:8], make([]byte, 8)) {
			return ErrNotReady
		}
		return fmt.Errorf("%w: no ledger begins with %q", ErrDamaged, h.raw[:8])
	}
	if v := le.Uint32(h.raw[offVersion:]); v != Version {
		return &VersionError{v}
	}
	size := le.Uint32(h.raw[offHeader:])
	if size < headerSize || size > 1<<16 {
		return fmt.Errorf("%w: header of %d bytes", ErrDamaged, size)
	}
	end := uint64(size)
	for i := range h.sections {
		b := h.raw[offSections+i*sectionSize:]
		offset, record, used := le.Uint64(b), le.Uint32(b[8:]), le.Uint32(b[16:])
		if record != recordSize[i] || used > maxRecords[i] || offset < end || offset > 1<<32 {
			return fmt.Errorf("%w: section %d", ErrDamaged, i)
		}
		end = offset + uint64(used)*uint64(record)
		h.sections[i] = section{int64(offset), used}
	}
	if err := h.parseEvents(size, end); err != nil {
		return err
	}
	return h.parseFailures(size)
}

// parseEvents checks where the ring of events is, if there is one.
func (h *header) parseEvents(size uint32, end uint64) error {
	if h.events = (section{}); size < fullHeader {
		return nil
	}
	b := h.raw[offEventSection:]
	offset, record, capacity, used := le.Uint64(b), le.Uint32(b[8:]), le.Uint32(b[12:]), le.Uint32(b[16:])
	if used == 0 {
		return nil
	}
	if record != eventSize || used != capacity || used > maxEvents || offset < end || offset > 1<<32 {
		return fmt.Errorf("%w: the ring of events", ErrDamaged)
	}
	h.events = section{int64(offset), used}
	return nil
}

// text is a field of the header that a NUL ends.
func text(b []byte) string {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return string(b)
}

// recordMemory is about what a record of each section takes in a Ledger, and in
// what is made of it.
var recordMemory = [numSections]uint64{48, 512, 192, 16, 8, 1, 128}

// memory is about what the ledger takes as a copy.
func (h *header) memory() (n uint64) {
	for i, s := range h.sections {
		n += uint64(s.used) * recordMemory[i]
	}
	return n + h.failures.memory()
}

// clock turns the ledger's monotonic times into wall time.
type clock struct{ real, monotonic int64 }

// at is zero for the zero time, and for one that the arithmetic cannot hold.
func (c clock) at(ns int64) time.Time {
	if ns <= 0 || ns > 1<<62 || c.real <= 0 || c.real > 1<<61 || c.monotonic < 0 || c.monotonic > 1<<62 {
		return time.Time{}
	}
	return time.Unix(0, c.real+(ns-c.monotonic))
}

// decode makes a Ledger of a header and the bytes of its sections.
func decode(h *header, data *[numSections][]byte, failures *[2][]byte) *Ledger {
	c := clock{int64(le.Uint64(h.raw[offReal:])), int64(le.Uint64(h.raw[offMonotonic:]))}
	l := &Ledger{
		PID:          int(int32(le.Uint32(h.raw[offPID:]))),
		StartTicks:   le.Uint64(h.raw[offStartTicks:]),
		PIDNamespace: le.Uint64(h.raw[offNamespace:]),
		Comm:         text(h.raw[offComm : offComm+commSize]),
		Started:      c.at(c.monotonic),
		Flags:        Flags(le.Uint32(h.raw[offFlags:])) & (lastFlag - 1),
		Lost:         le.Uint64(h.raw[offLost:]),
		Unknown:      le.Uint64(h.raw[offUnknown:]),
		Unmatched:    le.Uint64(h.raw[offUnmatched:]),
		Run:          text(h.raw[offRun : offRun+runSize]),
		Library:      text(h.raw[offLibrary : offLibrary+librarySize]),
		Epoch:        h.epoch(),
		Memory:       h.memory(),
		TellsEvents:  h.events.used > 0,
		frames:       data[secFrames], nodes: data[secNodes], strings: data[secStrings],
	}
	if l.TellsEvents {
		l.Events = le.Uint64(h.raw[offEventCount:])
	}
	for b := data[secChips]; len(b) >= 16; b = b[16:] {
		l.Chips = append(l.Chips, Chip{ID: le.Uint64(b), Logical: int(int32(le.Uint32(b[8:]))), Open: le.Uint32(b[12:]) != 0})
	}
	l.Lists = make([]List, len(data[secLists])/int(recordSize[secLists]))
	for i := range l.Lists {
		l.decodeList(&l.Lists[i], data[secLists][i*int(recordSize[secLists]):], c)
	}
	l.Sites = make([]Site, len(data[secSites])/int(recordSize[secSites]))
	tags := 0
	for i := range l.Sites {
		x := &l.Sites[i]
		l.decodeSite(x, data, i, c)
		if tags += len(x.Tag); tags > maxTags {
			x.Tag = ""
			l.Flags |= NoSites
		}
	}
	l.Blocks = l.decodeBlocks(data[secBlocks], c)
	l.decodeFailures(failures[0], failures[1], c)
	return l
}

func sum(b []byte) Sum { return Sum{le.Uint64(b), le.Uint64(b[8:])} }

func (l *Ledger) decodeList(x *List, b []byte, c clock) {
	x.State = State(b[listState])
	if x.State != Open && x.State != Closed {
		x.State = Unused
		return
	}
	*x = List{
		State: x.State, Pool: Pool(b[listPool]), Own: b[listOwn] != 0, Late: b[listLate] == 1, Inherited: b[listLate] == 2,
		Group: le.Uint32(b[listGroup:]), Banks: le.Uint32(b[listBanks:]), Nth: le.Uint32(b[listNth:]),
		ID: le.Uint64(b[listID:]), Capacity: le.Uint64(b[listCapacity:]), Base: le.Uint64(b[listBase:]),
		Alignment: le.Uint64(b[listAlignment:]), Smallest: le.Uint64(b[listSmallest:]),
		CutLow: le.Uint64(b[listCutLow:]), CutHigh: le.Uint64(b[listCutHigh:]),
		Made: c.at(int64(le.Uint64(b[listMade:]))), Closed: c.at(int64(le.Uint64(b[listClosed:]))),
		Live: sum(b[listLiveBytes:]), Peak: sum(b[listPeakBytes:]), Total: sum(b[listTotalBytes:]), Left: sum(b[listLeftBytes:]),
		PeakTime: c.at(int64(le.Uint64(b[listPeakTime:]))), Lives: le.Uint32(b[listLives:]),
		Failed: le.Uint64(b[listFailed:]), FailedBytes: le.Uint64(b[listFailedBytes:]), SubDevice: le.Uint32(b[listSubDevice:]),
	}
	if x.State == Open {
		x.Closed = time.Time{}
	}
	for i := range min(chipsPerLedger, len(l.Chips)) {
		if b[listChips+i/8]>>(i%8)&1 != 0 {
			x.Chips = append(x.Chips, i)
		}
	}
}

func (l *Ledger) decodeSite(x *Site, data *[numSections][]byte, n int, c clock) {
	b := data[secSites][n*int(recordSize[secSites]):]
	list := le.Uint32(b[siteList:])
	if list == 0 || int(list) >= len(l.Lists) || l.Lists[list].State == Unused {
		return
	}
	*x = Site{
		List: int(list), Tag: l.text(le.Uint32(b[siteTag:])), Node: le.Uint32(b[siteNode:]), Tensor: l.text(le.Uint32(b[siteTensor:])),
		Live: sum(b[siteLiveBytes:]), Peak: sum(b[sitePeakBytes:]), Total: sum(b[siteTotalBytes:]), Left: sum(b[siteLeftBytes:]),
		LeftLargest: le.Uint64(b[siteLeftLargest:]), Kept: le.Uint32(b[siteKept:]) != 0,
	}
	if le.Uint32(b[sitePeakCount:]) != le.Uint32(data[secLists][int(list)*int(recordSize[secLists])+listPeakCount:]) {
		x.Peak = x.Live // it has not changed since the peak
	}
	if x.Left.Blocks > 0 {
		x.LeftOldest = c.at(int64(le.Uint64(b[siteLeftOldest:])))
		for i := range x.LeftQuarters {
			x.LeftQuarters[i] = uint64(le.Uint16(b[siteQuarters+2*i:]))
		}
	}
}

// decodeBlocks takes the blocks that are whole and belong to a list that is in use.
func (l *Ledger) decodeBlocks(b []byte, c clock) []Block {
	var out []Block
	for size := int(recordSize[secBlocks]); len(b) >= size; b = b[size:] {
		site := le.Uint32(b[blockSite:])
		if site == 0 || le.Uint32(b[blockSequence:])&1 != 0 {
			continue
		}
		if int(site) >= len(l.Sites) || l.Sites[site].List == 0 || l.Lists[l.Sites[site].List].State != Open {
			continue
		}
		if out == nil {
			out = make([]Block, 0, len(b)/size)
		}
		out = append(out, Block{
			Address: le.Uint64(b[blockAddress:]), Bytes: le.Uint64(b[blockBytes:]), Asked: le.Uint64(b[blockAsked:]),
			Born: c.at(int64(le.Uint64(b[blockTime:]))), Site: int(site),
		})
	}
	return out
}

// resum makes the live sums from the blocks, where the writer's own cannot be
// trusted to fit them.
func (l *Ledger) resum() {
	for i := range l.Lists {
		l.Lists[i].Live = Sum{}
	}
	for i := range l.Sites {
		l.Sites[i].Live = Sum{}
	}
	for _, b := range l.Blocks {
		s := &l.Sites[b.Site]
		for _, sum := range []*Sum{&s.Live, &l.Lists[s.List].Live} {
			sum.Bytes += b.Bytes
			sum.Blocks++
		}
	}
	for i := range l.Lists {
		if x := &l.Lists[i]; x.Live.Bytes > x.Peak.Bytes {
			x.Peak = x.Live
		}
	}
}

// maxTags is how many bytes the tags of all sites have together. A tag may have
// 4 KiB, and they may overlap: no more than that is printed.
const maxTags = 16 << 20

// text is a text of the ledger by its number; what does not lead to one is empty.
// It is not a copy: the ledger's texts are never changed.
func (l *Ledger) text(at uint32) string {
	if at == 0 || uint64(at)+4 > uint64(len(l.strings)) {
		return ""
	}
	n := le.Uint32(l.strings[at:])
	if n > 1<<12 || uint64(at)+4+uint64(n) > uint64(len(l.strings)) {
		return ""
	}
	if n == 0 {
		return ""
	}
	return unsafe.String(&l.strings[at+4], int(n))
}

// maxDepth bounds the stack that a damaged ledger can make us follow.
const maxDepth = 256

// Stack returns the frames of a site's stack, innermost first.
func (l *Ledger) Stack(node uint32) []Frame {
	var out []Frame
	for node != 0 && len(out) < maxDepth {
		at := int(node) * int(recordSize[secNodes])
		if at+8 > len(l.nodes) {
			break
		}
		parent, frame := le.Uint32(l.nodes[at:]), int(le.Uint32(l.nodes[at+4:]))*int(recordSize[secFrames])
		if parent >= node || frame+16 > len(l.frames) {
			break // a caller is always noted before what it calls
		}
		f := l.frames[frame:]
		out = append(out, Frame{
			File: l.text(le.Uint32(f)), Function: l.text(le.Uint32(f[4:])),
			Line: int(le.Uint32(f[8:])), Offset: le.Uint32(f[12:]),
		})
		node = parent
	}
	return out
}
