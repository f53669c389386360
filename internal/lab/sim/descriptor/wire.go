package descriptor

import (
	"slices"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/source/umd"
)

// wire connects the chips as they are connected in the field. Channels and
// edges are those of descriptors from real hosts.
func (d *describer) wire(cables bool) {
	for i := range d.at {
		for j := range d.at {
			d.wirePair(i, j)
		}
	}
	if cables {
		d.wireT3000()
		d.wireRing()
	}
}

// join links n channels of chip a, from channel x up, to those of b, from y up.
func (d *describer) join(a, x, b, y, n int) {
	for k := range n {
		d.Links = append(d.Links, umd.Link{{Chip: a, Channel: x + k}, {Chip: b, Channel: y + k}})
	}
}

// wirePair connects two chips that no cable is needed for, in one direction.
func (d *describer) wirePair(i, j int) {
	a, b := d.at[i], d.at[j]
	sameBoard := a.Serial == b.Serial && a.Board.Code == b.Board.Code
	switch {
	case !sameBoard && !a.Board.Galaxy() || a.Board.Code != b.Board.Code:
	case a.Board.UMDType == "n300" && a.slot == 0 && b.slot == 1:
		d.join(i, 8, j, 0, 2)
	case a.Board.UMDType == "p300" && a.Location == 0 && b.Location == 1:
		d.join(i, 2, j, 9, 1)
		d.join(i, 3, j, 8, 1)
	case a.Board.Galaxy() && a.Board.Arch == model.Wormhole:
		d.wireWormholeGalaxy(i, j)
	case a.Board.Galaxy():
		d.wireBlackholeGalaxy(i, j)
	}
}

// trayNeighbours reports whether two places of a Galaxy's tray are side by side
// (1…4 and 5…8 are its rows) or one below the other.
func trayNeighbours(a, b place) (beside, below bool) {
	return a.Location+1 == b.Location && a.Location != 4, a.Location+4 == b.Location
}

// wireWormholeGalaxy: four links an edge. Trays are two rows of four; 1 and 4,
// and 2 and 3 meet at the ends of their rows, 1 and 3, and 2 and 4 at their
// lower rows.
func (d *describer) wireWormholeGalaxy(i, j int) {
	a, b := d.at[i], d.at[j]
	if a.Tray == b.Tray {
		switch beside, below := trayNeighbours(a, b); {
		case beside:
			d.join(i, 8, j, 4, 4)
		case below:
			d.join(i, 12, j, 0, 4)
		}
		return
	}
	if a.Location != b.Location {
		return
	}
	switch trays := [2]int{a.Tray, b.Tray}; {
	case (trays == [2]int{1, 4} || trays == [2]int{2, 3}) && a.Location%4 == 0:
		d.join(i, 8, j, 8, 4)
	case (trays == [2]int{1, 3} || trays == [2]int{2, 4}) && a.Location > 4:
		d.join(i, 12, j, 12, 4)
	}
}

// Channels between the same slots of two trays of a Blackhole Galaxy: of the
// pairs 1-2 and 4-3, and of 1-3 and 2-4. Slot 8 has four in the latter.
var (
	blackholeAcross = [9]int{1: 0, 2: 0, 3: 8, 4: 8, 5: 6, 6: 6, 7: 6, 8: 6}
	blackholeDown   = [9]int{1: 2, 2: -1, 3: 0, 4: 4, 5: 2, 6: -1, 7: 8, 8: 4}
)

func (d *describer) wireBlackholeGalaxy(i, j int) {
	a, b := d.at[i], d.at[j]
	if a.Tray == b.Tray {
		switch beside, below := trayNeighbours(a, b); {
		case beside:
			d.join(i, 4, j, 2, 2)
		case below:
			d.join(i, 6, j, 0, 2)
		}
		return
	}
	if a.Location != b.Location {
		return
	}
	switch [2]int{a.Tray, b.Tray} {
	case [2]int{1, 2}, [2]int{4, 3}:
		c := blackholeAcross[a.Location]
		d.join(i, c, j, c, 2)
	case [2]int{1, 3}, [2]int{2, 4}:
		if c := blackholeDown[a.Location]; c >= 0 {
			d.join(i, c, j, c, 2)
		}
		if a.Location == 8 {
			d.join(i, 8, j, 8, 2)
		}
	}
}

// wireT3000 makes a T3000 of exactly four n300: two by two boards, a ladder of
// two by four chips.
//
//	R0 L0 L2 R2
//	R1 L1 L3 R3
func (d *describer) wireT3000() {
	var left, right []int
	for i, p := range d.at {
		switch {
		case p.Board.UMDType != "n300":
			return
		case p.slot == 0:
			left = append(left, i)
		default:
			right = append(right, i)
		}
	}
	if len(left) != 4 {
		return
	}
	for _, pair := range [][2]int{{0, 1}, {2, 3}} {
		d.join(left[pair[0]], 14, left[pair[1]], 14, 2)
		d.join(right[pair[0]], 6, right[pair[1]], 6, 2)
	}
	d.join(left[0], 6, left[2], 6, 2)
	d.join(left[1], 0, left[3], 0, 2)
	for n := range left {
		x := [2]int{1, 0} // columns of L and R
		if n >= 2 {
			x = [2]int{2, 3}
		}
		d.Chips[left[n]].Coord = &umd.Coord{X: x[0], Y: n % 2}
		d.Chips[right[n]].Coord = &umd.Coord{X: x[1], Y: n % 2}
	}
}

// wireRing cables two or more p150 to a ring, four links an edge; two have one
// edge.
func (d *describer) wireRing() {
	n := len(d.at)
	if n < 2 || slices.ContainsFunc(d.at, func(p place) bool { return p.Board.UMDType != "p150" }) {
		return
	}
	for i := range n {
		if i == 1 && n == 2 {
			break
		}
		d.join(i, 4, (i+1)%n, 8, 4)
	}
}
