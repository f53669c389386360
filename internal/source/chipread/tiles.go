package chipread

import (
	"encoding/binary"

	"github.com/ttmon/ttmon/internal/board/telemetry"
	"github.com/ttmon/ttmon/internal/model"
)

// readTiles reads what is not in the management core's memory.
func readTiles(bus Bus, m memory, r *Request, answer *Response) error {
	var w *window
	switch m := m.(type) {
	case *overNoC:
		w = m.window
	default:
		if r.Node == "" {
			return nil
		}
		var err error
		if w, err = openWindow(bus, r, r.Node); err != nil {
			return nil // the table was read; the next sample tries again
		}
		defer w.close()
	}
	if r.Dispatch {
		d, why, err := readDispatch(m, w)
		if err != nil {
			return err
		}
		answer.Dispatch, answer.NoDispatch = d, why
		if why == CoreSilent {
			return nil // no further load of a tile
		}
	}
	for _, channel := range r.Ethernet {
		l, state, err := readLink(w, channel)
		switch {
		case err != nil || state == linkSilent:
			return err // no further load of a tile
		case state == linkRead:
			answer.Links = append(answer.Links, l)
		}
	}
	return nil
}

// The control block that tt-metal writes into the buffer that firmware reserves.
const (
	controlSize       = 52
	controlSignature  = 0x534D_435F
	dispatchSignature = 0x4449_5350
	noCore            = 0xFFFF_FFFF
	maxQueues         = 3
	slowDispatch      = 1
)

func runtimeBuffer(m memory, arch model.Arch) (at uint32, ok bool, err error) {
	from, size := uint32(wormholeRuntime), uint32(wormholeRuntimeN)
	if arch == model.Blackhole {
		from, size = blackholeRuntime, blackholeRuntimeN
	}
	if at, err = m.load(from); err != nil {
		return 0, false, err
	}
	n, err := m.load(size)
	ok = n >= controlSize && n <= 64<<10 && at%32 == 0 && telemetry.InMemory(at) && telemetry.InMemory(at+controlSize-4)
	return at, ok, err
}

func readDispatch(m memory, w *window) (*Dispatch, DispatchCause, error) {
	at, ok, err := runtimeBuffer(m, w.arch)
	if err != nil || !ok {
		return nil, NoBuffer, err
	}
	var b [controlSize]byte
	for i := 0; i < controlSize; i += 4 {
		v, err := m.load(at + uint32(i))
		if err != nil {
			return nil, "", err
		}
		binary.LittleEndian.PutUint32(b[i:], v)
	}
	c, why := parseControl(w.arch, b[:])
	if why != "" {
		return nil, why, nil
	}
	d := &Dispatch{Version: c.version, Workers: c.workers}
	for _, core := range c.cores {
		q, programs, why, err := readCore(w, core, c.l1)
		if err != nil || why != "" {
			return nil, why, err
		}
		d.Queues, d.Programs = append(d.Queues, q), d.Programs+programs
	}
	return d, "", nil
}

// control is a control block that passed its checks.
type control struct {
	version uint32
	l1      uint32
	workers int
	cores   []uint32 // dispatch cores, x<<16|y
}

// parseControl believes a control block only if every core it names is one that
// a program can have: a read of any other tile may never return.
func parseControl(arch model.Arch, b []byte) (c control, why DispatchCause) {
	c.version = binary.LittleEndian.Uint32(b)
	switch {
	case binary.LittleEndian.Uint32(b[4:]) != controlSignature:
		return c, NoProgram
	case b[8]&slowDispatch != 0:
		return c, SlowDispatch
	}
	c.l1 = binary.LittleEndian.Uint32(b[9:])
	queues := int(b[13])
	if c.version != 1 || queues < 1 || queues > maxQueues || !legalL1(arch, c.l1) {
		return c, ControlInvalid
	}
	for i := range queues {
		// prefetch, dispatch, dispatch_s
		core := binary.LittleEndian.Uint32(b[14+12*i+4:])
		if core == noCore {
			continue
		}
		if !legalCore(arch, core) {
			return c, ControlInvalid
		}
		c.cores = append(c.cores, core)
	}
	if len(c.cores) == 0 {
		return c, ControlInvalid
	}
	if n := int(binary.LittleEndian.Uint16(b[50:])); n > 0 && n <= 256 {
		c.workers = n // programs before 0.81 leave it 0
	}
	return c, ""
}

