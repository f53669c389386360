// Package emulated is the kernel driver in front of an emulated chip, in process:
// for tests of what reads chips. It fails as the driver does.
package emulated

import (
	"cmp"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/lab/sim/arc"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/source/chipread"
)

// Driver has one chip. The zero Driver is not usable: see New.
type Driver struct {
	Chip  *arc.Chip
	Arch  model.Arch
	BusID string

	mu sync.Mutex
	// What is wrong, from the next call on.
	OpenError, AllocateError, MapError, AimError error
	ResourceError                                error // of the PCI file alone
	// AfterLoads lets the chip be reset after that many loads: mappings are
	// taken away, and requests fail. 0: never.
	AfterLoads int

	loads    int
	reset    bool
	Opens    int // so far
	open     int // now
	windows  map[uint32]bool
	mappings map[uint32]int
}

// New makes a driver of a chip.
func New(arch model.Arch, chip *arc.Chip) *Driver {
	return &Driver{Chip: chip, Arch: arch, BusID: "0000:01:00.0", windows: map[uint32]bool{}, mappings: map[uint32]int{}}
}

// Left is what was not given back: descriptors, windows, mappings.
func (d *Driver) Left() (open, windows, mappings int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, n := range d.mappings {
		mappings += n
	}
	return d.open, len(d.windows), mappings
}

// OpenResource maps Wormhole's BAR4.
func (d *Driver) OpenResource(string) (chipread.Mapping, error) {
	if err := cmp.Or(d.OpenError, d.ResourceError); err != nil {
		return nil, err
	}
	if d.Arch != model.Wormhole {
		return nil, unix.ENOENT
	}
	return &mapping{d: d, load: d.Chip.LoadFlat, id: noWindow}, nil
}

// OpenNode opens the device node.
func (d *Driver) OpenNode(string) (chipread.Node, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.OpenError != nil {
		return nil, d.OpenError
	}
	d.Opens++
	d.open++
	return &node{d: d, aims: map[uint32]aim{}}, nil
}

const noWindow = 1<<32 - 1

type aim struct {
	x, y uint16
	base uint64
}

type node struct {
	d    *Driver
	mu   sync.Mutex
	aims map[uint32]aim
}

func (n *node) BusID() (string, error) { return n.d.BusID, nil }

func (n *node) Allocate(size uint64) (uint32, uint64, error) {
	n.d.mu.Lock()
	defer n.d.mu.Unlock()
	want := uint64(1 << 20)
	if n.d.Arch == model.Blackhole {
		want = 2 << 20
	}
	switch {
	case n.d.AllocateError != nil:
		return 0, 0, n.d.AllocateError
	case n.d.reset:
		return 0, 0, unix.ENODEV
	case size != want:
		return 0, 0, unix.EINVAL
	}
	id := uint32(len(n.d.windows))
	n.d.windows[id] = true
	return id, 6<<36 + uint64(id)*size, nil
}

func (n *node) Map(offset, size uint64) (chipread.Mapping, error) {
	if n.d.MapError != nil {
		return nil, n.d.MapError
	}
	id := uint32((offset - 6<<36) / size)
	n.d.mu.Lock()
	n.d.mappings[id]++
	n.d.mu.Unlock()
	return &mapping{d: n.d, id: id, load: func(at uint64) uint32 {
		n.mu.Lock()
		a := n.aims[id]
		n.mu.Unlock()
		return n.d.Chip.Load(a.x, a.y, a.base+at)
	}}, nil
}

func (n *node) Aim(id uint32, address uint64, x, y uint16) error {
	n.d.mu.Lock()
	defer n.d.mu.Unlock()
	switch {
	case n.d.AimError != nil:
		return n.d.AimError
	case n.d.reset:
		return unix.ENODEV
	case !n.d.windows[id]:
		return unix.EPERM
	}
	n.mu.Lock()
	n.aims[id] = aim{x, y, address}
	n.mu.Unlock()
	return nil
}

func (n *node) Free(id uint32) error {
	n.d.mu.Lock()
	defer n.d.mu.Unlock()
	if n.d.mappings[id] > 0 {
		return unix.EBUSY
	}
	delete(n.d.windows, id)
	return nil
}

func (n *node) Close() error {
	n.d.mu.Lock()
	defer n.d.mu.Unlock()
	n.d.open--
	return nil
}

type mapping struct {
	d    *Driver
	id   uint32
	load func(uint64) uint32
}

func (m *mapping) Load(offset uint64) uint32 {
	m.d.mu.Lock()
	m.d.loads++
	if m.d.AfterLoads > 0 && m.d.loads > m.d.AfterLoads {
		m.d.reset = true
	}
	gone := m.d.reset && m.id != noWindow
	m.d.mu.Unlock()
	if gone {
		var taken *uint32
		return *taken // as a load of a mapping that was taken away ends
	}
	return m.load(offset)
}

func (m *mapping) Close() error {
	m.d.mu.Lock()
	defer m.d.mu.Unlock()
	if m.id != noWindow {
		m.d.mappings[m.id]--
	}
	return nil
}
