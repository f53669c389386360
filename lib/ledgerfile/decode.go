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

// read copies the header of a ledger, and checks it.
func (h *header) read(fd int) error {
	if err := h.load(fd); err != nil {
		return err
	}
	return h.check()
}

// load copies the header of a ledger. What the writer's does not have is zero.
func (h *header) load(fd int) error {
	*h = header{}
	raw := bytesOf(unsafe.Slice(h, 1))
	n, err := pread(fd, raw, 0)
	if err != nil {
		return fmt.Errorf("reading the ledger: %w", err)
	}
	if uintptr(n) < firstHeader {
		return ErrNotReady
	}
	if size := uintptr(h.Header); size >= firstHeader && size < sizeOfHeader {
		clear(raw[size:])
	}
	return nil
}

// check refuses a header of something else, and sections that cannot be.
func (h *header) check() error {
	switch {
	case h.Magic == [8]byte{}:
		return ErrNotReady
	case string(h.Magic[:]) != magic:
		return fmt.Errorf("%w: no ledger begins with %q", ErrDamaged, h.Magic)
	case h.Version != Version:
		return &VersionError{h.Version}
	case uintptr(h.Header) < firstHeader || h.Header > 1<<16:
		return fmt.Errorf("%w: header of %d bytes", ErrDamaged, h.Header)
	}
	end := uint64(h.Header)
	for i, size := range recordSize {
		if err := h.Section[i].check(size, maxRecords[i], end); err != nil {
			return err
		}
		end = h.Section[i].end()
	}
	for _, x := range []struct {
		*section
		size   uintptr
		most   uint32
		behind uint64
	}{
		{&h.Section[secEvents], unsafe.Sizeof(eventRecord{}), maxEvents, end},
		{&h.Failure[secFailures], unsafe.Sizeof(failureRecord{}), maxFailures, uint64(failuresHeader)},
		{&h.Failure[secFailedBlocks], unsafe.Sizeof(failedBlockRecord{}), maxFailedBlocks, uint64(failuresHeader)},
	} {
		if x.Used == 0 { // there is none
			*x.section = section{}
		} else if err := x.check(x.size, x.most, x.behind); err != nil {
			return err
		}
	}
	if ring := &h.Section[secEvents]; ring.Used != ring.Capacity {
		return fmt.Errorf("%w: the ring of events", ErrDamaged)
	}
	return nil
}

// recordSize is how large the records of each section are.
var recordSize = [numSections]uintptr{
	unsafe.Sizeof(chipRecord{}), unsafe.Sizeof(listRecord{}), unsafe.Sizeof(siteRecord{}), unsafe.Sizeof(frameRecord{}), unsafe.Sizeof(nodeRecord{}), 1,
	unsafe.Sizeof(blockRecord{}),
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
	for i, bytes := range recordMemory {
		n += uint64(h.Section[i].Used) * bytes
	}
	return n + uint64(h.Failure[secFailures].Used)*2048 + uint64(h.Failure[secFailedBlocks].Used)*128
}

// at is zero for the zero time, and for one that the arithmetic cannot hold.
func (c clock) at(ns int64) time.Time {
	if ns <= 0 || ns > 1<<62 || c.Real <= 0 || c.Real > 1<<61 || c.Monotonic < 0 || c.Monotonic > 1<<62 {
		return time.Time{}
	}
	return time.Unix(0, c.Real+(ns-c.Monotonic))
}

// decode makes a Ledger of a header and the records of its sections.
func decode(h *header, d *sections) *Ledger {
	l := &Ledger{
		PID: int(h.PID), StartTicks: h.StartTicks, PIDNamespace: h.PIDNamespace, Comm: text(h.Comm[:]), Started: h.Clock.at(h.Clock.Monotonic),
		Flags: h.Flags & (lastFlag - 1), Lost: h.Lost, Unknown: h.Unknown, Unmatched: h.Unmatched, Run: text(h.Run[:]), Library: text(h.Library[:]),
		Epoch: h.Epoch, Memory: h.memory(), frames: d.frames, nodes: d.nodes, texts: d.texts,
	}
	if l.TellsEvents = h.Section[secEvents].Used > 0; l.TellsEvents {
		l.Events = h.EventCount
	}
	for _, x := range d.chips {
		l.Chips = append(l.Chips, Chip{ID: x.ID, Logical: int(x.Logical), Open: x.Open != 0})
	}
	l.Lists = make([]List, len(d.lists))
	for i := range l.Lists {
		l.Lists[i] = l.list(&d.lists[i], h.Clock)
	}
	l.Sites = make([]Site, len(d.sites))
	tags := 0
	for i := range l.Sites {
		x := &l.Sites[i]
		*x = l.site(&d.sites[i], d.lists, h.Clock)
		if tags += len(x.Tag); tags > maxTags {
			x.Tag = ""
			l.Flags |= NoSites
		}
	}
	l.Blocks = l.blocks(d.blocks, h.Clock)
	l.addFailures(d.failures, d.failedBlocks, h.Clock)
	return l
}

