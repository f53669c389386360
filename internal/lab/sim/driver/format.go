package driver

import (
	"cmp"
	"fmt"

	"github.com/ttmon/ttmon/internal/lab/sim/chip"
)

// These tables are the driver's side of internal/source/kmd/attr.go: which words
// its files are made of, and how. Neither is made from the other, so that tests of
// ttmon on a simulated host find a mistake in either.

// Formats of the tt_* attributes. hi is the word of the attribute's tag, lo
// that of the next one, for values of two words.

func decimal(hi, _ uint32) string { return fmt.Sprint(hi) }
func hex64(hi, lo uint32) string  { return fmt.Sprintf("%08X%08X", hi, lo) }
func version4(w, _ uint32) string {
	return fmt.Sprintf("%d.%d.%d.%d", w>>24, w>>16&0xFF, w>>8&0xFF, w&0xFF)
}

func ethernet(w, _ uint32) string  { return fmt.Sprintf("%d.%d.%d", w>>16&0xFF, w>>12&0xF, w&0xFFF) }
func cardType(hi, _ uint32) string { return cmp.Or(cardNames[uint16(hi>>4)], "unknown") }

// cardNames is the driver's own table of board codes. It is written down apart
// from that of package board, which ttmon reads with.
var cardNames = map[uint16]string{
	0x14: "n300", 0x18: "n150", 0x35: "galaxy-wormhole",
	0x36: "p100", 0x40: "p150a", 0x41: "p150b", 0x42: "p150c", 0x43: "p100a",
	0x44: "p300b", 0x45: "p300a", 0x46: "p300c", 0x47: "galaxy-blackhole",
}

// attribute is one tt_* file.
type attribute struct {
	name   string
	tag    chip.Tag
	wide   bool // takes the next tag too
	wh, bh Version
	format func(hi, lo uint32) string
	legacy uint32 // mask of the word in the legacy array; 0: all of it
}

var attributes = []attribute{
	{"tt_aiclk", chip.AIClk, false, always, always, decimal, 0xFFFF},
	{"tt_axiclk", chip.AXIClk, false, always, always, decimal, 0xFFFF},
	{"tt_arcclk", chip.ARCClk, false, always, always, decimal, 0xFFFF},
	{"tt_serial", chip.BoardIDHigh, true, always, always, hex64, 0},
	{"tt_card_type", chip.BoardIDHigh, false, always, always, cardType, 0},
	{"tt_asic_id", chip.ASICIDHigh, true, v230, v210, hex64, 0},
	{"tt_fw_bundle_ver", chip.Bundle, false, always, always, version4, 0},
	{"tt_m3app_fw_ver", chip.M3App, false, always, always, version4, 0},
	{"tt_m3bl_fw_ver", chip.M3Boot, false, always, never, version4, 0},
	{"tt_arc_fw_ver", chip.ARCFW, false, always, never, version4, 0},
	{"tt_eth_fw_ver", chip.EthFW, false, always, never, ethernet, 0},
	{"tt_ttflash_ver", chip.TTFlash, false, always, never, version4, 0},
	{"tt_heartbeat", chip.Heartbeat, false, v270, v270, decimal, 0},
	{"tt_therm_trip_count", chip.ThermTrips, false, never, v270, decimal, 0},
}

// sensor is one hwmon value. The driver computes in 32 bits without a sign
// and lets overflows happen; so does convert.
type sensor struct {
	name    string
	tag     chip.Tag
	wh, bh  Version
	convert func(w uint32) uint32
	legacy  func(w uint32) uint32 // from the word of the legacy array, 16-bit fields
}

func milli(w uint32) uint32 { return w * 1000 }
func micro(w uint32) uint32 { return w * 1000_000 }
func same(w uint32) uint32  { return w }
func upper(w uint32) uint32 { return w >> 16 }

// fixed16 turns 16.16 degrees into thousandths.
func fixed16(w uint32) uint32 { return w>>16*1000 + w&0xFFFF*1000>>16 }

func low(f func(uint32) uint32) func(uint32) uint32 {
	return func(w uint32) uint32 { return f(w & 0xFFFF) }
}

// sixteenths is the legacy temperature: 1/16 °C in 16 bits.
func sixteenths(w uint32) uint32 { return w >> 12 & 0xFFFF * 1000 / 16 }

var sensors = []sensor{
	{"temp1_input", chip.ASICTemp, always, always, fixed16, sixteenths},
	{"temp1_max", chip.ThrottleLimit, always, v290, milli, low(milli)},
	{"in0_input", chip.VCore, always, always, same, same},
	{"in0_max", chip.VDDLimits, always, v290, upper, upper},
	{"curr1_input", chip.TDC, always, always, milli, low(milli)},
	{"curr1_max", chip.TDCLimit, always, v290, milli, low(milli)},
	{"power1_input", chip.TDP, always, always, micro, low(micro)},
	{"power1_max", chip.TDPLimit, always, v290, micro, low(micro)},
	{"fan1_input", chip.FanRPM, never, v200, same, same},
}

// label is a hwmon name; the driver makes it whether the value exists or not.
type label struct{ name, wh, bh string }

var labels = []label{
	{"temp1_label", "asic1_temp", "asic_temp"},
	{"in0_label", "vcore1", "vcore"},
	{"curr1_label", "current1", "current"},
	{"power1_label", "power1", "power"},
	{"fan1_label", "", "fan_rpm"},
}
