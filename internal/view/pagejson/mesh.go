package pagejson

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/ttmon/ttmon/internal/board/mesh"
	"github.com/ttmon/ttmon/internal/collect/assess"
	"github.com/ttmon/ttmon/internal/field/metric"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/sheet"
)

// Mesh is how the chips of a host are joined over Ethernet, as far as the
// firmware tells.
type Mesh struct {
	Schema   string       `json:"schema"` // ttmon.mesh/1
	Text     string       `json:"text"`   // "47 of 48 links up"; empty: nothing is known
	Level    string       `json:"level" ts:"Level"`
	Expected int          `json:"expected"`
	Up       int          `json:"up"`
	Links    []Link       `json:"links"`
	CutOff   []End        `json:"cut_off"`               // chips that cannot be reached any more
	Lost     string       `json:"lost"`                  // the same as a sentence; empty: there are none
	Table    *sheet.Table `json:"table" ts:"SheetTable"` // a row for each link that is read, the worst first
}

// Link is all that joins two chips.
type Link struct {
	A     End    `json:"a"`
	B     *End   `json:"b"` // null: on another host
	Up    int    `json:"up"`
	All   int    `json:"all"`
	Level string `json:"level" ts:"Level"` // ok, info where it is not known, warning or critical
	Name  string `json:"name"`             // "10 ↔ 11"
	Text  string `json:"text"`             // "channel 5 down (3 of 4 up)"
	// Figures are counters and traffic of all its channels, in words; empty: none is
	// known.
	Figures  string    `json:"figures"`
	Channels []Channel `json:"channels"`
}

// Channel is one link. What is null is not known.
type Channel struct {
	A                    int      `json:"a"`
	B                    int      `json:"b"`
	Up                   *bool    `json:"up"`
	UpBeforeReset        bool     `json:"up_before_reset"` // and down since
	Retrains             *uint32  `json:"retrains"`
	CorrectedCodewords   *uint64  `json:"corrected_codewords"`
	UncorrectedCodewords *uint64  `json:"uncorrected_codewords"`
	CodewordsBound       string   `json:"codewords_bound" ts:"Bound"` // exact, or at_least
	AToB                 *float64 `json:"a_to_b_bytes_per_s"`
	BToA                 *float64 `json:"b_to_a_bytes_per_s"`
}

func channel(c *mesh.Channel) Channel {
	return Channel{
		A: c.A, B: c.B, Up: known(c.Up), UpBeforeReset: c.LostInReset, Retrains: known(c.Retrains),
		CorrectedCodewords: known(c.Corrected), UncorrectedCodewords: known(c.Uncorrected), CodewordsBound: c.CodewordBound.String(),
		AToB: known(c.AToB), BToA: known(c.BToA),
	}
}

// known is a value, or nil.
func known[T any](r model.Reading[T]) *T {
	if v, ok := r.Get(); ok {
		return &v
	}
	return nil
}

// End is a chip.
type End struct {
	Device int    `json:"device"`
	Chip   string `json:"chip"`
}

// LinkTable has a row for each link, those that UMD found between chips that are not read
// among them: those that are down before all others, then those that have trained again.
func LinkTable(s *model.Snapshot, t *model.Topology) *sheet.Table {
	all := mesh.AllLinks(s, t)
	links := make([]*mesh.Link, len(all))
	for i := range all {
		links[i] = &all[i]
	}
	bad := func(l *mesh.Link) uint64 {
		if l.Up.Known() && !l.Up.V {
			return math.MaxUint64
		}
		return uint64(l.Retrains.V)
	}
	slices.SortStableFunc(links, func(a, b *mesh.Link) int { return cmp.Compare(bad(b), bad(a)) })
	return sheet.TableOf(metric.MeshLinks(), s, links)
}

// MeshOf says the mesh of a snapshot.
func MeshOf(s *model.Snapshot) *Mesh {
	m := mesh.Of(s)
	out := &Mesh{Schema: "ttmon.mesh/1", Level: model.Fine.String(), Links: []Link{}, CutOff: []End{}, Lost: words.CutOff(m, m.CutOff()), Table: LinkTable(s, &model.Topology{})}
	worst := model.Fine
	for i := range m.Edges {
		e := &m.Edges[i]
		level := assess.LevelOf(assess.LinkKind(e))
		up, unknown := e.Up()
		l := Link{A: end(e.A), Up: up, All: len(e.Channels), Name: words.Edge(e), Text: fmt.Sprintf("%d of %d up", up, len(e.Channels))}
		switch {
		case level > model.Fine:
			l.Text = words.EdgeDown(e)
		case unknown > 0:
			level, l.Text = model.Info, "not known"
		}
		counts := e.Counts()
		l.Figures, l.Channels = words.LinkFigures(&counts), make([]Channel, len(e.Channels))
		for k := range e.Channels {
			l.Channels[k] = channel(&e.Channels[k])
		}
		if l.Figures != "" {
			l.Text += ", " + l.Figures
		}
		if e.Unread {
			l.Text = "not known: neither chip is read"
		} else {
			worst = max(worst, level)
		}
		if !e.Outside {
			b := end(e.B)
			l.B = &b
		}
		l.Level = level.String()
		out.Links = append(out.Links, l)
	}
	for _, c := range m.CutOff() {
		out.CutOff = append(out.CutOff, end(c))
	}
	if out.Expected, out.Up = m.Links(); out.Expected > 0 {
		out.Text = fmt.Sprintf("%d of %d links up", out.Up, out.Expected)
		out.Level = worst.String()
	}
	return out
}

func end(p model.ChipPlace) End { return End{Device: p.Device, Chip: p.Name} }
