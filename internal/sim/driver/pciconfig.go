package driver

import "encoding/binary"

// configSize is the configuration space of a PCI Express function; what is
// behind the header only root can read.
const (
	configSize = 4096
	headerSize = 64
)

// Where the capabilities of our functions are.
const (
	capPower   = 0x40
	capMSI     = 0x50
	capExpress = 0x70
	capAER     = 0x100
)

// config is the function's configuration space as it reads now.
func (f *function) config() []byte {
	c := configSpace(make([]byte, configSize))
	if f.dead != nil && f.dead() {
		for i := range c {
			c[i] = 0xFF
		}
		return c
	}
	c.header(f)
	if f.ports == nil {
		c.endpoint(f)
	} else {
		c.bridge(f)
	}
	if f.link == nil {
		return c[:256] // not PCI Express
	}
	c.set16(0x06, 0x0010) // there are capabilities
	c[0x34] = capPower
	c.set16(capPower, capMSI<<8|0x01)
	c.set16(capPower+2, 0x0003)
	c.set16(capMSI, capExpress<<8|0x05)
	c.set16(capMSI+2, 0x0080)
	if f.driver() != "" {
		c[capMSI+2] |= 1 // in use
	}
	c.express(f)
	c.set32(capAER, 2<<16|0x0001)
	return c
}

type configSpace []byte

func (c configSpace) set16(at int, v uint16) { binary.LittleEndian.PutUint16(c[at:], v) }
func (c configSpace) set32(at int, v uint32) { binary.LittleEndian.PutUint32(c[at:], v) }

func (c configSpace) header(f *function) {
	c.set16(0x00, f.vendor)
	c.set16(0x02, f.device)
	if f.driver() != "" || f.ports != nil {
		c.set16(0x04, 0x0406) // memory, bus master, no INTx
	} else {
		c.set16(0x04, 0x0002)
	}
	c.set32(0x08, f.class<<8|uint32(f.revision))
	c[0x0C] = 16                       // cache line, in words
	c[0x3C], c[0x3D] = uint8(f.irq), 1 // line and pin
}

func (c configSpace) endpoint(f *function) {
	for _, b := range f.bars {
		c.set32(0x10+4*b.number, uint32(b.start)|barBits)
		c.set32(0x14+4*b.number, uint32(b.start>>32))
	}
	c.set16(0x2C, f.subVendor)
	c.set16(0x2E, f.subDevice)
}

// bridge has one bus behind it, and a prefetchable window for what is there.
func (c configSpace) bridge(f *function) {
	c[0x0E] = 1
	c[0x18], c[0x19], c[0x1A] = f.ports[0], f.ports[1], f.ports[1]
	c[0x1C] = 0xF0        // no I/O: the base is above the limit
	c.set16(0x20, 0xFFF0) // nor a window that must not be prefetched
	base, limit := uint64(1<<32), uint64(0)
	for i, b := range f.bars {
		if i == 0 {
			base = b.start
		}
		limit = b.start + b.size - 1
	}
	c.set16(0x24, uint16(base>>16)&0xFFF0|1)
	c.set16(0x26, uint16(limit>>16)&0xFFF0|1)
	c.set32(0x28, uint32(base>>32))
	c.set32(0x2C, uint32(limit>>32))
}

// express is the capability with the link.
func (c configSpace) express(f *function) {
	now, most := f.link()
	kind := uint16(0) // endpoint
	if f.ports != nil {
		kind = 4 // root port
	}
	c.set16(capExpress, 0x10)
	c.set16(capExpress+0x02, kind<<4|2)
	c.set32(capExpress+0x04, 0x8002) // payload of 512 bytes, role-based errors
	c.set32(capExpress+0x0C, uint32(most.gen)|uint32(most.width)<<4)
	c.set16(capExpress+0x12, uint16(now.gen)|uint16(now.width)<<4)
	c.set32(capExpress+0x2C, (1<<most.gen-1)<<1) // speeds that it can do
	c.set16(capExpress+0x30, uint16(most.gen))
}
