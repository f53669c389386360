package shm

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ttmon/ttmon/internal/model"
)

// Place is the chip that a region belongs to.
type Place struct {
	Device int    // kernel index; model.NoDevice if no device here has the chip
	Chip   int    // position in the device's Chips
	Name   string // "L", "R" or empty, for a chip of no device
	Remote bool
	Note   string // how sure that is, where the user should know
	// Candidates are the devices of which one has the chip, where it is not
	// known which.
	Candidates []int
}

// Merge puts a sweep into a snapshot.
type Merge struct {
	// Place finds a region's chip. Required.
	Place func(*Region) Place
	// Idle tells whether it is certain that nobody has the device open. Memory
	// is held by processes: what no region accounts for is then nothing, and
	// not unknown. Nil: never.
	Idle func(device int) bool
}

// Strangers are the processes of the sweep that the snapshot does not have:
// they account for chips without having a device open. Whoever knows more
// about processes adds them before Apply; the others it adds itself, with the
// little that is known here.
func (s *Sweep) Strangers(snap *model.Snapshot) (pids []int) {
	for _, p := range s.Processes {
		if p.Tracking == model.TrackOK && findProcess(snap, p.PID, p.StartTicks) == nil {
			pids = append(pids, p.PID)
		}
	}
	return pids
}

// Apply adds the memory of chips and processes, and what the dead left. The
// snapshot's devices must have their chips.
func (m Merge) Apply(snap *model.Snapshot, s *Sweep) {
	a := merging{Merge: m, snap: snap, sweep: s, tracked: map[identity]bool{}, maybe: map[int][]uint64{}}
	for _, r := range s.Regions {
		a.region(r)
	}
	a.processes()
	for i := range snap.Devices {
		a.finish(&snap.Devices[i])
	}
	slices.SortFunc(snap.Processes, func(a, b model.Process) int {
		return cmp.Or(cmp.Compare(a.PID, b.PID), cmp.Compare(a.StartTicks, b.StartTicks))
	})
}

// merging is one Apply.
type merging struct {
	Merge
	snap    *model.Snapshot
	sweep   *Sweep
	tracked map[identity]bool // processes that account somewhere
	maybe   map[int][]uint64  // chips that a device may have
}

func (a *merging) region(r *Region) {
	place := a.Place(r)
	chip := a.chip(r, place)
	addRegion(&chip.Memory, r)
	addNote(&chip.Memory.Note, place.Note)
	if !r.unused() {
		for _, device := range place.Candidates {
			a.maybe[device] = append(a.maybe[device], r.ID)
		}
	}
	for _, u := range r.Uses {
		a.use(r, u, place.Device)
	}
	for _, g := range r.Ghosts {
		if total, known := g.Total(); known && total == 0 {
			continue // a slot that is not free, and nothing in it
		}
		a.snap.Ghosts = append(a.snap.Ghosts, model.Ghost{
			Region: r.Path, ChipID: r.ID, Device: place.Device, PID: g.PID, Name: g.Name,
			Bytes: g.Bytes, Updated: g.Updated, Mapped: len(r.Mapped) > 0,
		})
	}
}

// unused tells whether it is certain that nobody holds anything on the chip.
func (r *Region) unused() bool {
	for _, pool := range regionPools {
		if v, known := r.Used[pool].Get(); !known || v > 0 {
			return false
		}
	}
	return r.Tracking == model.TrackOK
}

// chip finds the chip of a region, or adds one of no device.
func (a *merging) chip(r *Region, place Place) *model.Chip {
	if d := a.snap.Device(place.Device); d != nil && place.Device != model.NoDevice {
		for len(d.Chips) <= place.Chip {
			d.Chips = append(d.Chips, model.Chip{})
		}
		chip := &d.Chips[place.Chip]
		chip.ID = model.Value(r.ID)
		if chip.Region == "" {
			chip.Region = r.Path
		}
		return chip
	}
	for i := range a.snap.Unmatched {
		if chip := &a.snap.Unmatched[i]; chip.ID.V == r.ID {
			return chip
		}
	}
	a.snap.Unmatched = append(a.snap.Unmatched, model.Chip{
		ID: model.Value(r.ID), Name: place.Name, Remote: place.Remote, Region: r.Path,
	})
	return &a.snap.Unmatched[len(a.snap.Unmatched)-1]
}

