package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	checks "github.com/ttmon/ttmon/internal/view/doctor"

	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
)

// anonymous is a subject without what tells who and what it is about: the
// figures stay, the names go.
func anonymous(s *checks.Subject) *checks.Subject {
	out := *s
	snap := *s.Snapshot
	snap.Host.Name = "host"
	snap.Devices = slices.Clone(snap.Devices)
	m := mask{users: map[int]int{}}
	for i := range snap.Devices {
		d := &snap.Devices[i]
		d.Doubts = m.doubts(d.Doubts)
		d.Memory.Doubts = m.doubts(d.Memory.Doubts)
		d.Chips = m.chips(d.Chips)
		d.Pods = nil
	}
	snap.Unmatched = m.chips(snap.Unmatched)
	snap.StaleSlots = slices.Clone(snap.StaleSlots)
	for i := range snap.StaleSlots {
		snap.StaleSlots[i].Name = "program"
	}
	snap.Processes = slices.Clone(snap.Processes)
	for i := range snap.Processes {
		m.process(&snap.Processes[i])
	}
	snap.Alerts = slices.Clone(snap.Alerts)
	for i := range snap.Alerts {
		snap.Alerts[i].Summary = snap.Alerts[i].Name
	}
	snap.Exits = slices.Clone(snap.Exits)
	for i := range snap.Exits {
		snap.Exits[i].Account = nil // it names the program and its user
	}
	snap.Log = slices.Clone(snap.Log)
	for i := range snap.Log {
		snap.Log[i].Text = "" // the driver's lines can name programs
	}
	out.Snapshot = &snap
	out.Daemon = s.Daemon
	out.Daemon.Path = "its socket"
	if s.Daemon.Why != "" {
		out.Daemon.Why = "it failed"
	}
	out.Daemon.Unwatched = nil
	for range s.Daemon.Unwatched {
		out.Daemon.Unwatched = append(out.Daemon.Unwatched, "a library is not watched")
	}
	return &out
}

// mask replaces users by numbers in the order in which they are met.
type mask struct{ users map[int]int }

// user is another number for the same user; root stays root.
func (m *mask) user(uid int) int {
	if uid == 0 {
		return 0
	}
	if m.users[uid] == 0 {
		m.users[uid] = 100001 + len(m.users)
	}
	return m.users[uid]
}

func (m *mask) process(p *model.Process) {
	p.UID = model.Map(p.UID, m.user)
	if p.User.Known() {
		p.User = model.Value("user")
		if p.UID.Known() {
			p.User = model.Value("user-" + strconv.Itoa(p.UID.V))
		}
	}
	if p.Name.Known() {
		p.Name = model.Value("program")
	}
	p.Cmdline = model.Missing[string](model.Absent, "left out of the bundle")
	p.Reach, p.Work = model.Reach{}, model.ProcessWork{} // operations may have the names of private code
	if p.Container.ID != "" || p.Container.Pod != "" {
		p.Container = model.Container{Runtime: p.Container.Runtime, ID: "container"}
	}
	if p.SlurmJob != "" {
		p.SlurmJob = "job"
	}
	if p.SlurmStep != "" {
		p.SlurmStep = "step"
	}
	if p.SystemdUnit != "" {
		p.SystemdUnit = "unit"
	}
	p.Doubts = m.doubts(p.Doubts)
	p.Devices = slices.Clone(p.Devices)
	for i := range p.Devices {
		p.Devices[i].Doubts = m.doubts(p.Devices[i].Doubts)
	}
}

func (m *mask) chips(list []model.Chip) []model.Chip {
	list = slices.Clone(list)
	for i := range list {
		list[i].Memory.Doubts = m.doubts(list[i].Memory.Doubts)
	}
	return list
}

func (m *mask) doubts(list []model.Doubt) []model.Doubt {
	list = slices.Clone(list)
	for i := range list {
		d := &list[i]
		d.UID = m.user(d.UID)
		d.Detail = ""
		if d.Name != "" {
			d.Name = "program"
		}
	}
	return list
}

// idsHidden replaces the ids of boards and chips wherever they stand.
func idsHidden(s *model.Snapshot) func([]byte) []byte {
	seen := map[string]bool{}
	note := func(id string) {
		if len(id) >= 6 { // shorter ones are no ids, and would be found in sizes
			seen[id] = true
		}
	}
	chip := func(id uint64) {
		note(strconv.FormatUint(id, 10))
		note(fmt.Sprintf("%016X", id))
	}
	for i := range s.Devices {
		d := &s.Devices[i]
		note(d.Serial.V)
		note(d.ASICID.V)
		for j := range d.Chips {
			chip(d.Chips[j].ID.V)
		}
	}
	for i := range s.Unmatched {
		chip(s.Unmatched[i].ID.V)
	}
	for i := range s.StaleSlots {
		chip(s.StaleSlots[i].ChipID)
	}
	// Longer ones first: one may be part of another.
	ids := slices.SortedFunc(maps.Keys(seen), func(a, b string) int {
		if n := len(b) - len(a); n != 0 {
			return n
		}
		return strings.Compare(a, b)
	})
	pairs := make([]string, 0, 2*len(ids))
	for i, id := range ids {
		pairs = append(pairs, id, "chip-"+strconv.Itoa(i+1))
	}
	r := strings.NewReplacer(pairs...)
	return func(b []byte) []byte { return []byte(r.Replace(string(b))) }
}

// appendSetup prints how the host is set up.
func appendSetup(dst []byte, s *model.Setup) []byte {
	row := func(name, format string, args ...any) {
		dst = fmt.Appendf(dst, "%-24s %s\n", name, fmt.Sprintf(format, args...))
	}
	row("kernel", "%s", words.Escape(s.Kernel))
	row("btf", "%t", s.BTF)
	row("lockdown", "%s", words.Escape(s.Lockdown))
	row("inside a container", "%s", words.Escape(s.Container))
	row("hidepid", "%t", s.HidePID)
	row("pages of 1 GiB", "%s, free %s, at %s", words.Reading(s.HugePages, strconv.Itoa), words.Reading(s.HugeFree, strconv.Itoa), words.Escape(s.HugeMount))
	row("regions in /dev/shm", "%s", words.Reading(s.Regions, strconv.Itoa))
	row("free in /dev/shm", "%s of %s", words.Reading(s.ShmFree, words.Bytes), words.Reading(s.ShmTotal, words.Bytes))
	for _, p := range s.Parameters {
		row("parameter "+words.Escape(p.Name), "%s", words.Escape(p.Value))
	}
	for _, n := range s.Nodes {
		row(n.Path, "mode %04o, usable %t", n.Mode, n.Usable)
	}
	count := func(n uint64) string { return strconv.FormatUint(n, 10) }
	for _, f := range s.Functions {
		row(words.Escape(f.BusID), "iommu %s, fatal errors %s, others %s", words.Reading(f.IOMMU, func(k model.IOMMU) string { return string(k) }),
			words.Reading(f.FatalErrors, count), words.Reading(f.NonfatalErrors, count))
	}
	return dst
}
