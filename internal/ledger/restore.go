package ledger

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// ReadBuffer is the size of the buffer that ReadState reads with.
const ReadBuffer = 256 << 10

// maxBlock bounds a block that is read.
const maxBlock = 64 << 20

// ReadState fills an empty ledger with what a Copier sends. It reads no further
// if r is a bufio.Reader with a buffer of ReadBuffer. caughtUp, which may be
// nil, is called when everything has come once and only late changes are
// missing. On an error the ledger must be discarded. Limits do not apply: what
// the predecessor kept is kept.
func (l *Ledger) ReadState(r io.Reader, caughtUp func() error) error {
	if len(l.procs) > 0 {
		panic("BUG: state read into a ledger that is in use")
	}
	re := restorer{l: l, in: bufio.NewReaderSize(r, ReadBuffer)}
	if err := re.read(caughtUp); err != nil {
		return fmt.Errorf("reading the ledger: %w", err)
	}
	return nil
}

// restorer reads a copy of a ledger.
type restorer struct {
	l     *Ledger
	in    *bufio.Reader
	sum   uint32
	procs []*Process // by number, from 1 on
	buf   []byte
}

func (r *restorer) read(caughtUp func() error) error {
	magic := make([]byte, len(stateMagic))
	if _, err := io.ReadFull(r.in, magic); err != nil {
		return err
	}
	if string(magic) != stateMagic {
		return fmt.Errorf("it starts with %q, not %q", magic, stateMagic)
	}
	r.sum = crc32.Update(0, castagnoli, magic)
	for {
		before := r.sum
		letter, b, err := r.block()
		if err != nil {
			return err
		}
		switch letter {
		case blockProcess:
			err = r.process(b)
		case blockRecords:
			err = r.records(b)
		case blockMark:
			if caughtUp != nil {
				err = caughtUp()
			}
		case blockTail:
			err = r.tail(b)
		case blockLedger:
			err = r.ledger(b)
		case blockEnd:
			return r.end(b, before)
		default:
			err = fmt.Errorf("a block of kind %q", letter)
		}
		if err != nil {
			return err
		}
	}
}

func (r *restorer) block() (letter byte, b []byte, err error) {
	var head [5]byte
	if _, err := io.ReadFull(r.in, head[:]); err != nil {
		return 0, nil, err
	}
	n := binary.LittleEndian.Uint32(head[1:])
	if n > maxBlock {
		return 0, nil, fmt.Errorf("a block of %d bytes", n)
	}
	// Piece by piece: a false length must not allocate memory.
	r.buf = r.buf[:0]
	for rest := int(n); rest > 0; {
		k := min(rest, 1<<20)
		at := len(r.buf)
		r.buf = append(r.buf, make([]byte, k)...)
		if _, err := io.ReadFull(r.in, r.buf[at:]); err != nil {
			return 0, nil, err
		}
		rest -= k
	}
	r.sum = crc32.Update(r.sum, castagnoli, head[:])
	r.sum = crc32.Update(r.sum, castagnoli, r.buf)
	return head[0], r.buf, nil
}

func (r *restorer) process(b []byte) error {
	var head processHead
	if err := json.Unmarshal(b, &head); err != nil {
		return err
	}
	if head.Number == 0 || head.Number > maxProcesses {
		return fmt.Errorf("process number %d", head.Number)
	}
	for len(r.procs) < int(head.Number) {
		r.procs = append(r.procs, nil)
	}
	if r.procs[head.Number-1] != nil {
		return fmt.Errorf("process number %d comes twice", head.Number)
	}
	p := &Process{info: head.Info, epoch: head.Epoch, last: head.Epoch, table: newTable()}
	r.l.addToOwner(p)
	r.procs[head.Number-1] = p
	return nil
}

// maxProcesses bounds the numbers of processes: more than pids exist.
const maxProcesses = 1 << 23

func (r *restorer) find(number uint32) (*Process, error) {
	if number == 0 || int(number) > len(r.procs) || r.procs[number-1] == nil {
		return nil, fmt.Errorf("nothing is known of process number %d", number)
	}
	return r.procs[number-1], nil
}

func (r *restorer) records(b []byte) error {
	if len(b)%recordLen != 0 {
		return fmt.Errorf("records of %d bytes", len(b))
	}
	r.l.mu.Lock()
	defer r.l.mu.Unlock()
	for ; len(b) > 0; b = b[recordLen:] {
		if err := r.record(b[:recordLen]); err != nil {
			return err
		}
	}
	return nil
}

