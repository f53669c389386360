package board

import (
	"slices"
	"sync"

	"github.com/ttmon/ttmon/internal/model"
)

// PCI identities. subsystem_device carries the board's code.
const (
	PCIGrayskull = 0xFACA
	PCIWormhole  = 0x401E
	PCIBlackhole = 0xB140
)

// ArchOfPCI is the generation behind a PCI device id.
func ArchOfPCI(device uint16) model.Arch {
	switch device {
	case PCIWormhole:
		return model.Wormhole
	case PCIBlackhole:
		return model.Blackhole
	case PCIGrayskull:
		return Grayskull
	}
	return model.UnknownArch
}

const (
	gib = 1 << 30

	whBanks, whBankBytes, whDRAM = 12, 1 * gib, 12 * gib // 6 channels of 2 GiB, two banks each
	bhBanks, bhBankBytes, bhDRAM = 8, 4080 << 20, 32 * gib

	whL1 = 1464 << 10 // bytes per Tensix core
	bhL1 = 1536 << 10

	// What tt-metal's allocator has of it, and the cores that dispatch.
	whL1Usable, whDispatchCores = 1_393_472, 8
	bhL1Usable, bhDispatchCores = 1_461_248, 10
)

var (
	alone    = []ChipSlot{{}}
	leftEth  = []ChipSlot{{Name: "L"}, {Name: "R", Remote: true}} // n300: R hangs behind L
	noNumber Figure[float64]
)

// generation is what all boards of an architecture have in common, and all
// that is known about a board that is not in the catalogue.
func generation(arch model.Arch) Board {
	b := Board{Arch: arch, EthPorts: UnknownPorts, Slots: alone}
	switch arch {
	case model.Wormhole:
		b.Banks, b.BankBytes, b.NominalDRAM, b.L1PerCore = whBanks, whBankBytes, whDRAM, whL1
		b.ClockIdle, b.ClockMax = 500, 1000
	case model.Blackhole:
		b.L1PerCore = bhL1
		b.VoltageLimit, b.ThrottleAt, b.ShutdownAt = 0.9, 90, 110
		b.ClockIdle = 800
	}
	return b
}

func wormhole(code uint16, card, official, umd string, cores, eth int) Board {
	b := generation(model.Wormhole)
	b.Code, b.Card, b.Official, b.UMDType = code, card, official, umd
	b.Chips, b.Endpoints, b.EthPorts = 1, 1, eth
	b.Cores = Figure[int]{Now: cores}
	return b
}

func blackhole(code uint16, card, umd string, cores Figure[int], eth int) Board {
	b := generation(model.Blackhole)
	b.Code, b.Card, b.Official, b.UMDType = code, card, card, umd
	b.Chips, b.Endpoints, b.EthPorts = 1, 1, eth
	b.Banks, b.BankBytes, b.NominalDRAM = bhBanks, bhBankBytes, bhDRAM
	b.Cores, b.ClockMax = cores, 1350
	return b
}

func limits(b Board, tdp, tbp Figure[float64], amperes float64) Board {
	b.PowerLimit, b.BoardPowerLimit, b.CurrentLimit = tdp, tbp, amperes
	return b
}

func watts(w float64) Figure[float64] { return Figure[float64]{Now: w} }

func galaxy(b Board) Board {
	b.Chips, b.Endpoints, b.PerTray = 32, 32, 8
	return b
}

func pair(b Board) Board {
	b.Chips, b.Endpoints = 2, 2
	return b
}

func fan(b Board) Board {
	b.Fan = true
	return b
}

func unlisted(b Board, note string) Board {
	b.Unlisted, b.Note = true, note
	return b
}

func grayskull(code uint16, name string) Board {
	b := generation(Grayskull)
	b.Code, b.Card, b.Official, b.Chips, b.Endpoints = code, name, name, 1, 1
	return unlisted(b, "Grayskull is not supported: drivers since 2.2 do not bind it.")
}

