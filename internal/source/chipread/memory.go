package chipread

import (
	"fmt"

	"github.com/ttmon/ttmon/internal/board/telemetry"
	"github.com/ttmon/ttmon/internal/model"
)

// Where the management core's registers and memory are.
const (
	registers = 0x8003_0000 // in its own address space

	wormholeTable = registers + 0x1D0
	wormholeData  = registers + 0x1D4
	// Its address space in that of the NoC, and in BAR4.
	wormholeNoC       = 0x8_0000_0000
	flatRegisters     = 0x1F3_0000
	flatMemory        = 0x1E8_0000
	registersEnd      = registers + 0x1000
	blackholeTable    = registers + 0x434
	blackholeData     = registers + 0x430
	blackholeRuntime  = registers + 0x458
	blackholeRuntimeN = registers + 0x45C
	wormholeRuntime   = 0x1007_5C00
	wormholeRuntimeN  = 0x1007_5C04

	wormholeWindow  = 1 << 20
	blackholeWindow = 2 << 20
)

// memory is the address space of a chip's management core.
type memory interface {
	load(address uint32) (uint32, error)
	pointers() (table, data uint32, err error)
	close()
}

func openMemory(bus Bus, r *Request) (memory, error) {
	switch {
	case r.Way == model.ByResource && r.Arch == model.Wormhole:
		m, err := bus.OpenResource(r.Path)
		if err != nil {
			return nil, openFailure(err)
		}
		return &flat{m}, nil
	case r.Way == model.ByNode && (r.Arch == model.Wormhole || r.Arch == model.Blackhole):
		w, err := openWindow(bus, r, r.Path)
		if err != nil {
			return nil, err
		}
		return &overNoC{window: w}, nil
	}
	return nil, fmt.Errorf("no way %q to a chip of %q", r.Way, r.Arch)
}

// flat is Wormhole's BAR4.
type flat struct{ Mapping }

func (f *flat) load(address uint32) (uint32, error) {
	switch {
	case telemetry.InMemory(address):
		return f.Load(flatMemory + uint64(address-telemetry.MemoryStart)), nil
	case address%4 == 0 && address >= registers && address < registersEnd:
		return f.Load(flatRegisters + uint64(address-registers)), nil
	}
	return 0, fmt.Errorf("BUG: address %#x is not to be read", address)
}

func (f *flat) pointers() (table, data uint32, err error) { return twoPointers(f, model.Wormhole) }
func (f *flat) close()                                    { f.Close() }

// twoPointers reads where table and data are. A chip that is off the bus is not
// asked for the second one.
func twoPointers(m memory, arch model.Arch) (table, data uint32, err error) {
	at := [2]uint32{wormholeTable, wormholeData}
	if arch == model.Blackhole {
		at = [2]uint32{blackholeTable, blackholeData}
	}
	if table, err = m.load(at[0]); err != nil || table == telemetry.AllOnes {
		return table, table, err
	}
	data, err = m.load(at[1])
	return table, data, err
}

// overNoC is the management core's tile through a window.
type overNoC struct{ *window }

func (n *overNoC) load(address uint32) (uint32, error) {
	ok := telemetry.InMemory(address) || address%4 == 0 && address >= registers && address < registersEnd
	if !ok {
		return 0, fmt.Errorf("BUG: address %#x is not to be read", address)
	}
	if n.arch == model.Blackhole {
		return n.at(8, 0, uint64(address))
	}
	return n.at(0, 10, wormholeNoC+uint64(address))
}

func (n *overNoC) pointers() (table, data uint32, err error) { return twoPointers(n, n.arch) }
func (n *overNoC) close()                                    { n.window.close() }

// window is one window of a chip, aimed as needed.
type window struct {
	arch  model.Arch
	node  Node
	id    uint32
	size  uint64
	m     Mapping
	aimed bool
	aim   aim
}

type aim struct {
	x, y uint16
	base uint64
}

func openWindow(bus Bus, r *Request, path string) (*window, error) {
	w := &window{arch: r.Arch, size: wormholeWindow}
	if r.Arch == model.Blackhole {
		w.size = blackholeWindow
	}
	var err error
	if w.node, err = bus.OpenNode(path); err != nil {
		return nil, openFailure(err)
	}
	if at, err := w.node.BusID(); err != nil || at != r.BusID {
		w.node.Close()
		if err == nil {
			err = fmt.Errorf("%s is %s, not %s", path, at, r.BusID)
		}
		return nil, failure{model.ChipGone, err} // the number went to another chip
	}
	id, offset, err := w.node.Allocate(w.size)
	if err != nil {
		w.node.Close()
		return nil, windowFailure(err)
	}
	w.id = id
	if w.m, err = w.node.Map(offset, w.size); err != nil {
		_ = w.node.Free(id)
		w.node.Close()
		return nil, mapFailure(err)
	}
	return w, nil
}

// at is a word of a tile.
func (w *window) at(x, y uint16, address uint64) (uint32, error) {
	a := aim{x, y, address &^ (w.size - 1)}
	if !w.aimed || w.aim != a {
		if err := w.node.Aim(w.id, a.base, x, y); err != nil {
			return 0, windowFailure(err)
		}
		w.aim, w.aimed = a, true
	}
	return w.m.Load(address - a.base), nil
}

// close gives the window back. The mapping goes first: the driver does not take
// a window that is mapped.
func (w *window) close() {
	w.m.Close()
	_ = w.node.Free(w.id) // closing the node frees it as well
	w.node.Close()
}
