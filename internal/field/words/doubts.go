package words

import (
	"slices"
	"strconv"
	"strings"

	"github.com/ttmon/ttmon/internal/model"
)

// group is what is said once about all whom it is true of.
type group struct {
	kind     model.DoubtKind
	noun     noun
	text     string
	cure     string
	subjects []string
	devices  []int
}

// doubts says what the memory figures and the lists of users leave out: once
// for all devices and processes of which the same is true. Those that hold
// for every program of a release are one sentence for the host.
func (l *list) doubts() {
	var g gathering
	for i := range l.snap.Devices {
		d := &l.snap.Devices[i]
		g.add(l, d.Index, nil, d.Doubts)
		g.add(l, d.Index, nil, d.Memory.Doubts)
		for j := range d.Chips {
			g.add(l, d.Index, nil, d.Chips[j].Memory.Doubts)
		}
	}
	for i := range l.snap.Processes {
		p := &l.snap.Processes[i]
		for j := range p.Devices {
			g.add(l, p.Devices[j].Device, p, p.Doubts)
			g.add(l, p.Devices[j].Device, p, p.Devices[j].Doubts)
		}
	}
	for _, gr := range g.groups {
		text := gr.text
		if len(gr.subjects) > 0 {
			text = several(gr.noun, gr.subjects) + ": " + text
		}
		slices.Sort(gr.devices)
		l.notices = append(l.notices, Notice{Level: Info, Code: string(gr.kind), Devices: gr.devices, Text: withCure(text, gr.cure)})
	}
	if text := g.quietly(); text != "" {
		l.add(Info, Unmeasured, model.NoDevice, text)
	}
}

// Unmeasured is the code of the notice about what holds for the figures of every
// program of a release.
const Unmeasured = "unsure"

// Quiet is the one sentence about what holds for every program of a release,
// for screens that show no notices, or nothing. It is about the devices that are
// shown.
func Quiet(s *model.Snapshot, shown func(device int) bool) string {
	var g gathering
	for i := range s.Processes {
		p := &s.Processes[i]
		for j := range p.Devices {
			if shown(p.Devices[j].Device) {
				g.note(p.Doubts)
				g.note(p.Devices[j].Doubts)
			}
		}
	}
	return g.quietly()
}

// gathering is the doubts of a snapshot while they are collected.
type gathering struct {
	groups   []group
	quiet    []model.DoubtKind
	releases []string
}

// add takes doubts about a device, or about a process on it.
func (g *gathering) add(l *list, device int, p *model.Process, doubts []model.Doubt) {
	g.note(doubts)
	for i := range doubts {
		d := &doubts[i]
		switch {
		case d.Kind.Row().Quiet:
		case d.Kind == model.ChipAmbiguous && l.unmatched(d.Chip):
			// said of the chip
		case d.Kind.Bound() != model.Exact || d.Kind.Row().Shown || isNew(d):
			g.put(l, device, p, d)
		}
	}
}

// note takes those that hold for every program of a release.
func (g *gathering) note(doubts []model.Doubt) {
	for i := range doubts {
		d := &doubts[i]
		if !d.Kind.Row().Quiet {
			continue
		}
		g.quiet = appendNew(g.quiet, d.Kind)
		if d.Release != "" {
			g.releases = appendNew(g.releases, d.Release)
		}
	}
}

// isNew reports whether a doubt is of a kind that only a newer ttmond knows. What
// it does to the figures cannot be told, so it is said.
func isNew(d *model.Doubt) bool { return phraseOf(d).new }

func (g *gathering) put(l *list, device int, p *model.Process, d *model.Doubt) {
	ph := phraseOf(d)
	if p != nil && ph.name == "" {
		ph.noun, ph.name = aProcess, l.processName(p.PID)
	} else if ph.noun == aProcess && d.PID != 0 {
		ph.name = l.processName(d.PID)
	}
	cure := Cure(*d, l.snap.Source)
	i := slices.IndexFunc(g.groups, func(gr group) bool {
		return gr.kind == d.Kind && gr.text == ph.text && gr.noun == ph.noun && (ph.name == "") == (len(gr.subjects) == 0)
	})
	if i < 0 {
		i = len(g.groups)
		g.groups = append(g.groups, group{kind: d.Kind, noun: ph.noun, text: ph.text, cure: cure})
	}
	gr := &g.groups[i]
	if ph.name != "" {
		gr.subjects = appendNew(gr.subjects, ph.name)
	}
	if device != model.NoDevice {
		gr.devices = appendNew(gr.devices, device)
	}
}

// quietly says in one sentence what holds for every program of a release.
func (g *gathering) quietly() string {
	if len(g.quiet) == 0 {
		return ""
	}
	who := "tt-metal's own statistics"
	if len(g.releases) > 0 {
		slices.Sort(g.releases)
		who += " (release " + Escape(strings.Join(g.releases, ", ")) + ")"
	}
	var what []string
	if slices.Contains(g.quiet, model.OtherThreads) {
		what = append(what, "count one thread of a program")
	}
	if slices.Contains(g.quiet, model.GraphCapture) {
		what = append(what, "miscount around graph captures")
	}
	return Mark(model.Unsure) + ": " + who + " " + strings.Join(what, " and ") + "; " + exactCure
}

// processName is a process by number and, if it is in the snapshot, name.
func (l *list) processName(pid int) string {
	for i := range l.snap.Processes {
		if p := &l.snap.Processes[i]; p.PID == pid && p.Name.Known() {
			return strconv.Itoa(pid) + " " + Escape(p.Name.V)
		}
	}
	return strconv.Itoa(pid)
}

// unmatched reports whether a chip is in the snapshot as one of several devices'.
func (l *list) unmatched(chip uint64) bool {
	return slices.ContainsFunc(l.snap.Unmatched, func(c model.Chip) bool { return c.ID.Known() && c.ID.V == chip })
}

func appendNew[T comparable](list []T, v T) []T {
	if slices.Contains(list, v) {
		return list
	}
	return append(list, v)
}
