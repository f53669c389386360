package collect

import (
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/ttmon/ttmon/internal/board"
	"github.com/ttmon/ttmon/internal/book/claim"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/source/shm"
	"github.com/ttmon/ttmon/internal/source/umd"
)

// chips tells which chip is which: it places unique ids on the devices of the
// host, and remembers what that took.
type chips struct {
	resolver    board.Resolver
	descriptors umd.Finder
	endpoints   []board.Endpoint
	capacities  map[uint64]shm.Capacity
	devices     []model.Device // of the snapshot being made
	// known is what was last known of the identity of a device, by BDF: one
	// in reset has lost its serial number, and not its chips.
	known map[string]board.Endpoint
	// seen are the sole writers of regions, and what each had open, as of the
	// last sweep; nil before the first one.
	seen map[uint64]writer
}

// writer is a process and the devices it has open.
type writer struct {
	id   model.ProcessID
	open []int
}

// whyNoID is why a chip has no id until a process accounts for it.
const whyNoID = "unknown until a program has opened the chip: it depends on the cabling"

// know tells the resolver which devices there are, and gives every chip the id
// that follows from sysfs alone.
func (c *chips) know(devices []model.Device) {
	endpoints := make([]board.Endpoint, len(devices))
	for i := range devices {
		d := &devices[i]
		endpoints[i] = c.remember(board.EndpointOf(d))
		for slot := range d.Chips {
			if id, ok := endpoints[i].SoleID(slot); ok {
				d.Chips[slot].ID = model.Value(id)
			} else {
				d.Chips[slot].ID = model.Missing[uint64](model.Absent, whyNoID)
			}
		}
	}
	if !slices.Equal(endpoints, c.endpoints) {
		c.endpoints = endpoints
		c.resolver.Update(endpoints)
		clear(c.capacities)
	}
	c.devices = devices
}

// remember fills in what a device in trouble does not tell any more, from when
// it did. A board that was swapped says so itself.
func (c *chips) remember(e board.Endpoint) board.Endpoint {
	old, ok := c.known[e.BusID]
	if ok && old.Arch == e.Arch {
		if e.Serial == 0 {
			e.Serial, e.Card = old.Serial, old.Card
		}
		if e.ASICID == 0 && e.Serial == old.Serial {
			e.ASICID = old.ASICID
		}
	}
	c.known[e.BusID] = e
	return e
}

// maxCapacities bounds the capacities that are remembered: everybody can make
// regions of chips that do not exist, and others after them.
const maxCapacities = 4096

// capacity is the most that the chip with an id can hold, so that a region's
// figures can be told from nonsense.
func (c *chips) capacity(id uint64) shm.Capacity {
	if known, ok := c.capacities[id]; ok {
		return known
	}
	var limit shm.Capacity
	m := c.resolver.Match([]board.Sighting{{ID: id}})[0]
	index := m.Device
	if len(m.Candidates) > 0 {
		index = m.Candidates[0] // they are alike
	}
	for i := range c.devices {
		if d := &c.devices[i]; d.Index == index {
			limit = physical(d)
		}
	}
	if len(c.capacities) >= maxCapacities {
		clear(c.capacities)
	}
	c.capacities[id] = limit
	return limit
}

// physical is what one chip of a device has, per pool; 0 where that is not known.
func physical(d *model.Device) (limit shm.Capacity) {
	b := identify(d)
	limit[model.DRAM], limit[model.Trace] = b.DRAMBytes().V, b.DRAMBytes().V
	l1 := b.L1Bytes(d.Firmware.Bundle.V).V
	limit[model.L1], limit[model.L1Small] = l1, l1
	return limit
}

// place is where a chip is.
type place struct {
	device int // position in the snapshot's Devices; noPlace if it has none
	slot   int // position in the device's Chips
	match  board.Match
}

const noPlace = -1

