package words

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/base/sorted"
	"github.com/ttmon/ttmon/internal/collect/assess"
	"github.com/ttmon/ttmon/internal/model"
)

// PoolName is how a pool is called on screen: "L1_SMALL".
func PoolName(p model.Pool) string { return strings.ToUpper(p.String()) }

// Untracked is why a device, chip or process has no memory figures where no
// doubt says it, as the end of a sentence, and empty where it has them.
func Untracked(t model.Tracking, from model.Origin) string {
	switch t {
	case model.TrackOK:
		return ""
	case model.TrackPartial:
		return "the memory figures leave out some users"
	case model.TrackDenied:
		return withCure("memory of other users is hidden", rights(from, "CAP_SYS_PTRACE"))
	case model.TrackUnknown:
		return "memory accounting has a layout that this ttmon does not know: a newer one may"
	default:
		return "memory is unknown: no program accounts for it"
	}
}

// Reasons lists what is to be said about figures on a page of their own: a
// sentence for each doubt, with what helps, or what their tracking says.
func Reasons(t model.Tracking, doubts []model.Doubt, from model.Origin) []string {
	var list []string
	for _, d := range doubts {
		list = appendNew(list, DoubtAndCure(d, from))
	}
	if text := Untracked(t, from); text != "" && !explained(doubts) {
		list = append(list, text)
	}
	return list
}

// UseReasons is Reasons for what a process has of a device, without saying
// again which process.
func UseReasons(p *model.Process, u *model.DeviceUse, from model.Origin) []string {
	own := OwnDoubts(p, u)
	if u.Tracking != model.TrackPartial {
		return Reasons(u.Tracking, own, from)
	}
	list := Reasons(model.TrackOK, own, from)
	if !explained(own) {
		list = append(list, "not every pool of its memory is known")
	}
	return list
}

// OwnDoubts are the doubts about what a process has of a device, as they are
// said beside it: the process itself is not named in them.
func OwnDoubts(p *model.Process, u *model.DeviceUse) []model.Doubt {
	list := slices.Concat(u.Doubts, p.Doubts)
	for i := range list {
		if list[i].PID == p.PID {
			list[i].PID = 0
		}
	}
	return list
}

// explained reports whether doubts say why figures are not whole, or why there
// are none to be had.
func explained(doubts []model.Doubt) bool {
	return slices.ContainsFunc(doubts, func(d model.Doubt) bool {
		return d.Kind.Bound() != model.Exact || d.Kind == model.NotTTMetal || d.Kind == model.OtherChipsOnly || isNew(&d)
	})
}

// UntrackedWord is the word in a column for memory that is not known.
func UntrackedWord(t model.Tracking) string {
	switch t {
	case model.TrackDenied:
		return "denied"
	default:
		return Nothing
	}
}

// memory says in one short sentence what the memory figures of a device leave
// out, where no doubt says it better.
func (l *list) memory(d *model.Device) {
	t := d.Memory.Tracking
	switch {
	case t == model.TrackOK || explained(d.Doubts) || explained(d.Memory.Doubts):
	case t == model.TrackAbsent || t == "":
		// Worth a line only where a process uses the device: an idle board
		// without figures misleads no reader.
		if l.used(d.Index) && d.HiddenFDs == 0 {
			l.add(Info, "untracked", d.Index, Untracked(model.TrackAbsent, l.snap.Source))
		}
	case t == model.TrackPartial:
		text := l.leftOut(d.Index)
		if text == "" {
			text = Untracked(t, l.snap.Source)
		}
		l.add(Info, string(t), d.Index, text)
	default:
		l.add(Info, string(t), d.Index, Untracked(t, l.snap.Source))
	}
}

// leftOut names the processes whose memory on a device is not known.
func (l *list) leftOut(device int) string {
	var names []string
	for i := range l.snap.Processes {
		p := &l.snap.Processes[i]
		for j := range p.Devices {
			u := &p.Devices[j]
			if u.Device == device && !u.Memory.Total().Known() && p.State == model.Running {
				names = append(names, strconv.Itoa(p.PID)+" "+Foreign(p.Name))
			}
		}
	}
	if len(names) == 0 {
		return ""
	}
	return several(aProcess, names) + ": " + notCounted
}

// used reports whether a process has the device open.
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

