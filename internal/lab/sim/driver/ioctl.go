package driver

import (
	"encoding/binary"
	"syscall"

	"github.com/ttmon/ttmon/internal/lab/sim/tree"
	"golang.org/x/sys/unix"
)

// The two requests that ask for nothing but identity. Those for windows are in
// windows.go.
const (
	getDeviceInfo = 0xFA00
	getDriverInfo = 0xFA05
)

// ioctl answers who am I and what driver is this, and refuses the rest: there
// is no chip to reset. The requests carry no size, so FUSE hands us
// only the pointer; the answer is written into the caller's memory.
func (d *Device) ioctl(c tree.Caller, cmd uint32, arg uint64) errno {
	var out []byte
	switch cmd {
	case getDeviceInfo:
		spec := d.chip.Spec()
		dev := uint16(0xB140)
		if d.wormhole() {
			dev = 0x401E
		}
		out = binary.LittleEndian.AppendUint32(nil, 20)
		for _, v := range []uint16{0x1E52, dev, 0x1E52, spec.Code, uint16(d.addr.bus << 8), 28, uint16(d.addr.domain), 0} {
			out = binary.LittleEndian.AppendUint16(out, v)
		}
	case getDriverInfo:
		v := d.driver.Version()
		size, api := uint32(12), uint32(2)
		if !v.AtLeast(v200) {
			size, api = 8, 1
		}
		out = binary.LittleEndian.AppendUint32(nil, size)
		out = binary.LittleEndian.AppendUint32(out, api)
		out = append(out, byte(v.Major), byte(v.Minor), byte(v.Patch), 0)
		out = out[:4+size]
	default:
		return syscall.EINVAL
	}
	return writeAnswer(c.TID, arg, out)
}

// writeAnswer answers as the driver does: the caller's first word says how many
// bytes it has room for, the answer goes behind it, zero-filled.
func writeAnswer(tid int, arg uint64, answer []byte) errno {
	var room [4]byte
	if _, err := unix.ProcessVMReadv(tid, iovec(room[:]), []unix.RemoteIovec{{Base: uintptr(arg), Len: 4}}, 0); err != nil {
		return syscall.EFAULT
	}
	out := make([]byte, min(binary.LittleEndian.Uint32(room[:]), 4096))
	if len(out) == 0 {
		return 0
	}
	copy(out, answer)
	_, err := unix.ProcessVMWritev(tid, iovec(out), []unix.RemoteIovec{{Base: uintptr(arg) + 4, Len: len(out)}}, 0)
	if err != nil {
		return syscall.EFAULT
	}
	return 0
}

func iovec(b []byte) []unix.Iovec {
	v := []unix.Iovec{{Base: &b[0]}}
	v[0].SetLen(len(b))
	return v
}
