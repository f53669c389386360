package words

import (
	"fmt"

	"github.com/ttmon/ttmon/internal/model"
)

// State is the word for a device's state. One that is ok only as far as can be
// told has the mark of figures that are unsure.
func State(d *model.Device) string {
	if d.State == model.StateOK && d.StateReason.Cause != "" {
		return "~ok"
	}
	return string(d.State)
}

// StateReason says why a device is in its state, as the end of a sentence;
// empty where there is nothing to say. It is safe for a terminal.
func StateReason(d *model.Device) string {
	r := d.StateReason
	switch r.Cause {
	case model.HeartbeatUnseen:
		return "as far as one sample tells: whether the firmware is alive shows in a second one (smi --sample 1500, smi -l 1, top, ttmond)"
	case model.NoHeartbeat:
		return "as far as can be told: driver or firmware offer no heartbeat, so that firmware that hangs does not show"
	case model.NoTelemetry:
		return "the driver shows no telemetry: the firmware is not up yet, hangs, or is too old for this driver"
	case model.NoVitalSigns:
		return "no telemetry that can be believed"
	case model.HeartbeatStopped:
		if age, ok := d.HeartbeatAge.Get(); ok {
			return fmt.Sprintf("firmware heartbeat stopped %s ago", Span(seconds(age)))
		}
		return "firmware heartbeat stopped"
	case model.AllOnes:
		return "the chip answers with all ones: it is off the bus or without power"
	case model.ReadBlocked:
		return "reading " + Escape(r.File) + " has not returned" + since(r) + ": a reset is under way, or the chip hangs"
	case model.ResetWindow:
		return "in its reset window, waiting for the post-reset step"
	case model.DriverUnloaded:
		return "the driver was unloaded" + since(r)
	case model.Unbound:
		return "let go by the driver" + since(r)
	case model.OffBus:
		return "gone from the bus" + since(r)
	case model.SaidGone:
		return "the driver says the device is gone"
	}
	return ""
}

func since(r model.StateReason) string {
	if r.Since.IsZero() {
		return ""
	}
	return " since " + r.Since.Local().Format("15:04:05")
}
