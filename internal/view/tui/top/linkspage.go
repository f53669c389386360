package top

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/ttmon/ttmon/internal/board/mesh"
	"github.com/ttmon/ttmon/internal/collect/assess"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/facts"
	columns "github.com/ttmon/ttmon/internal/view/lines"
	draw "github.com/ttmon/ttmon/internal/view/mesh"
	"github.com/ttmon/ttmon/internal/view/sheet"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
)

// linksPage is the mesh: chips where they are, Ethernet links by their state.
type linksPage struct{ sheetPage }

func (p *linksPage) draw(s *State, area cells.Area) {
	m := mesh.Of(s.shown)
	drawn := draw.Draw(m, area.W)
	if len(drawn) == 0 {
		p.sheet.Draw(&s.hits, area, sheet.Screen(area.W, whyNot(s.shown)))
		return
	}
	p.sheet.Draw(&s.hits, area, slices.Concat(drawn, []columns.Line{nil}, sheet.Screen(area.W, edges(m), remote(s.shown))))
}

// edges lists what joins each two chips: broken links first.
func edges(m *mesh.Mesh) sheet.Part {
	out := sheet.Part{Title: "Links"}
	bad := draw.Broken(m)
	for _, e := range bad {
		out.Pairs = append(out.Pairs, edge(e))
	}
	for i := range m.Edges {
		if e := &m.Edges[i]; !slices.Contains(bad, e) {
			out.Pairs = append(out.Pairs, edge(e))
		}
	}
	return out
}

func edge(e *mesh.Edge) sheet.Pair {
	up, unknown := e.Up()
	v := sheet.Value{Text: fmt.Sprintf("%d of %d up", up, len(e.Channels)), Level: assess.LevelOf(assess.LinkKind(e))}
	counts := e.Counts()
	switch {
	case v.Level > model.Fine:
		v.Text += ": " + words.EdgeDown(e)
	case unknown > 0:
		v.Text, v.Gone = "not known", true
	case words.LinkTrouble(&counts) != "":
		v.Level = model.Warning
	}
	if figures := words.LinkFigures(&counts); figures != "" {
		v.Text += ", " + figures
	}
	return sheet.Pair{Name: words.Edge(e), Value: v}
}

// remote lists the sensors of chips behind Ethernet with who has read them, or the reason
// why they are not read.
func remote(s *model.Snapshot) sheet.Part {
	out := sheet.Part{Title: "Remote chips"}
	unread := map[string][]model.ChipPlace{} // by the reason
	for i := range s.Devices {
		d := &s.Devices[i]
		for k := range d.Chips {
			c := &d.Chips[k]
			at := model.ChipPlace{Device: d.Index, Name: c.Name}
			switch text := facts.Sensors(c); {
			case !c.Remote:
			case text == "":
				why := cmp.Or(c.Temperature.Why, words.RemoteUnread)
				unread[why] = append(unread[why], at)
			default:
				out.Pairs = append(out.Pairs, sheet.Pair{Name: words.Place(at), Value: sheet.Text(text)})
			}
		}
	}
	for _, why := range slices.Sorted(maps.Keys(unread)) {
		out.Pairs = append(out.Pairs, sheet.Pair{Name: words.Places(unread[why]), Value: sheet.Value{Text: "not read: " + why, Gone: true}})
	}
	return out
}

// whyNot says why there is no link to draw.
func whyNot(s *model.Snapshot) sheet.Part {
	out := sheet.Part{Title: "Ethernet links"}
	for i := range s.Devices {
		d := &s.Devices[i]
		why := cmp.Or(words.Telemetry(&d.Telemetry), "no link is expected: UMD has described none; every tt-metal program that opens the boards does")
		out.Pairs = append(out.Pairs, sheet.Pair{Name: fmt.Sprintf("device %d", d.Index), Value: sheet.Value{Text: why, Gone: true}})
	}
	return out
}
