package ledger

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ttmon/ttmon/internal/model"
)

// finish makes a device's sums and its tracking state agree with its chips
// and its users, after reports have been put in.
func finish(s *model.Snapshot, d *model.Device) {
	covered, missing := users(s, d)
	if len(covered) == 0 {
		return // nobody reports for it: the other sources have said all
	}
	for i := range d.Chips {
		m := &d.Chips[i].Memory
		before := m.Tracking
		m.Note = withoutNotes(m.Note, covered)
		for pool := range m.Pools {
			if used := &m.Pools[pool].Used; !used.Known() && reportable(model.Pool(pool)) && len(missing) == 0 {
				*used = model.Value[uint64](0) // all users report, and nobody has any here
			}
		}
		switch {
		case len(missing) > 0:
			m.Tracking = model.TrackPartial
			if before != model.TrackPartial || m.Note == "" { // otherwise another source has said who
				addNote(&m.Note, "processes are not in the figures: "+strings.Join(missing, ", "))
			}
		case before == model.TrackDenied || before == model.TrackUnknown:
			m.Tracking = model.TrackPartial // there are others whom we cannot see
		case before == "" || before == model.TrackAbsent || m.Note == "":
			m.Tracking = model.TrackOK
		}
	}
	sum(d)
}

// reportable pools are those that every client reports.
func reportable(p model.Pool) bool { return p <= model.Trace }

// users lists the processes on a device that report, and those of which
// nothing is known.
func users(s *model.Snapshot, d *model.Device) (covered []int, missing []string) {
	if d.HiddenFDs > 0 {
		missing = append(missing, "some that are hidden by a pid namespace")
	}
	for i := range s.Processes {
		p := &s.Processes[i]
		for j := range p.Devices {
			switch u := &p.Devices[j]; {
			case u.Device != d.Index:
			case u.Source == Source:
				covered = append(covered, p.PID)
				if u.Tracking != model.TrackOK {
					missing = append(missing, fmt.Sprintf("%d in part", p.PID))
				}
			case u.Source == "" && p.State != model.Exited && !strings.Contains(u.Note, "not a tt-metal program"):
				missing = append(missing, fmt.Sprint(p.PID))
			}
		}
	}
	return covered, missing
}

// withoutNotes drops from a chip's note what reports have made untrue.
func withoutNotes(note string, covered []int) string {
	parts := strings.Split(note, "; ")
	parts = slices.DeleteFunc(parts, func(part string) bool {
		if part == "" || strings.HasPrefix(part, "no tt-metal process accounts for this chip") {
			return true
		}
		return slices.ContainsFunc(covered, func(pid int) bool {
			return strings.HasPrefix(part, fmt.Sprintf("process %d is not in the figures", pid))
		})
	})
	return strings.Join(parts, "; ")
}

// sum gives a device the sums of its chips.
func sum(d *model.Device) {
	m := &d.Memory
	m.Tracking, m.Note = "", ""
	for pool := range m.Pools {
		m.Pools[pool].Used = model.Reading[uint64]{}
	}
	for i := range d.Chips {
		c := &d.Chips[i].Memory
		switch {
		case m.Tracking == "" || m.Tracking == c.Tracking:
			m.Tracking = c.Tracking
		default:
			m.Tracking = model.TrackPartial
		}
		addNote(&m.Note, c.Note)
		if m.CBMeans == "" {
			m.CBMeans = c.CBMeans
		}
		for pool := range m.Pools {
			a, b := &m.Pools[pool].Used, c.Pools[pool].Used
			switch {
			case a.Known() && b.Known():
				a.V += b.V
			case !a.Known():
				*a = b
			}
		}
	}
}
