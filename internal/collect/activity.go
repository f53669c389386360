package collect

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/ttmon/ttmon/internal/board"
	"github.com/ttmon/ttmon/internal/collect/assess"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/source/kmd"
)

// idlePower learns what a device draws while no process has it open: the floor
// of the activity estimate.
type idlePower struct {
	watts  float64
	sample int // 0: watts are of a collector before, or not known
	// restored says that they are.
	restored bool
}

// IdlePower is what a board draws while no process has it open. A ttmond that starts
// under load has it from one before: it would not see the board idle for long.
type IdlePower struct {
	BusID  string  `json:"bus_id"`
	Serial string  `json:"serial,omitempty"` // of the board: another one may be in its slot now
	Watts  float64 `json:"watts"`            // whole ones: smaller changes are not worth a write
}

type idleKey struct{ busID, serial string }

// IdlePower is what was learned so far, in order.
func (c *Collector) IdlePower() (list []IdlePower) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, p := range c.idle {
		list = append(list, IdlePower{key.busID, key.serial, math.Round(p.watts)})
	}
	slices.SortFunc(list, func(a, b IdlePower) int {
		return cmp.Or(strings.Compare(a.BusID, b.BusID), strings.Compare(a.Serial, b.Serial))
	})
	return list
}

// RestoreIdlePower is called before the first Collect. One sample of our own
// outweighs what was restored: a room may be warmer now.
func (c *Collector) RestoreIdlePower(list []IdlePower) {
	for _, x := range list {
		c.idle[idleKey{x.BusID, x.Serial}] = &idlePower{watts: x.Watts, restored: true}
	}
}

// settle is how many idle samples are averaged; later ones move the average
// by that share, so that a warmer room is followed.
const settle = 20

func (p *idlePower) add(watts float64) {
	p.sample = min(p.sample+1, settle)
	p.watts += (watts - p.watts) / float64(p.sample)
}

func (p *idlePower) reading() model.Reading[float64] {
	if p == nil || p.sample == 0 && !p.restored {
		return model.Missing[float64](model.Pending, "the device has not been seen idle")
	}
	return model.Value(p.watts)
}

// estimate fills in the devices' activity. Idle is learned only of a device
// that, according to the driver, no process has open: where it keeps no list, a
// user who may not inspect all processes would count a busy device as idle.
func (c *Collector) estimate(s *model.Snapshot, sweep kmd.Sweep) {
	for i := range s.Devices {
		d := &s.Devices[i]
		key := idleKey{d.BusID, d.Serial.V}
		idle := c.idle[key]
		if watts, ok := d.Power.Get(); ok && d.State == model.StateOK && notOpen(sweep, d.Index) {
			if idle == nil {
				idle = &idlePower{}
				c.idle[key] = idle
			}
			idle.add(watts)
		}
		d.Activity = board.Activity(d.Power, d.PowerLimit, idle.reading())
	}
}

// withhold takes the estimate of throttled devices back: their power is held
// down, and says nothing about how busy they are.
func withhold(s *model.Snapshot) {
	a := assess.Of(s)
	for i := range s.Devices {
		d := &s.Devices[i]
		if _, throttled := a.Find(d.Index, model.ConditionThrottled); throttled && d.Activity.Ratio.Known() {
			d.Activity.Ratio = model.Missing[float64](model.Absent, "the device is throttled, so that its power says nothing about how busy it is")
		}
	}
}
