// Package ledger keeps allocation state from events: which process holds which
// buffers, how many bytes of which pool on which device, since when, and
// everything odd that was reported.
//
// It is between the source that receives events (allocsock) and collect, which
// reconciles its figures with those read elsewhere. Sources pass batches of
// Event to Apply; nothing is allocated and nothing is sent per event. One mutex
// guards the whole ledger. Apply holds it for one batch, readers hold it for a
// summary or for one slab of buffers, so that neither keeps the other waiting
// for more than a fraction of a millisecond, however many buffers are live.
//
// # The rules
//
// A buffer is known by (process, device, address). An ALLOC of a live buffer
// means that a FREE was missed: the new one replaces it, and it is counted.
// There is one exception, because DRAM and L1 are numbered from zero each: an
// L1 buffer at an address where L1 can hold one and a DRAM buffer with the
// same number are two buffers. A FREE names no pool, so where both are live
// it takes the younger one.
//
// A FREE touches only what its own process holds. A FREE on device 0 that
// matches nothing there takes the buffer with that address on another device
// if there is exactly one: old Python clients say 0 for every free.
//
// A circular buffer is known by (process, device, address). Programs place
// theirs at the same addresses and run in turn, so an address counts once,
// with the size said last, and a CB_FREE removes it. The figure is what can
// be resident at one time. It is too low after one of several programs that
// share an address goes; keeping one entry per program instead would be too
// high for ever, since some clients repeat CB_ALLOC at every launch. The peak
// shows what was.
//
// A kernel is known by (process, device, kernel id); loading it again changes
// nothing but its size. CB_FREE and KERNEL_UNLOAD subtract the size that was
// booked, not the one they carry, and never more than is there.
//
// Memory of the host (SYSTEM_MEMORY) is kept apart from the pools of a
// device: it is in no sum of device memory.
package ledger
