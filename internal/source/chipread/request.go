package chipread

import (
	"github.com/ttmon/ttmon/internal/board/telemetry"
	"github.com/ttmon/ttmon/internal/model"
)

// Flag makes ttmond a reader of chips. It must be its only argument.
const Flag = "--read-chips"

// MaxChips is how many chips one process reads.
const MaxChips = 8

// Request is what to read of one chip.
type Request struct {
	Arch model.Arch
	Way  model.TelemetryWay
	Path string // of the PCI file, or of the device node
	// BusID is where the chip is. A node that turns out to be another chip's is
	// closed again.
	BusID string
	// Heartbeat is the driver's file of it, which the driver fences: where it
	// fails or takes long the chip is not touched. Empty: the driver has none.
	Heartbeat string
	// Node is the device node for what only windows reach (ByResource only);
	// empty: that is left out.
	Node string
	// Known is the table's directory as of an earlier sample. If it is still
	// where it was, only the values are read.
	Known *telemetry.Index
	// First asks for the values that do not change while the chip is up.
	First bool
	// Dispatch asks for the accounts of tt-metal's dispatch cores, Ethernet for
	// those of these channels' cores. Both read tiles that may have no clock:
	// the caller has made sure that a program of tt-metal has the chip open.
	Dispatch bool
	Ethernet []int
}

// OpensNode reports whether it takes opening the device node.
func (r *Request) OpensNode() bool { return r.Way == model.ByNode || r.Node != "" }

// Response is what was read of one chip, or why not.
type Response struct {
	Cause    model.TelemetryCause // empty: Words hold
	Errno    int                  // of the call that failed; 0: none did
	Index    telemetry.Index
	Words    telemetry.Words
	Dispatch *Dispatch // nil: not asked for, or not to be had
	// NoDispatch is why there is no Dispatch where it was asked for.
	NoDispatch DispatchCause
	Links      []Link
}

// Link is the account of an Ethernet core.
type Link struct {
	Channel                int
	Retrains               uint32
	Corrected, Uncorrected uint64
}

// Dispatch is one reading of the dispatch cores' counters.
type Dispatch struct {
	Version  uint32
	Queues   []Queue
	Workers  int // cores that programs can run on; 0: the program does not say
	Programs uint32
}

// Queue is the account of one command queue, in cycles.
type Queue struct {
	Now, Busy uint64 // Busy has the part of a program that still runs
}

// DispatchCause is why the dispatch cores were not read.
type DispatchCause string

// The causes.
const (
	NoBuffer       DispatchCause = "no_buffer"     // firmware before 19.12 (Blackhole), 19.13 (Wormhole)
	NoProgram      DispatchCause = "no_program"    // no signature: no program, or it was closed in good order
	SlowDispatch   DispatchCause = "slow_dispatch" // such a program has no dispatch cores
	ControlInvalid DispatchCause = "control_invalid"
	CoreSilent     DispatchCause = "core_silent" // all ones: never asked again until the chip is reset
	CoreInvalid    DispatchCause = "core_invalid"
)

// Bus is how chip memory is reached.
type Bus interface {
	// OpenResource maps a PCI file.
	OpenResource(path string) (Mapping, error)
	// OpenNode opens a device node with O_APPEND.
	OpenNode(path string) (Node, error)
}

// Node is an open device node.
type Node interface {
	BusID() (string, error)
	Allocate(size uint64) (id uint32, offset uint64, err error)
	Map(offset, size uint64) (Mapping, error)
	Aim(id uint32, address uint64, x, y uint16) error
	Free(id uint32) error
	Close() error
}

// Mapping is mapped memory of a chip. A load of one that was taken away panics
// with a runtime.Error.
type Mapping interface {
	Load(offset uint64) uint32 // offset is a multiple of 4
	Close() error
}
