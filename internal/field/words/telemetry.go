package words

import (
	"fmt"
	"strings"

	"github.com/ttmon/ttmon/internal/model"
)

// telemetrySentences say why a chip's telemetry table was not read.
var telemetrySentences = map[model.TelemetryCause]string{
	model.DriverUnknown:     "the driver's release is not known, so it is not known whether reading is harmless",
	model.DriverTooOld:      "driver 1.32 or later is needed to read a chip's memory",
	model.CloseSendsMessage: "driver 2.6.0 sends a firmware message whenever a Blackhole is closed; 2.7.0 does not",
	model.PowerDownPending:  "opening the chip now would cancel its pending power-down; waiting until it is over",
	model.DeviceNotOK:       "the chip is not read while its firmware is not seen to run",
	model.OldWindowUser:     "a process that has the chip open may use windows without asking the driver; waiting until it closes it",
	model.HoldersUnknown:    "it is not known who has the chip open",
	model.BackingOff:        "the chip read as all ones twice; trying again in a minute",
	model.ArchUnknown:       "ttmon does not know the table of this architecture",

	model.ExclusiveHolder:  "a process has the chip open exclusively",
	model.ReadDenied:       "permission denied, or the kernel is locked down (Secure Boot)",
	model.ChipGone:         "the chip is gone",
	model.ResetUnderWay:    "the chip is being reset",
	model.ResetWhileRead:   "the chip was reset while it was read",
	model.NoWindowFree:     "programs use all windows of the chip",
	model.WindowRefused:    "the driver offers no window",
	model.WindowOutsideBAR: "the window lies outside of the chip's PCI memory, as in some virtual machines",
	model.ReadAllOnes:      "the chip reads as all ones: it is off the bus",
	model.NoTable:          "the firmware publishes no table: it is too old, or not up",
	model.TableInvalid:     "the firmware's table is not plausible",
	model.TableUnknown:     "the firmware's table has a version that ttmon does not know",
	model.ReaderFailed:     "the reading process failed; see ttmond's log",
	model.ReadStalled:      "a read of the chip does not return",
}

// TelemetryCause is the sentence of a cause, without a full stop.
func TelemetryCause(c model.TelemetryCause) string {
	if s, ok := telemetrySentences[c]; ok {
		return s
	}
	return Escape(string(c))
}

// RemoteUnread is why nothing is known of the sensors of a chip behind Ethernet.
const RemoteUnread = "ttmond does not read chips behind Ethernet; ttmon-server can ask tt-telemetry"

// Telemetry says why there is no sample of a chip's table, or none that is new;
// empty: there is one.
func Telemetry(t *model.Telemetry) string {
	switch t.State {
	case model.TelemetryOff:
		return "firmware telemetry is off: set firmware = \"table\" in ttmond's configuration"
	case model.TelemetryOK:
		return ""
	case model.TelemetryPending:
		return "the first sample has not been read yet"
	case model.TelemetryStalled:
		return fmt.Sprintf("%s since %s; it is not read again until it is reset", TelemetryCause(model.ReadStalled), t.Since.Format("15:04:05"))
	}
	return TelemetryCause(t.Cause)
}

// clockLimits name what limits a clock.
var clockLimits = map[model.ClockLimit]string{
	model.LimitFMax: "its highest clock", model.LimitPower: "core power", model.LimitFastCurrent: "a peak of core current",
	model.LimitCurrent: "core current", model.LimitThermal: "temperature", model.LimitBoardPower: "board power",
	model.LimitVoltage: "voltage", model.LimitMemoryThermal: "GDDR temperature", model.LimitBoardAverage: "average board power",
	model.LimitBoardCritical: "critical board power", model.LimitHost: "a limit set by software", model.LimitOther: "an arbiter that this release does not know",
}

// ClockLimit is what limits a clock, as the end of "limited by …".
func ClockLimit(l model.ClockLimit) string {
	if s, ok := clockLimits[l]; ok {
		return s
	}
	return Escape(string(l))
}

// ClockReason says why the AI clock is what it is.
func ClockReason(c *model.ClockControl) string {
	switch c.Reason.V {
	case model.ClockAtFloor:
		if c.Floor == model.FloorBusy {
			return "as high as work asks for"
		}
		return "idle"
	case model.ClockAtCeiling:
		return "limited by " + ClockLimit(c.Limit)
	case model.ClockClamped:
		return "clamped to what the chip can do"
	case model.ClockSweep:
		return "a clock sweep runs"
	case model.ClockForced:
		return "forced by hand"
	}
	return Escape(string(c.Reason.V))
}

// Port names an end of a link: "device 3 channel 1", "device 0 R channel 8".
func Port(p model.Port) string {
	name := fmt.Sprintf("device %d", p.Device)
	if p.Name != "" {
		name += " " + Escape(p.Name)
	}
	return fmt.Sprintf("%s channel %d", name, p.Channel)
}

// LinkState says how an Ethernet link is: "up, to device 3 channel 1".
func LinkState(p *model.EthernetPort) string {
	text := "down"
	switch {
	case !p.Up.Known():
		text = Missing(p.Up.Status)
	case p.Up.V:
		text = "up"
	}
	if p.LostInReset() {
		text += " since the chip's reset"
	}
	switch p.Link {
	case model.LinkHere:
		text += ", to " + Port(p.Peer)
	case model.LinkOutside:
		text += ", to another host"
		if p.Remote.Known() {
			text += fmt.Sprintf(" (chip %d channel %d)", p.Remote.Chip, p.Remote.Channel)
		}
	}
	return text
}

// LinkCounts are the counters of a link, where they are known, behind a comma.
func LinkCounts(p *model.EthernetPort) string {
	if !p.Retrains.Known() {
		return ""
	}
	text := ", " + Count(int(p.Retrains.V), "retrain")
	if c := Codewords(p); c != "" {
		text += ", codewords " + c
	}
	if p.Sent.Known() && p.Received.Known() {
		text += ", sends " + Rate(p.Sent.V) + ", receives " + Rate(p.Received.V)
	}
	return text
}

// Codewords are the counts of a port's codewords, those that are known.
func Codewords(p *model.EthernetPort) string {
	var parts []string
	if n, ok := p.Corrected.Get(); ok {
		parts = append(parts, fmt.Sprintf("corrected %s%d", Mark(p.CodewordBound), n))
	}
	if n, ok := p.Uncorrected.Get(); ok {
		parts = append(parts, fmt.Sprintf("uncorrected %s%d", Mark(p.CodewordBound), n))
	}
	return strings.Join(parts, ", ")
}