func (r *restorer) record(b []byte) error {
	p, err := r.find(binary.LittleEndian.Uint32(b[28:]))
	if err != nil {
		return err
	}
	if p.ended {
		return nil
	}
	what := b[26]
	if what == recordEnded {
		p.ended = true
		r.l.removeFromOwner(p)
		p.table = table{}
		return nil
	}
	e := entry{
		id:   binary.LittleEndian.Uint64(b[0:]),
		size: binary.LittleEndian.Uint64(b[8:]),
		born: binary.LittleEndian.Uint32(b[16:]),
		kind: kind(b[24]),
		pool: b[25],
	}
	if e.kind == noKind || e.kind > kernelCode || int(e.pool) >= NumPools || e.size == 0 || e.size > MaxSize {
		return errors.New("impossible record")
	}
	if e.dev, err = r.device(p, int32(binary.LittleEndian.Uint32(b[20:]))); err != nil {
		return err
	}
	old, link := p.table.find(e.kind, e.dev, e.id)
	switch {
	case what == recordPut && old != nil:
		r.l.addToSums(p, old, -1)
		old.size, old.pool, old.born = e.size, e.pool, e.born
		r.l.addToSums(p, old, +1)
	case what == recordPut:
		added := p.table.insert(e.kind, e.dev, e.id, link)
		added.size, added.pool, added.born = e.size, e.pool, e.born
		r.l.addToSums(p, added, +1)
	case what == recordRemoved && old != nil:
		r.l.addToSums(p, old, -1)
		p.table.remove(link)
	case what != recordRemoved:
		return fmt.Errorf("a record that says %d", what)
	}
	return nil
}

// addToSums adds an entry to all sums, or subtracts it.
func (l *Ledger) addToSums(p *Process, e *entry, sign int) {
	d := &p.devices[e.dev]
	if sign > 0 {
		d.add(e.pool, e.size)
		d.total.add(e.pool, e.size)
	} else {
		d.sub(e.pool, e.size)
		d.total.sub(e.pool, e.size)
	}
	l.live += sign
	p.owner.live += sign
}

// device is useDevice without the limits of a user.
func (r *restorer) device(p *Process, id int32) (uint16, error) {
	if dev, ok := p.device(id); ok {
		return dev, nil
	}
	if id < 0 || id > MaxDevice || len(p.ids) == maxDevices {
		return 0, fmt.Errorf("process %d: impossible device %d", p.info.PID, id)
	}
	total := r.l.addDeviceUser(p, id)
	p.ids = append(p.ids, id)
	p.devices = append(p.devices, deviceUse{total: total})
	return uint16(len(p.ids) - 1), nil
}

func (r *restorer) tail(b []byte) error {
	var t processTail
	if err := json.Unmarshal(b, &t); err != nil {
		return err
	}
	p, err := r.find(t.Number)
	if err != nil {
		return err
	}
	r.l.mu.Lock()
	defer r.l.mu.Unlock()
	if p.ended || r.l.procs[p.info.ProcessID] != nil || len(t.Peaks) != len(t.Devices) {
		return fmt.Errorf("process %d comes twice, or in parts", p.info.PID)
	}
	for i, id := range t.Devices {
		dev, err := r.device(p, id)
		if err != nil {
			return err
		}
		p.devices[dev].peak = t.Peaks[i]
	}
	p.info.SentPID, p.last, p.counters = t.SentPID, t.Last, t.Counters
	r.l.procs[p.info.ProcessID] = p
	return nil
}

func (r *restorer) ledger(b []byte) error {
	var t ledgerTail
	if err := json.Unmarshal(b, &t); err != nil {
		return err
	}
	if len(t.Peaks) != len(t.Devices) {
		return errors.New("devices without peaks")
	}
	r.l.mu.Lock()
	defer r.l.mu.Unlock()
	r.l.events, r.l.leakSeq, r.l.leaks = t.Events, t.LeakSeq, t.Leaks
	for i, id := range t.Devices {
		if u := r.l.devices[id]; u != nil {
			u.peak = t.Peaks[i]
		}
	}
	return nil
}

func (r *restorer) end(b []byte, want uint32) error {
	if len(b) != 4 {
		return errors.New("no checksum")
	}
	if got := binary.LittleEndian.Uint32(b); got != want {
		return fmt.Errorf("checksum %08x, want %08x", got, want)
	}
	for _, p := range r.procs {
		if p != nil && !p.ended && r.l.procs[p.info.ProcessID] != p {
			return fmt.Errorf("process %d has no end", p.info.PID)
		}
	}
	return nil
}
