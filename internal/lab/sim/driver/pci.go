package driver

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/ttmon/ttmon/internal/lab/sim/chip"
	"github.com/ttmon/ttmon/internal/model"
)

// Surroundings is what the real host already has, so that the simulated
// boards take no name that is in use. The zero value is a host with nothing.
type Surroundings struct {
	PCI    []string // names in /sys/bus/pci/devices
	Roots  []string // names in /sys/devices, of which pciDDDD:BB count
	Hwmon  []int    // numbers in /sys/class/hwmon
	Majors []int    // character device majors in use
	Nodes  []string // CPU list of each NUMA node, by number; none: one node, unknown
}

// address is where a function sits in the PCI tree.
type address struct {
	domain, bus int
	root        string // pci0000:40
	bridge      string // 0000:40:01.1; empty if the function is on the root bus
}

func (a address) bdf() string { return fmt.Sprintf("%04x:%02x:00.0", a.domain, a.bus) }

// dir is the function's directory below /sys.
func (a address) dir() string { return path.Join("devices", a.root, a.bridge, a.bdf()) }

// Trays of a Galaxy by the bus numbers they begin after. The driver counts
// its indices in this order since 2.8.
var trayBuses = map[model.Arch][4]int{
	model.Wormhole:  {0xC0, 0x80, 0x00, 0x40},
	model.Blackhole: {0x00, 0x40, 0xC0, 0x80},
}

const perTray = 8

// galaxyLanes are the PCIe lanes of the chips of a tray, as Tenstorrent's own
// check of a host expects them.
var galaxyLanes = [perTray]int{1, 1, 1, 1, 1, 8, 1, 1}

// galaxyIndex is the fixed index of a Galaxy's chip.
func galaxyIndex(arch model.Arch, bus int) (index int, ok bool) {
	trays := trayBuses[arch]
	tray, slot := slices.Index(trays[:], bus&0xF0), bus&0x0F
	if tray < 0 || slot < 1 || slot > perTray {
		return 0, false
	}
	return tray*perTray + slot - 1, true
}

// place is one PCIe function to be simulated.
type place struct {
	spec  chip.Spec
	board int // number of the board in the list
	bus   int
}

// layOut gives every function of the boards a bus, in the order in which the
// kernel finds them.
func layOut(boards []chip.Spec) []place {
	next := 0x41
	if slices.ContainsFunc(boards, chip.Spec.Galaxy) {
		next = 0xE1 // the trays have their own numbers
	}
	var places []place
	for i, spec := range boards {
		if spec.Galaxy() {
			for _, base := range trayBuses[spec.Arch] {
				for slot := range perTray {
					spec.LinkWidth = galaxyLanes[slot]
					places = append(places, place{spec, i, base + slot + 1})
				}
			}
			continue
		}
		for range spec.Endpoints {
			places = append(places, place{spec, i, next})
			next++
		}
	}
	slices.SortStableFunc(places, func(a, b place) int { return a.bus - b.bus })
	return places
}

// addresses puts the places into the first PCI domain where neither they nor
// their root ports collide with the real host.
func addresses(places []place, host Surroundings) []address {
	for domain := 0; ; domain++ {
		list, ok := inDomain(domain, places, host)
		if ok {
			return list
		}
	}
}

func inDomain(domain int, places []place, host Surroundings) ([]address, bool) {
	list := make([]address, len(places))
	for i, p := range places {
		a := address{domain: domain, bus: p.bus}
		rootBus := p.bus &^ 0x1F
		a.root = fmt.Sprintf("pci%04x:%02x", domain, rootBus)
		if rootBus == 0 && slices.Contains(host.Roots, a.root) {
			// Every host has a root bus 0; ours then begins at 1, with the
			// first chip directly on it.
			rootBus = 1
			a.root = fmt.Sprintf("pci%04x:%02x", domain, rootBus)
		}
		if n := p.bus - rootBus - 1; n >= 0 {
			a.bridge = fmt.Sprintf("%04x:%02x:%02x.%x", domain, rootBus, 1+n/7, 1+n%7)
		}
		if slices.Contains(host.Roots, a.root) || slices.Contains(host.PCI, a.bdf()) || slices.Contains(host.PCI, a.bridge) {
			return nil, false
		}
		list[i] = a
	}
	return list, true
}

// linkSpeed is a PCIe generation as sysfs prints it.
func linkSpeed(gen int) string {
	speeds := []string{"2.5", "5.0", "8.0", "16.0", "32.0", "64.0"}
	return speeds[gen-1] + " GT/s PCIe"
}

// relative is the target of a link from a directory to a place, both below
// /sys, as the kernel writes it.
func relative(from, to string) string {
	a, b := strings.Split(from, "/"), strings.Split(to, "/")
	common := 0
	for common < len(a) && common < len(b) && a[common] == b[common] {
		common++
	}
	return strings.Repeat("../", len(a)-common) + strings.Join(b[common:], "/")
}
