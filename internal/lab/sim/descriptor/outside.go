package descriptor

import (
	"fmt"
	"slices"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/source/umd"
)

// gateWidth is how many links join two hosts.
const gateWidth = 2

// Gate is where cables to one other host are plugged in.
type Gate struct {
	Chip     uint64 // unique id
	Channels [gateWidth]int
}

// wireOutside plugs cables to other hosts into the lowest free channels of the first
// chip on PCIe, and into the highest of the last.
func (d *describer) wireOutside() error {
	last := 0
	for i := range d.Chips {
		if !d.Chips[i].Remote() {
			last = i
		}
	}
	for _, gate := range []struct {
		chip int
		high bool
	}{{0, false}, {last, true}} {
		free := d.freeChannels(gate.chip)
		if len(free) < gateWidth {
			return fmt.Errorf("describing a cluster: %s has no free Ethernet channels for cables to other hosts", d.at[gate.chip].Board.Card)
		}
		if gate.high {
			free = free[len(free)-gateWidth:]
		}
		for _, channel := range free[:gateWidth] {
			d.Outside = append(d.Outside, umd.OutsideLink{End: umd.End{Chip: gate.chip, Channel: channel}})
		}
	}
	return nil
}

// freeChannels are the Ethernet channels of a chip that nothing is plugged into.
func (d *describer) freeChannels(chip int) (free []int) {
	n := 16
	if d.Chips[chip].Arch == model.Blackhole {
		n = d.at[chip].Board.EthPorts
	}
	for channel := range n {
		end := umd.End{Chip: chip, Channel: channel}
		used := slices.ContainsFunc(d.Links, func(l umd.Link) bool { return l[0] == end || l[1] == end }) ||
			slices.ContainsFunc(d.Outside, func(l umd.OutsideLink) bool { return l.End == end })
		if !used {
			free = append(free, channel)
		}
	}
	return free
}

// Gates are where cables lead to the host before this one, and to the one after it.
func Gates(d *umd.Descriptor) (in, out Gate) {
	for i, l := range d.Outside {
		g := &in
		if i >= gateWidth {
			g = &out
		}
		g.Chip, g.Channels[i%gateWidth] = d.Chip(l.End.Chip).UniqueID, l.End.Channel
	}
	return in, out
}

// Plug names the other ends of the cables: the last chip of the host before this one,
// and the first chip of the host after it.
func Plug(d *umd.Descriptor, before, after Gate) {
	for i := range d.Outside {
		g := before
		if i >= gateWidth {
			g = after
		}
		d.Outside[i].RemoteID, d.Outside[i].RemoteChannel = g.Chip, g.Channels[i%gateWidth]
	}
}
