// Package lab lets the real driver bind to emulated chips: an emulated chip as a PCI
// device of QEMU. It answers for the device x-pci-proxy-dev, whose configuration
// space and memory are in another process. The tests run ttmon, ttmond and the reader
// of chips with that driver, in a virtual machine.
//
// It is a module of its own, run by hand: make lab KO=FILE KERNEL=FILE.
package lab

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/lab/sim/arc"
)

// Commands of QEMU's protocol.
const (
	cmdSyncMemory  = 0
	cmdReply       = 1
	cmdConfigWrite = 2
	cmdConfigRead  = 3
	cmdBARWrite    = 4
	cmdBARRead     = 5
	cmdInterrupt   = 6
	cmdReset       = 7

	headerSize = 16
	maxPayload = 1 << 20
)

// Device is one function.
type Device struct {
	chip   *Chip
	arch   model.Arch
	config [256]byte
	sizes  [6]uint32 // of the BARs; 0: none

	resetUntil time.Time // zero: no reset is under way
	// OnReset is called when a reset of the chip is over; nil: nothing is.
	OnReset func()
}

// resetTime is how long a reset takes once the driver has set its marker.
const resetTime = 2 * time.Second

// marker is the bit of the command register (parity) that the driver sets, and
// that a reset clears.
const marker = 1 << 6

// NewDevice makes a function of a chip. subsystem is the board's code.
func NewDevice(arch model.Arch, chip *Chip, subsystem uint16) *Device {
	d := &Device{chip: chip, arch: arch}
	put := func(at int, v uint16) { binary.LittleEndian.PutUint16(d.config[at:], v) }
	put(0x00, 0x1E52)
	put(0x02, 0xB140)
	d.sizes = [6]uint32{0: 512 << 20, 2: 1 << 20}
	if arch == model.Wormhole {
		put(0x02, 0x401E)
		d.sizes = [6]uint32{0: 16 << 20, 2: 1 << 20, 4: arc.FlatSize}
	}
	d.config[0x08] = 1
	d.config[0x0B], d.config[0x0A] = 0x12, 0x00
	put(0x2C, 0x1E52)
	put(0x2E, subsystem)
	d.config[0x3D] = 1 // INTA
	return d
}

// Serve answers QEMU until the connection ends.
func (d *Device) Serve(conn io.ReadWriter) error {
	head := make([]byte, headerSize)
	for {
		if _, err := io.ReadFull(conn, head); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		size := binary.LittleEndian.Uint64(head[8:])
		if size > maxPayload {
			return fmt.Errorf("a message of %d bytes", size)
		}
		payload := make([]byte, size)
		if _, err := io.ReadFull(conn, payload); err != nil {
			return err
		}
		answer, replies := d.handle(binary.LittleEndian.Uint32(head), payload)
		if !replies {
			continue
		}
		reply := make([]byte, headerSize+8)
		binary.LittleEndian.PutUint32(reply, cmdReply)
		binary.LittleEndian.PutUint64(reply[8:], 8)
		binary.LittleEndian.PutUint64(reply[16:], answer)
		if _, err := conn.Write(reply); err != nil {
			return err
		}
	}
}

func (d *Device) handle(cmd uint32, p []byte) (answer uint64, replies bool) {
	d.passReset()
	switch {
	case cmd == cmdConfigWrite && len(p) >= 12:
		d.writeConfig(binary.LittleEndian.Uint32(p), binary.LittleEndian.Uint32(p[4:]), int(binary.LittleEndian.Uint32(p[8:])))
	case cmd == cmdConfigRead && len(p) >= 12:
		answer = d.readConfig(binary.LittleEndian.Uint32(p), int(binary.LittleEndian.Uint32(p[8:])))
	case cmd == cmdBARWrite && len(p) >= 20:
		d.writeBAR(binary.LittleEndian.Uint64(p), binary.LittleEndian.Uint64(p[8:]), int(binary.LittleEndian.Uint32(p[16:])))
	case cmd == cmdBARRead && len(p) >= 20:
		answer = d.readBAR(binary.LittleEndian.Uint64(p), int(binary.LittleEndian.Uint32(p[16:])))
	case cmd == cmdReset:
	case cmd == cmdSyncMemory, cmd == cmdInterrupt:
		return 0, false
	}
	return answer, true
}

// passReset ends a reset whose time is over.
func (d *Device) passReset() {
	if d.resetUntil.IsZero() || time.Now().Before(d.resetUntil) {
		return
	}
	d.resetUntil = time.Time{}
	d.config[command] &^= marker
	d.chip.Reset()
	if d.OnReset != nil {
		d.OnReset()
	}
}

const (
	firstBAR = 0x10
	lastBAR  = 0x28
	command  = 0x04
)

// writeConfig keeps what a driver writes. BARs keep their address bits; the
// command register and what the driver uses as its marker for a reset are kept
// as they are.
func (d *Device) writeConfig(at, value uint32, n int) {
	if at >= firstBAR && at < lastBAR && n == 4 {
		i := (at - firstBAR) / 4
		value &= -d.sizes[i] // a BAR that is not there stays 0: its size is
		if d.sizes[i] == 0 {
			value = 0
		}
		binary.LittleEndian.PutUint32(d.config[at:], value)
		return
	}
	if at < command || at >= firstBAR && at < 0x3C || at >= uint32(len(d.config)) {
		return
	}
	for i := range min(n, 4) {
		if int(at)+i < len(d.config) {
			d.config[int(at)+i] = byte(value >> (8 * i))
		}
	}
	if at == command && d.config[command]&marker != 0 && d.resetUntil.IsZero() {
		d.resetUntil = time.Now().Add(resetTime)
	}
}

func (d *Device) readConfig(at uint32, n int) (v uint64) {
	for i := range min(n, 4) {
		if int(at)+i < len(d.config) {
			v |= uint64(d.config[int(at)+i]) << (8 * i)
		}
	}
	return v
}

// bar finds the BAR that an address of the guest lies in.
func (d *Device) bar(address uint64) (number int, offset uint64, ok bool) {
	for i, size := range d.sizes {
		base := uint64(binary.LittleEndian.Uint32(d.config[firstBAR+4*i:]))
		if size != 0 && base != 0 && address >= base && address < base+uint64(size) {
			return i, address - base, true
		}
	}
	return 0, 0, false
}

func (d *Device) readBAR(address uint64, n int) (v uint64) {
	number, offset, ok := d.bar(address)
	if !ok || !d.resetUntil.IsZero() {
		return ^uint64(0)
	}
	v = uint64(d.load(number, offset&^3)) >> (8 * (offset & 3))
	if n == 8 {
		v |= uint64(d.load(number, offset+4)) << 32
	}
	if n < 8 {
		v &= 1<<(8*n) - 1
	}
	return v
}

func (d *Device) load(number int, offset uint64) uint32 {
	switch {
	case number == 0:
		return d.chip.LoadBAR0(offset)
	case number == 4 && d.arch == model.Wormhole:
		return d.chip.LoadFlat(offset)
	}
	return 0
}

func (d *Device) writeBAR(address, value uint64, n int) {
	number, offset, ok := d.bar(address)
	if !ok || offset%4 != 0 || n != 4 && n != 8 || !d.resetUntil.IsZero() {
		return
	}
	d.store(number, offset, uint32(value))
	if n == 8 {
		d.store(number, offset+4, uint32(value>>32))
	}
}

func (d *Device) store(number int, offset uint64, value uint32) {
	switch {
	case number == 0:
		d.chip.StoreBAR0(offset, value)
	case number == 4 && d.arch == model.Wormhole:
		d.chip.StoreFlat(offset, value)
	}
}
