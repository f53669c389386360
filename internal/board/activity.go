package board

import (
	"fmt"

	"github.com/ttmon/ttmon/internal/model"
)

// Activity estimates how busy a chip is from the power of its core rail: 0 at
// idle, 1 at the limit. idle is the power seen while no process had the device
// open; where that was never seen there is no estimate: a guess would call a
// chip at full load idle. It is an estimate: no counter of the chip measures
// work, and nothing here may be called utilisation.
func Activity(power, limit, idle model.Reading[float64]) model.Activity {
	basis := "power above idle, idle power learned"
	if limit.Nominal {
		basis += ", nominal limit"
	}
	for _, r := range []model.Reading[float64]{power, limit, idle} {
		if !r.Known() {
			return model.Activity{Ratio: r, Basis: basis}
		}
	}
	if limit.V <= idle.V {
		why := fmt.Sprintf("the power limit of %.0f W is not above the idle power of %.0f W", limit.V, idle.V)
		return model.Activity{Ratio: model.Missing[float64](model.Implausible, why), Basis: basis}
	}
	ratio := min(1, max(0, (power.V-idle.V)/(limit.V-idle.V)))
	return model.Activity{
		Ratio: model.Value(ratio),
		Basis: fmt.Sprintf("%s: %.0f W between %.0f W and %.0f W", basis, power.V, idle.V, limit.V),
	}
}
