package model

import "time"

// Topology is how the devices of a host hang together: over PCIe, and over
// Ethernet as far as UMD has written it down.
type Topology struct {
	Devices []int // kernel indexes, the order of the rows and columns of PCIe
	// PCIe[a][b] is what lies between two devices on the way over PCIe.
	PCIe  [][]Distance
	Links []Ethernet // between chips of this host
	// Outside are the links to chips of other hosts.
	Outside []OutsideLink
	// Described is the file that Links come from, and when it was written;
	// empty: the host was not described.
	Described   string
	DescribedAt time.Time
	// Unplaced counts links whose chips are behind none of the devices.
	Unplaced int
}

// Ethernet is a link between two chips.
type Ethernet struct{ From, To Port }

// OutsideLink is a link to a chip of another host.
type OutsideLink struct {
	From   Port
	Remote RemotePort
}

// Port is an end of a link.
type Port struct {
	ChipPlace
	Channel int
}

// Distance is what lies between two devices on PCIe. The words are those of
// nvidia-smi topo.
type Distance string

// The distances, from near to far.
const (
	Self          Distance = "X"
	OneSwitch     Distance = "PIX"  // at most one PCIe switch
	Switches      Distance = "PXB"  // several switches, and no host bridge
	HostBridge    Distance = "PHB"  // one host bridge
	SameNode      Distance = "NODE" // host bridges of one NUMA node
	AcrossNodes   Distance = "SYS"  // the link between NUMA nodes
	UnknownLength Distance = "?"
)

// Between counts the links that join two devices.
func (t *Topology) Between(a, b int) (n int) {
	for _, l := range t.Links {
		if l.From.Device == a && l.To.Device == b || l.From.Device == b && l.To.Device == a {
			n++
		}
	}
	return n
}
