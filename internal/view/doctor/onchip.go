package doctor

import (
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
)

// onChip says what ttmond reads of the chips' own firmware, and what it could.
func (e *examiner) onChip() {
	if len(e.Snapshot.Devices) == 0 || e.Snapshot.Source != model.Daemon {
		return
	}
	const gives = "board power, GDDR temperatures and errors, the throttle reason, Ethernet links"
	var read, waiting []int
	refused := map[string][]int{}
	var order []Finding // a finding for each reason
	off := true
	for i := range e.Snapshot.Devices {
		d := &e.Snapshot.Devices[i]
		t := &d.Telemetry
		switch t.State {
		case model.TelemetryOff:
			continue
		case model.TelemetryOK:
			read = append(read, d.Index)
		case model.TelemetryPending:
			waiting = append(waiting, d.Index)
		case model.TelemetryStalled:
			e.add(Finding{
				Area: Firmware, Level: Warning, Code: "telemetry_stalled", Devices: []int{d.Index}, Text: words.Telemetry(t),
				Do: words.Reset(e.Snapshot, []int{d.Index}) + "; ttmond reads it again after a reset",
			})
		default:
			why := words.Telemetry(t)
			if refused[why] == nil {
				order = append(order, Finding{Area: Firmware, Level: Hint, Code: "telemetry_" + string(t.Cause), Text: why})
			}
			refused[why] = append(refused[why], d.Index)
		}
		off = false
	}
	for _, f := range order {
		f.Devices = refused[f.Text]
		f.Text = "the firmware of device " + words.Ranges(f.Devices) + " is not read: " + f.Text
		e.add(f)
	}
	switch {
	case off:
		e.addHost(Firmware, OK, "telemetry_off", "ttmond does not read the chips' firmware, which would give "+gives,
			`firmware = "table" in ttmond's configuration reads it without a firmware message; see docs/firmware.md for what it touches`)
	case len(read) > 0:
		e.add(Finding{Area: Firmware, Level: OK, Code: "telemetry", Devices: read, Text: "ttmond reads the chips' firmware: " + gives})
	case len(waiting) > 0:
		e.add(Finding{Area: Firmware, Level: OK, Code: "telemetry_pending", Devices: waiting, Text: "ttmond is about to read the chips' firmware"})
	}
}
