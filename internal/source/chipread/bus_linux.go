package chipread

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Requests of the driver. All of them are harmless: none reaches firmware, and
// the only registers that the driver writes are those of a window of ours.
const (
	getDeviceInfo = 0xFA00
	allocateTLB   = 0xFA0B
	freeTLB       = 0xFA0C
	configureTLB  = 0xFA0D
)

// nodeFlags open a node without a power vote (O_APPEND) and without waiting for
// an exclusive holder (O_NONBLOCK).
const nodeFlags = unix.O_RDONLY | unix.O_CLOEXEC | unix.O_APPEND | unix.O_NONBLOCK

// resourceSize is what is mapped of Wormhole's BAR4.
const resourceSize = 32 << 20

// kernel is the real Bus.
type kernel struct {
	resource int // the PCI file, opened before the list of system calls holds; -1: none
}

func (k *kernel) OpenResource(string) (Mapping, error) {
	return mapped(k.resource, 0, resourceSize)
}

func (k *kernel) OpenNode(path string) (Node, error) {
	fd, err := unix.Openat(unix.AT_FDCWD, path, nodeFlags, 0)
	if err != nil {
		return nil, err
	}
	return node(fd), nil
}

// node is the descriptor of a device node.
type node int

func (n node) request(cmd uintptr, b []byte) error {
	_, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(n), cmd, uintptr(unsafe.Pointer(&b[0])))
	if e != 0 {
		return e
	}
	return nil
}

// BusID asks the driver which chip this is; it does not ask the chip.
func (n node) BusID() (string, error) {
	var b [24]byte
	binary.LittleEndian.PutUint32(b[:], 20)
	if err := n.request(getDeviceInfo, b[:]); err != nil {
		return "", err
	}
	at := binary.LittleEndian.Uint16(b[16:])
	return fmt.Sprintf("%04x:%02x:%02x.%x", binary.LittleEndian.Uint16(b[20:]), at>>8, at>>3&0x1F, at&7), nil
}

func (n node) Allocate(size uint64) (id uint32, offset uint64, err error) {
	var b [48]byte
	binary.LittleEndian.PutUint64(b[:], size)
	err = n.request(allocateTLB, b[:])
	return binary.LittleEndian.Uint32(b[16:]), binary.LittleEndian.Uint64(b[24:]), err
}

func (n node) Map(offset, size uint64) (Mapping, error) { return mapped(int(n), offset, size) }

func (n node) Aim(id uint32, address uint64, x, y uint16) error {
	const strict = 1
	var b [48]byte
	binary.LittleEndian.PutUint32(b[:], id)
	binary.LittleEndian.PutUint64(b[8:], address)
	binary.LittleEndian.PutUint16(b[16:], x)
	binary.LittleEndian.PutUint16(b[18:], y)
	b[26] = strict
	return n.request(configureTLB, b[:])
}

func (n node) Free(id uint32) error {
	var b [8]byte
	binary.LittleEndian.PutUint32(b[:], id)
	return n.request(freeTLB, b[:])
}

func (n node) Close() error { return unix.Close(int(n)) }

// mapping is memory of a chip, read-only.
type mapping struct {
	start unsafe.Pointer
	size  uint64
}

func mapped(fd int, offset, size uint64) (Mapping, error) {
	p, err := unix.MmapPtr(fd, int64(offset), nil, uintptr(size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	return &mapping{p, size}, nil
}

// Load is one 32-bit load: chips answer no other.
func (m *mapping) Load(offset uint64) uint32 {
	if offset%4 != 0 || offset+4 > m.size {
		panic("BUG: load outside of the mapping")
	}
	return atomic.LoadUint32((*uint32)(unsafe.Add(m.start, offset)))
}

func (m *mapping) Close() error { return unix.MunmapPtr(m.start, uintptr(m.size)) }
