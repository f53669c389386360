package ledger

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"time"
)

// The state of a ledger as a stream, for the next daemon: blocks of JSON,
// each after its length, so that fields may be added; behind the block of a
// process its buffers as records of 32 bytes; at the end a checksum.

const (
	stateMagic = "ttmon.ledger/1\n"
	recordLen  = 32
	// maxBlock bounds a JSON block that is read.
	maxBlock = 64 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// stateHeader begins the stream.
type stateHeader struct {
	Processes int         `json:"processes"`
	Events    uint64      `json:"events"`
	LeakSeq   uint64      `json:"leak_seq"`
	Leaks     []Leftovers `json:"leaks"`
	Devices   []Use       `json:"devices"` // for the peaks; the sums are made again
}

// stateProcess comes before the records of a process.
type stateProcess struct {
	Info     Info      `json:"info"`
	Epoch    time.Time `json:"epoch"`
	Last     time.Time `json:"last"`
	Counters Counters  `json:"counters"`
	Devices  []Use     `json:"devices"` // in the order that records count in
	Records  int       `json:"records"`
}

// WriteState writes the whole ledger. The caller has stopped all sources.
func (l *Ledger) WriteState(w io.Writer) error {
	l.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	sum := crc32.New(castagnoli)
	buf := bufio.NewWriterSize(io.MultiWriter(w, sum), 256<<10)
	buf.WriteString(stateMagic)
	head := stateHeader{Processes: len(l.procs), Events: l.events, LeakSeq: l.leakSeq, Leaks: l.leaks}
	for id, u := range l.devices {
		head.Devices = append(head.Devices, u.view(id))
	}
	if err := writeBlock(buf, head); err != nil {
		return err
	}
	for _, p := range l.procs {
		if err := p.writeState(buf); err != nil {
			return err
		}
	}
	if err := buf.Flush(); err != nil {
		return fmt.Errorf("writing the ledger: %w", err)
	}
	if _, err := w.Write(binary.LittleEndian.AppendUint32(nil, sum.Sum32())); err != nil {
		return fmt.Errorf("writing the ledger: %w", err)
	}
	return nil
}

func (p *Process) writeState(w *bufio.Writer) error {
	head := stateProcess{Info: p.info, Epoch: p.epoch, Last: p.last, Counters: p.counters, Records: p.table.live}
	for i := range p.devices {
		head.Devices = append(head.Devices, p.devices[i].view(p.ids[i]))
	}
	if err := writeBlock(w, head); err != nil {
		return err
	}
	var rec [recordLen]byte
	for i := range p.table.slabs {
		for j := range p.table.slabs[i].entries {
			e := &p.table.slabs[i].entries[j]
			if e.kind == noKind {
				continue
			}
			binary.LittleEndian.PutUint64(rec[0:], e.id)
			binary.LittleEndian.PutUint64(rec[8:], e.size)
			binary.LittleEndian.PutUint32(rec[16:], e.born)
			binary.LittleEndian.PutUint16(rec[20:], e.dev)
			rec[22], rec[23] = byte(e.kind), e.pool
			if _, err := w.Write(rec[:]); err != nil {
				return fmt.Errorf("writing the ledger: %w", err)
			}
		}
	}
	return nil
}

func writeBlock(w io.Writer, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("writing the ledger: %w", err)
	}
	if _, err = w.Write(append(binary.LittleEndian.AppendUint32(nil, uint32(len(b))), b...)); err != nil {
		return fmt.Errorf("writing the ledger: %w", err)
	}
	return nil
}

// ReadState fills an empty ledger with what WriteState wrote. On an error the
// ledger must be thrown away.
func (l *Ledger) ReadState(r io.Reader) error {
	if err := l.readState(r); err != nil {
		return fmt.Errorf("reading the ledger: %w", err)
	}
	return nil
}

