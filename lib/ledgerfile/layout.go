package ledgerfile

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The structs in this file are those of ttmon_ledger.h, field by field: a test has a
// compiler of C compare them. Records are read and written as they lie in the file, so
// this package is for hosts that are little-endian, as those with boards are.

// Prefix begins the names of ledgers: ttmon-ledger-<pid>-<16 hex digits>.
const Prefix = "ttmon-ledger-"

// Version is the version of the layout that this package knows.
const Version = 1

const magic = "TTMONLDG"

// Sections of a ledger, in the order of the header.
const (
	secChips = iota
	secLists
	secSites
	secFrames
	secNodes
	secStrings
	secBlocks
	numSections
	secEvents = numSections // a ring, which is not copied with the rest
)

// Sections of what ran on the chips.
const (
	secWork = iota
	secOps
	secNames
	workSections
)

// Sections of requests that failed.
const (
	secFailures = iota
	secFailedBlocks
	failureSections
)

// Records that a section may have at most. The writer's own limits are the
// same; a file that says more is damaged.
var maxRecords = [numSections]uint32{256, 4096, 1 << 16, 1 << 16, 1 << 18, 4 << 20, 4 << 20}

const (
	maxEvents       = 1 << 20
	maxFailures     = 64
	maxFailedLists  = 6
	maxFailedBlocks = 1 << 20
	chipsPerLedger  = 256
	chipOps         = 256
	chipGaps        = 8
	maxNames        = 1024
)

// section describes a part of the file: records of one kind, from 0.
type section struct {
	Offset         uint64
	Size           uint32 // of a record
	Capacity, Used uint32 // records
	_              uint32
}

// check refuses a section that cannot have such records, at most so many, behind a
// place in the file.
func (s *section) check(size uintptr, most uint32, behind uint64) error {
	if uintptr(s.Size) != size || s.Used > most || s.Offset < behind || s.Offset > 1<<32 {
		return fmt.Errorf("%w: a section of %d records of %d bytes at %d", ErrDamaged, s.Used, s.Size, s.Offset)
	}
	return nil
}

// end is where the section ends.
func (s *section) end() uint64 { return s.Offset + uint64(s.Used)*uint64(s.Size) }

// header is what a ledger begins with. Older ones end before its last fields, which are
// zero then.
type header struct {
	Magic                    [8]byte
	Version, Header          uint32 // Header is how many bytes the writer's has
	Epoch                    uint64
	PID                      int32
	Flags                    Flags
	StartTicks, PIDNamespace uint64
	Clock                    clock
	Lost, Unknown, Unmatched uint64
	Run                      [64]byte
	Library                  [256]byte
	Comm                     [16]byte
	Section                  [numSections + 1]section
	EventCount               uint64
	Work                     [workSections]section
	Host                     hostRecord
	Failure                  [failureSections]section
	Gaps                     section
}

// Bytes of the headers that there are.
const (
	sizeOfHeader   = unsafe.Sizeof(header{})
	firstHeader    = unsafe.Offsetof(header{}.Section) + numSections*unsafe.Sizeof(section{})
	eventsHeader   = unsafe.Offsetof(header{}.Work)
	workHeader     = unsafe.Offsetof(header{}.Failure)
	failuresHeader = unsafe.Offsetof(header{}.Gaps)
)

// clock turns the ledger's monotonic times into wall time.
type clock struct{ Real, Monotonic int64 }

type chipRecord struct {
	ID      uint64
	Logical int32
	Open    uint32
}

// chipSet has a bit for each chip of the ledger.
type chipSet [chipsPerLedger / 64]uint64

func (s *chipSet) add(chip uint32) { s[chip/64] |= 1 << (chip % 64) }

// numbers are the chips in the set, of so many that there are.
func (s *chipSet) numbers(chips int) (list []int) {
	for i := range min(chipsPerLedger, chips) {
		if s[i/64]>>(i%64)&1 != 0 {
			list = append(list, i)
		}
	}
	return list
}

type listRecord struct {
	State               State
	Pool                Pool
	Own, Late           uint8
	Group, Banks, Nth   uint32
	ID, Capacity, Base  uint64
	Alignment, Smallest uint64
	CutLow, CutHigh     uint64
	Chips               chipSet
	Made, Closed        int64
	Live, Peak          Sum
	PeakTime            int64
	PeakCount, Lives    uint32
	Total, Left         Sum
	Failed, FailedBytes uint64
	SubDevice           uint32
	_                   [36]byte
}

type siteRecord struct {
	List, Tag, Node, PeakCount uint32
	Live, Peak, Total, Left    Sum
	LeftLargest                uint64
	LeftOldest                 int64
	Tensor, Kept               uint32
	LeftQuarters               [4]uint16
	_                          [16]byte
}

type frameRecord struct{ File, Function, Line, Offset uint32 }

type nodeRecord struct{ Parent, Frame uint32 }

