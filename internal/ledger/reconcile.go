package ledger

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ttmon/ttmon/internal/model"
)

// Source is what figures of the ledger are marked with.
const Source = "socket"

// Report is what a process reported, and what is needed to place it on the
// chips of this host.
type Report struct {
	Holding
	// Visible is its TT_VISIBLE_DEVICES; empty if it has none or may not be
	// looked at.
	Visible string
	// Incomplete says why the ledger has not heard everything, as the end of
	// a sentence; empty if it has.
	Incomplete string
}

// Reconcile puts reports into a snapshot that nobody has seen yet. Where
// another source has a figure for the same process and device, the two are
// never added: the reports win if they are complete, since they name every
// buffer, and a disagreement is noted.
func Reconcile(s *model.Snapshot, reports []Report) {
	touched := false
	for i := range reports {
		if r := &reports[i]; len(r.Devices) > 0 {
			reconcile(s, r)
			touched = true
		}
	}
	if !touched {
		return
	}
	for i := range s.Devices {
		finish(s, &s.Devices[i])
	}
	slices.SortFunc(s.Processes, func(a, b model.Process) int {
		return cmp.Or(cmp.Compare(a.PID, b.PID), cmp.Compare(a.StartTicks, b.StartTicks))
	})
}

func reconcile(s *model.Snapshot, r *Report) {
	p := process(s, r)
	chips := order(s.Devices, visible(s.Devices, openDevices(p), r.Visible))
	var lost []string // device numbers that are none of ours
	for i := range r.Devices {
		u := &r.Devices[i]
		if int(u.Device) >= len(chips) {
			lost = append(lost, fmt.Sprint(u.Device))
		}
	}
	for d := range s.Devices {
		var mine []placed
		for i := range r.Devices {
			if n := int(r.Devices[i].Device); n < len(chips) && chips[n].Device == d {
				mine = append(mine, placed{&r.Devices[i], chips[n].Chip})
			}
		}
		if len(mine) > 0 {
			merge(p, &s.Devices[d], s.Devices[d].Index, mine, r)
		}
	}
	if len(lost) == 0 {
		return
	}
	var mine []placed
	for i := range r.Devices {
		if int(r.Devices[i].Device) >= len(chips) {
			mine = append(mine, placed{&r.Devices[i], -1})
		}
	}
	u := merge(p, nil, model.NoDevice, mine, r)
	addNote(&u.Note, "device "+strings.Join(lost, ", ")+" in its own numbering is none of this host's")
}

// placed is what a process holds on one chip of a device.
type placed struct {
	*Use
	chip int
}

// process finds the reporter in the snapshot, or adds it.
func process(s *model.Snapshot, r *Report) *model.Process {
	for i := range s.Processes {
		if p := &s.Processes[i]; p.PID == r.PID && p.StartTicks == r.Start {
			return p
		}
	}
	p := model.Process{
		PID: r.PID, StartTicks: r.Start, State: model.Running,
		UID: model.Value(r.UID), User: model.Value(fmt.Sprint(r.UID)), Name: model.Value(r.Name),
	}
	if r.PID == 0 {
		p.State = model.Hidden
	}
	s.Processes = append(s.Processes, p)
	return &s.Processes[len(s.Processes)-1]
}

func openDevices(p *model.Process) (open []int) {
	for i := range p.Devices {
		if u := &p.Devices[i]; u.Device != model.NoDevice && u.OpenFDs.V > 0 {
			open = append(open, u.Device)
		}
	}
	return open
}

// figures are the pools of one use. A pool that this process never reported
// anything of is not known to be empty where not every client reports it.
func figures(u *Use) (b model.PoolBytes) {
	for _, pool := range model.Pools() {
		if (pool == model.CB || pool == model.Kernel) && u.Peak[pool] == 0 {
			b[pool] = model.Missing[uint64](model.Absent, "its client has reported none")
			continue
		}
		b[pool] = model.Value(u.Bytes[pool])
	}
	return b
}

// merge decides between what a device use says already and the reports.
func merge(p *model.Process, d *model.Device, index int, mine []placed, r *Report) *model.DeviceUse {
	u := useOf(p, index)
	fresh := model.DeviceUse{Source: Source, Tracking: model.TrackOK}
	for _, m := range mine {
		b := figures(m.Use)
		fresh.Memory = addPools(fresh.Memory, b)
		if d != nil && m.chip < len(d.Chips) && d.Chips[m.chip].ID.Known() {
			fresh.Chips = append(fresh.Chips, model.ChipUse{ChipID: d.Chips[m.chip].ID.V, Memory: b})
		}
	}
	if r.Incomplete != "" {
		fresh.Tracking, fresh.Note = model.TrackPartial, r.Incomplete
	}
	if u.Source != "" && u.Source != Source {
		note := dispute(u.Source, u.Memory, fresh.Memory)
		if r.Incomplete != "" {
			addNote(&u.Note, note)
			return u
		}
		fresh.Note = note
	}
	for _, m := range mine {
		if d != nil && m.chip < len(d.Chips) {
			replaceOnChip(&d.Chips[m.chip], u, figures(m.Use))
		}
	}
	u.Source, u.Tracking, u.Note, u.Memory, u.Chips = fresh.Source, fresh.Tracking, fresh.Note, fresh.Memory, fresh.Chips
	return u
}

func useOf(p *model.Process, index int) *model.DeviceUse {
	for i := range p.Devices {
		if p.Devices[i].Device == index {
			return &p.Devices[i]
		}
	}
	p.Devices = append(p.Devices, model.DeviceUse{Device: index})
	slices.SortStableFunc(p.Devices, func(a, b model.DeviceUse) int { return cmp.Compare(a.Device, b.Device) })
	return useOf(p, index)
}

// replaceOnChip takes what another source counted for a process out of a
// chip's sums, and puts the reports in.
func replaceOnChip(c *model.Chip, old *model.DeviceUse, b model.PoolBytes) {
	for pool := range b {
		used := &c.Memory.Pools[pool].Used
		v, known := used.Get()
		for i := range old.Chips {
			if cu := &old.Chips[i]; c.ID.Known() && cu.ChipID == c.ID.V && cu.Memory[pool].Known() {
				v -= min(v, cu.Memory[pool].V)
			}
		}
		if b[pool].Known() {
			v, known = v+b[pool].V, true
		}
		if known {
			*used = model.Value(v)
		}
	}
	if c.Memory.CBMeans == "" && b[model.CB].Known() {
		c.Memory.CBMeans = "resident"
	}
}

func addPools(a, b model.PoolBytes) model.PoolBytes {
	for pool := range a {
		switch {
		case a[pool].Known() && b[pool].Known():
			a[pool] = model.Value(a[pool].V + b[pool].V)
		case b[pool].Known(), !a[pool].Known() && a[pool].Why == "":
			a[pool] = b[pool]
		}
	}
	return a
}

// dispute says in which pools two sources disagree, if they do.
func dispute(source string, theirs, ours model.PoolBytes) string {
	var words []string
	for _, pool := range []model.Pool{model.DRAM, model.L1, model.L1Small, model.Trace} {
		a, b := theirs[pool], ours[pool]
		if a.Known() && b.Known() && a.V != b.V {
			words = append(words, fmt.Sprintf("%s %d bytes, not %d", pool, a.V, b.V))
		}
	}
	if len(words) == 0 {
		return ""
	}
	return source + " says " + strings.Join(words, ", ")
}

func addNote(to *string, note string) {
	switch {
	case note == "" || *to == note:
	case *to == "":
		*to = note
	default:
		*to += "; " + note
	}
}
