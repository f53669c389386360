package event

import (
	"fmt"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/words"
)

// hysteresis is how many degrees a device must cool below its limit before
// reaching it again is news.
const hysteresis = 2

func (c *comparison) devices() {
	old := byBus(c.old)
	for i := range c.now.Devices {
		d := &c.now.Devices[i]
		p := old[d.BusID]
		delete(old, d.BusID)
		if p == nil {
			c.device(Appeared, words.Warning, d, "appeared", "appeared: "+words.Foreign(d.Board)+" at "+words.Escape(d.BusID))
			c.d.heat(d)
			continue
		}
		c.state(p, d)
		c.heat(d)
		c.link(p, d)
	}
	for i := range c.old.Devices { // in the order of the devices, not of the map
		if p := &c.old.Devices[i]; old[p.BusID] != nil {
			c.device(Removed, words.Critical, p, "removed", "is gone: "+words.Escape(p.BusID))
		}
	}
}

func byBus(s *model.Snapshot) map[string]*model.Device {
	m := make(map[string]*model.Device, len(s.Devices))
	for i := range s.Devices {
		m[s.Devices[i].BusID] = &s.Devices[i]
	}
	return m
}

// device adds an event of one device.
func (c *comparison) device(k Kind, l words.Level, d *model.Device, short, text string) {
	name := fmt.Sprintf("device %d ", d.Index)
	c.add(k, l, []string{d.BusID}, fmt.Sprintf("%d %s", d.Index, short), name+text)
}

func (c *comparison) state(p, d *model.Device) {
	if p.State == d.State {
		return
	}
	why := ""
	if reason := words.StateReason(d); reason != "" {
		why = ": " + reason
	}
	switch d.State {
	case model.StateOK:
		c.device(State, words.Info, d, "ok again", "is ok again, it was "+string(p.State))
	case model.StateResetting:
		c.device(State, words.Warning, d, "reset", "is being reset"+why)
	case model.StateUnknown:
		c.device(State, words.Warning, d, "unknown", "shows no vital sign"+why)
	default:
		c.device(State, words.Critical, d, string(d.State), "is "+string(d.State)+why)
	}
}

// heat notes whether a device is over its limit and tells whether that is new.
func (d *Detector) heat(x *model.Device) bool {
	t, limit := x.Temperature, x.TemperatureLimit
	if !t.Known() || !limit.Known() {
		return false
	}
	was := d.hot[x.BusID]
	switch {
	case t.V >= limit.V:
		d.hot[x.BusID] = true
	case t.V < limit.V-hysteresis:
		delete(d.hot, x.BusID)
	}
	return !was && t.V >= limit.V
}

func (c *comparison) heat(d *model.Device) {
	if c.d.heat(d) {
		c.device(Throttle, words.Warning, d, "throttles",
			fmt.Sprintf("reached %s, where throttling begins", words.Temperature(d.Temperature.V, words.Celsius)))
	}
	for i := range c.old.Devices {
		p := &c.old.Devices[i]
		if p.BusID == d.BusID && p.ThermalTrips.Known() && d.ThermalTrips.Known() && d.ThermalTrips.V > p.ThermalTrips.V {
			c.device(Tripped, words.Critical, d, "tripped", "shut itself down for heat")
		}
	}
}

func (c *comparison) link(p, d *model.Device) {
	was, is := words.DegradedLink(p), words.DegradedLink(d)
	if !p.PCIe.Degraded.Known() || !d.PCIe.Degraded.Known() || was == is {
		return
	}
	if is {
		c.device(Link, words.Warning, d, "link slower", "has a slower PCIe link than before")
	} else {
		c.device(Link, words.Info, d, "link ok", "has its full PCIe link again")
	}
}
