package words

import (
	"fmt"

	"github.com/ttmon/ttmon/internal/model"
)

// Throttling says whether a device runs below its clock while somebody uses
// it, and by what, as far as the driver's files tell: the firmware's own reason is
// in none of them, so that it is concluded from what is at its limit.
func Throttling(s *model.Snapshot, d *model.Device) string {
	clock, most := d.AICLK, d.AICLKMax
	switch {
	case !clock.Known() || !most.Known():
		return "N/A (the clock or its maximum is not known)"
	case clock.V >= 0.97*most.V:
		return "no"
	case !inUse(s, d.Index):
		return "no (idle: nobody has it open)"
	}
	atLimit := func(v, limit model.Reading[float64]) bool {
		return v.Known() && limit.Known() && limit.V > 0 && v.V >= 0.95*limit.V
	}
	slow := fmt.Sprintf("(%s of %s; concluded, the driver does not say)", Whole(clock.V), MHz(most.V))
	switch {
	case d.Temperature.Known() && d.TemperatureLimit.Known() && d.Temperature.V >= d.TemperatureLimit.V-1:
		return "~by heat " + slow
	case atLimit(d.Power, d.PowerLimit):
		return "~by power " + slow
	case atLimit(d.Current, d.CurrentLimit):
		return "~by current " + slow
	}
	return "~no (below its maximum, and neither heat, power nor current is at its limit)"
}

// inUse tells whether a process has a device open.
func inUse(s *model.Snapshot, device int) bool {
	for i := range s.Processes {
		for j := range s.Processes[i].Devices {
			if u := &s.Processes[i].Devices[j]; u.Device == device {
				return true
			}
		}
	}
	return false
}
