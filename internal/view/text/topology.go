package text

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/board/mesh"
	"github.com/ttmon/ttmon/internal/field/metric"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/lines"
	draw "github.com/ttmon/ttmon/internal/view/mesh"
	"github.com/ttmon/ttmon/internal/view/sheet"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
)

// AppendTopology appends the matrix of what lies between devices, and what its
// words mean. A matrix that is wider than the terminal is printed in parts, one
// below the other.
//
// The matrix of many devices fills screens: it comes where it is asked for, and else the
// mesh alone does.
func AppendTopology(dst []byte, s *model.Snapshot, t *model.Topology, matrix bool, o Options) []byte {
	p := newPrinter(dst, o)
	if !matrix && len(t.Devices) > fewDevices {
		p.described(s, t)
		p.mesh(s, t)
		p.Sentence(fmt.Sprintf("the PCIe distance between each two of the %d devices: ttmon topo --matrix", len(t.Devices)), cells.Text)
		return p.Buf
	}
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
			p.Newline()
		}
		p.matrix(s, t, cell, from, min(from+fits, len(t.Devices)))
	}
	p.Newline()
	p.legend(t)
	p.described(s, t)
	p.mesh(s, t)
	return p.Buf
}

// fewDevices is how many have a matrix that fits a screen.
const fewDevices = 16

const matrixHead = " Dev "

// matrix prints the columns [from, to) of the matrix; the last part has the
// NUMA nodes.
func (p *printer) matrix(s *model.Snapshot, t *model.Topology, cell, from, to int) {
	last := to == len(t.Devices)
	p.Write(matrixHead, cells.Faint)
	for _, index := range t.Devices[from:to] {
		p.Write(fmt.Sprintf(" %*d", cell, index), cells.Faint)
	}
	if last {
		p.Write("  NUMA  CPUs", cells.Faint)
	}
	p.Newline()
	for i, index := range t.Devices {
		p.Write(fmt.Sprintf(" %-4d", index), cells.Text)
		for j := from; j < to; j++ {
			st := cells.Text
			word := string(t.PCIe[i][j])
			switch n := t.Between(index, t.Devices[j]); {
			case i == j:
				st = cells.Faint
			case n > 0:
				word, st = "E"+strconv.Itoa(n), cells.Good
			}
			p.Write(fmt.Sprintf(" %*s", cell, word), st)
		}
		if last {
			p.Write(numa(s.Device(index)), cells.Text)
		}
		p.Newline()
	}
}

func numa(d *model.Device) string {
	return fmt.Sprintf("  %4s  %s", words.Reading(d.NUMANode, strconv.Itoa), words.Foreign(d.CPUAffinity))
}

// mesh draws the links by their state, where the firmware tells it.
func (p *printer) mesh(s *model.Snapshot, t *model.Topology) {
	m := mesh.Of(s)
	m.AddUnread(t)
	drawn := draw.Draw(m, p.LayoutWidth())
	if len(drawn) > 0 {
		p.Newline()
	}
	p.Lines(drawn...)
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
		p.Sentence("E#    # Ethernet links between chips of the two; PCIe distance: see --json", cells.Text)
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
			p.Sentence(fmt.Sprintf("%-5s %s", l.word, l.text), cells.Text)
		}
	}
}

// described says where the Ethernet links come from, or why there are none.
func (p *printer) described(s *model.Snapshot, t *model.Topology) {
	if t.Described == "" {
		p.Sentence("Ethernet links are unknown: there is no cluster descriptor of UMD in /tmp; every tt-metal program that opens the boards writes one", cells.Warn)
		return
	}
	age := ""
	if d := s.Time.Sub(t.DescribedAt); !t.DescribedAt.IsZero() && d >= 0 {
		age = ", written " + words.Span(d.Round(time.Second)) + " ago"
	}
	p.Sentence("Ethernet links as UMD found them ("+words.Escape(t.Described)+age+")"+p.linksNow(s, t), cells.Text)
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
		p.Sentence("not in the matrix: "+strings.Join(more, ", "), cells.Text)
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
	p := newPrinter(dst, o)
	list := mesh.AllLinks(s, t)
	if len(list) > 0 {
		p.Table(linkTable(s, list))
		p.Newline()
	}
	p.described(s, t)
	return p.Buf
}

// linkTable has a row for each link.
func linkTable(s *model.Snapshot, list []mesh.Link) *lines.Table {
	links := make([]*mesh.Link, len(list))
	for i := range list {
		links[i] = &list[i]
	}
	t := sheet.TableOf(metric.MeshLinks(), s, links).Lines()
	t.Indent = 1
	return t
}