// catalogue makes the rows. Limits of Blackhole boards are the defaults of
// firmware 19; Wormhole firmware publishes no default for its core limits.
func catalogue() []Board {
	cores := func(n int) Figure[int] { return Figure[int]{Now: n} }
	p150Cores := Figure[int]{Now: 120, Since: Bundle{Major: 19, Minor: 5}, Before: 140}
	p300 := func(w float64) Figure[float64] {
		return Figure[float64]{Now: w, Since: Bundle{Major: 18, Minor: 12}} // was higher before
	}
	since196 := func(w float64) Figure[float64] {
		return Figure[float64]{Now: w, Since: Bundle{Major: 19, Minor: 6}}
	}
	galaxyTDP := Figure[float64]{Now: 130, Since: Bundle{Major: 19, Minor: 5}, Before: 170}

	n300 := limits(wormhole(0x14, "n300", "n300", "n300", 64, 16), noNumber, watts(300), 0)
	n300.Chips, n300.Slots = 2, leftEth

	p100 := limits(blackhole(0x36, "p100", "p100", cores(0), 0), watts(150), noNumber, 200)
	p100.Official, p100.Note = "bh-scrappy", "A development board: how many cores it has depends on its fuses."

	p100a := limits(blackhole(0x43, "p100a", "p100", cores(120), 0), watts(150), watts(300), 200)
	p100a.Banks, p100a.NominalDRAM = 7, 28*gib

	tg := unlisted(wormhole(0x0B, "wh_4u", "wh_4u", "", 80, 16), "A module of the first Galaxy, without PCIe of its own.")
	tg.Endpoints = 0

	galaxyBH := galaxy(limits(blackhole(0x47, "galaxy-blackhole", "ubb_blackhole", cores(130), 12), galaxyTDP, noNumber, 500))
	galaxyBH.Official = "tt-galaxy-bh"
	galaxyC := unlisted(galaxyBH, "Galaxy CF, of firmware 19.15 and later; one DRAM channel of a chip may be harvested, which only its firmware knows.")
	galaxyC.Code, galaxyC.Card, galaxyC.UMDType = 0x202, "galaxy-blackhole-cf", "ubb_blackhole_cf"

	return []Board{
		grayskull(0x01, "e300_r2"),
		grayskull(0x03, "e150"),
		grayskull(0x07, "e75"),
		unlisted(wormhole(0x08, "nb_cb", "nb_cb", "", 0, UnknownPorts), "A development board."),
		grayskull(0x0A, "e300"),
		tg,
		n300,
		limits(wormhole(0x18, "n150", "n150", "n150", 72, 16), noNumber, watts(160), 0),
		galaxy(wormhole(0x35, "galaxy-wormhole", "tt-galaxy-wh", "ubb_wormhole", 80, 16)),
		p100,
		orion(0x37),
		orion(0x38),
		fan(limits(blackhole(0x40, "p150a", "p150", p150Cores, 12), watts(150), watts(300), 200)),
		limits(blackhole(0x41, "p150b", "p150", p150Cores, 12), watts(150), watts(300), 200),
		limits(blackhole(0x42, "p150c", "p150", cores(120), 12), watts(500), watts(450), 500),
		fan(p100a),
		pair(limits(blackhole(0x44, "p300b", "p300", cores(120), UnknownPorts), p300(94), watts(450), 500)),
		fan(pair(limits(blackhole(0x45, "p300a", "p300", cores(120), UnknownPorts), p300(86), watts(450), 500))),
		pair(limits(blackhole(0x46, "p300c", "p300", cores(120), UnknownPorts), since196(125), since196(550), 500)),
		galaxyBH,
		galaxyC,
	}
}

func orion(code uint16) Board {
	b := generation(model.Blackhole)
	b.Code, b.Card, b.Official, b.Chips, b.Endpoints = code, "orion", "orion", 1, 1
	return unlisted(b, "A chip test board.")
}

// boards is the catalogue, by code. Most commands do not need it: it is made on
// first use.
var boards = sync.OnceValue(catalogue)

// All lists the catalogue by code. The slice is the caller's.
func All() []Board { return slices.Clone(boards()) }

// ByCard finds a board by the name the driver, or for boards it does not know
// the vendor, gives it.
func ByCard(card string) (Board, bool) {
	list := boards()
	i := slices.IndexFunc(list, func(b Board) bool { return b.Card == card })
	if i < 0 {
		return Board{}, false
	}
	return list[i], true
}

// ByCode finds a board by its UPI code.
func ByCode(code uint16) (Board, bool) {
	list := boards()
	i, ok := slices.BinarySearchFunc(list, code, func(b Board, c uint16) int { return int(b.Code) - int(c) })
	if !ok {
		return Board{}, false
	}
	return list[i], true
}