// legalCore reports whether x<<16|y is a Tensix core as programs number them.
func legalCore(arch model.Arch, core uint32) bool {
	x, y := core>>16, core&0xFFFF
	if arch == model.Blackhole {
		return (x >= 1 && x <= 7 || x >= 10 && x <= 16) && y >= 2 && y <= 11
	}
	return x >= 18 && x <= 25 && y >= 18 && y <= 27
}

func legalL1(arch model.Arch, address uint32) bool {
	size := uint32(1464 << 10)
	if arch == model.Blackhole {
		size = 1536 << 10
	}
	return address != 0 && address%16 == 0 && address <= size-coreSize
}

// The account of a dispatch core.
const (
	coreSize  = 248
	coreNow   = 24
	coreBusy  = 40
	coreStart = 48
	coreDone  = 184
	coreAll   = 216
	subCores  = 8
)

// tileReader reads words of one tile and stops at the first all-ones word: the
// tile has no clock, and asking it again has crashed hosts.
type tileReader struct {
	w      *window
	x, y   uint16
	base   uint64
	silent bool
	err    error
}

func (t *tileReader) word(offset int) uint32 {
	if t.silent || t.err != nil {
		return 0
	}
	v, err := t.w.at(t.x, t.y, t.base+uint64(offset))
	t.err, t.silent = err, v == telemetry.AllOnes
	return v
}

// long is a 64-bit counter: high, low, high again, until both highs agree.
func (t *tileReader) long(offset int) (v uint64, ok bool) {
	for range 3 {
		high := t.word(offset + 4)
		low := t.word(offset)
		if t.word(offset+4) == high {
			return uint64(high)<<32 | uint64(low), !t.silent && t.err == nil
		}
	}
	return 0, false
}

func readCore(w *window, core, l1 uint32) (q Queue, programs uint32, why DispatchCause, err error) {
	t := &tileReader{w: w, x: uint16(core >> 16), y: uint16(core), base: uint64(l1)}
	signature := t.word(4)
	switch {
	case t.err != nil:
		return q, 0, "", t.err
	case t.silent:
		return q, 0, CoreSilent, nil
	case signature != dispatchSignature:
		return q, 0, CoreInvalid, nil
	}
	programs = t.word(16)
	start, ok1 := t.long(coreStart)
	running := false
	for i := range subCores {
		running = running || t.word(coreDone+4*i) < t.word(coreAll+4*i)
	}
	busy, ok2 := t.long(coreBusy)
	now, ok3 := t.long(coreNow)
	switch {
	case t.err != nil:
		return q, 0, "", t.err
	case t.silent:
		return q, 0, CoreSilent, nil
	case !ok1 || !ok2 || !ok3:
		return q, 0, CoreInvalid, nil
	}
	q = Queue{Now: now, Busy: busy}
	if start != 0 && running && now > start {
		q.Busy += now - start
	}
	return q, programs, "", nil
}

var wormholeEthX = [8]uint16{9, 1, 8, 2, 7, 3, 6, 4}

// linkState is what came of reading an Ethernet core.
type linkState int

const (
	linkRead   linkState = iota
	linkAsleep           // it runs no firmware, or there is none
	linkSilent           // it does not answer
)

// readLink reads the account of an Ethernet core.
func readLink(w *window, channel int) (l Link, state linkState, err error) {
	t := &tileReader{w: w}
	at := struct{ beat, retrains, corrected, uncorrected int }{0x1C, 0x1EDC, 0x1F90, 0x1F98}
	if w.arch == model.Blackhole {
		if channel < 0 || channel > 13 {
			return l, linkAsleep, nil
		}
		t.x, t.y = uint16(20+channel), 25
		at.beat, at.retrains, at.corrected, at.uncorrected = 0x7CC70, 0x7CE00, 0x7CE90, 0x7CE98
	} else {
		if channel < 0 || channel > 15 {
			return l, linkAsleep, nil
		}
		t.x, t.y = wormholeEthX[channel%8], uint16(channel/8*6)
	}
	l.Channel = channel
	if beat := t.word(at.beat); beat == 0 {
		return l, linkAsleep, t.err
	}
	l.Retrains = t.word(at.retrains)
	l.Corrected = t.count(at.corrected)
	l.Uncorrected = t.count(at.uncorrected)
	if t.silent {
		state = linkSilent
	}
	return l, state, t.err
}

// count is a 64-bit counter of an Ethernet core: Wormhole has the high word
// first.
func (t *tileReader) count(offset int) uint64 {
	a, b := uint64(t.word(offset)), uint64(t.word(offset+4))
	if t.w.arch == model.Wormhole {
		return a<<32 | b
	}
	return b<<32 | a
}
