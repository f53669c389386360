package gather

import (
	"maps"
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/book/failure"
	"github.com/ttmon/ttmon/internal/model"
)

// Which chips a failure is about is what its program says. It counts for those
// devices only that the process was seen to have open, so that no user can raise
// the counters of a device it does not use, or fill them with chips that do not
// exist.
type devices struct {
	counts map[string]uint64 // failures since ttmond started, by bus id
	// doubtful are devices with failures that were not counted.
	doubtful map[string]bool
	// unmatched: failures were not counted whose chips no snapshot had. They may be
	// those of a device whose chips are not known.
	unmatched bool
	users     map[model.ProcessID]*user
	claims    []claim
}

// user is a process that had devices open.
type user struct {
	uid    int // -1: not known
	busIDs []string
	last   time.Time // when a snapshot last had it
}

// claim are failures that are not counted yet.
type claim struct {
	process failure.Process
	chips   []failure.Chip // that are not settled
	counted []string       // bus ids for which it was
	n       uint64
	partly  bool // there were more, which are in no record
	since   time.Time
}

const (
	// remembered is how long a process counts as a device's user after the last
	// snapshot that had it: its ledger is read after its end.
	remembered = time.Minute
	// maxUsers bounds those that are remembered.
	maxUsers = 16384
	// maxClaims bounds the failures that wait for a snapshot. Beyond it they are
	// judged at once.
	maxClaims = 256
)

func newDevices() devices {
	return devices{counts: map[string]uint64{}, doubtful: map[string]bool{}, users: map[model.ProcessID]*user{}}
}

// observe records which processes a snapshot has, and what they have open.
func (d *devices) observe(s *model.Snapshot, now time.Time) {
	byPID := make(map[int]*model.Process, len(s.Processes))
	for i := range s.Processes {
		byPID[s.Processes[i].PID] = &s.Processes[i]
	}
	for i := range s.Processes {
		p := &s.Processes[i]
		for k := range p.Devices {
			if x := s.Device(p.Devices[k].Device); x != nil && holds(byPID, p, x.Index) {
				d.opened(p, x.BusID, now)
			}
		}
	}
	maps.DeleteFunc(d.users, func(_ model.ProcessID, u *user) bool { return now.Sub(u.last) > remembered })
}

// maxAncestors bounds the search for one that opened a device.
const maxAncestors = 8

// holds reports whether a process has a device open, or an ancestor of the same
// user has, from which it inherited that. That its own ledger names the device is
// not enough.
func holds(byPID map[int]*model.Process, p *model.Process, device int) bool {
	uid, known := p.UID.Get()
	for range maxAncestors {
		if slices.ContainsFunc(p.Devices, func(u model.DeviceUse) bool { return u.Device == device && u.OpenFDs.V > 0 }) {
			return true
		}
		parent := byPID[p.PPID]
		if parent == nil || !known || parent.UID != model.Value(uid) {
			return false
		}
		p = parent
	}
	return false
}

func (d *devices) opened(p *model.Process, busID string, now time.Time) {
	u := d.users[p.ID()]
	if u == nil {
		if len(d.users) >= maxUsers {
			return
		}
		u = &user{uid: -1}
		d.users[p.ID()] = u
	}
	u.last = now
	if uid, ok := p.UID.Get(); ok {
		u.uid = uid
	}
	if !slices.Contains(u.busIDs, busID) {
		u.busIDs = append(u.busIDs, busID)
	}
}

// uses reports whether a process was seen to have a device open. A ledger that
// another user wrote in the name of a process is not its.
func (d *devices) uses(p *failure.Process, busID string) bool {
	u := d.users[model.ProcessID{PID: p.PID, StartTicks: p.Start}]
	return u != nil && (u.uid < 0 || p.UID < 0 || u.uid == p.UID) && slices.Contains(u.busIDs, busID)
}

