package shm

import "github.com/ttmon/ttmon/internal/model"

// Size is the length of a region in every layout that ever landed (1 to 4).
const Size = 8576

// Offsets in a region. All integers are little-endian and naturally aligned;
// layouts 1 to 4 share them.
const (
	offVersion   = 0  // u32
	offActive    = 4  // u32, occupied slots by the writer's count
	offUpdated   = 8  // u64, ns of CLOCK_REALTIME
	offRefs      = 16 // u32, attached providers by the writer's count
	offSerial    = 24 // u64, layout 1: board id; later always 0
	offChipID    = 32 // u64, layout 2 and later: equal to the id in the file name
	offDeviceID  = 40 // u32, logical id as the last attacher saw it
	offTotals    = 48 // 5 × u64, in pool order
	offChips     = 88
	offSlots     = 856
	offInitState = 8536 // u32, layout 4 only; padding before

	chipSize, numChips = 48, 16
	slotSize, numSlots = 120, 64
)

// Offsets in a slot.
const (
	slotPID     = 0  // i32; 0 is free, −1 (layout 4) is being released
	slotBytes   = 8  // 5 × u64, in pool order
	slotUpdated = 48 // u64, ns of CLOCK_REALTIME
	slotName    = 56 // NUL-terminated, comm of the writer when it claimed the slot
	nameSize    = 64
)

// ready is what a layout 4 writer stores in init_state once the rest is valid.
const ready = 0x52454459

// regionPools are the pools a region accounts for, in the order of its fields.
var regionPools = [...]model.Pool{model.DRAM, model.L1, model.L1Small, model.Trace, model.CB}

const numPools = len(regionPools)

// A Layout is what a version number changes for a reader.
type Layout struct {
	Version uint32
	// CB is what the circular-buffer figure counts.
	CB model.CBMeaning
	// idInHeader: the header repeats the id of the file name.
	idInHeader bool
	// hasReady: nothing holds before init_state says so.
	hasReady bool
	// cbIsSum: the header's CB total is a sum, not the last writer's own value.
	cbIsSum bool
}

// layouts are the versions that can be read, oldest first. Version 1 existed
// on a branch for two months of 2026 and in no release.
var layouts = [...]Layout{
	{Version: 1, CB: model.CBCached},
	{Version: 2, CB: model.CBCached, idInHeader: true},
	{Version: 3, CB: model.CBCached, idInHeader: true},
	{Version: 4, CB: model.CBResident, idInHeader: true, hasReady: true, cbIsSum: true},
}

func layoutOf(version uint32) (Layout, bool) {
	for _, l := range layouts {
		if l.Version == version {
			return l, true
		}
	}
	return Layout{}, false
}
