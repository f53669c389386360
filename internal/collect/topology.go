package collect

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/base/sorted"
	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/source/umd"
)

// Topology tells how the devices of a snapshot hang together. It reads links
// of /sys, which ask no chip, and what UMD left in /tmp.
func Topology(root hostfs.Root, s *model.Snapshot) *model.Topology {
	t := &model.Topology{}
	paths := make([][]string, len(s.Devices))
	for i := range s.Devices {
		t.Devices = append(t.Devices, s.Devices[i].Index)
		paths[i] = pciPath(root, s.Devices[i].BusID)
	}
	for i := range s.Devices {
		row := make([]model.Distance, len(s.Devices))
		for j := range s.Devices {
			row[j] = distance(&s.Devices[i], &s.Devices[j], paths[i], paths[j])
		}
		t.PCIe = append(t.PCIe, row)
	}
	finder := umd.Finder{Root: root, Trust: func(uid int) bool { return mayDescribe(s, uid) }}
	found, _ := finder.Poll() // a broken one tells nothing
	describe(t, s, found)
	if st, err := root.Stat(t.Described); t.Described != "" && err == nil {
		t.DescribedAt = time.Unix(st.Mtim.Unix())
	}
	return t
}

// pciPath lists the bridges that lead to a function, the function last:
// "pci0000:00", "0000:00:01.0", "0000:01:00.0".
func pciPath(root hostfs.Root, busID string) []string {
	target, err := root.Readlink("/sys/bus/pci/devices/" + busID)
	if err != nil {
		return nil
	}
	_, path, ok := strings.Cut(target, "/devices/")
	if !ok {
		return nil
	}
	return strings.Split(path, "/")
}

// distance is what lies between two devices, from the bridges that lead to
// them and, where those have nothing in common, from their NUMA nodes.
func distance(a, b *model.Device, pathA, pathB []string) model.Distance {
	if a == b {
		return model.Self
	}
	if pathA == nil || pathB == nil {
		return model.UnknownLength
	}
	shared := 0
	for shared < min(len(pathA), len(pathB)) && pathA[shared] == pathB[shared] {
		shared++
	}
	apart := max(len(pathA), len(pathB)) - shared // bridges below the last shared one, and the function
	switch {
	case shared > 1 && apart <= 2:
		return model.OneSwitch
	case shared > 1:
		return model.Switches
	case shared == 1:
		return model.HostBridge
	case !a.NUMANode.Known() || !b.NUMANode.Known():
		return model.UnknownLength
	case a.NUMANode.V == b.NUMANode.V:
		return model.SameNode
	default:
		return model.AcrossNodes
	}
}

// describe takes the links of the description that knows most of the devices;
// of those that know as many, the newest.
func describe(t *model.Topology, s *model.Snapshot, found []umd.Found) {
	most := 0
	for _, f := range found {
		places := locateChips(s, f.Descriptor)
		known := map[int]bool{}
		for _, p := range places {
			known[p.Device] = true
		}
		if len(known) <= most {
			continue
		}
		most = len(known)
		t.Described, t.Links, t.Unplaced, t.Outside = f.Path, nil, 0, nil
		for _, l := range f.Descriptor.Links {
			from, here := places[l[0].Chip]
			to, there := places[l[1].Chip]
			if !here || !there {
				t.Unplaced++
				continue
			}
			t.Links = append(t.Links, model.Ethernet{From: model.Port{ChipPlace: from, Channel: l[0].Channel}, To: model.Port{ChipPlace: to, Channel: l[1].Channel}})
		}
		for _, l := range f.Descriptor.Outside {
			if at, ok := places[l.End.Chip]; ok {
				t.Outside = append(t.Outside, model.OutsideLink{
					From: model.Port{ChipPlace: at, Channel: l.End.Channel}, Remote: remotePort(f.Descriptor, l),
				})
			}
		}
	}
	for i := range t.Links {
		if l := &t.Links[i]; comparePorts(l.From, l.To) > 0 {
			l.From, l.To = l.To, l.From
		}
	}
	sorted.By(t.Links, func(a, b *model.Ethernet) int {
		return cmp.Or(comparePorts(a.From, b.From), comparePorts(a.To, b.To))
	})
	sorted.By(t.Outside, func(a, b *model.OutsideLink) int { return comparePorts(a.From, b.From) })
}

// remotePort is a link to another host in the ids of its two chips. An id that
// stands for none, because the file has none, names no chip.
func remotePort(d *umd.Descriptor, l umd.OutsideLink) model.RemotePort {
	c := d.Chip(l.End.Chip)
	if c == nil || c.Synthetic || c.UniqueID == 0 || l.RemoteID == 0 {
		return model.RemotePort{}
	}
	return model.RemotePort{Own: c.UniqueID, Chip: l.RemoteID, Channel: l.RemoteChannel}
}

func comparePorts(a, b model.Port) int {
	return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Channel, b.Channel))
}

// locateChips tells where the chips of a description are: those on PCIe by their
// bus address, the others by the board that they share with one on PCIe.
func locateChips(s *model.Snapshot, d *umd.Descriptor) map[int]model.ChipPlace {
	places := map[int]model.ChipPlace{}
	onBoard := map[int]int{} // device by board
	for i := range d.Chips {
		c := &d.Chips[i]
		if c.Remote() {
			continue
		}
		at := slices.IndexFunc(s.Devices, func(dev model.Device) bool {
			if c.BusID != "" {
				return dev.BusID == c.BusID
			}
			return dev.Index == c.Device && dev.Arch == c.Arch
		})
		if at < 0 {
			continue
		}
		dev := &s.Devices[at]
		places[c.ID] = model.ChipPlace{Device: dev.Index, Name: chipName(dev, false)}
		if c.Board >= 0 {
			onBoard[c.Board] = at
		}
	}
	for i := range d.Chips {
		c := &d.Chips[i]
		if at, ok := onBoard[c.Board]; c.Remote() && ok && c.Board >= 0 {
			dev := &s.Devices[at]
			places[c.ID] = model.ChipPlace{Device: dev.Index, Name: chipName(dev, true)}
		}
	}
	return places
}

// chipName is what a device calls its chip on PCIe, or the one behind it.
func chipName(d *model.Device, remote bool) string {
	for i := range d.Chips {
		if d.Chips[i].Remote == remote {
			return d.Chips[i].Name
		}
	}
	return ""
}
