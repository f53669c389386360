package words

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ttmon/ttmon/internal/board/mesh"
	"github.com/ttmon/ttmon/internal/collect/assess"
	"github.com/ttmon/ttmon/internal/model"
)

// Place is a chip in few letters: "10", "0R".
func Place(p model.ChipPlace) string { return strconv.Itoa(p.Device) + Escape(p.Name) }

// Places lists chips: "10, 11R".
func Places(list []model.ChipPlace) string {
	names := make([]string, len(list))
	for i, p := range list {
		names[i] = Place(p)
	}
	return strings.Join(names, ", ")
}

// Edge names what joins two chips: "10 ↔ 11".
func Edge(e *mesh.Edge) string {
	if e.Outside {
		return Place(e.A) + " ↔ another host"
	}
	return Place(e.A) + " ↔ " + Place(e.B)
}

// EdgeDown says which channels of an edge are down, and what is left.
func EdgeDown(e *mesh.Edge) string {
	down := e.Down()
	numbers := make([]string, len(down))
	for i, c := range down {
		numbers[i] = strconv.Itoa(c.A)
	}
	noun := "channel "
	if len(down) > 1 {
		noun = "channels "
	}
	up, _ := e.Up()
	left := fmt.Sprintf("%d of %d up", up, len(e.Channels))
	if e.Counts().LostInReset {
		left += "; up before the reset"
	}
	return noun + strings.Join(numbers, ", ") + " down (" + left + ")"
}

// LinkTrouble says what was counted against a link, in few words: "3 retrains since
// the reset"; empty: nothing, or nothing is known. Codewords alone do not make a bad
// link.
func LinkTrouble(c *mesh.Channel) string {
	if n, ok := c.Retrains.Get(); ok && n > 0 {
		return Count(int(n), "retrain") + " since the reset"
	}
	return ""
}

// LinkFigures are the counters and the traffic of a link, or of all links of an
// edge, as far as they are known: "3 retrains, 9 uncorrected codewords, → 1.2 GiB/s".
func LinkFigures(c *mesh.Channel) string {
	var parts []string
	if n, ok := c.Retrains.Get(); ok {
		parts = append(parts, Count(int(n), "retrain"))
	}
	if n, ok := c.Uncorrected.Get(); ok {
		parts = append(parts, fmt.Sprintf("%s%d uncorrected", Mark(c.CodewordBound), n))
	}
	if n, ok := c.Corrected.Get(); ok {
		parts = append(parts, fmt.Sprintf("%s%d corrected codewords", Mark(c.CodewordBound), n))
	}
	if v, ok := c.AToB.Get(); ok {
		parts = append(parts, "→ "+Rate(v))
	}
	if v, ok := c.BToA.Get(); ok {
		parts = append(parts, "← "+Rate(v))
	}
	return strings.Join(parts, ", ")
}

// CutOff names chips that cannot be reached any more; empty: there are none.
// Of chips behind others only the links at the other end are read, so that there
// may be a way that is not known.
func CutOff(m *mesh.Mesh, lost []model.ChipPlace) string {
	var sure, perhaps []model.ChipPlace
	for _, p := range lost {
		if m.PortsKnown(p) {
			sure = append(sure, p)
		} else {
			perhaps = append(perhaps, p)
		}
	}
	var parts []string
	if len(sure) > 0 {
		parts = append(parts, "cut off: "+Places(sure))
	}
	if len(perhaps) > 0 {
		parts = append(parts, "unreachable, unless over unread links: "+Places(perhaps))
	}
	return strings.Join(parts, "; ")
}

// linkFacts says which links of a device are down, and what that cuts off.
func linkFacts(s *model.Snapshot, c *model.Condition) string {
	m := mesh.Of(s)
	var parts []string
	var lost []model.ChipPlace
	for i := range m.Edges {
		if e := &m.Edges[i]; (e.A.Device == c.Device || !e.Outside && e.B.Device == c.Device) && assess.LinkKind(e) == c.Kind {
			parts = append(parts, Edge(e)+" "+EdgeDown(e))
			if c.Kind == model.ConditionLinkDown {
				lost = appendPlaces(lost, m.CutOffBy(e))
			}
		}
	}
	text := strings.Join(parts, ", ")
	if gone := CutOff(m, lost); gone != "" {
		text += "; " + gone
	}
	return text
}

func appendPlaces(list, more []model.ChipPlace) []model.ChipPlace {
	for _, p := range more {
		if !slices.Contains(list, p) {
			list = append(list, p)
		}
	}
	return list
}

// moduleFacts names the GDDR modules that a condition is about.
func moduleFacts(d *model.Device, k model.ConditionKind) string {
	list := assess.BadModules(d, k)
	if k == model.ConditionMemoryErrors {
		return "uncorrected errors since the chip's reset: module " + Ranges(list)
	}
	return "not trained, or failed its self-test: module " + Ranges(list)
}
