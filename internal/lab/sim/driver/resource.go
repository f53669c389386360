package driver

import (
	"encoding/binary"
	"syscall"

	"github.com/ttmon/ttmon/internal/lab/sim/arc"
	"github.com/ttmon/ttmon/internal/lab/sim/chip"
	"github.com/ttmon/ttmon/internal/lab/sim/tree"
	"github.com/ttmon/ttmon/internal/model"
)

// newMemory is the chip's memory, as the bus shows it.
func (d *Device) newMemory() *arc.Chip {
	return arc.New(d.chip.Spec().Arch, func(tag uint16) (uint32, bool) { return d.chip.Word(chip.Tag(tag)) })
}

// fill makes a part of what the bus shows out of words of the chip. A chip that is
// off the bus, or being reset, reads as all ones.
func (d *Device) fill(p []byte, load func(offset uint64) uint32) {
	ones := d.allOnes(counter)
	d.memory.SetFaults(arc.Faults{NoTable: !d.chip.Firmware().Table(d.chip.Spec().Arch)})
	for i := 0; i+4 <= len(p); i += 4 {
		w := uint32(arc.AllOnes)
		if !ones {
			w = load(uint64(i))
		}
		binary.LittleEndian.PutUint32(p[i:], w)
	}
}

// resourceFile is the PCI file of a BAR. Wormhole's BAR4 can be mapped: it holds
// the registers and the memory of the management core. Like the real one it is
// not fenced.
func (d *Device) resourceFile(name string, b bar) *tree.File {
	f := &tree.File{Mode: 0o600, Size: b.size, OnOpen: d.opened(name)}
	if b.number != 4 || d.chip.Spec().Arch != model.Wormhole {
		return f
	}
	f.Page = func(offset uint64, p []byte) syscall.Errno {
		if e := d.gate(name, static); e != 0 {
			return e
		}
		d.fill(p, func(i uint64) uint32 { return d.memory.LoadFlat(offset + i) })
		return 0
	}
	return f
}

// opened notes that a file was opened which a monitor does not open by default.
func (d *Device) opened(name string) func(tree.Caller, uint32) (tree.Opened, errno) {
	return func(c tree.Caller, _ uint32) (tree.Opened, errno) {
		d.driver.record(c, d, "open "+name)
		return tree.Opened{}, 0
	}
}
