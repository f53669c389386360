package text

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/mesh"
	"github.com/ttmon/ttmon/internal/model"
	draw "github.com/ttmon/ttmon/internal/view/mesh"
	"github.com/ttmon/ttmon/internal/view/words"
)

// AppendTopology appends the matrix of what lies between devices, and what its
// words mean. A matrix that is wider than the terminal is printed in parts, one
// below the other.
func AppendTopology(dst []byte, s *model.Snapshot, t *model.Topology, o Options) []byte {
	p := &printer{buf: dst, Options: o}
	cell, affinity := 4, 0
	for _, row := range t.PCIe {
		for _, d := range row {
			cell = max(cell, len(d))
		}
	}
	for _, index := range t.Devices {
		affinity = max(affinity, len(numa(s.Device(index))))
	}
	fits := len(t.Devices)
	if o.Width > 0 {
		fits = max(1, (o.Width-len(matrixHead)-affinity)/(cell+1))
	}
	for from := 0; from < len(t.Devices); from += fits {
		if from > 0 {
			p.newline()
		}
		p.matrix(s, t, cell, from, min(from+fits, len(t.Devices)))
	}
	p.newline()
	p.legend(t)
	p.described(s, t)
	p.mesh(s, t)
	return p.buf
}

const matrixHead = " Dev "

// matrix prints the columns [from, to) of the matrix; the last part has the
// NUMA nodes.
func (p *printer) matrix(s *model.Snapshot, t *model.Topology, cell, from, to int) {
	last := to == len(t.Devices)
	p.write(matrixHead, faint)
	for _, index := range t.Devices[from:to] {
		p.write(fmt.Sprintf(" %*d", cell, index), faint)
	}
	if last {
		p.write("  NUMA  CPUs", faint)
	}
	p.newline()
	for i, index := range t.Devices {
		p.write(fmt.Sprintf(" %-4d", index), plain)
		for j := from; j < to; j++ {
			st := plain
			word := string(t.PCIe[i][j])
			switch n := t.Between(index, t.Devices[j]); {
			case i == j:
				st = faint
			case n > 0:
				word, st = "E"+strconv.Itoa(n), good
			}
			p.write(fmt.Sprintf(" %*s", cell, word), st)
		}
		if last {
			p.write(numa(s.Device(index)), plain)
		}
		p.newline()
	}
}

func numa(d *model.Device) string {
	return fmt.Sprintf("  %4s  %s", words.Reading(d.NUMANode, strconv.Itoa), words.Foreign(d.CPUAffinity))
}

// mesh draws the links by their state, where the firmware tells it.
func (p *printer) mesh(s *model.Snapshot, t *model.Topology) {
	m := mesh.Of(s)
	m.AddUnread(t)
	lines := draw.Draw(m, p.layoutWidth())
	if len(lines) > 0 {
		p.newline()
	}
	tones := map[draw.Tone]style{draw.Plain: plain, draw.Faint: faint, draw.Good: good, draw.Warn: warn, draw.Bad: bad}
	for _, l := range lines {
		for _, span := range l {
			p.write(span.Text, tones[span.Tone])
		}
		p.newline()
	}
}

// legend says what the words of a matrix mean, of those that are in it.
func (p *printer) legend(t *model.Topology) {
	in := map[model.Distance]bool{}
	links := false
	for i, a := range t.Devices {
		for j, b := range t.Devices {
			if i != j {
				in[t.PCIe[i][j]] = true
				links = links || t.Between(a, b) > 0
			}
		}
	}
	if links {
		p.sentence("E#    # Ethernet links between chips of the two; over PCIe they are as far apart as their NUMA nodes and buses say (--json)", plain)
	}
	for _, l := range []struct {
		word model.Distance
		text string
	}{
		{model.OneSwitch, "over at most one PCIe switch"},
		{model.Switches, "over several PCIe switches, without a host bridge"},
		{model.HostBridge, "over a PCIe host bridge (the processor)"},
		{model.SameNode, "over PCIe host bridges of one NUMA node"},
		{model.AcrossNodes, "over the link between NUMA nodes"},
		{model.UnknownLength, "unknown: the kernel does not report the NUMA node"},
	} {
		if in[l.word] {
			p.sentence(fmt.Sprintf("%-5s %s", l.word, l.text), plain)
		}
	}
}