func (l *Ledger) readState(r io.Reader) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.procs) > 0 {
		panic("BUG: state read into a ledger that is in use")
	}
	buf := bufio.NewReaderSize(r, 256<<10)
	sum := crc32.New(castagnoli)
	in := io.TeeReader(buf, sum)
	magic := make([]byte, len(stateMagic))
	if _, err := io.ReadFull(in, magic); err != nil {
		return err
	}
	if string(magic) != stateMagic {
		return fmt.Errorf("it begins with %q, not %q", magic, stateMagic)
	}
	var head stateHeader
	if err := readBlock(in, &head); err != nil {
		return err
	}
	l.events, l.leakSeq, l.leaks = head.Events, head.LeakSeq, head.Leaks
	for _, u := range head.Devices {
		l.devices[u.Device] = &use{peak: u.Peak}
	}
	for range head.Processes {
		if err := l.readProcess(in); err != nil {
			return err
		}
	}
	want := sum.Sum32()
	var tail [4]byte
	if _, err := io.ReadFull(buf, tail[:]); err != nil {
		return err
	}
	if got := binary.LittleEndian.Uint32(tail[:]); got != want {
		return fmt.Errorf("checksum %08x, want %08x", got, want)
	}
	return nil
}

func (l *Ledger) readProcess(r io.Reader) error {
	var head stateProcess
	if err := readBlock(r, &head); err != nil {
		return err
	}
	p := &Process{info: head.Info, epoch: head.Epoch, last: head.Last, counters: head.Counters, table: newTable()}
	if l.procs[p.info.Key] != nil {
		return fmt.Errorf("process %d comes twice", p.info.PID)
	}
	for _, u := range head.Devices {
		if _, ok := l.useDevice(p, u.Device); !ok {
			return fmt.Errorf("process %d: impossible device %d", p.info.PID, u.Device)
		}
	}
	if len(p.devices) != len(head.Devices) {
		return fmt.Errorf("process %d: a device comes twice", p.info.PID)
	}
	var rec [recordLen]byte
	for range head.Records {
		if _, err := io.ReadFull(r, rec[:]); err != nil {
			return err
		}
		if err := l.readRecord(p, &rec); err != nil {
			return err
		}
	}
	for i, u := range head.Devices {
		p.devices[i].peak = u.Peak
	}
	l.procs[p.info.Key] = p
	return nil
}

func (l *Ledger) readRecord(p *Process, rec *[recordLen]byte) error {
	e := entry{
		id:   binary.LittleEndian.Uint64(rec[0:]),
		size: binary.LittleEndian.Uint64(rec[8:]),
		born: binary.LittleEndian.Uint32(rec[16:]),
		dev:  binary.LittleEndian.Uint16(rec[20:]),
		kind: kind(rec[22]),
		pool: rec[23],
	}
	if int(e.dev) >= len(p.devices) || e.kind == noKind || e.kind > kernelCode || int(e.pool) >= NumPools ||
		e.size == 0 || e.size > MaxSize {
		return errors.New("impossible record")
	}
	twin, link := p.table.find(e.kind, e.dev, e.id)
	if twin != nil {
		return errors.New("a record comes twice")
	}
	p.table.insert(e, link)
	l.live++
	d := &p.devices[e.dev]
	d.add(e.pool, e.size)
	d.total.add(e.pool, e.size) // its peak was restored before and can only stay
	return nil
}

func readBlock(r io.Reader, v any) error {
	var n [4]byte
	if _, err := io.ReadFull(r, n[:]); err != nil {
		return err
	}
	length := binary.LittleEndian.Uint32(n[:])
	if length > maxBlock {
		return fmt.Errorf("a block of %d bytes", length)
	}
	b, err := io.ReadAll(io.LimitReader(r, int64(length)))
	if err != nil {
		return err
	}
	if len(b) < int(length) {
		return io.ErrUnexpectedEOF
	}
	return json.Unmarshal(b, v)
}
