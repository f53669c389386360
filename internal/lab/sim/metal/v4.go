package metal

import (
	"errors"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// v4 is the writer of the proposed layout 4: a slot from the moment it
// attaches, dead slots reaped, every sum moved by differences.
type v4 struct {
	*region
	deviceID uint32
}

func attachV4(dir string, id uint64, deviceID uint32) (*v4, error) {
	r, err := mapRegion(dir, id)
	if err != nil {
		return nil, err
	}
	w := &v4{region: r, deviceID: deviceID}
	if err := w.makeReady(id); err != nil {
		r.unmap()
		return nil, err
	}
	w.reap()
	if atomic.LoadUint32(w.u32(atRefs)) == 0 {
		w.resetSums()
	}
	w.ownSlot()
	w.identify(id, deviceID)
	return w, nil
}

// makeReady initialises a region that no other process does. A region of layout 3
// has zeroes where init_state is: it counts as new, in use or not.
func (w *v4) makeReady(id uint64) error {
	state := w.u32(atInitState)
	switch found := atomic.LoadUint32(w.u32(atVersion)); {
	case atomic.LoadUint32(state) == initReady && found == 4:
		return nil
	case atomic.LoadUint32(state) == initReady:
		if w.anybodyAlive() || !atomic.CompareAndSwapUint32(state, initReady, initBusy) {
			return errors.New("the region has another layout and is in use: tracking is off")
		}
	case !atomic.CompareAndSwapUint32(state, initNone, initBusy):
		if w.await() {
			return nil
		}
		// Its initialiser is dead. Of several that notice, one takes over.
		if w.anybodyAlive() || !atomic.CompareAndSwapUint32(state, initBusy, initNone) ||
			!atomic.CompareAndSwapUint32(state, initNone, initBusy) {
			return errors.New("the region is never finished: tracking is off")
		}
	}
	w.initialise(4, id, w.deviceID)
	atomic.StoreUint32(state, initReady)
	return nil
}

// await gives another initialiser one second.
func (w *v4) await() bool {
	for range 1000 {
		if atomic.LoadUint32(w.u32(atInitState)) == initReady {
			return true
		}
		time.Sleep(time.Millisecond)
	}
	return false
}

func alive(pid int32) bool {
	err := unix.Kill(int(pid), 0)
	return err == nil || errors.Is(err, unix.EPERM)
}

func (w *v4) anybodyAlive() bool {
	for slot := range slots {
		if pid := atomic.LoadInt32(w.pid(slot)); pid > 0 && pid != self() && alive(pid) {
			return true
		}
	}
	return false
}

// reap gives back the slots of the dead, as far as this pid namespace knows.
func (w *v4) reap() {
	for slot := range slots {
		if pid := atomic.LoadInt32(w.pid(slot)); pid > 0 && pid != self() && !alive(pid) {
			w.release(slot, pid)
		}
	}
}

func (w *v4) release(slot int, pid int32) {
	if !atomic.CompareAndSwapInt32(w.pid(slot), pid, releasing) {
		return
	}
	for p := range NumPools {
		subtract(w.total(p), atomic.SwapUint64(w.slotTotal(slot, p), 0))
	}
	atomic.StoreUint64(w.u64(slot+inUpdated), 0)
	clear(w.mem[slot+inName : slot+inName+nameBytes])
	atomic.StoreInt32(w.pid(slot), 0)
	subtract32(w.u32(atRefs), 1)
	subtract32(w.u32(atActive), 1)
	atomic.StoreUint64(w.u64(atUpdated), now())
}

func (w *v4) ownSlot() (slot int, ok bool) {
	slot, fresh, ok := w.claim(self())
	if fresh {
		atomic.AddUint32(w.u32(atRefs), 1)
		atomic.AddUint32(w.u32(atActive), 1)
	}
	return slot, ok
}

// account does nothing at all for a process without a slot.
func (w *v4) account(p Pool, size uint64, change change) {
	slot, ok := w.ownSlot()
	if !ok {
		return
	}
	change(w.total(p), size)
	if chip, ok := w.findChip(w.deviceID); ok {
		change(w.chipTotal(chip, p), size)
	}
	atomic.StoreUint64(w.u64(atUpdated), now())
	change(w.slotTotal(slot, p), size)
	atomic.StoreUint64(w.u64(slot+inUpdated), now())
}

func (w *v4) hostBuffer() {
	slot, ok := w.ownSlot()
	if !ok {
		return
	}
	atomic.StoreUint64(w.u64(atUpdated), now())
	atomic.StoreUint64(w.u64(slot+inUpdated), now())
}

// setCB publishes what the last dispatch left resident.
func (w *v4) setCB(bytes uint64) (dropped bool) {
	if slot, ok := w.findSlot(self()); ok {
		old := atomic.SwapUint64(w.slotTotal(slot, CB), bytes)
		if bytes >= old {
			atomic.AddUint64(w.total(CB), bytes-old)
		} else {
			subtract(w.total(CB), old-bytes)
		}
		atomic.StoreUint64(w.u64(slot+inUpdated), now())
	}
	atomic.StoreUint64(w.u64(atUpdated), now())
	if chip, ok := w.findChip(w.deviceID); ok {
		atomic.StoreUint64(w.chipTotal(chip, CB), atomic.LoadUint64(w.total(CB)))
	}
	return false
}

func (w *v4) detach() {
	if slot, ok := w.findSlot(self()); ok {
		w.release(slot, self())
	}
	w.reap()
	if atomic.LoadUint32(w.u32(atRefs)) == 0 {
		w.resetSums()
	}
	w.unmap()
}

func (w *v4) mapped() *region { return w.region }
