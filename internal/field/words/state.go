package words

import (
	"fmt"
	"time"

	"github.com/ttmon/ttmon/internal/model"
)

// StateReason says why a device is in its state, as the end of a sentence;
// empty where there is nothing to say. It is safe for a terminal.
func StateReason(d *model.Device) string {
	r := d.StateReason
	if age, ok := d.HeartbeatAge.Get(); ok && r.Cause == model.HeartbeatStopped {
		return cause(d, fmt.Sprintf(" %s ago", Span(seconds(age))))
	}
	if r.Since.IsZero() {
		return cause(d, "")
	}
	return cause(d, " since "+r.Since.Local().Format("15:04:05"))
}

// cause says why, and when as told.
func cause(d *model.Device, when string) string {
	r := d.StateReason
	switch r.Cause {
	case model.HeartbeatUnseen:
		return "as far as one sample tells: whether the firmware is alive shows in a second one (smi --sample 1500, smi -l 1, top, ttmond)"
	case model.NoHeartbeat:
		return "as far as can be told: driver or firmware offer no heartbeat, so that firmware that hangs does not show"
	case model.ReadSlow:
		return "as far as was read: " + Escape(r.File) + " has not answered yet"
	case model.NoTelemetry:
		return "the driver shows no telemetry: the firmware is not up yet, hangs, or is too old for this driver"
	case model.NoVitalSigns:
		return "no telemetry that can be believed"
	case model.HeartbeatStopped:
		return "firmware heartbeat stopped" + when
	case model.AllOnes:
		return "the chip answers with all ones: it is off the bus or without power"
	case model.ReadBlocked:
		return "reading " + Escape(r.File) + " has not returned" + when + ": a reset is under way, or the chip hangs"
	case model.ResetWindow:
		return "in its reset window, waiting for the post-reset step"
	case model.DriverUnloaded:
		return "the driver was unloaded" + when
	case model.Unbound:
		return "unbound from the driver" + when
	case model.OffBus:
		return "gone from the bus" + when
	case model.ReportedGone:
		return "the driver says the device is gone"
	}
	return ""
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
