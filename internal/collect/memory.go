package collect

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ttmon/ttmon/internal/board"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/source/kmd"
	"github.com/ttmon/ttmon/internal/source/shm"
	"github.com/ttmon/ttmon/internal/source/umd"
)

// addMemory adds what tt-metal's processes account for, to the chips that
// they account for.
func (c *Collector) addMemory(s *model.Snapshot, sweep kmd.Sweep) {
	c.knowChips(s)
	regions := c.regions.Read(deviceUsers(s))
	if pids := regions.Strangers(s); len(pids) > 0 {
		for _, p := range c.processes.Describe(pids) {
			if p.State == model.Running {
				s.Processes = append(s.Processes, p)
			}
		}
	}
	c.learnPlaces(s, regions)
	places := c.match(s, regions)
	shm.Merge{
		Place: func(r *shm.Region) shm.Place { return places[r] },
		Idle:  func(device int) bool { return nobodyOn(sweep, device) },
	}.Apply(s, regions)
}

// deviceUsers are the processes whose containers may have regions of their own.
func deviceUsers(s *model.Snapshot) []shm.User {
	var users []shm.User
	for i := range s.Processes {
		if p := &s.Processes[i]; p.State == model.Running {
			users = append(users, shm.User{PID: p.PID, StartTicks: p.StartTicks})
		}
	}
	return users
}

// nobodyOn tells whether the driver says that a device is not open at all.
func nobodyOn(sweep kmd.Sweep, device int) bool {
	for i := range sweep.Found {
		if f := &sweep.Found[i]; f.Device.Index == device {
			pids, known := f.Openers.Get()
			return known && len(pids) == 0
		}
	}
	return false
}

// whyNoID is why a chip has no id until somebody accounts for it.
const whyNoID = "it depends on cables, or on what only the chip knows; known once a program has opened it"

// knowChips tells the resolver which devices there are, and gives every chip
// the id that follows from sysfs alone.
func (c *Collector) knowChips(s *model.Snapshot) {
	endpoints := make([]board.Endpoint, len(s.Devices))
	for i := range s.Devices {
		d := &s.Devices[i]
		endpoints[i] = board.EndpointOf(d)
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
		c.chips.Update(endpoints)
		clear(c.capacities)
	}
	c.devices = s.Devices
}

// capacity is what the chip with an id can hold, so that a region's figures
// can be told from nonsense.
func (c *Collector) capacity(id uint64) shm.Capacity {
	if known, ok := c.capacities[id]; ok {
		return known
	}
	var cap shm.Capacity
	m := c.chips.Match([]board.Sighting{{ID: id}})[0]
	index := m.Device
	if len(m.Candidates) > 0 {
		index = m.Candidates[0] // they are alike
	}
	for i := range c.devices {
		d := &c.devices[i]
		if d.Index != index || m.Slot >= len(d.Chips) {
			continue
		}
		for pool, use := range d.Chips[m.Slot].Memory.Pools {
			cap[pool] = use.Total.V
		}
	}
	c.capacities[id] = cap
	return cap
}

// learnPlaces looks for UMD's own description of the host, where there are
// boards whose chips cannot be told apart without it.
func (c *Collector) learnPlaces(s *model.Snapshot, regions *shm.Sweep) {
	if len(regions.Regions) == 0 || !slices.ContainsFunc(s.Devices, ambiguousChips) {
		return
	}
	found, _ := c.descriptors.Poll() // a broken one teaches nothing
	for _, f := range found {
		c.chips.Learn(f.Descriptor.Placements())
	}
}

func ambiguousChips(d model.Device) bool {
	return strings.HasPrefix(d.Board.V, "p300") || d.Board.V == "galaxy-wormhole"
}

// match finds the chip of every region.
func (c *Collector) match(s *model.Snapshot, regions *shm.Sweep) map[*shm.Region]shm.Place {
	sightings := make([]board.Sighting, len(regions.Regions))
	for i, r := range regions.Regions {
		sightings[i] = board.Sighting{ID: r.ID, DeviceID: r.DeviceID}
		if len(r.Uses) == 1 && len(r.Mapped) <= 1 {
			sightings[i].Open = openDevices(s, r.Uses[0].PID, r.Uses[0].StartTicks)
		}
	}
	places := make(map[*shm.Region]shm.Place, len(sightings))
	for i, m := range c.chips.Match(sightings) {
		p := shm.Place{Device: m.Device, Chip: m.Slot, Name: m.Name, Remote: m.Remote}
		switch m.Certainty {
		case board.Ambiguous:
			p.Candidates = m.Candidates
			p.Note = fmt.Sprintf("a chip of one of the devices %s: %s", indexes(m.Candidates), m.Basis)
		case board.Inferred:
			p.Note = "which chip it is was inferred: " + m.Basis
		}
		places[regions.Regions[i]] = p
	}
	return places
}

// openDevices are the devices that a process has open, by the driver's list.
func openDevices(s *model.Snapshot, pid int, start uint64) []int {
	var list []int
	for i := range s.Processes {
		p := &s.Processes[i]
		if p.PID != pid || p.StartTicks != start {
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

func indexes(list []int) string {
	words := make([]string, len(list))
	for i, n := range list {
		words[i] = fmt.Sprint(n)
	}
	return strings.Join(words, ", ")
}

// addLocks says which chips UMD has marked as in use, and by whom.
func (c *Collector) addLocks(s *model.Snapshot) {
	const why = "no program has made UMD's lock for it"
	for i := range s.Devices {
		s.Devices[i].Lock = model.ChipLock{Held: model.Missing[bool](model.Absent, why), PID: model.Missing[int](model.Absent, why)}
	}
	locks, _ := umd.Locks(c.root, umd.LockDir)
	for _, l := range locks {
		if d := s.Device(l.Device); d != nil {
			d.Lock = model.ChipLock{Held: l.Held, PID: l.PID}
		}
	}
}