// described says where the Ethernet links come from, or why there are none.
func (p *printer) described(s *model.Snapshot, t *model.Topology) {
	if t.Described == "" {
		p.sentence("Ethernet links are unknown: there is no cluster descriptor of UMD in /tmp; every tt-metal program that opens the boards writes one", warn)
		return
	}
	age := ""
	if d := s.Time.Sub(t.DescribedAt); !t.DescribedAt.IsZero() && d >= 0 {
		age = ", written " + words.Span(d.Round(time.Second)) + " ago"
	}
	p.sentence("Ethernet links as UMD found them ("+words.Escape(t.Described)+age+")"+p.linksNow(s, t), plain)
	inside := 0
	for _, l := range t.Links {
		if l.From.Device == l.To.Device {
			inside++
		}
	}
	out := len(t.Outside)
	var more []string
	if inside > 0 {
		more = append(more, fmt.Sprintf("%d between chips of one board", inside))
	}
	if out > 0 {
		more = append(more, fmt.Sprintf("%d to chips of other hosts", out))
	}
	if t.Unplaced > 0 {
		more = append(more, fmt.Sprintf("%d of chips behind none of these devices", t.Unplaced))
	}
	if len(more) > 0 {
		p.sentence("not in the matrix: "+strings.Join(more, ", "), plain)
	}
}

// linksNow says how the links that UMD found are now, as far as the firmware reports
// it.
func (p *printer) linksNow(s *model.Snapshot, t *model.Topology) string {
	up, down, unknown := 0, 0, 0
	for _, l := range mesh.AllLinks(s, t) {
		switch {
		case !l.Up.Known():
			unknown++
		case l.Up.V:
			up++
		default:
			down++
		}
	}
	if up+down == 0 {
		return `; a cable that was pulled since is still in it (ttmond reads which links are up with firmware = "table")`
	}
	now := fmt.Sprintf("; of them, the firmware reports %d up and %d down now", up, down)
	if unknown > 0 {
		now += fmt.Sprintf("; %s between chips that are not read may have gone since", words.Count(unknown, "link"))
	}
	return now
}

// AppendLinks appends a line per Ethernet link: its state, and what its ends have
// counted since the chips' reset.
func AppendLinks(dst []byte, s *model.Snapshot, t *model.Topology, o Options) []byte {
	p := &printer{buf: dst, Options: o}
	list := mesh.AllLinks(s, t)
	traffic := slices.ContainsFunc(list, func(l mesh.Link) bool { return l.AToB.Known() || l.BToA.Known() })
	if len(list) > 0 {
		head := " From     Ch   To       Ch   State     Retrains    Corrected  Uncorrected"
		if traffic {
			head += fmt.Sprintf("  %*s  %*s", words.RateWidth, "From→To", words.RateWidth, "To→From")
		}
		p.line(head, faint)
	}
	for i := range list {
		p.link(&list[i], traffic)
	}
	if len(list) > 0 {
		p.newline()
	}
	p.described(s, t)
	return p.buf
}

// link is the line of one link.
func (p *printer) link(l *mesh.Link, traffic bool) {
	to, far := words.Place(l.To), strconv.Itoa(l.B)
	if l.Outside {
		to, far = "outside", ""
		if l.Remote.Known() {
			far = strconv.Itoa(l.Remote.Channel)
		}
	}
	state, st := "not known", faint
	switch {
	case l.Up.Known() && l.Up.V:
		state, st = "up", good
	case l.Up.Known():
		state, st = "down", bad
	}
	p.write(fmt.Sprintf(" %-7s %3d   %-7s %3s   ", words.Place(l.From), l.A, to, far), plain)
	p.write(words.Pad(state, 9), st)
	retrains := plain
	if words.LinkTrouble(&l.Channel) != "" {
		retrains = warn
	}
	p.write(fmt.Sprintf(" %8s", words.Reading(l.Retrains, digits[uint32])), retrains)
	codewords := func(n uint64) string { return words.Mark(l.CodewordBound) + digits(n) }
	p.write(fmt.Sprintf(" %12s %12s", words.Reading(l.Corrected, codewords), words.Reading(l.Uncorrected, codewords)), plain)
	if traffic {
		p.write(fmt.Sprintf("  %*s  %*s", words.RateWidth, words.Reading(l.AToB, words.Rate), words.RateWidth, words.Reading(l.BToA, words.Rate)), plain)
	}
	if l.Remote.Known() {
		p.write("  chip "+digits(l.Remote.Chip), faint)
	}
	if l.LostInReset {
		p.write("  up before the reset", bad)
	}
	p.newline()
}

func digits[T uint32 | uint64](n T) string { return strconv.FormatUint(uint64(n), 10) }
