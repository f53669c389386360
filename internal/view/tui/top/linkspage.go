package top

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ttmon/ttmon/internal/assess"
	"github.com/ttmon/ttmon/internal/mesh"
	"github.com/ttmon/ttmon/internal/model"
	draw "github.com/ttmon/ttmon/internal/view/mesh"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
	"github.com/ttmon/ttmon/internal/view/tui/widget"
	"github.com/ttmon/ttmon/internal/words"
)

// linksPage is the mesh: chips where they are, Ethernet links by their state.
type linksPage struct{ sheetPage }

func (p *linksPage) draw(s *State, area cells.Area) {
	m := mesh.Of(s.shown)
	drawn := draw.Draw(m, area.W)
	if len(drawn) == 0 {
		p.drawWhyNot(s, area)
		return
	}
	for y, l := range drawn {
		if y >= area.H {
			return
		}
		l.Put(area, 0, y)
	}
	rest := area.Sub(0, len(drawn)+1, area.W, area.H-len(drawn)-1)
	if rest.H < 3 {
		return
	}
	p.sheet.Draw(&s.hits, rest, append(edgeEntries(m), remoteEntries(s)...))
}

// edgeEntries lists what joins each two chips: broken links first.
func edgeEntries(m *mesh.Mesh) []widget.Entry {
	out := []widget.Entry{{Heading: "Links"}}
	bad := draw.Broken(m)
	for _, e := range bad {
		out = append(out, edgeEntry(e))
	}
	for i := range m.Edges {
		if e := &m.Edges[i]; !slices.Contains(bad, e) {
			out = append(out, edgeEntry(e))
		}
	}
	return out
}

func edgeEntry(e *mesh.Edge) widget.Entry {
	up, unknown := e.Up()
	level := assess.LevelOf(assess.LinkKind(e))
	value, style := fmt.Sprintf("%d of %d up", up, len(e.Channels)), cells.OfNote(level)
	switch {
	case level > model.Fine:
		value += ": " + words.EdgeDown(e)
	case unknown > 0:
		value, style = "not known", cells.Faint
	}
	counts := e.Counts()
	if figures := words.LinkFigures(&counts); figures != "" {
		value += ", " + figures
	}
	if level <= model.Fine && words.LinkTrouble(&counts) != "" {
		style = cells.Warn
	}
	return widget.Entry{Name: words.Edge(e), Value: value, Style: style}
}

// remoteEntries lists the sensors of chips behind Ethernet with who has read them,
// or the reason why they are not read.
func remoteEntries(s *State) (out []widget.Entry) {
	unread := map[string][]model.ChipPlace{} // by the reason
	for i := range s.shown.Devices {
		d := &s.shown.Devices[i]
		for k := range d.Chips {
			c := &d.Chips[k]
			at := model.ChipPlace{Device: d.Index, Name: c.Name}
			switch text := remoteSensors(c); {
			case !c.Remote:
			case text == "":
				why := cmp.Or(c.Temperature.Why, words.RemoteUnread)
				unread[why] = append(unread[why], at)
			default:
				out = append(out, widget.Entry{Name: words.Place(at), Value: strings.TrimPrefix(text, ", ")})
			}
		}
	}
	for _, why := range slices.Sorted(maps.Keys(unread)) {
		out = append(out, widget.Entry{Name: words.Places(unread[why]), Value: "not read: " + why, Style: cells.Faint})
	}
	if len(out) > 0 {
		out = slices.Insert(out, 0, widget.Entry{Heading: "Remote chips"})
	}
	return out
}

// drawWhyNot says why there is nothing to draw.
func (p *linksPage) drawWhyNot(s *State, area cells.Area) {
	out := []widget.Entry{{Heading: "Ethernet links"}}
	for i := range s.shown.Devices {
		d := &s.shown.Devices[i]
		why := words.Telemetry(&d.Telemetry)
		if why == "" {
			why = "no link is expected: UMD has described none; every tt-metal program that opens the boards does"
		}
		out = append(out, widget.Entry{Name: fmt.Sprintf("device %d", d.Index), Value: why, Style: cells.Faint})
	}
	p.sheet.Draw(&s.hits, area, out)
}
