package driver

import (
	"encoding/binary"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/lab/sim/arc"
	"github.com/ttmon/ttmon/internal/lab/sim/chip"
	"github.com/ttmon/ttmon/internal/lab/sim/tree"
	"github.com/ttmon/ttmon/internal/model"
)

// Requests for windows into a chip's memory.
const (
	allocateTLB  = 0xFA0B
	freeTLB      = 0xFA0C
	configureTLB = 0xFA0D
)

// throughWindow stands for loads through a window, which can be held up like
// reads of a file.
const throughWindow = "window"

// windows are the windows of one device that programs can have: those of the
// size that readers ask for. The driver's own is not among them.
type windows struct {
	size  uint64
	count int
	file  *tree.File
	taken map[uint32]*taken
}

// taken is a window that a program has.
type taken struct {
	by  *Opener
	aim arc.Aim
}

func newWindows(arch model.Arch) windows {
	w := windows{size: 1 << 20, count: 156, taken: map[uint32]*taken{}}
	if arch == model.Blackhole {
		w.size, w.count = 2<<20, 201
	}
	return w
}

// windowIoctl answers a request for a window of an opener; ok is false for
// another request. d.mu is not held.
func (d *Device) windowIoctl(c tree.Caller, o *Opener, cmd uint32, arg uint64) (e errno, ok bool) {
	if cmd != allocateTLB && cmd != freeTLB && cmd != configureTLB {
		return 0, false
	}
	if !d.driver.Version().AtLeast(Version{Major: 1, Minor: 32}) {
		return syscall.EINVAL, true
	}
	b := make([]byte, 48)
	if cmd == freeTLB {
		b = b[:8]
	}
	remote := []unix.RemoteIovec{{Base: uintptr(arg), Len: len(b)}}
	if _, err := unix.ProcessVMReadv(c.TID, iovec(b), remote, 0); err != nil {
		return syscall.EFAULT, true
	}
	if cmd != allocateTLB {
		return d.useWindow(o, cmd, b), true
	}
	id, e := d.allocWindow(o, binary.LittleEndian.Uint64(b))
	if e != 0 {
		return e, true
	}
	binary.LittleEndian.PutUint32(b[16:], id)
	binary.LittleEndian.PutUint64(b[24:], uint64(id)*d.windows.size)
	if _, err := unix.ProcessVMWritev(c.TID, iovec(b), remote, 0); err != nil {
		return syscall.EFAULT, true
	}
	return 0, true
}

func (d *Device) allocWindow(o *Opener, size uint64) (uint32, errno) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if size != d.windows.size {
		return 0, syscall.EINVAL
	}
	if d.reset != noReset && d.driver.Version().AtLeast(v260) {
		return 0, syscall.ENODEV
	}
	for id := range uint32(d.windows.count) {
		if d.windows.taken[id] == nil {
			d.windows.taken[id] = &taken{by: o}
			return id, 0
		}
	}
	return 0, syscall.ENOMEM
}

// useWindow aims a window or gives it back.
func (d *Device) useWindow(o *Opener, cmd uint32, b []byte) errno {
	id := binary.LittleEndian.Uint32(b)
	d.mu.Lock()
	w := d.windows.taken[id]
	switch {
	case w == nil || w.by != o:
		d.mu.Unlock()
		return syscall.EPERM
	case cmd == freeTLB:
		delete(d.windows.taken, id)
	default:
		w.aim = arc.Aim{X: binary.LittleEndian.Uint16(b[16:]), Y: binary.LittleEndian.Uint16(b[18:]), Address: binary.LittleEndian.Uint64(b[8:])}
	}
	f := d.windows.file
	d.mu.Unlock()
	f.Forget(uint64(id)*d.windows.size, d.windows.size)
	return 0
}

// releaseWindows takes back what an opener has left.
func (d *Device) releaseWindows(o *Opener) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, w := range d.windows.taken {
		if w.by == o {
			delete(d.windows.taken, id)
		}
	}
}

// window is what programs see of the chip through their windows, mapped from the
// device node. A window that is gone, or of before a reset, ends a load with
// SIGBUS.
func (d *Device) window(offset uint64, p []byte) errno {
	if e := d.gate(throughWindow, static); e != 0 {
		return e
	}
	id := uint32(offset / d.windows.size)
	fences := d.driver.Version().AtLeast(Version{Major: 2, Minor: 7})
	d.mu.Lock()
	w := d.windows.taken[id]
	if w == nil || fences && (w.by.stale || d.reset != noReset) {
		d.mu.Unlock()
		return syscall.EIO
	}
	aim := w.aim
	d.mu.Unlock()
	at := aim.Address + offset%d.windows.size
	d.chip.Ethernet(func(channel int, up bool, n chip.LinkCounts) {
		d.memory.SetLink(arc.Link{Channel: channel, Up: up, Retrains: n.Retrains, Corrected: n.Corrected, Uncorrected: n.Uncorrected})
	})
	d.fill(p, func(i uint64) uint32 { return d.memory.Load(aim.X, aim.Y, at+i) })
	return 0
}

// zapWindows takes mapped windows away from programs, as a reset does. d.mu is
// not held.
func (d *Device) zapWindows() {
	d.mu.Lock()
	f := d.windows.file
	d.mu.Unlock()
	if f != nil {
		f.Forget(0, f.Size)
	}
}