func (l *Ledger) list(r *listRecord, c clock) List {
	if r.State != Open && r.State != Closed {
		return List{}
	}
	x := List{
		State: r.State, Pool: r.Pool, Own: r.Own != 0, Late: r.Late == 1, Inherited: r.Late == 2, Group: r.Group, Banks: r.Banks, Nth: r.Nth,
		ID: r.ID, Capacity: r.Capacity, Base: r.Base, Alignment: r.Alignment, Smallest: r.Smallest, CutLow: r.CutLow, CutHigh: r.CutHigh,
		Chips: r.Chips.numbers(len(l.Chips)), Made: c.at(r.Made), Live: r.Live, Peak: r.Peak, Total: r.Total, Left: r.Left, PeakTime: c.at(r.PeakTime),
		Lives: r.Lives, Failed: r.Failed, FailedBytes: r.FailedBytes, SubDevice: r.SubDevice,
	}
	if x.State == Closed {
		x.Closed = c.at(r.Closed)
	}
	return x
}

func (l *Ledger) site(r *siteRecord, lists []listRecord, c clock) Site {
	if r.List == 0 || int(r.List) >= len(l.Lists) || l.Lists[r.List].State == Unused {
		return Site{}
	}
	x := Site{
		List: int(r.List), Tag: l.Text(r.Tag), Node: r.Node, Tensor: l.Text(r.Tensor), Kept: r.Kept != 0,
		Live: r.Live, Peak: r.Peak, Total: r.Total, Left: r.Left, LeftLargest: r.LeftLargest,
	}
	if r.PeakCount != lists[r.List].PeakCount {
		x.Peak = x.Live // it has not changed since the peak
	}
	if x.Left.Blocks > 0 {
		x.LeftOldest = c.at(r.LeftOldest)
		for i, n := range r.LeftQuarters {
			x.LeftQuarters[i] = uint64(n)
		}
	}
	return x
}

// blocks takes the blocks that are whole and belong to a list that is in use.
func (l *Ledger) blocks(records []blockRecord, c clock) (out []Block) {
	for i := range records {
		r := &records[i]
		if r.Site == 0 || r.Sequence&1 != 0 || int(r.Site) >= len(l.Sites) || l.Sites[r.Site].List == 0 || l.Lists[l.Sites[r.Site].List].State != Open {
			continue
		}
		if out == nil {
			out = make([]Block, 0, len(records)-i)
		}
		out = append(out, Block{Address: r.Address, Bytes: r.Bytes, Asked: r.Asked, Born: c.at(r.Time), Site: int(r.Site)})
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

// Text is a text of the ledger by its number, as a tag of an event is.
func (l *Ledger) Text(at uint32) string { return textAt(l.texts, at) }

// maxDepth bounds the stack that a damaged ledger can make us follow.
const maxDepth = 256

// Stack returns the frames of a site's stack, innermost first.
func (l *Ledger) Stack(node uint32) []Frame {
	var out []Frame
	for node != 0 && int(node) < len(l.nodes) && len(out) < maxDepth {
		n := l.nodes[node]
		if n.Parent >= node || int(n.Frame) >= len(l.frames) {
			break // a caller is always noted before what it calls
		}
		f := l.frames[n.Frame]
		out = append(out, Frame{File: l.Text(f.File), Function: l.Text(f.Function), Line: int(f.Line), Offset: f.Offset})
		node = n.Parent
	}
	return out
}
