package metal

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The region as its writers see it. Offsets in bytes.
const (
	regionSize = 8576

	atVersion   = 0
	atActive    = 4
	atUpdated   = 8
	atRefs      = 16
	atSerial    = 24
	atChipID    = 32
	atDeviceID  = 40
	atTotals    = 48
	atChips     = 88
	atProcesses = 856
	atInitState = 8536

	chipBytes, chipCount       = 48, 16
	processBytes, processCount = 120, 64

	inChipID, inChipRemote, inChipTotals = 0, 4, 8

	inPID, inTotals, inUpdated, inName = 0, 8, 48, 56
	nameBytes                          = 64

	unusedChip = 0xFFFFFFFF
	releasing  = -1 // pid of a slot that a layout 4 writer is giving back

	initNone, initBusy, initReady = 0, 1, 0x52454459
)

// Pool is a column of the region.
type Pool int

// The columns, in their order.
const (
	DRAM Pool = iota
	L1
	L1Small
	Trace
	CB
	NumPools
)

var poolNames = [NumPools]string{"dram", "l1", "l1_small", "trace", "cb"}

func (p Pool) String() string { return poolNames[p] }

// region is a mapped statistics file.
type region struct {
	mem  []byte
	file *os.File
	made bool // by us
}

// mapRegion opens or makes a chip's region and maps it, as all writers do.
func mapRegion(dir string, id uint64) (*region, error) {
	path := filepath.Join(dir, fmt.Sprintf("tt_device_%d_memory", id))
	made := true
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if os.IsExist(err) {
		made = false
		f, err = os.OpenFile(path, os.O_RDWR, 0)
	}
	if err != nil {
		return nil, err
	}
	if err := f.Truncate(regionSize); err != nil {
		f.Close()
		return nil, err
	}
	r, err := mapFile(f)
	if err != nil {
		f.Close()
		return nil, err
	}
	r.made = made
	return r, nil
}

func mapFile(f *os.File) (*region, error) {
	mem, err := unix.Mmap(int(f.Fd()), 0, regionSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("mapping %s: %w", f.Name(), err)
	}
	return &region{mem: mem, file: f}, nil
}

func (r *region) unmap() {
	_ = unix.Munmap(r.mem)
	r.file.Close()
	r.mem = nil
}

func (r *region) u32(at int) *uint32 { return (*uint32)(unsafe.Pointer(&r.mem[at])) }
func (r *region) u64(at int) *uint64 { return (*uint64)(unsafe.Pointer(&r.mem[at])) }
func (r *region) pid(slot int) *int32 {
	return (*int32)(unsafe.Pointer(&r.mem[slot+inPID]))
}

func (r *region) total(p Pool) *uint64               { return r.u64(atTotals + 8*int(p)) }
func (r *region) chipTotal(chip int, p Pool) *uint64 { return r.u64(chip + inChipTotals + 8*int(p)) }
func (r *region) slotTotal(slot int, p Pool) *uint64 { return r.u64(slot + inTotals + 8*int(p)) }

// slots and chips are the offsets of all entries.
func slots(yield func(int) bool) {
	for i := range processCount {
		if !yield(atProcesses + i*processBytes) {
			return
		}
	}
}

func chips(yield func(int) bool) {
	for i := range chipCount {
		if !yield(atChips + i*chipBytes) {
			return
		}
	}
}

// initialise writes an empty region. What lies behind the last slot is not
// touched: layouts up to 3 do not know that anything is there.
func (r *region) initialise(version uint32, id uint64, deviceID uint32) {
	atomic.StoreUint32(r.u32(atVersion), version)
	atomic.StoreUint32(r.u32(atActive), 0)
	atomic.StoreUint64(r.u64(atUpdated), now())
	atomic.StoreUint32(r.u32(atRefs), 0)
	r.identify(id, deviceID)
	for p := range NumPools {
		atomic.StoreUint64(r.total(p), 0)
	}
	for chip := range chips {
		atomic.StoreUint32(r.u32(chip+inChipID), unusedChip)
		atomic.StoreUint32(r.u32(chip+inChipRemote), 0)
		r.clearChip(chip)
	}
	atomic.StoreUint32(r.u32(atChips+inChipID), deviceID)
	for slot := range slots {
		atomic.StoreInt32(r.pid(slot), 0)
		for p := range NumPools {
			atomic.StoreUint64(r.slotTotal(slot, p), 0)
		}
		atomic.StoreUint64(r.u64(slot+inUpdated), 0)
		clear(r.mem[slot+inName : slot+inName+nameBytes])
	}
}

