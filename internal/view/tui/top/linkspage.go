package top

import (
	"fmt"

	"github.com/ttmon/ttmon/internal/assess"
	"github.com/ttmon/ttmon/internal/mesh"
	"github.com/ttmon/ttmon/internal/model"
	draw "github.com/ttmon/ttmon/internal/view/mesh"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
	"github.com/ttmon/ttmon/internal/view/tui/widget"
	"github.com/ttmon/ttmon/internal/view/words"
)

// linksPage is the mesh: chips where they are, Ethernet links by their state.
type linksPage struct{ sheetPage }

// tones are the styles of a drawing's tones.
var tones = map[draw.Tone]cells.Style{draw.Plain: cells.Text, draw.Faint: cells.Faint, draw.Good: cells.Good, draw.Warn: cells.Warn, draw.Bad: cells.Bad}

func (p *linksPage) draw(s *State, area cells.Area) {
	m := mesh.Of(s.shown)
	lines := draw.Draw(m, area.W)
	if len(lines) == 0 {
		p.drawWhyNot(s, area)
		return
	}
	for y, l := range lines {
		if y >= area.H {
			return
		}
		x := 0
		for _, span := range l {
			x = area.Put(x, y, span.Text, tones[span.Tone])
		}
	}
	rest := area.Sub(0, len(lines)+1, area.W, area.H-len(lines)-1)
	if rest.H < 3 {
		return
	}
	out := []widget.Entry{{Heading: "Links"}}
	for i := range m.Edges {
		e := &m.Edges[i]
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
		out = append(out, widget.Entry{Name: words.Edge(e), Value: value, Style: style})
	}
	p.sheet.Draw(&s.hits, rest, out)
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