// staleSlots says what dead processes left behind: one sentence for all devices
// on which the same ones did.
func (l *list) staleSlots() {
	byDevice := map[int][]*model.StaleSlot{}
	for i := range l.snap.StaleSlots {
		g := &l.snap.StaleSlots[i]
		byDevice[g.Device] = append(byDevice[g.Device], g)
	}
	type remains struct {
		devices    []int
		owners     []owner
		staleSlots []*model.StaleSlot
	}
	var all []remains
	for _, device := range slices.Sorted(maps.Keys(byDevice)) {
		who := owners(byDevice[device])
		i := slices.IndexFunc(all, func(r remains) bool {
			return slices.Equal(r.owners, who) && (r.devices[0] == model.NoDevice) == (device == model.NoDevice)
		})
		if i < 0 {
			i = len(all)
			all = append(all, remains{owners: who})
		}
		all[i].devices = append(all[i].devices, device)
		all[i].staleSlots = append(all[i].staleSlots, byDevice[device]...)
	}
	for _, r := range all {
		if text := l.remains(r.staleSlots, len(r.owners)); text != "" {
			if r.devices[0] == model.NoDevice {
				l.add(assess.LevelOf(model.ConditionStaleMemory), string(model.ConditionStaleMemory), model.NoDevice, text+l.elsewhere(r.staleSlots))
				continue
			}
			l.notices = append(l.notices, Notice{Level: assess.LevelOf(model.ConditionStaleMemory), Code: string(model.ConditionStaleMemory), Devices: r.devices, Text: text})
		}
	}
}

// remains says what a number of dead processes left, or nothing if they left
// nothing.
func (l *list) remains(list []*model.StaleSlot, owners int) string {
	var sums [model.NumPools]model.Sum
	var last *model.StaleSlot
	removable := false
	for _, g := range list {
		for p, b := range g.Bytes {
			if b.Positive() {
				sums[p].Add(b)
			}
		}
		if last == nil || g.Updated.After(last.Updated) {
			last = g
		}
		removable = removable || !g.Mapped
	}
	var left model.PoolBytes
	for p := range sums {
		left[p] = sums[p].Bytes()
	}
	held := pools(left)
	if held == "" {
		return ""
	}
	who := ghostName(last, l.snap.Time)
	text := held + " left by a dead process (" + who + ")"
	if owners > 1 {
		text = fmt.Sprintf("%s left by %d dead processes (the last: %s)", held, owners, who)
	}
	if !removable {
		return text + ", until those that use the chip have ended"
	}
	return text + ": ttmon mem --stale"
}

// owner is a dead process: one that used several chips left something in the
// region of each.
type owner struct {
	pid  int
	name string
}

// owners lists the dead processes, sorted.
func owners(list []*model.StaleSlot) []owner {
	var who []owner
	for _, g := range list {
		who = appendNew(who, owner{g.PID, g.Name})
	}
	sorted.By(who, func(a, b *owner) int {
		return cmp.Or(cmp.Compare(a.pid, b.pid), cmp.Compare(a.name, b.name))
	})
	return who
}

// ghostName is a dead process. When it died is not known; when it last wrote is.
func ghostName(g *model.StaleSlot, now time.Time) string {
	who := strconv.Itoa(g.PID)
	if g.Name != "" {
		who += " " + Escape(g.Name)
	}
	if wrote := Wrote(g, now); wrote != "" {
		who += ", last " + wrote
	}
	return who
}

// Wrote says when a dead process last changed its account, which may be long
// before it died: "wrote 3 h ago". It is empty where that is not known.
func Wrote(g *model.StaleSlot, now time.Time) string {
	age := now.Sub(g.Updated)
	if g.Updated.IsZero() || age < 0 {
		return ""
	}
	return "wrote " + Span(age) + " ago"
}

// pools lists the pools that hold something: "128 MiB of DRAM and 2.0 MiB of L1".
func pools(b model.PoolBytes) string {
	var parts []string
	for _, p := range model.Pools() {
		if b[p].Positive() {
			parts = append(parts, FigureInText(b[p])+" of "+PoolName(p))
		}
	}
	if n := len(parts); n > 1 {
		return strings.Join(parts[:n-1], ", ") + " and " + parts[n-1]
	}
	return strings.Join(parts, "")
}

func chipID(id model.Reading[uint64]) string {
	return Reading(id, func(v uint64) string { return strconv.FormatUint(v, 10) })
}
