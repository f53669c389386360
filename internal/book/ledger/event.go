package ledger

import "github.com/ttmon/ttmon/internal/model"

// Op is what happened to a buffer.
type Op uint8

// The operations. The zero Op is not one.
const (
	Alloc Op = iota + 1
	Free
	CBAlloc
	CBFree
	KernelLoad
	KernelUnload
)

func (o Op) String() string {
	names := [...]string{"?", "ALLOC", "FREE", "CB_ALLOC", "CB_FREE", "KERNEL_LOAD", "KERNEL_UNLOAD"}
	if int(o) < len(names) {
		return names[o]
	}
	return names[0]
}

// Host is the pool of SYSTEM_MEMORY buffers: host memory that a device reads.
// It follows the pools of package model.
const Host = model.NumPools

// NumPools counts the pools of model and Host.
const NumPools = int(Host) + 1

// MaxSize bounds what one buffer may claim: eight times the DRAM of the
// largest chip. It also keeps sums far from overflow.
const MaxSize = 256 << 30

// MaxDevice bounds device ids. Any id up to it is accepted: old builds sent
// odd ones, and hosts with 32 chips exist.
const MaxDevice = 65535

// Event is one report of one process.
type Event struct {
	ID     uint64 // device address of a buffer or circular buffer; id of a kernel
	Size   uint64 // bytes; ignored in Free
	Device int32  // the reporter's own numbering
	Op     Op
	Pool   uint8 // of an Alloc: DRAM … Trace or Host; ignored otherwise
}

// Counters count what a process reported, and what was odd about it.
type Counters struct {
	Events uint64 `json:"events"`
	Allocs uint64 `json:"allocs"`
	Frees  uint64 `json:"frees"`
	// Odd, but understood.
	MissedFrees   uint64 `json:"missed_frees"`   // ALLOC of a live buffer: it replaced it
	DeviceGuesses uint64 `json:"device_guesses"` // FREE on device 0 that meant another device
	CBRepeats     uint64 `json:"cb_repeats"`     // CB_ALLOC of a live address
	KernelRepeats uint64 `json:"kernel_repeats"` // KERNEL_LOAD of a loaded kernel
	SizeDisputes  uint64 `json:"size_disputes"`  // CB_FREE or KERNEL_UNLOAD with another size than booked
	// Ignored.
	UnknownFrees   uint64 `json:"unknown_frees"` // of buffers; normal for system buffers
	UnknownCBFrees uint64 `json:"unknown_cb_frees"`
	UnknownUnloads uint64 `json:"unknown_unloads"`
	ZeroSizes      uint64 `json:"zero_sizes"`
	Oversizes      uint64 `json:"oversizes"` // above MaxSize
	BadPools       uint64 `json:"bad_pools"`
	BadDevices     uint64 `json:"bad_devices"`   // negative, above MaxDevice, or too many of them
	OverLimit      uint64 `json:"over_limit"`    // more live buffers than the ledger takes
	OverCapacity   uint64 `json:"over_capacity"` // more bytes than any chip of this host has
	// What the source could not make out at all.
	RejectedFrames uint64 `json:"rejected_frames"`
	SkippedBytes   uint64 `json:"skipped_bytes"`
}
