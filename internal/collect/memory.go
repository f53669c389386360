package collect

import (
	"time"

	"github.com/ttmon/ttmon/internal/book/claim"
	"github.com/ttmon/ttmon/internal/hostfs/proc"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/source/kmd"
	"github.com/ttmon/ttmon/internal/source/shm"
	"github.com/ttmon/ttmon/internal/source/umd"
)

// Source is a source that others feed. It says at any time what it knows.
type Source struct {
	Name   string
	Claims func() claim.Set
	// Find finds the allocators of a process; nil for a source that does not
	// see any.
	Find func(pid int) (Allocators, bool)
}

// addMemory asks every source who holds what, and joins the answers. run runs
// one of them.
func (c *Collector) addMemory(s *model.Snapshot, sweep kmd.Sweep, run func(string, func())) {
	c.chips.know(s.Devices)
	users := deviceUsers(s)
	var sets []claim.Set
	ask := func(name string, claims func() claim.Set) {
		run(name, func() { sets = append(sets, claims()) })
	}
	ask("shm", func() claim.Set {
		c.swept = c.regions.Read(users)
		return c.swept.Claims()
	})
	ask("track", func() claim.Set { return c.readLedgers(users) })
	for _, source := range c.sources {
		ask(source.Name, source.Claims)
	}
	run("join", func() { c.joinMemory(s, sweep, sets) })
}

// joinMemory joins what the sources say of memory.
func (c *Collector) joinMemory(s *model.Snapshot, sweep kmd.Sweep, sets []claim.Set) {
	sets = append(sets, driverClaims(s, sweep)...)
	c.addProcessesWithoutDevice(s, sets)
	j := newJoin(s, sets, c.chips.find(s, claimedChips(sets), c.openersNow))
	j.idle = func(device int) bool { return notOpen(sweep, device) }
	j.opens = c.openings.opens
	j.unopened = c.unopened
	j.run()
	addDriverTotals(s, sweep)
	c.numbers = j.numbers()
	c.joinWork(j)
	c.openings.forget()
}

// joinWork joins what the sources say of programs.
func (c *Collector) joinWork(j *join) {
	w := workJoin{
		work: &c.work, snap: j.snap, sets: j.sets, idle: j.idle, engines: c.engines,
		may: func(p *model.Process, d *model.Device) bool { return j.hold(p, d) != proc.NotHeld },
		place: func(chip uint64) (chipAt, bool) {
			at, ok := j.places[chip]
			return chipAt{at.device, at.slot}, ok && at.device != noPlace && at.slot < len(j.snap.Devices[at.device].Chips)
		},
		iommu: func(d *model.Device) bool {
			return !c.root.Exists("/sys/bus/pci/devices/"+d.BusID) || c.root.Exists("/sys/bus/pci/devices/"+d.BusID+"/iommu_group")
		},
	}
	w.run()
}

// readLedgers reads what libttmon keeps in processes.
func (c *Collector) readLedgers(users []shm.User) claim.Set {
	ids := make([]model.ProcessID, len(users))
	for i := range users {
		ids[i] = model.ProcessID{PID: users[i].PID, StartTicks: users[i].StartTicks}
	}
	sweep := c.ledgers.Read(ids)
	c.keepers.Store(&sweep.Processes)
	c.exitedNow = sweep.Exited
	if c.ended != nil {
		for _, e := range sweep.Ended {
			c.ended(e)
		}
	}
	if c.exited != nil {
		for _, x := range sweep.Exited {
			c.exited(x)
		}
	}
	return sweep.Claims()
}

