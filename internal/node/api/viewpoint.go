package api

import (
	"slices"
	"strconv"
	"strings"

	"github.com/ttmon/ttmon/internal/base/budget"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/node/stream"
)

// Hiding is how the host's /proc hides processes from other users.
type Hiding stream.Hiding

// ParseHiding reads the options of /proc from a mountinfo file.
func ParseHiding(mountinfo []byte) Hiding {
	h := Hiding{GID: -1}
	for line := range strings.Lines(string(mountinfo)) {
		before, after, ok := strings.Cut(line, " - ")
		fields, tail := strings.Fields(before), strings.Fields(after)
		if !ok || len(fields) < 6 || fields[4] != "/proc" || len(tail) < 3 || tail[0] != "proc" {
			continue
		}
		h = Hiding{GID: -1} // a later mount covers an earlier one
		for option := range strings.SplitSeq(fields[5]+","+tail[2], ",") {
			key, value, _ := strings.Cut(option, "=")
			switch key {
			case "hidepid":
				h.Level = hidingLevel(value)
			case "gid":
				if n, err := strconv.Atoi(value); err == nil && n >= 0 {
					h.GID = n
				}
			}
		}
	}
	return h
}

func hidingLevel(word string) int {
	switch word {
	case "off":
		return 0
	case "noaccess":
		return 1
	case "invisible":
		return 2
	case "ptraceable":
		return 4
	}
	n, err := strconv.Atoi(word)
	if err != nil || n < 0 {
		return 2 // an option we do not know hides, rather than shows
	}
	return n
}

// Viewpoint is what decides what a caller may see.
type Viewpoint struct {
	Level int // of hiding that applies to the caller
	UID   int // whose own processes it sees in full; -1: no user's, 0 where it sees everything
	// own: what was read by root's rights is shown of the caller's own processes only.
	Own bool
}

// caller is the user behind a request.
type caller struct {
	uid    int
	gids   []int
	pid    int
	exists bool // the kernel told, now or when the session began
	remote bool // over TCP, or with a session of one who is
	// decided: another daemon has said what the caller may see.
	decided bool
	all     bool // everything
	level   int  // of hiding
}

// sees reports whether the caller sees what belongs to any user.
func (c caller) sees() bool {
	if c.decided {
		return c.all
	}
	return c.exists && budget.Privileged(c.uid)
}

// user is whose processes the caller sees; -1: no user's.
func (c caller) user() int {
	if !c.exists {
		return -1
	}
	return c.uid
}

// owns reports whether the caller sees what belongs to a user.
func (c caller) owns(uid int) bool { return c.sees() || c.exists && c.uid == uid }

func (h Hiding) viewpoint(c caller) Viewpoint {
	if c.decided {
		h = Hiding{Level: c.level, GID: -1}
	}
	if h.Level == 0 || c.exists && c.uid == 0 || h.GID >= 0 && slices.Contains(c.gids, h.GID) {
		h.Level = 0
	}
	if h.Level == 0 && c.sees() {
		return Viewpoint{}
	}
	return Viewpoint{Level: h.Level, UID: c.user(), Own: !c.sees()}
}

// Withholds reports whether what was read by root's rights of a process of a user
// is not for the viewer.
func (v Viewpoint) Withholds(uid model.Reading[int]) bool {
	owner, known := uid.Get()
	return v.Own && (!known || owner != v.UID)
}

// Anonymous reports whether the viewer is no known user of the host.
func (v Viewpoint) Anonymous() bool { return v.Own && v.UID == -1 }

// on is the viewpoint without a user who has no process in a snapshot, and so sees
// what any other sees: the snapshot is encoded once for all of them.
func (v Viewpoint) on(s *model.Snapshot) Viewpoint {
	if v.Own && !slices.ContainsFunc(s.Processes, func(p model.Process) bool { return !v.Withholds(p.UID) }) {
		v.UID = -1
	}
	return v
}

// OfPast is Filter for a snapshot that is not the present one: without the
// arguments of programs that may have ended long ago, if the viewer is no user.
func (v Viewpoint) OfPast(s *model.Snapshot) *model.Snapshot {
	s = v.Filter(s)
	if v.Anonymous() { // Filter has made a copy
		for i := range s.Processes {
			s.Processes[i].Cmdline = model.Missing[string](model.Denied, unnamedWhy)
		}
	}
	return s
}