// find places the chips that sources speak of. again reads from the driver who
// has which device open, now that the regions were read.
func (c *chips) find(s *model.Snapshot, spoken []claim.Chip, again func() map[int][]int) map[uint64]place {
	c.learnPlaces(s, len(spoken) > 0)
	again = sync.OnceValue(again)
	sightings := make([]board.Sighting, len(spoken))
	seen := map[uint64]writer{}
	for i := range spoken {
		sightings[i] = board.Sighting{ID: spoken[i].ID, DeviceID: spoken[i].Logical}
		if w, ok := soleWriter(s, &spoken[i]); ok {
			seen[spoken[i].ID] = w
			if c.settled(s, &spoken[i], w, again) {
				sightings[i].Open = w.open
			}
		}
	}
	c.seen = seen
	places := make(map[uint64]place, len(spoken))
	for i, m := range c.resolver.Match(sightings) {
		p := place{device: noPlace, slot: m.Slot, match: m}
		if m.Device != model.NoDevice {
			p.device = slices.IndexFunc(s.Devices, func(d model.Device) bool { return d.Index == m.Device })
		}
		places[spoken[i].ID] = p
	}
	return places
}

func soleWriter(s *model.Snapshot, c *claim.Chip) (writer, bool) {
	if len(c.Holders) != 1 {
		return writer{}, false
	}
	open := openDevices(s, c.Holders[0])
	return writer{c.Holders[0], open}, len(open) > 0
}

// settled reports whether a writer had opened all of its devices when the driver
// was asked: it does so before it makes its regions. So the region must have
// been there, with the same writer and the same devices, a sweep ago; or the
// driver is asked again, where that matters.
func (c *chips) settled(s *model.Snapshot, chip *claim.Chip, w writer, again func() map[int][]int) bool {
	if before, ok := c.seen[chip.ID]; ok {
		return before.id == w.id && slices.Equal(before.open, w.open)
	}
	if !slices.ContainsFunc(s.Devices, func(d model.Device) bool { return ambiguousChips(d) || c.lacksIDs(&d) }) {
		return true // no order is needed to tell its chips apart
	}
	var open []int
	for device, pids := range again() {
		if slices.Contains(pids, w.id.PID) {
			open = append(open, device)
		}
	}
	slices.Sort(open)
	return slices.Equal(open, w.open)
}

// lacksIDs reports whether the ids of a device's chips are not all known.
func (c *chips) lacksIDs(d *model.Device) bool {
	return slices.ContainsFunc(d.Chips, func(ch model.Chip) bool { return !ch.ID.Known() })
}

// learnPlaces looks for UMD's own description of the host, where there are
// boards whose chips cannot be told apart without it.
func (c *chips) learnPlaces(s *model.Snapshot, spoken bool) {
	if !spoken || !slices.ContainsFunc(s.Devices, ambiguousChips) {
		return
	}
	c.descriptors.Trust = func(uid int) bool { return mayDescribe(s, uid) }
	found, _ := c.descriptors.Poll() // a broken one is ignored
	for _, f := range found {
		c.resolver.Learn(f.Descriptor.Placements())
	}
}

// mayDescribe reports whether a user's description of the host is trusted: root's,
// our own, and that of a user who has a device open, whose chips it explains.
func mayDescribe(s *model.Snapshot, uid int) bool {
	if uid == 0 || uid == os.Geteuid() {
		return true
	}
	return slices.ContainsFunc(s.Processes, func(p model.Process) bool {
		owner, known := p.UID.Get()
		return known && owner == uid && slices.ContainsFunc(p.Devices, func(u model.DeviceUse) bool { return u.Device != model.NoDevice })
	})
}

func ambiguousChips(d model.Device) bool {
	return strings.HasPrefix(d.Board.V, "p300") || d.Board.V == "galaxy-wormhole"
}

// openDevices are the devices that a process has open, by the driver's list.
func openDevices(s *model.Snapshot, id model.ProcessID) (list []int) {
	for i := range s.Processes {
		p := &s.Processes[i]
		if p.ID() != id {
			continue
		}
		for _, u := range p.Devices {
			if u.Device != model.NoDevice {
				list = append(list, u.Device)
			}
		}
	}
	return list
}
