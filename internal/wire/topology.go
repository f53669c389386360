package wire

import (
	"time"

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
			a.int(&p.links)
		}
	})
	items(e, "links", &t.Links, func(a archive, l *model.Ethernet) {
		object(a, "from", &l.From, port)
		object(a, "to", &l.To, port)
	})
	e.close()
	return e.buf
}

func port(a archive, p *model.Port) {
	field(a, "index", &p.Device)
	field(a, "chip", &p.Name)
	field(a, "channel", &p.Channel)
}