type blockRecord struct {
	Address, Bytes, Asked uint64
	Time                  int64
	Site, Sequence        uint32
}

type eventRecord struct {
	Number                      uint64
	Time                        int64
	Address, Bytes, Asked, More uint64
	List, Tag, Node             uint32
	Kind                        EventKind
	Pool                        Pool
	Late, _                     uint8
}

type waitRecord struct {
	Since  int64
	Kind   WaitKind
	Thread uint32
}

type hostRecord struct {
	Enqueued, Replayed, Waits uint64
	LastEnqueue, LastFinish   int64
	LastName                  uint32
	Queues, SubDevices        uint16
	Wait                      [8]waitRecord
}

type workRecord struct {
	Sequence            uint32
	Logical             int32
	State               WorkState
	Loss                WorkLoss
	_                   [6]byte
	TicksPerNS          float64
	Programs, Busy      uint64
	Gaps, Gap           uint64
	LongestGap, Longest uint64
	FirstStart, LastEnd uint64
	Refused, Unprofiled uint64
	Stalls, Stalled     uint64
	Since, LastRecord   int64
	LastName            uint32
	LongestName         uint32
	Mark                [2]markRecord
	MarkEnd             [2]uint64
}

type markRecord struct {
	Time int64
	Busy uint64
}

type opRecord struct {
	Calls, Ticks, Longest uint64
	Name, _               uint32
}

type gapRecord struct {
	Ticks    uint64
	End      int64
	After, _ uint32
}

type nameRecord struct {
	Length uint32
	Text   [92]byte
}

type failureRecord struct {
	Number, Count            uint64
	First, Last, Time        int64
	Bytes, Asked             uint64
	Page, Limit              uint64
	Shards, Node, Tag, Group uint32
	Kind                     FailureKind
	BottomUp, Known, Lists   uint8
	FirstBlock, Blocks       uint32
	Missed                   uint32
	Chips                    chipSet
	Program, Reach, Lowest   uint64
	Made                     int64
	Cores                    [4]uint8
	Tensor, SubDevice        uint32
	Reason                   uint32
	Region, Needed           uint64
	List                     [maxFailedLists]failedListRecord
}

type failedListRecord struct {
	List                uint32
	Pool                Pool
	Late                uint8
	_                   [2]byte
	Banks, Nth          uint32
	Capacity, Base      uint64
	Alignment, Smallest uint64
	CutLow, CutHigh     uint64
	Blocks              uint64
}

type failedBlockRecord struct {
	Address, Bytes, Asked uint64
	Time                  int64
	Node, Tag             uint32
	List, Tensor          uint32
}

// recordsIn are the records that lie in memory, which begins where one can.
func recordsIn[T any](memory []byte) []T {
	var x T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(memory))), len(memory)/int(unsafe.Sizeof(x)))
}

// bytesOf is the memory of records.
func bytesOf[T any](list []T) []byte {
	var x T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(list))), len(list)*int(unsafe.Sizeof(x)))
}

// load copies so many records from a place in a file, into memory that is used again.
func load[T any](fd int, at uint64, n int, to *[]T) error {
	var x T
	if cap(*to) < n {
		*to = make([]T, n, max(n, min(n+n/2, keptBuffer/int(unsafe.Sizeof(x)))))
	}
	*to = (*to)[:n]
	b := bytesOf(*to)
	switch got, err := pread(fd, b, int64(at)); {
	case err != nil:
		return fmt.Errorf("reading the ledger: %w", err)
	case got < len(b):
		return fmt.Errorf("%w: it is cut off in a %T", ErrDamaged, x)
	}
	return nil
}

// all copies a section.
func all[T any](fd int, s section, to *[]T) error { return load(fd, s.Offset, int(s.Used), to) }

// shrink gives memory back that is too large to be kept for the next ledger.
func shrink[T any](list *[]T) {
	if len(bytesOf((*list)[:cap(*list)])) > keptBuffer {
		*list = nil
	}
}

// keptBuffer is how large a buffer may be that is kept for the next ledger.
const keptBuffer = 1 << 20

func pread(fd int, b []byte, at int64) (n int, err error) {
	for n < len(b) {
		m, err := unix.Pread(fd, b[n:], at+int64(n))
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return n, err
		}
		if m == 0 {
			break
		}
		n += m
	}
	return n, nil
}

// textAt is a text by its number; what does not lead to one is empty. It is not a
// copy: the ledger's texts are never changed.
func textAt(texts []byte, at uint32) string {
	if at == 0 || uint64(at)+4 > uint64(len(texts)) {
		return ""
	}
	n := binary.LittleEndian.Uint32(texts[at:])
	if n == 0 || n > 1<<12 || uint64(at)+4+uint64(n) > uint64(len(texts)) {
		return ""
	}
	return unsafe.String(&texts[at+4], int(n))
}