// count counts failures for the devices that their process uses, and those that
// are not known yet later.
func (d *devices) count(p *failure.Process, chips []failure.Chip, n uint64, partly bool, s *model.Snapshot, now time.Time) {
	if n == 0 || len(chips) == 0 {
		return
	}
	c := claim{process: *p, chips: slices.Clone(chips), n: n, partly: partly, since: now}
	if d.countKnown(&c, s); len(c.chips) == 0 {
		return
	}
	same := func(x claim) bool {
		return x.process.PID == p.PID && x.process.Start == p.Start && x.process.UID == p.UID && slices.EqualFunc(x.chips, c.chips, func(a, b failure.Chip) bool { return a.ID == b.ID })
	}
	switch i := slices.IndexFunc(d.claims, same); {
	case i >= 0:
		d.claims[i].n += n
		d.claims[i].partly = d.claims[i].partly || partly
	case len(d.claims) < maxClaims:
		d.claims = append(d.claims, c)
	default:
		d.drop(&c, s)
	}
}

// recount counts what has become known, and gives up what has not for long.
func (d *devices) recount(s *model.Snapshot, now time.Time) {
	var left []claim
	for _, c := range d.claims {
		d.countKnown(&c, s)
		switch {
		case len(c.chips) == 0:
		case now.Sub(c.since) >= deviceTimeout:
			d.drop(&c, s)
		default:
			left = append(left, c)
		}
	}
	d.claims = left
}

// countKnown counts a claim, once for each device that its process uses, and leaves
// the chips of which that is not known.
func (d *devices) countKnown(c *claim, s *model.Snapshot) {
	c.chips = slices.DeleteFunc(c.chips, func(x failure.Chip) bool {
		busID, ok := busIDOf(s, x.ID)
		if !ok || !d.uses(&c.process, busID) {
			return false
		}
		if !slices.Contains(c.counted, busID) {
			c.counted = append(c.counted, busID)
			d.counts[busID] += c.n
			d.doubtful[busID] = d.doubtful[busID] || c.partly
		}
		return true
	})
}

// drop gives up a claim: the counters of its devices are too low from here on.
func (d *devices) drop(c *claim, s *model.Snapshot) {
	for _, x := range c.chips {
		if busID, ok := busIDOf(s, x.ID); ok {
			d.doubtful[busID] = true
		} else {
			d.unmatched = true
		}
	}
}

// failures is the counter of a device. What was not counted makes a 0 unknown, and
// any other count at least.
func (d *devices) failures(x *model.Device) (model.Reading[uint64], model.Bound) {
	n := d.counts[x.BusID]
	unknown := slices.ContainsFunc(x.Chips, func(c model.Chip) bool { _, ok := c.ID.Get(); return !ok })
	switch doubtful := d.doubtful[x.BusID] || d.unmatched && (unknown || len(x.Chips) == 0); {
	case !doubtful:
		return model.Value(n), model.Exact
	case n == 0:
		return model.Missing[uint64](model.Absent, "allocations failed in a process that was not seen to have the device open"), model.Exact
	}
	return model.Value(n), model.AtLeast
}

// known reports whether all chips of a record are on devices that its process uses.
func (d *devices) known(r *failure.Record) bool {
	return !slices.ContainsFunc(r.Chips, func(c failure.Chip) bool { return c.Device == nil || !d.uses(&r.Process, c.BusID) })
}

// public is a record that names only devices that its process uses.
func (d *devices) public(r *failure.Record) *failure.Record {
	if d.known(r) {
		return r
	}
	c := *r
	c.Chips = slices.Clone(r.Chips)
	for i, x := range c.Chips {
		if x.Device != nil && !d.uses(&r.Process, x.BusID) {
			c.Chips[i] = failure.Chip{ID: x.ID}
		}
	}
	return &c
}

func busIDOf(s *model.Snapshot, chip uint64) (busID string, ok bool) {
	if s == nil {
		return "", false
	}
	for i := range s.Devices {
		for _, c := range s.Devices[i].Chips {
			if id, known := c.ID.Get(); known && id == chip {
				return s.Devices[i].BusID, true
			}
		}
	}
	return "", false
}
