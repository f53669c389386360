package arc

import (
	"encoding/binary"
	"time"

	"github.com/ttmon/ttmon/internal/model"
)

// Dispatch is a program of tt-metal that accounts for its work: a control block
// in the buffer that firmware reserves, and one prefetch and one dispatch core.
type Dispatch struct {
	Signature uint32 // 0 after a clean close
	Slow      bool
	L1        uint32
	X, Y      uint16 // of the dispatch core; the prefetch core is beside it
	Workers   uint16

	// The counters of the dispatch core, in cycles.
	Now, Busy, Start uint64
	Programs         uint32
	Gated            bool // the cores' clocks are off: reads give all ones

	// Clock lets the counters run, a cycle each nanosecond, of which programs run
	// for a Share. Nil: they stand still.
	Clock func() time.Duration
	Share float64
	began time.Duration
}

// counters are the cycles that passed, and those in which programs ran.
func (d *Dispatch) counters() (now, busy uint64) {
	if d.Clock == nil {
		return d.Now, d.Busy
	}
	passed := d.Clock() - d.began
	return d.Now + uint64(passed), d.Busy + uint64(d.Share*float64(passed))
}

// Signatures of the three structures.
const (
	controlSignature  = 0x534D_435F
	dispatchSignature = 0x4449_5350
	prefetchSignature = 0x5052_4546
)

// Run makes a program that uses the chip.
func (c *Chip) Run(d Dispatch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.run(d)
}

// Work lets a program run on the chip for a share of the time from now on. The
// counters of one that does already go on.
func (c *Chip) Work(share float64, clock func() time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := Dispatch{L1: 0x1_0000, X: 18, Y: 20, Workers: 64, Now: 1 << 40, Busy: 1 << 38, Programs: 1}
	if c.arch == model.Blackhole {
		d.X, d.Y, d.Workers = 3, 5, 120
	}
	if old := c.dispatch; old != nil && old.Signature == controlSignature && !old.Gated {
		d.Now, d.Busy = old.counters()
	}
	d.Share, d.Clock, d.began = share, clock, clock()
	c.run(d)
}

func (c *Chip) run(d Dispatch) {
	if d.Signature == 0 {
		d.Signature = controlSignature
	}
	c.dispatch = &d
	c.tiles[tile{d.X, d.Y}] = func(a uint64) uint32 { return d.core(a, d.dispatchCore()) }
	c.tiles[tile{d.X + 1, d.Y}] = func(a uint64) uint32 { return d.core(a, d.prefetchCore()) }
}

// Ended is what is left of a program: closed in good order, or killed.
func (c *Chip) Ended(killed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dispatch == nil {
		return
	}
	c.dispatch.Gated = true
	if !killed {
		c.dispatch.Signature = 0
	}
}

// control is a word of the control block.
func (d *Dispatch) control(offset int) uint32 {
	if d == nil {
		return 0
	}
	b := binary.LittleEndian.AppendUint32(nil, 1)
	b = binary.LittleEndian.AppendUint32(b, d.Signature)
	flags := byte(0)
	if d.Slow {
		flags = 1
	}
	b = append(b, flags)
	b = binary.LittleEndian.AppendUint32(b, d.L1)
	b = append(b, 1)
	place := uint32(d.X)<<16 | uint32(d.Y)
	for _, core := range []uint32{place + 1<<16, place, AllOnes, AllOnes, AllOnes, AllOnes, AllOnes, AllOnes, AllOnes} {
		b = binary.LittleEndian.AppendUint32(b, core)
	}
	b = binary.LittleEndian.AppendUint16(b, d.Workers)
	return wordAt(b, offset)
}

func wordAt(b []byte, offset int) uint32 {
	b = append(b, 0, 0, 0, 0)
	if offset < 0 || offset+4 > len(b) {
		return 0
	}
	return binary.LittleEndian.Uint32(b[offset:])
}

func (d *Dispatch) core(address uint64, b []byte) uint32 {
	if d.Gated {
		return AllOnes
	}
	if address < uint64(d.L1) {
		return 0
	}
	return wordAt(b, int(min(address-uint64(d.L1), 1<<20)))
}

func (d *Dispatch) dispatchCore() []byte {
	b := make([]byte, 248)
	binary.LittleEndian.PutUint32(b[0:], 1)
	binary.LittleEndian.PutUint32(b[4:], dispatchSignature)
	binary.LittleEndian.PutUint32(b[16:], d.Programs)
	now, busy := d.counters()
	binary.LittleEndian.PutUint64(b[24:], now)
	binary.LittleEndian.PutUint64(b[40:], busy)
	binary.LittleEndian.PutUint64(b[48:], d.Start)
	if d.Start != 0 {
		binary.LittleEndian.PutUint32(b[216:], uint32(d.Workers)) // none of them is done
	}
	return b
}

func (d *Dispatch) prefetchCore() []byte {
	b := binary.LittleEndian.AppendUint32(nil, 1)
	b = binary.LittleEndian.AppendUint32(b, prefetchSignature)
	return append(b, make([]byte, 12)...)
}

// Link is an Ethernet core's account of its link.
type Link struct {
	Channel                int // as UMD numbers it
	Up                     bool
	Asleep                 bool // its firmware does not run
	Retrains               uint32
	Corrected, Uncorrected uint64
}

var wormholeEthX = []uint16{9, 1, 8, 2, 7, 3, 6, 4}

// EthernetTile is where the core of a channel is.
func EthernetTile(arch model.Arch, channel int) (x, y uint16) {
	if arch == model.Blackhole {
		return uint16(20 + channel), 25
	}
	return wormholeEthX[channel%8], uint16(channel / 8 * 6)
}

// SetLink makes an Ethernet core.
func (c *Chip) SetLink(l Link) {
	c.mu.Lock()
	defer c.mu.Unlock()
	x, y := EthernetTile(c.arch, l.Channel)
	words := map[uint64]uint32{}
	state := uint32(2)
	if l.Up {
		state = 1
	}
	beat := uint32(0xABCD_0001)
	if l.Asleep {
		beat = 0
	}
	if c.arch == model.Blackhole {
		words[0x7CC04], words[0x7CE00], words[0x7CC70] = state, l.Retrains, beat
		words[0x7CE90], words[0x7CE94] = uint32(l.Corrected), uint32(l.Corrected>>32)
		words[0x7CE98], words[0x7CE9C] = uint32(l.Uncorrected), uint32(l.Uncorrected>>32)
	} else {
		words[0x1104], words[0x1EDC], words[0x1C] = state, l.Retrains, beat
		words[0x1F90], words[0x1F94] = uint32(l.Corrected>>32), uint32(l.Corrected)
		words[0x1F98], words[0x1F9C] = uint32(l.Uncorrected>>32), uint32(l.Uncorrected)
	}
	c.tiles[tile{x, y}] = func(a uint64) uint32 { return words[a] }
}
