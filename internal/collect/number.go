package collect

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/ttmon/ttmon/internal/model"
)

// ChipAt is a chip of a snapshot: a position in Devices and one in its Chips.
type ChipAt struct{ Device, Chip int }

// ChipOrder lists chips in the order in which UMD, and so tt-metal, numbers
// them: those on PCIe by bus address, then the remote ones. A process handles
// one architecture, that of the lowest kernel index.
func ChipOrder(devices []model.Device) (list []ChipAt) {
	for _, at := range order(devices, allOf(devices)) {
		list = append(list, ChipAt{at.device, at.slot})
	}
	return list
}

func allOf(devices []model.Device) []int {
	all := make([]int, len(devices))
	for i := range all {
		all[i] = i
	}
	return all
}

// order numbers the chips of some devices, given as indices.
func order(devices []model.Device, of []int) (chips []chipAt) {
	if len(of) == 0 {
		return nil
	}
	first := slices.MinFunc(of, func(a, b int) int { return cmp.Compare(devices[a].Index, devices[b].Index) })
	arch := devices[first].Arch
	of = slices.DeleteFunc(slices.Clone(of), func(i int) bool { return devices[i].Arch != arch })
	slices.SortFunc(of, func(a, b int) int { return strings.Compare(devices[a].BusID, devices[b].BusID) })
	for _, i := range of {
		chips = append(chips, chipAt{i, 0})
	}
	for _, i := range of {
		for c := range devices[i].Chips {
			if c > 0 && devices[i].Chips[c].Remote {
				chips = append(chips, chipAt{i, c})
			}
		}
	}
	return chips
}

// visible lists the devices that a process can see: by TT_VISIBLE_DEVICES if
// it was started with that, else those it has open, else all.
func visible(devices []model.Device, open []int, env string) []int {
	opened := slices.DeleteFunc(allOf(devices), func(i int) bool { return !slices.Contains(open, devices[i].Index) })
	if env == "" {
		if len(opened) > 0 {
			return opened
		}
		return allOf(devices)
	}
	byBus := allOf(devices)
	slices.SortFunc(byBus, func(a, b int) int { return strings.Compare(devices[a].BusID, devices[b].BusID) })
	var chosen []int
	for word := range strings.SplitSeq(env, ",") {
		word = strings.TrimSpace(word)
		n, err := strconv.Atoi(word)
		for at, i := range byBus {
			// A number counts in the order of bus addresses; anything else is
			// a part of an address.
			if err == nil && at == n || err != nil && word != "" && strings.Contains(devices[i].BusID, word) {
				chosen = append(chosen, i)
			}
		}
	}
	slices.Sort(chosen)
	chosen = slices.Compact(chosen)
	for _, i := range opened {
		if !slices.Contains(chosen, i) {
			return opened // it counts in a container that has fewer devices
		}
	}
	return chosen
}
