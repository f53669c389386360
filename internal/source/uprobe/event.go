package uprobe

import (
	"fmt"
	"unsafe"

	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// kind says what an event is about: the site of a probe, what was found there,
// or the end of a process. The words of an event are documented in
// bpf/watch.c, from which their types are generated.
type kind uint8

const (
	atAllocator   = kind(watchEventKindSITE_ALLOCATOR)
	allocatorGone = kind(watchEventKindSITE_ALLOCATOR_GONE)
	atDRAMManager = kind(watchEventKindSITE_DRAM_MANAGER)
	atL1Manager   = kind(watchEventKindSITE_L1MANAGER)
	listMade      = kind(watchEventKindSITE_LIST)
	atAsk         = kind(watchEventKindSITE_ASK)
	taken         = kind(watchEventKindSITE_TAKE)
	freed         = kind(watchEventKindSITE_FREE)
	cleared       = kind(watchEventKindSITE_CLEAR)
	shrunk        = kind(watchEventKindSITE_SHRINK)
	resized       = kind(watchEventKindSITE_RESET) // a shrink is undone
	providerMade  = kind(watchEventKindSITE_PROVIDER)
	providerGone  = kind(watchEventKindSITE_PROVIDER_GONE)
	recorded      = kind(watchEventKindSITE_RECORD)
	atProgram     = kind(watchEventKindSITE_PROGRAM)
	programGone   = kind(watchEventKindSITE_PROGRAM_GONE)
	cbMarked      = kind(watchEventKindSITE_CB_MARK)
	cbTracked     = kind(watchEventKindSITE_CB_TRACK)
	atBuffer      = kind(watchEventKindSITE_BUFFER)
	noRoom        = kind(watchEventKindSITE_NO_ROOM)
	clashed       = kind(watchEventKindSITE_CLASH)
	atBeyondL1    = kind(watchEventKindSITE_BEYOND_L1) // its events are clashed
	workOn        = kind(watchEventKindSITE_WORK_ON)
	workOnOld     = kind(watchEventKindSITE_WORK_ON_OLD)
	workOff       = kind(watchEventKindSITE_WORK_OFF)
	workOffOld    = kind(watchEventKindSITE_WORK_OFF_OLD)
	queueMade     = kind(watchEventKindSITE_QUEUE)

	subDevicesMade   = kind(watchEventKindSITE_SUB_DEVICES)
	subDevicesLoaded = kind(watchEventKindSITE_SUB_DEVICES_LOADED)

	atPages      = kind(watchEventKindSITE_PAGES)
	atPagesConst = kind(watchEventKindSITE_PAGES_CONST)
	atPage       = kind(watchEventKindSITE_PAGE)
	traceRefused = kind(watchEventKindSITE_TRACE)
	numSites     = traceRefused + 1

	listFound  = kind(watchEventKindEVENT_FOUND)
	blockFound = kind(watchEventKindEVENT_BLOCK)
	listWhole  = kind(watchEventKindEVENT_WHOLE)
	execed     = kind(watchEventKindEVENT_EXEC)
	exited     = kind(watchEventKindEVENT_EXIT)
	forked     = kind(watchEventKindEVENT_FORK)
)

// Kinds of events that are no sites come after them: no site may be added before
// they have been moved.
var _ [watchEventKindEVENT_FOUND - watchEventKindSITE_TRACE - 1]struct{}

// eventBytes is the size of an event.
const eventBytes = int(unsafe.Sizeof(watchEvent{}))

// ofPages reports whether a site is one of those where chips report.
func (k kind) ofPages() bool { return k == atPages || k == atPagesConst || k == atPage }

// ofSite says whether a probe was hit.
func (k kind) ofSite() bool { return k < execed }

// event is one report of the kernel.
type event struct {
	time uint64 // ns after boot
	pid  uint32
	kind kind
	odd  bool   // what was read of a list cannot be true
	lost uint16 // events of the process that were lost so far, the low bits
	word words
	// stack are the lines of Python that the thread was in, innermost first; of
	// noRoom, clashed and traceRefused only.
	stack []ledgerfile.Frame
}

type words = [6]uint64

// The words of an event, by its kind.
type (
	objectEvent   = watchObjectEvent
	listEvent     = watchListEvent
	takeEvent     = watchTakeEvent
	changeEvent   = watchChangeEvent
	blockEvent    = watchBlockEvent
	wholeEvent    = watchWholeEvent
	providerEvent = watchProviderEvent
	recordEvent   = watchRecordEvent
	layoutEvent   = watchLayoutEvent
	noRoomEvent   = watchNoRoomEvent
	clashEvent    = watchClashEvent
	traceEvent    = watchTraceEvent
	workEvent     = watchWorkEvent
	exitEvent     = watchExitEvent
	forkEvent     = watchForkEvent
)

// about reads the words of an event as what its kind says.
func about[T objectEvent | listEvent | takeEvent | changeEvent | blockEvent | wholeEvent |
	providerEvent | recordEvent | layoutEvent | noRoomEvent | clashEvent | traceEvent | workEvent | exitEvent | forkEvent](e *event,
) *T {
	return (*T)(unsafe.Pointer(&e.word)) // none is larger: see TestEventTypes
}

func decode(b []byte) (e event, err error) {
	if len(b) < eventBytes {
		return e, fmt.Errorf("an event of %d bytes", len(b))
	}
	var raw watchEvent
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&raw)), eventBytes), b)
	e = event{time: raw.Time, pid: raw.Pid, kind: kind(raw.Kind), odd: raw.Odd != 0, lost: raw.Lost, word: raw.Word}
	if len(b) >= failedBytes {
		e.stack = decodeStack(b)
	}
	return e, nil
}