// addRegion adds a region to the memory of its chip. A chip has two where a
// container has its own /dev/shm, or after its id changed.
func addRegion(m *model.Memory, r *Region) {
	m.Tracking = join(m.Tracking, r.Tracking)
	addNote(&m.Note, r.Reason)
	if r.CBMeans != "" && m.CBMeans != r.CBMeans {
		addWith(&m.CBMeans, r.CBMeans, " and ")
	}
	for _, pool := range regionPools {
		used := &m.Pools[pool].Used
		*used = add(*used, r.Used[pool])
	}
	if r.Version == 0 || r.Tracking == model.TrackUnknown {
		return // nothing is known about the dead either
	}
	stale := model.Value[uint64](0)
	for i := range r.Ghosts {
		if v, ok := r.Ghosts[i].Total(); ok {
			stale.V += v
		}
	}
	m.Stale = add(m.Stale, stale)
}

// finish gives a device the sum of its chips, and says why where there is none.
func (a *merging) finish(d *model.Device) {
	idle := a.Idle != nil && a.Idle(d.Index) || a.covered(d)
	var sum model.Memory
	for i := range d.Chips {
		m := &d.Chips[i].Memory
		if m.Tracking == "" && len(a.maybe[d.Index]) > 0 {
			m.Tracking = model.TrackPartial
			for _, id := range a.maybe[d.Index] {
				addNote(&m.Note, fmt.Sprintf("the memory of chip %d may be this one's: which device has it is not known", id))
			}
			for _, pool := range regionPools {
				m.Pools[pool].Used = model.Missing[uint64](model.Absent, m.Note)
			}
		}
		if m.Tracking == "" && idle {
			m.Tracking = model.TrackOK
			for _, pool := range regionPools {
				m.Pools[pool].Used = model.Value[uint64](0)
			}
		}
		if m.Tracking == "" {
			m.Tracking = model.TrackAbsent
			addNote(&m.Note, "no tt-metal process accounts for this chip")
		}
		sum.Tracking = join(sum.Tracking, m.Tracking)
		addNote(&sum.Note, m.Note)
		if m.CBMeans != "" && sum.CBMeans != m.CBMeans {
			addWith(&sum.CBMeans, m.CBMeans, " and ")
		}
		for _, pool := range regionPools {
			sum.Pools[pool].Used = add(sum.Pools[pool].Used, m.Pools[pool].Used)
		}
		sum.Stale = add(sum.Stale, m.Stale)
	}
	if d.Memory.Tracking != "" {
		return // a better source has spoken
	}
	d.Memory.Tracking, d.Memory.Note, d.Memory.CBMeans, d.Memory.Stale = sum.Tracking, sum.Note, sum.CBMeans, sum.Stale
	for p := range sum.Pools {
		d.Memory.Pools[p].Used = sum.Pools[p].Used
	}
}

// add sums what is known. Something missing beside it is for the tracking
// state to tell; a sum of nothing known keeps the first reason.
func add(a, b model.Reading[uint64]) model.Reading[uint64] {
	switch {
	case a.Known() && b.Known():
		return model.Value(a.V + b.V)
	case b.Known() || a.Status == model.Absent && a.Why == "":
		return b
	}
	return a
}

// join is the tracking state of two things together; empty is nothing.
func join(a, b model.Tracking) model.Tracking {
	switch {
	case a == "" || a == b:
		return b
	case b == "":
		return a
	}
	return model.TrackPartial
}

// addNote adds sentences to others, each once: the chips of a board have most
// in common.
func addNote(to *string, note string) {
	have := strings.Split(*to, "; ")
	for s := range strings.SplitSeq(note, "; ") {
		if !slices.Contains(have, s) {
			addWith(to, s, "; ")
		}
	}
}

func addWith(to *string, s, sep string) {
	switch {
	case s == "" || *to == s:
	case *to == "":
		*to = s
	default:
		*to = fmt.Sprint(*to, sep, s)
	}
}