// identify is done by every attacher, so that the last one's logical id stays.
func (r *region) identify(id uint64, deviceID uint32) {
	atomic.StoreUint64(r.u64(atSerial), 0)
	atomic.StoreUint64(r.u64(atChipID), id)
	atomic.StoreUint32(r.u32(atDeviceID), deviceID)
}

func (r *region) clearChip(chip int) {
	for p := range NumPools {
		atomic.StoreUint64(r.chipTotal(chip, p), 0)
	}
}

// resetSums zeroes totals and used chip entries, not slots.
func (r *region) resetSums() {
	for p := range NumPools {
		atomic.StoreUint64(r.total(p), 0)
	}
	for chip := range chips {
		if atomic.LoadUint32(r.u32(chip+inChipID)) != unusedChip {
			r.clearChip(chip)
		}
	}
}

// findSlot returns the offset of the slot with that pid.
func (r *region) findSlot(pid int32) (slot int, ok bool) {
	for slot := range slots {
		if atomic.LoadInt32(r.pid(slot)) == pid {
			return slot, true
		}
	}
	return 0, false
}

// claim returns the slot of pid: one that has its number already, whichever process
// left it there, or a free one. fresh tells which.
func (r *region) claim(pid int32) (slot int, fresh, ok bool) {
	if slot, ok := r.findSlot(pid); ok {
		return slot, false, true
	}
	for slot := range slots {
		if !atomic.CompareAndSwapInt32(r.pid(slot), 0, pid) {
			continue
		}
		for p := range NumPools {
			atomic.StoreUint64(r.slotTotal(slot, p), 0)
		}
		atomic.StoreUint64(r.u64(slot+inUpdated), now())
		r.writeName(slot, pid)
		return slot, true, true
	}
	return 0, false, false
}

// writeName copies up to 63 bytes and clears the rest, as strncpy does.
func (r *region) writeName(slot int, pid int32) {
	name := r.mem[slot+inName : slot+inName+nameBytes]
	clear(name[copy(name[:nameBytes-1], comm(pid)):])
}

func comm(pid int32) string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	if err != nil {
		return "unknown"
	}
	name, _, _ := strings.Cut(string(b), "\n")
	return name
}

// findChip returns the per-chip entry of a logical id, taking a free one if
// there is none.
func (r *region) findChip(deviceID uint32) (chip int, ok bool) {
	for chip := range chips {
		if atomic.LoadUint32(r.u32(chip+inChipID)) == deviceID {
			return chip, true
		}
	}
	for chip := range chips {
		if atomic.CompareAndSwapUint32(r.u32(chip+inChipID), unusedChip, deviceID) {
			atomic.StoreUint32(r.u32(chip+inChipRemote), 0)
			r.clearChip(chip)
			return chip, true
		}
	}
	return 0, false
}

// change is how an allocation changes what is counted, or the end of one.
type change func(counter *uint64, n uint64)

func add(counter *uint64, n uint64) { atomic.AddUint64(counter, n) }

// subtract stops at zero.
func subtract(counter *uint64, n uint64) {
	for {
		old := atomic.LoadUint64(counter)
		if atomic.CompareAndSwapUint64(counter, old, old-min(old, n)) {
			return
		}
	}
}

func subtract32(counter *uint32, n uint32) {
	for {
		old := atomic.LoadUint32(counter)
		if atomic.CompareAndSwapUint32(counter, old, old-min(old, n)) {
			return
		}
	}
}

func now() uint64 { return uint64(time.Now().UnixNano()) }

func self() int32 { return int32(os.Getpid()) }
