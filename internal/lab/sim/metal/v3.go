package metal

import (
	"fmt"
	"sync/atomic"
	"time"
)

// v3 is the writer of layouts 2 and 3: every release from 0.70.0 to 0.81.1.
type v3 struct {
	*region
	deviceID uint32
	cbAt     time.Time // of the last CB update that was not dropped
}

// attachV3 opens a chip's region. Layout 2 is the same writer without the
// check of the version it finds.
func attachV3(dir string, version uint32, id uint64, deviceID uint32) (*v3, error) {
	r, err := mapRegion(dir, id)
	if err != nil {
		return nil, err
	}
	switch found := atomic.LoadUint32(r.u32(atVersion)); {
	case r.made:
		r.initialise(version, id, deviceID)
	case found == version || version == 2:
	case atomic.LoadUint32(r.u32(atRefs)) == 0:
		r.initialise(version, id, deviceID)
	default:
		r.unmap()
		return nil, fmt.Errorf("the region has layout %d and is in use: tracking is off", found)
	}
	atomic.AddUint32(r.u32(atRefs), 1)
	r.identify(id, deviceID)
	return &v3{region: r, deviceID: deviceID}, nil
}

func (w *v3) account(p Pool, size uint64, change change) {
	change(w.total(p), size)
	if chip, ok := w.findChip(w.deviceID); ok {
		change(w.chipTotal(chip, p), size)
	}
	atomic.StoreUint64(w.u64(atUpdated), now())
	if slot, ok := w.ownSlot(); ok {
		change(w.slotTotal(slot, p), size)
		atomic.StoreUint64(w.u64(slot+inUpdated), now())
	}
}

// ownSlot takes a slot at the first allocation.
func (w *v3) ownSlot() (slot int, ok bool) {
	slot, fresh, ok := w.claim(self())
	if fresh {
		*w.u32(atActive)++ // not atomic in the writer either
	}
	return slot, ok
}

// hostBuffer is what an allocation in host memory does: no column is its own.
func (w *v3) hostBuffer() {
	atomic.StoreUint64(w.u64(atUpdated), now())
	if slot, ok := w.ownSlot(); ok {
		atomic.StoreUint64(w.u64(slot+inUpdated), now())
	}
}

// cbPause is the writer's rate limit. What it drops is never made up for.
const cbPause = 100 * time.Millisecond

func (w *v3) setCB(bytes uint64) (dropped bool) {
	if time.Since(w.cbAt) < cbPause {
		return true
	}
	w.cbAt = time.Now()
	atomic.StoreUint64(w.total(CB), bytes)
	for chip := range chips {
		if id := atomic.LoadUint32(w.u32(chip + inChipID)); id == w.deviceID || id == unusedChip {
			atomic.StoreUint32(w.u32(chip+inChipID), w.deviceID)
			atomic.StoreUint64(w.chipTotal(chip, CB), bytes)
			break
		}
	}
	if slot, ok := w.findSlot(self()); ok {
		atomic.StoreUint64(w.slotTotal(slot, CB), bytes)
		atomic.StoreUint64(w.u64(slot+inUpdated), now())
	}
	atomic.StoreUint64(w.u64(atUpdated), now())
	return false
}

// detach is the writer's destructor. It looks at the total and then subtracts:
// two steps, between which another process may get in.
func (w *v3) detach() {
	if slot, ok := w.findSlot(self()); ok {
		for p := range NumPools {
			bytes := atomic.LoadUint64(w.slotTotal(slot, p))
			if atomic.LoadUint64(w.total(p)) >= bytes {
				atomic.AddUint64(w.total(p), -bytes)
			} else {
				atomic.StoreUint64(w.total(p), 0)
			}
		}
		atomic.StoreInt32(w.pid(slot), 0)
		for p := range NumPools {
			atomic.StoreUint64(w.slotTotal(slot, p), 0)
		}
		*w.u32(atActive)--
	}
	if atomic.AddUint32(w.u32(atRefs), ^uint32(0)) == 0 {
		w.resetSums()
	}
	w.unmap()
}

func (w *v3) mapped() *region { return w.region }
