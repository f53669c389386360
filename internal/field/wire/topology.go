package wire

import (
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/board/mesh"
	"github.com/ttmon/ttmon/internal/model"
)

// TopologySchema names the contract of ttmon topo --json. It follows the rules
// of the snapshot's.
const TopologySchema = "ttmon.topology/1"

// Topology is what ttmon topo prints for scripts.
type Topology struct {
	Time      time.Time
	Simulated bool
	*model.Topology
	// Links are those of the topology and others that are expected, with what is
	// known of them.
	Links []mesh.Link
}

// AppendTopology appends it to dst as JSON, without a newline.
func AppendTopology(dst []byte, t *Topology, indent bool) []byte {
	e := &encoder{buf: dst, indent: indent}
	e.begin()
	schema := TopologySchema
	field(e, "schema", &schema)
	instant(e, "time", &t.Time)
	field(e, "simulated", &t.Simulated)
	optional(e, "described_by", &t.Described)
	instant(e, "described", &t.DescribedAt)
	field(e, "unplaced_links", &t.Unplaced)
	type pair struct {
		from, to int
		distance string
		links    int
	}
	var pairs []pair
	for i, a := range t.Devices {
		for j, b := range t.Devices {
			if i < j {
				pairs = append(pairs, pair{a, b, string(t.PCIe[i][j]), t.Between(a, b)})
			}
		}
	}
	items(e, "pairs", &pairs, func(a archive, p *pair) {
		field(a, "from", &p.from)
		field(a, "to", &p.to)
		field(a, "pcie", &p.distance)
		if !a.null("ethernet_links", t.Described == "") {
			a.value(&p.links)
		}
	})
	links := slices.DeleteFunc(slices.Clone(t.Links), func(l mesh.Link) bool { return l.Outside })
	items(e, "links", &links, func(a archive, l *mesh.Link) {
		from, to := model.Port{ChipPlace: l.From, Channel: l.A}, model.Port{ChipPlace: l.To, Channel: l.B}
		object(a, "from", &from, port)
		object(a, "to", &to, port)
		linkFigures(a, &l.Channel)
	})
	outside := slices.DeleteFunc(slices.Clone(t.Links), func(l mesh.Link) bool { return !l.Outside })
	items(e, "outside_links", &outside, func(a archive, l *mesh.Link) {
		from := model.Port{ChipPlace: l.From, Channel: l.A}
		object(a, "from", &from, port)
		if !a.null("remote", !l.Remote.Known()) {
			a.begin()
			remotePort(a, &l.Remote)
			a.close()
		}
		linkFigures(a, &l.Channel)
	})
	e.close()
	return e.buf
}

// linkFigures are the state of a link and what was counted of it; null is not known.
func linkFigures(a archive, c *mesh.Channel) {
	bound := c.CodewordBound.String()
	orNull(a, "up", &c.Up)
	field(a, "lost_in_reset", &c.LostInReset)
	orNull(a, "retrains", &c.Retrains)
	orNull(a, "corrected_codewords", &c.Corrected)
	orNull(a, "uncorrected_codewords", &c.Uncorrected)
	field(a, "codewords_bound", &bound)
	orNull(a, "from_to_bytes_per_s", &c.AToB)
	orNull(a, "to_from_bytes_per_s", &c.BToA)
}

func orNull[T any](a archive, key string, r *model.Reading[T]) {
	if !a.null(key, !r.Known()) {
		a.value(&r.V)
	}
}

func port(a archive, p *model.Port) {
	field(a, "index", &p.Device)
	field(a, "chip", &p.Name)
	field(a, "channel", &p.Channel)
}
