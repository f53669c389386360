package board

import "github.com/ttmon/ttmon/internal/model"

// Grayskull is the generation before Wormhole. The catalogue knows its boards
// by name; drivers since 2.2 refuse to bind them.
const Grayskull model.Arch = "grayskull"

// UnknownPorts is Board.EthPorts where the number is not published.
const UnknownPorts = -1

// Board is one row of the catalogue. A figure of zero is not known, unless its
// comment says otherwise. Slices belong to the catalogue: read only.
type Board struct {
	Code     uint16 // the UPI: bits 36… of the serial, and the PCI subsystem device; 0: not identified
	Card     string // as tt_card_type prints it: "n300"; the vendor's name where the driver prints "unknown"
	Official string // as the vendor's tt-smi names it: "tt-galaxy-wh"
	UMDType  string // board_type of cluster descriptors: "ubb_wormhole"; empty if UMD has none
	Arch     model.Arch
	Unlisted bool   // the driver prints "unknown" for it
	Note     string // why ttmon does not know more about it, as a sentence; usually empty

	Chips     int        // on the whole board; a Galaxy counts as one board of 32
	Endpoints int        // PCIe functions on the whole board
	Slots     []ChipSlot // the chips behind each endpoint; the endpoint's own one first
	PerTray   int        // chips on one tray of a Galaxy; 0 elsewhere

	// DRAM of one chip. Banks × BankBytes is what tt-metal's allocator sees and
	// what views divide by; NominalDRAM is what the data sheet says.
	Banks       int
	BankBytes   uint64
	NominalDRAM uint64

	Cores     Figure[int] // usable Tensix cores of one chip
	L1PerCore uint64      // bytes, physical
	EthPorts  int         // usable Ethernet ports of one chip; 0 is none, UnknownPorts not known

	PowerLimit      Figure[float64] // W, core rail of one chip (TDP)
	BoardPowerLimit Figure[float64] // W, input of the whole board (TBP)
	CurrentLimit    float64         // A, core rail of one chip (TDC)
	VoltageLimit    float64         // V
	ThrottleAt      float64         // °C
	ShutdownAt      float64         // °C

	ClockIdle float64 // MHz, AICLK without a request to raise it
	ClockMax  float64 // MHz, AICLK while a process has the chip open for work

	Fan bool // the board's firmware runs a fan; others may still report its speed
}

// ChipSlot is a position of a chip behind an endpoint.
type ChipSlot struct {
	Name   string // "L", "R"; empty where there is nothing to tell apart
	Remote bool   // reached over Ethernet through the endpoint's own chip
}

// Figure is a number that a firmware release may have changed.
type Figure[T int | float64] struct {
	Now    T      // holds since the bundle Since, or always if that is zero
	Since  Bundle // only major and minor count
	Before T      // held before; zero if not known
}

// At is the figure under a firmware bundle ("19.5.0.0"; empty if not known).
func (f Figure[T]) At(bundle string) model.Reading[T] {
	v := f.Now
	if f.Since != (Bundle{}) {
		b, ok := ParseBundle(bundle)
		if !ok {
			return model.Missing[T](model.Absent, "it depends on the firmware bundle, which is not known")
		}
		if !b.Has(f.Since.Major, f.Since.Minor) {
			v = f.Before
		}
	}
	return nominal(v)
}

// DRAMBytes is the DRAM of one chip as tt-metal's allocator sees it.
func (b Board) DRAMBytes() model.Reading[uint64] { return nominal(uint64(b.Banks) * b.BankBytes) }

// AllocatorL1 is the L1 that tt-metal's allocator has on one chip: one column
// or row of cores dispatches, and each of the others keeps the lower end for
// firmware and kernels. It moves a little between releases, and with how a
// program opens the chip: nominal.
func (b Board) AllocatorL1(bundle string) model.Reading[uint64] {
	dispatch, perCore := whDispatchCores, whL1Usable
	if b.Arch == model.Blackhole {
		dispatch, perCore = bhDispatchCores, bhL1Usable
	}
	if b.L1PerCore == 0 {
		return nominal(uint64(0))
	}
	return model.Map(b.Cores.At(bundle), func(n int) uint64 { return uint64(max(n-dispatch, 0)) * uint64(perCore) })
}

// L1Bytes is the L1 of one chip's usable cores together: what is on the
// silicon, and so the most that can be allocated there.
func (b Board) L1Bytes(bundle string) model.Reading[uint64] {
	if b.L1PerCore == 0 {
		return nominal(uint64(0))
	}
	return model.Map(b.Cores.At(bundle), func(n int) uint64 { return uint64(n) * b.L1PerCore })
}

// Identified reports whether the board is in the catalogue, and not only its
// generation known.
func (b Board) Identified() bool { return b.Card != "" }

// Galaxy reports whether the board is a Galaxy: trays of chips, all on PCIe.
func (b Board) Galaxy() bool { return b.PerTray > 0 }

const notListed = "the board catalogue has no figure for it"

func nominal[T int | float64 | uint64](v T) model.Reading[T] {
	if v == 0 {
		return model.Missing[T](model.Absent, notListed)
	}
	return model.NominalValue(v)
}
