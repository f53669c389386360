package chip

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ttmon/ttmon/internal/board"
	"github.com/ttmon/ttmon/internal/model"
)

// Firmware is what the chips run, as --firmware describes it. The zero
// Firmware is DefaultBundle with all its tags.
type Firmware struct {
	Bundle      board.Bundle // zero: DefaultBundle
	NoTelemetry bool         // no table at all: no tt_* files, no hwmon
	LabelsOnly  bool         // a table version the driver refuses: hwmon with labels only
	Fanless     bool         // tag 41 is not published
	Omit        []Tag        // further tags that are not published
}

// DefaultBundle is the firmware of a simulated chip unless told otherwise.
var DefaultBundle = board.Bundle{Major: 19, Minor: 9}

// ParseFirmware reads a --firmware value: a comma-separated list of a bundle
// version (19.4.0), "no-telemetry", "labels-only", "fanless" and
// "omit=TAG+TAG".
func ParseFirmware(s string) (Firmware, error) {
	var f Firmware
	for item := range strings.SplitSeq(s, ",") {
		item = strings.TrimSpace(item)
		switch tags, isOmit := strings.CutPrefix(item, "omit="); {
		case item == "":
		case item == "no-telemetry":
			f.NoTelemetry = true
		case item == "labels-only":
			f.LabelsOnly = true
		case item == "fanless":
			f.Fanless = true
		case isOmit:
			for word := range strings.SplitSeq(tags, "+") {
				tag, err := ParseTag(word)
				if err != nil {
					return f, fmt.Errorf("firmware %q: %w", s, err)
				}
				f.Omit = append(f.Omit, tag)
			}
		default:
			b, ok := parseBundle(item)
			if !ok {
				return f, fmt.Errorf("firmware %q: %q is neither a bundle version (19.4.0) nor no-telemetry, labels-only, fanless or omit=TAG+TAG", s, item)
			}
			f.Bundle = b
		}
	}
	return f, nil
}

// parseBundle reads two to four numbers.
func parseBundle(s string) (board.Bundle, bool) {
	parts := strings.Split(s, ".")
	if len(parts) < 2 || len(parts) > 4 {
		return board.Bundle{}, false
	}
	var n [4]uint8
	for i, p := range parts {
		v, err := strconv.ParseUint(p, 10, 8)
		if err != nil {
			return board.Bundle{}, false
		}
		n[i] = uint8(v)
	}
	return board.Bundle{Major: n[0], Minor: n[1], Patch: n[2], RC: n[3]}, true
}

// ParseTag reads the number of a tag.
func ParseTag(s string) (Tag, error) {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("%q is not the number of a telemetry tag", s)
	}
	return Tag(n), nil
}

func (f Firmware) bundle() board.Bundle {
	if f.Bundle == (board.Bundle{}) {
		return DefaultBundle
	}
	return f.Bundle
}

// Table reports whether the firmware publishes a tag table at all. Wormhole
// firmware does since 18.4; before, there was only the legacy array.
func (f Firmware) Table(arch model.Arch) bool {
	return !f.NoTelemetry && !f.LabelsOnly && (arch != model.Wormhole || f.bundle().Has(18, 4))
}

// Publishes reports whether the table of a chip holds a tag.
func (f Firmware) Publishes(s Spec, tag Tag) bool {
	if !f.Table(s.Arch) || slices.Contains(f.Omit, tag) || tag == FanRPM && (!s.Fan || f.Fanless) {
		return false
	}
	for _, row := range published {
		since := row.blackhole
		if s.Arch == model.Wormhole {
			since = row.wormhole
		}
		if slices.Contains(row.tags, tag) {
			return since != never && f.bundle().Has(uint8(since/100), uint8(since%100))
		}
	}
	return false
}

const (
	always = 0
	never  = -1
)

// published is the first firmware of each architecture that has a tag: 1808 is
// 18.8.
var published = []struct {
	tags                []Tag
	wormhole, blackhole int
}{
	{[]Tag{BoardIDHigh, BoardIDLow, VCore, TDP, TDC, ASICTemp, AIClk, AXIClk, ARCClk, M3App, Bundle, Heartbeat, EthFW, M3Boot, ARCFW}, always, always},
	{[]Tag{refreshMS, ethernetLive, memoryStatus, memorySpeed, location, boardPowerLimit, boardPower, enabledEthernet, enabledMemory}, always, always},
	{[]Tag{TTFlash, regulatorTemp, boardTemp, tensixRows}, always, never},
	{[]Tag{FanRPM, memoryFW, fanDuty, tensixColumns, enabledL2CPU, uncorrected, hottestMemory}, never, always},
	{[]Tag{l2cpuClock, l2cpuClock + 1, l2cpuClock + 2, l2cpuClock + 3}, never, always},
	{[]Tag{memoryTemp, memoryTemp + 1, memoryTemp + 2, memoryTemp + 3}, never, always},
	{[]Tag{corrected, corrected + 1, corrected + 2, corrected + 3}, never, always},
	{[]Tag{VDDLimits, TDCLimit, ThrottleLimit}, always, 1808},
	{[]Tag{shutdownLimit, maxClock}, 1808, 1808},
	{[]Tag{ThermTrips}, never, 1804},
	{[]Tag{ASICIDHigh, ASICIDLow}, 1807, 1804},
	{[]Tag{TDPLimit}, 1900, 1808},
	{[]Tag{clockFloor, clockCeiling, enabledFloors, enabledCeilings}, never, 1905},
	{[]Tag{clockReason, hostClockCap}, never, 1907},
	{[]Tag{throttleStarts, throttleTime}, never, 1914},
}