// openersNow asks the driver again who has which device open.
func (c *Collector) openersNow() map[int][]int {
	return c.driver.Openers(time.Now().Add(c.brief()))
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

// notOpen reports whether the driver says that a device is not open at all.
func notOpen(sweep kmd.Sweep, device int) bool {
	for i := range sweep.Found {
		if f := &sweep.Found[i]; f.Device.Index == device {
			pids, known := f.Openers.Get()
			return known && len(pids) == 0
		}
	}
	return false
}

// driverClaims is what the driver itself says of memory: per descriptor, or
// per process. No release says anything today.
func driverClaims(s *model.Snapshot, sweep kmd.Sweep) []claim.Set {
	perFD, perPID := claim.Set{Source: model.FromFDInfo}, claim.Set{Source: model.FromDriver}
	for i := range s.Processes {
		p := &s.Processes[i]
		for j := range p.Devices {
			u := &p.Devices[j]
			on := claim.Chip{OnDevice: true, Number: u.Device}
			if u.Source == model.FromFDInfo {
				perFD.Held = append(perFD.Held, claim.Held{Process: p.ID(), Chip: on, Bytes: u.Memory})
			}
			for k := range sweep.Found {
				f := &sweep.Found[k]
				if bytes, ok := f.Memory.ByPID[p.PID]; ok && f.Device.Index == u.Device && p.State == model.Running {
					perPID.Held = append(perPID.Held, claim.Held{
						Process: p.ID(), Chip: on, Bytes: bytes,
					})
				}
			}
		}
	}
	return []claim.Set{perFD, perPID}
}

// claimedChips lists the chips that sources speak of by their unique id, each once.
func claimedChips(sets []claim.Set) (list []claim.Chip) {
	at := map[uint64]int{}
	add := func(c claim.Chip) {
		i, ok := at[c.ID]
		if !ok {
			at[c.ID] = len(list)
			list = append(list, c)
			return
		}
		// A container's own region for the same chip has writers of its own.
		list[i].Holders = append(list[i].Holders[:len(list[i].Holders):len(list[i].Holders)], c.Holders...)
	}
	for i := range sets {
		for _, c := range sets[i].Chips {
			add(c)
		}
	}
	mention := func(id uint64) {
		if _, ok := at[id]; !ok {
			add(claim.Chip{ID: id})
		}
	}
	for i := range sets {
		for _, w := range sets[i].Work {
			mention(w.Chip)
		}
		for j := range sets[i].Held {
			if c := &sets[i].Held[j].Chip; !c.ByNumber && !c.OnDevice && !c.Some {
				mention(c.ID)
			}
		}
	}
	return list
}

// addProcessesWithoutDevice adds the processes that hold memory without having a device
// open, and what sources know of the releases that processes run.
func (c *Collector) addProcessesWithoutDevice(s *model.Snapshot, sets []claim.Set) {
	there := map[model.ProcessID]bool{}
	for i := range s.Processes {
		there[s.Processes[i].ID()] = true
	}
	for i := range sets {
		var unlisted []model.ProcessID
		for j := range sets[i].Held {
			if id := sets[i].Held[j].Process; !there[id] {
				there[id] = true
				unlisted = append(unlisted, id)
			}
		}
		if len(unlisted) > 0 {
			s.Processes = append(s.Processes, c.describe(&sets[i], unlisted)...)
		}
	}
	for i := range sets {
		addReleases(s, sets[i].Known)
	}
}

// describe tells what is known of processes that a source speaks of: from
// /proc, or from the source itself.
func (c *Collector) describe(set *claim.Set, ids []model.ProcessID) []model.Process {
	look := set.Describe
	if look == nil {
		look = c.processes.Describe
	}
	var pids []int
	found := map[model.ProcessID]model.Process{}
	for _, id := range ids {
		found[id] = model.Process{PID: id.PID, StartTicks: id.StartTicks, State: model.Running}
		if id.PID > 0 {
			pids = append(pids, id.PID)
		}
	}
	for _, p := range set.Known {
		if _, ok := found[p.ID()]; ok {
			found[p.ID()] = p
		}
	}
	for _, p := range look(pids) {
		if _, ok := found[p.ID()]; ok && p.State == model.Running {
			found[p.ID()] = p
		}
	}
	out := make([]model.Process, len(ids))
	for i, id := range ids {
		out[i] = found[id]
	}
	return out
}

// addReleases adds which releases processes run.
func addReleases(s *model.Snapshot, known []model.Process) {
	if len(known) == 0 {
		return
	}
	by := make(map[model.ProcessID]*model.Process, len(known))
	for i := range known {
		by[known[i].ID()] = &known[i]
	}
	for i := range s.Processes {
		p := &s.Processes[i]
		from := by[p.ID()]
		if from == nil {
			continue
		}
		if r := from.Release; (r.Known() || r.Why != "") && !p.Release.Known() {
			p.Release = r
		}
		if !p.Type.Known() {
			p.Type = from.Type
		}
	}
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