const unnamedWhy = "command lines of the past are for users of the host: sign in with ttmon web"

// Hides reports whether a process of a user is hidden from the viewer.
func (v Viewpoint) Hides(uid model.Reading[int]) bool {
	owner, known := uid.Get()
	return v.Level > 0 && (!known || owner != v.UID)
}

const hiddenWhy = "this host hides other users' processes (hidepid)"

// Filter returns the snapshot as the viewer may see it; s itself if that is
// everything.
func (v Viewpoint) Filter(s *model.Snapshot) *model.Snapshot {
	if v == (Viewpoint{}) {
		return s
	}
	t := *s
	t.Processes = slices.Clone(s.Processes)
	for i := range t.Processes {
		p := &t.Processes[i]
		if v.Withholds(p.UID) {
			p.Reach.JobName, p.Reach.SSH, p.Reach.Dir = "", "", ""
		}
		if v.Hides(p.UID) {
			v.conceal(p)
		}
	}
	if v.Level == 0 {
		return &t
	}
	t.Devices = slices.Clone(s.Devices)
	for i := range t.Devices {
		d := &t.Devices[i]
		d.Doubts, d.Memory.Doubts = v.doubts(d.Doubts), v.doubts(d.Memory.Doubts)
		d.Chips = v.chips(d.Chips)
		d.Pods = nil
	}
	t.Exits = nil
	t.Unmatched = v.chips(s.Unmatched)
	t.StaleSlots = slices.Clone(s.StaleSlots)
	for i := range t.StaleSlots {
		t.StaleSlots[i].Name = ""
	}
	return &t
}

func (v Viewpoint) chips(list []model.Chip) []model.Chip {
	list = slices.Clone(list)
	for i := range list {
		list[i].Memory.Doubts = v.doubts(list[i].Memory.Doubts)
	}
	return list
}

// doubts are doubts without what /proc hides of the processes in them: their
// names and what they run and, with hidepid=2, whose they are.
func (v Viewpoint) doubts(list []model.Doubt) []model.Doubt {
	list = slices.Clone(list)
	for i := range list {
		d := &list[i]
		d.Name, d.Release = "", ""
		if v.Level >= 2 && d.Kind == model.ProcessDenied {
			d.UID = -1
		}
	}
	return list
}

func (v Viewpoint) conceal(p *model.Process) {
	p.Name = model.Missing[string](model.Denied, hiddenWhy)
	p.Cmdline = model.Missing[string](model.Denied, hiddenWhy)
	p.CPU = model.Missing[float64](model.Denied, hiddenWhy)
	p.RSS = model.Missing[uint64](model.Denied, hiddenWhy)
	p.Threads = model.Missing[int](model.Denied, hiddenWhy)
	p.Release = model.Missing[string](model.Denied, hiddenWhy)
	p.Type = p.Release
	p.SlurmStep, p.SlurmFrom, p.Reach = "", "", model.Reach{}
	p.Container, p.SlurmJob, p.SystemdUnit, p.PPID, p.Condition = model.Container{}, "", "", 0, ""
	p.Failures = nil
	p.Work = withoutOperations(p.Work)
	p.Doubts = v.doubts(p.Doubts)
	p.Devices = slices.Clone(p.Devices)
	for i := range p.Devices {
		p.Devices[i].Doubts = v.doubts(p.Devices[i].Doubts)
	}
	if v.Level >= 2 {
		p.UID = model.Missing[int](model.Denied, hiddenWhy)
		p.User = model.Missing[string](model.Denied, hiddenWhy)
	}
}

// withoutOperations is what a process had its chips do, without the names that its
// program gives to that.
func withoutOperations(w model.ProcessWork) model.ProcessWork {
	w.Host.LastName = ""
	w.Chips = slices.Clone(w.Chips)
	for i := range w.Chips {
		c := &w.Chips[i]
		c.LongestName, c.LastName = "", ""
		c.Operations, c.Gaps = slices.Clone(c.Operations), slices.Clone(c.Gaps)
		for k := range c.Operations {
			c.Operations[k].Name = ""
		}
		for k := range c.Gaps {
			c.Gaps[k].After = ""
		}
	}
	return w
}
