package driver

import (
	"fmt"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/lab/sim/tree"
)

// Opener is one open file description of a device node. The driver keeps the
// process that called open(2), by its thread group leader, until the last
// descriptor is closed, by any holder.
type Opener struct {
	PID     int     // as the simulation sees it; 0 for one made up as invisible
	Comm    string  // at the time of open
	numbers []nsPID // outermost namespace first; the simulation's is the first
	fixed   bool    // made up: printed as it is
	stale   bool    // from before a reset: the descriptor is dead
}

// nsPID is a process's number in one pid namespace.
type nsPID struct {
	ns  uint64 // inode of the namespace; 0 if it could not be told
	pid int
}

// Access is something CMD did that a monitor must not do.
type Access struct {
	Time   time.Time `json:"time"`
	PID    int       `json:"pid"`
	Comm   string    `json:"comm"`
	Device string    `json:"device"`
	What   string    `json:"what"`
}

func (d *Driver) record(c tree.Caller, dev *Device, what string) {
	pid := tgid(c.TID)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.audit = append(d.audit, Access{time.Now(), pid, comm(pid), dev.BDF(), what})
	if n := len(d.audit) - 10_000; n > 0 {
		d.audit = d.audit[n:]
	}
}

// Audit lists who opened device nodes or wrote to PCI files, oldest first,
// and can begin a new list.
func (d *Driver) Audit(empty bool) []Access {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := slices.Clone(d.audit)
	if empty {
		d.audit = nil
	}
	return list
}

// nodeFile is /dev/tenstorrent/N. It is a regular file: a device node of a
// user-space file system would go to whatever kernel driver has its number.
func (d *Device) nodeFile() *tree.File {
	f := &tree.File{Mode: 0o666, Size: d.windows.size * uint64(d.windows.count), Page: d.window, OnOpen: func(c tree.Caller, flags uint32) (tree.Opened, errno) {
		if e := d.openGate(); e != 0 {
			return tree.Opened{}, e
		}
		d.driver.record(c, d, "open "+openFlags(flags))
		o := newOpener(c.TID)
		d.driver.open.Add(1)
		d.mu.Lock()
		defer d.mu.Unlock()
		d.openers = slices.Insert(d.openers, 0, o)
		return tree.Opened{
			Release: func() { d.driver.open.Add(-1); d.releaseWindows(o); d.removeOpener(o) },
			Ioctl: func(c tree.Caller, cmd uint32, arg uint64) errno {
				if d.isStale(o) {
					return syscall.ENODEV
				}
				if e, ok := d.windowIoctl(c, o, cmd, arg); ok {
					return e
				}
				return d.ioctl(c, cmd, arg)
			},
		}, 0
	}}
	d.mu.Lock()
	d.windows.file = f
	d.mu.Unlock()
	return f
}

// openGate holds up an open while a reset executes, since 2.9.
func (d *Device) openGate() errno {
	for {
		fences := d.driver.Version().AtLeast(v290)
		d.mu.Lock()
		phase, wait := d.reset, d.resetDone
		d.mu.Unlock()
		if !fences || phase != executing {
			return 0
		}
		if e := d.hold(wait); e != 0 {
			return e
		}
	}
}

// isStale reports whether a description is from before a reset: since 2.6 it is
// dead then.
func (d *Device) isStale(o *Opener) bool {
	since26 := d.driver.Version().AtLeast(v260)
	d.mu.Lock()
	defer d.mu.Unlock()
	return o.stale && since26
}

func openFlags(flags uint32) string {
	mode := []string{"O_RDONLY", "O_WRONLY", "O_RDWR", "?"}[flags&unix.O_ACCMODE]
	if flags&unix.O_APPEND != 0 {
		mode += "|O_APPEND"
	}
	return mode
}

// removeOpener takes a description off the list.
func (d *Device) removeOpener(o *Opener) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.openers = slices.DeleteFunc(d.openers, func(p *Opener) bool { return p == o })
}

// AddOpener puts a made-up line into pids: a number no process has, or 0.
func (d *Device) AddOpener(pid int) *Opener {
	o := &Opener{PID: pid, fixed: true}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.openers = slices.Insert(d.openers, 0, o)
	return o
}

// DropMadeUp removes the lines that AddOpener made.
func (d *Device) DropMadeUp() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := len(d.openers)
	d.openers = slices.DeleteFunc(d.openers, func(o *Opener) bool { return o.fixed })
	return n - len(d.openers)
}

// Openers lists the open descriptions, newest first.
func (d *Device) Openers() []*Opener {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.openers)
}

func newOpener(tid int) *Opener {
	pid := tgid(tid)
	return &Opener{PID: pid, Comm: comm(pid), numbers: numbers(pid)}
}

// pidsFile is /proc/driver/tenstorrent/N/pids.
func (d *Device) pidsFile() *tree.File {
	return &tree.File{Mode: 0o444, Show: func(c tree.Caller) ([]byte, syscall.Errno) {
		if e := d.gate("pids", static); e != 0 {
			return nil, e
		}
		d.mu.Lock()
		e := d.errs["pids"]
		d.mu.Unlock()
		if e != 0 {
			return nil, e
		}
		translate := d.driver.Version().AtLeast(v270)
		reader := readerNamespace(c.TID)
		var text []byte
		for _, o := range d.Openers() {
			text = fmt.Appendln(text, o.number(translate, reader))
		}
		return text, 0
	}}
}

// number is what pids prints for an opener: since 2.7 its pid in the reader's
// namespace or 0, before that its pid in its own.
func (o *Opener) number(translate bool, reader uint64) int {
	switch {
	case o.fixed || len(o.numbers) == 0:
		return o.PID
	case !translate:
		return o.numbers[len(o.numbers)-1].pid
	}
	for _, n := range o.numbers {
		if n.ns == reader {
			return n.pid
		}
	}
	return 0
}
