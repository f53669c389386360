package metal

import (
	"fmt"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// writer is one attached chip, in one of the layouts.
type writer interface {
	account(p Pool, size uint64, change change)
	hostBuffer()
	setCB(bytes uint64) (dropped bool)
	detach()
	mapped() *region
}

// Held is what a workload really holds on its chips, in bytes per pool.
type Held map[uint64]map[string]uint64

// Workload is a tt-metal program: chips it opened, and what it holds on them.
type Workload struct {
	dir     string // where the regions are
	layout  uint32
	chips   map[uint64]*chip
	kept    []any      // mappings and files that live as long as the process
	nodes   []*os.File // of devices, which a child has as well
	forkees []*forkee
}

// chip is an opened chip. Without a writer the program runs all the same, and
// no process accounts for it.
type chip struct {
	writer writer
	held   [NumPools]uint64
}

// New returns a workload whose regions are in dir, of layout 2, 3 or 4.
func New(dir string, layout uint32) (*Workload, error) {
	if layout < 2 || layout > 4 {
		return nil, fmt.Errorf("there is no writer of layout %d: use 2, 3 or 4", layout)
	}
	return &Workload{dir: dir, layout: layout, chips: map[uint64]*chip{}}, nil
}

// Held is the truth.
func (w *Workload) Held() Held {
	h := Held{}
	for id, c := range w.chips {
		h[id] = map[string]uint64{}
		for p, v := range c.held {
			h[id][Pool(p).String()] = v
		}
	}
	return h
}

// Open opens a chip. An error tells why it is not accounted for; the chip is
// open nevertheless.
func (w *Workload) Open(id uint64, deviceID uint32) error {
	if w.chips[id] != nil {
		return fmt.Errorf("chip %d is open already", id)
	}
	c := &chip{}
	w.chips[id] = c
	if tracking := os.Getenv("TT_METAL_SHM_TRACKING_DISABLED"); tracking != "" && tracking[0] == '1' {
		return nil
	}
	writer, err := w.attach(id, deviceID)
	if err != nil {
		return err
	}
	c.writer = writer
	return nil
}

func (w *Workload) attach(id uint64, deviceID uint32) (writer, error) {
	if w.layout == 4 {
		return attachV4(w.dir, id, deviceID)
	}
	return attachV3(w.dir, w.layout, id, deviceID)
}

// Make goes no further than a process that died while it made a region:
// nothing but zeroes, or (layout 4) a claim to initialise it.
func (w *Workload) Make(id uint64) error {
	r, err := mapRegion(w.dir, id)
	if err != nil {
		return err
	}
	if w.layout == 4 {
		atomic.StoreUint32(r.u32(atInitState), initBusy)
	}
	w.kept = append(w.kept, r)
	return nil
}

func (w *Workload) chip(id uint64) (*chip, error) {
	if c := w.chips[id]; c != nil {
		return c, nil
	}
	return nil, fmt.Errorf("chip %d is not open", id)
}

// Alloc allocates. Writers of layout 3 do not see what other threads do
// (releases from 0.72.0 on).
func (w *Workload) Alloc(id uint64, p Pool, size uint64, elsewhere bool) error {
	c, err := w.chip(id)
	if err != nil {
		return err
	}
	c.held[p] += size
	if c.writer != nil && (!elsewhere || w.layout == 4) {
		c.writer.account(p, size, add)
	}
	return nil
}

// Free frees what Alloc allocated, on either thread.
func (w *Workload) Free(id uint64, p Pool, size uint64, elsewhere bool) error {
	c, err := w.chip(id)
	if err != nil {
		return err
	}
	if size > c.held[p] {
		return fmt.Errorf("freeing %d bytes of %s of %d that are held", size, p, c.held[p])
	}
	c.held[p] -= size
	if c.writer != nil && (!elsewhere || w.layout == 4) {
		c.writer.account(p, size, subtract)
	}
	return nil
}

// HostBuffer allocates in host memory.
func (w *Workload) HostBuffer(id uint64) error {
	c, err := w.chip(id)
	if err == nil && c.writer != nil {
		c.writer.hostBuffer()
	}
	return err
}

// SetCB says what the circular buffers take now. It reports whether the
// writer's rate limit dropped the update.
func (w *Workload) SetCB(id, bytes uint64) (dropped bool, err error) {
	c, err := w.chip(id)
	if err != nil {
		return false, err
	}
	c.held[CB] = bytes
	if c.writer != nil {
		dropped = c.writer.setCB(bytes)
	}
	return dropped, nil
}

// Store puts a raw word into a region: what a bug or a race would.
func (w *Workload) Store(id uint64, at int, value uint64) error {
	c, err := w.chip(id)
	if err != nil {
		return err
	}
	if c.writer == nil || at < 0 || at > regionSize-8 || at%8 != 0 {
		return fmt.Errorf("no word at %d of chip %d", at, id)
	}
	atomic.StoreUint64(c.writer.mapped().u64(at), value)
	return nil
}

// Close closes a chip: everything on it is freed.
func (w *Workload) Close(id uint64) error {
	c, err := w.chip(id)
	if err != nil {
		return err
	}
	if c.writer != nil {
		c.writer.detach()
	}
	delete(w.chips, id)
	return nil
}

// CloseAll is a clean end of the program.
func (w *Workload) CloseAll() {
	for id := range w.chips {
		_ = w.Close(id)
	}
}

// MapLibrary maps a file the way the loader maps libtt_metal.so.
func (w *Workload) MapLibrary(path string) error {
	mem, err := MapLibrary(path)
	if err == nil {
		w.kept = append(w.kept, mem)
	}
	return err
}

// MapLibrary maps the beginning of a file, as the loader does.
func MapLibrary(path string) (mem []byte, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if mem, err = unix.Mmap(int(f.Fd()), 0, os.Getpagesize(), unix.PROT_READ, unix.MAP_PRIVATE); err != nil {
		return nil, fmt.Errorf("mapping %s: %w", path, err)
	}
	return mem, nil
}

// OpenDevice opens a (simulated) device node, as UMD would.
func (w *Workload) OpenDevice(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	w.nodes = append(w.nodes, f)
	return nil
}
