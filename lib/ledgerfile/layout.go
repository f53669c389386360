package ledgerfile

import "encoding/binary"

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
)

// Bytes of a record of each section.
var recordSize = [numSections]uint32{16, 256, 128, 16, 8, 1, 40}

// Records that a section may have at most. The writer's own limits are the
// same; a file that says more is damaged.
var maxRecords = [numSections]uint32{256, 4096, 1 << 16, 1 << 16, 1 << 18, 4 << 20, 4 << 20}

// headerSize is what version 1 has; a later one may have more.
const headerSize = 592

// fullHeader is a header that also describes events.
const fullHeader = headerSize + sectionSize + 8

// Offsets of what follows the sections there.
const (
	offEventSection = headerSize
	offEventCount   = headerSize + sectionSize
	eventSize       = 64
	maxEvents       = 1 << 20
)

// Offsets in the record of an event.
const (
	eventNumber  = 0
	eventTime    = 8
	eventAddress = 16
	eventBytes   = 24
	eventAsked   = 32
	eventMore    = 40
	eventList    = 48
	eventTag     = 52
	eventNode    = 56
	eventKind    = 60
	eventPool    = 61
	eventLate    = 62
)

// Offsets in the header.
const (
	offVersion     = 8
	offHeader      = 12
	offEpoch       = 16
	offPID         = 24
	offFlags       = 28
	offStartTicks  = 32
	offNamespace   = 40
	offReal        = 48
	offMonotonic   = 56
	offLost        = 64
	offUnknown     = 72
	offUnmatched   = 80
	offRun         = 88
	offLibrary     = 152
	offComm        = 408
	offSections    = 424
	sectionSize    = 24
	runSize        = 64
	librarySize    = 256
	commSize       = 16
	chipsPerLedger = 256
)

// Offsets in the record of a list.
const (
	listState       = 0
	listPool        = 1
	listOwn         = 2
	listLate        = 3
	listGroup       = 4
	listBanks       = 8
	listNth         = 12
	listID          = 16
	listCapacity    = 24
	listBase        = 32
	listAlignment   = 40
	listSmallest    = 48
	listCutLow      = 56
	listCutHigh     = 64
	listChips       = 72
	listMade        = 104
	listClosed      = 112
	listLiveBytes   = 120
	listLiveBlocks  = 128
	listPeakBytes   = 136
	listPeakBlocks  = 144
	listPeakTime    = 152
	listPeakCount   = 160
	listLives       = 164
	listTotalBytes  = 168
	listTotalBlocks = 176
	listLeftBytes   = 184
	listLeftBlocks  = 192
	listFailed      = 200
	listFailedBytes = 208
	listSubDevice   = 216
)

// Offsets in the record of a site.
const (
	siteList        = 0
	siteTag         = 4
	siteNode        = 8
	sitePeakCount   = 12
	siteLiveBytes   = 16
	siteLiveBlocks  = 24
	sitePeakBytes   = 32
	sitePeakBlocks  = 40
	siteTotalBytes  = 48
	siteTotalBlocks = 56
	siteLeftBytes   = 64
	siteLeftBlocks  = 72
	siteLeftLargest = 80
	siteLeftOldest  = 88
	siteTensor      = 96
	siteKept        = 100
	siteQuarters    = 104
)

// Offsets in the record of a block.
const (
	blockAddress  = 0
	blockBytes    = 8
	blockAsked    = 16
	blockTime     = 24
	blockSite     = 32
	blockSequence = 36
)

// le reads and writes the fields; ledgers are little-endian everywhere.
var le = binary.LittleEndian
