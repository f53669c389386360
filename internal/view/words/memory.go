package words

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/model"
)

// PoolName is how a pool is called on screen: "L1_SMALL".
func PoolName(p model.Pool) string { return strings.ToUpper(p.String()) }

// Untracked is why a device, chip or process has no memory figures, as the
// end of a sentence, and empty where it has them. A note of the source itself
// says it better.
func Untracked(t model.Tracking, note string) string {
	if note != "" && t != model.TrackOK {
		return Escape(note)
	}
	switch t {
	case model.TrackOK:
		return ""
	case model.TrackPartial:
		return "some users are not in the memory figures"
	case model.TrackDenied:
		return "memory of other users is hidden: start ttmond, or run as root"
	case model.TrackUnknown:
		return "memory is accounted in a layout this ttmon does not know: a newer ttmon may"
	default:
		return "memory is not known: the programs that use it do not account for it"
	}
}

// UntrackedWord is the word in a column for memory that is not known.
func UntrackedWord(t model.Tracking) string {
	switch t {
	case model.TrackDenied:
		return "denied"
	case model.TrackUnknown:
		return "unknown"
	default:
		return "N/A"
	}
}

// memory says in one short sentence what the memory figures of a device leave
// out. What the source itself has to say is longer, and in the report.
func (l *list) memory(d *model.Device) {
	switch m := &d.Memory; m.Tracking {
	case model.TrackOK:
	case model.TrackAbsent, "":
		// Worth a line only where somebody uses the device: an idle board
		// without figures misleads nobody.
		if l.used(d.Index) {
			l.add(Info, "untracked", d.Index, Untracked(model.TrackAbsent, brief(m.Note)))
		}
	case model.TrackPartial:
		text := l.leftOut(d.Index)
		if text == "" {
			text = Untracked(m.Tracking, brief(m.Note))
		}
		l.add(Info, string(m.Tracking), d.Index, text)
	default:
		l.add(Info, string(m.Tracking), d.Index, Untracked(m.Tracking, ""))
	}
}

// brief is a note if it is one sentence that fits into two lines.
func brief(note string) string {
	if len(note) > 150 || strings.Contains(note, "; ") {
		return ""
	}
	return note
}

// leftOut names the processes whose memory on a device is not known.
func (l *list) leftOut(device int) string {
	var names []string
	for i := range l.snap.Processes {
		p := &l.snap.Processes[i]
		for j := range p.Devices {
			u := &p.Devices[j]
			if _, known := u.Memory.Total(); u.Device == device && !known && p.State == model.Running {
				names = append(names, strconv.Itoa(p.PID)+" "+Foreign(p.Name))
			}
		}
	}
	switch n := len(names); {
	case n == 0:
		return ""
	case n > 3:
		return "memory of " + strings.Join(names[:3], ", ") + fmt.Sprintf(" and %d more processes is not in the figures", n-3)
	default:
		return "memory of " + strings.Join(names, ", ") + " is not in the figures"
	}
}

// used tells whether a process has the device open.
func (l *list) used(device int) bool {
	for i := range l.snap.Processes {
		for j := range l.snap.Processes[i].Devices {
			if l.snap.Processes[i].Devices[j].Device == device {
				return true
			}
		}
	}
	return false
}

// ghosts says per device what dead processes left behind.
func (l *list) ghosts() {
	byDevice := map[int][]*model.Ghost{}
	var order []int
	for i := range l.snap.Ghosts {
		g := &l.snap.Ghosts[i]
		if byDevice[g.Device] == nil {
			order = append(order, g.Device)
		}
		byDevice[g.Device] = append(byDevice[g.Device], g)
	}
	for _, device := range order {
		var sum model.PoolBytes
		var newest *model.Ghost
		for _, g := range byDevice[device] {
			for p, r := range g.Bytes {
				if r.Known() {
					sum[p] = model.Value(sum[p].V + r.V)
				}
			}
			if newest == nil || g.Updated.After(newest.Updated) {
				newest = g
			}
		}
		held := pools(sum)
		if held == "" {
			continue
		}
		n := owners(byDevice[device])
		who := ghostName(newest, l.snap.Time)
		text := held + " belong to a dead process (" + who + "): see ttmon stale"
		if n > 1 {
			text = fmt.Sprintf("%s belong to %d dead processes (the last: %s): see ttmon stale", held, n, who)
		}
		if device == model.NoDevice {
			text += " (on a chip that is not here)"
		}
		l.add(Warning, "stale", device, text)
	}
}

// owners counts dead processes: one that used several chips left something in
// the region of each.
func owners(list []*model.Ghost) int {
	type owner struct {
		pid  int
		name string
	}
	seen := map[owner]bool{}
	for _, g := range list {
		seen[owner{g.PID, g.Name}] = true
	}
	return len(seen)
}

func ghostName(g *model.Ghost, now time.Time) string {
	who := strconv.Itoa(g.PID)
	if g.Name != "" {
		who += " " + Escape(g.Name)
	}
	if age := now.Sub(g.Updated); !g.Updated.IsZero() && age >= 0 {
		who += ", " + Span(age) + " ago"
	}
	return who
}

// pools lists the pools that hold something: "128 MiB of DRAM and 2.0 MiB of L1".
func pools(b model.PoolBytes) string {
	var parts []string
	for _, p := range model.Pools() {
		if v, ok := b[p].Get(); ok && v > 0 {
			parts = append(parts, Bytes(v)+" of "+PoolName(p))
		}
	}
	if n := len(parts); n > 1 {
		return strings.Join(parts[:n-1], ", ") + " and " + parts[n-1]
	}
	return strings.Join(parts, "")
}

// used says what a memory holds; ok is false when nothing is known of it.
func used(m *model.Memory) (text string, ok bool) {
	var b model.PoolBytes
	for i := range m.Pools {
		b[i] = m.Pools[i].Used
		ok = ok || b[i].Known()
	}
	if text = pools(b); text == "" {
		text = "nothing allocated"
	}
	return text, ok
}

func chipID(id model.Reading[uint64]) string {
	return Reading(id, func(v uint64) string { return strconv.FormatUint(v, 10) })
}
