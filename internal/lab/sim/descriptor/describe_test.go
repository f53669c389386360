package descriptor

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ttmon/ttmon/internal/board"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/source/umd"
)

// boards makes endpoints for n boards of a kind, with serial numbers of their
// own, at falling addresses.
func boards(t testing.TB, card string, n int) (endpoints []Endpoint) {
	t.Helper()
	b, ok := board.ByCard(card)
	if !ok {
		t.Fatalf("no board %q", card)
	}
	if b.Galaxy() {
		return galaxy(b)
	}
	for i := range n {
		for location := range b.Endpoints {
			k := len(endpoints)
			endpoints = append(endpoints, Endpoint{
				Board: b, Index: k, BusID: fmt.Sprintf("0000:%02x:00.0", 0x90-k), Bundle: "19.9.0.0",
				Serial: uint64(b.Code)<<36 | 0x7E57_0000 + uint64(i), ASIC: 0x7E57_0000_0000_0000 + uint64(k), Location: location,
			})
		}
	}
	return endpoints
}

func galaxy(b board.Board) (endpoints []Endpoint) {
	for tray := 1; tray <= 4; tray++ {
		for slot := 1; slot <= 8; slot++ {
			endpoints = append(endpoints, Endpoint{
				Board: b, Index: board.GalaxyIndex(tray, slot), BusID: fmt.Sprintf("0000:%02x:00.0", b.GalaxyBus(tray, slot)),
				Serial: uint64(b.Code)<<36 | 0x7E57, ASIC: 0x7E57_0000_0000_0000 + uint64(tray*8+slot), Location: slot,
				Tray: tray, TraySerial: fmt.Sprintf("7E5700%c", 'A'+tray-1), Bundle: "19.9.0.0",
			})
		}
	}
	return endpoints
}

func describe(t testing.TB, endpoints []Endpoint, cables bool) *umd.Descriptor {
	t.Helper()
	d, err := Describe(endpoints, cables, false)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestDescribe counts chips, links and pairs of linked chips, and checks what
// UMD insists on.
func TestDescribe(t *testing.T) {
	for _, c := range []struct {
		card                       string
		n                          int
		cables                     bool
		chips, boards, links, edge int
	}{
		{"n150", 1, false, 1, 1, 0, 0},
		{"n300", 1, false, 2, 1, 2, 1},
		{"n300", 4, false, 8, 4, 8, 4},
		{"n300", 4, true, 8, 4, 20, 10},
		{"p100a", 1, true, 1, 1, 0, 0},
		{"p150a", 2, false, 2, 2, 0, 0},
		{"p150a", 2, true, 2, 2, 4, 1},
		{"p150c", 4, true, 4, 4, 16, 4},
		{"p300a", 2, false, 4, 2, 4, 2},
		{"galaxy-wormhole", 1, false, 32, 1, 208, 52},
		{"galaxy-blackhole", 1, false, 32, 1, 140, 68},
	} {
		t.Run(fmt.Sprintf("%dx%s, cables %v", c.n, c.card, c.cables), func(t *testing.T) {
			d := describe(t, boards(t, c.card, c.n), c.cables)
			name := fmt.Sprintf("%dx%s, cables %v", c.n, c.card, c.cables)
			used, edges, ids := map[umd.End]bool{}, map[[2]int]bool{}, map[uint64]bool{}
			for _, l := range d.Links {
				for _, e := range l {
					if used[e] {
						t.Errorf("%s: channel %d of chip %d is in two links", name, e.Channel, e.Chip)
					}
					used[e] = true
				}
				edges[[2]int{min(l[0].Chip, l[1].Chip), max(l[0].Chip, l[1].Chip)}] = true
			}
			for i, chip := range d.Chips {
				ids[chip.UniqueID] = true
				if chip.ID != i || chip.Remote() != (chip.BusID == "") || chip.Bus < 0 {
					t.Errorf("%s: chip %d: %+v", name, i, chip)
				}
			}
			if len(d.Chips) != c.chips || len(d.Boards) != c.boards || len(d.Links) != c.links || len(edges) != c.edge || len(ids) != c.chips {
				t.Errorf("%s: %d chips, %d ids, %d boards, %d links in %d edges; want %+v", name, len(d.Chips), len(ids), len(d.Boards), len(d.Links), len(edges), c)
			}
			local := slices.Collect(func(yield func(string) bool) {
				for _, chip := range local(d) {
					yield(chip.BusID)
				}
			})
			if !slices.IsSorted(local) {
				t.Errorf("%s: chips on PCIe are not in the order of their addresses: %v", name, local)
			}
			if again, err := umd.Parse(AppendYAML(nil, d)); err != nil || !cmp.Equal(d, again, cmpopts.EquateEmpty()) {
				t.Errorf("%s: written and read again: %v\n%s", name, err, cmp.Diff(d, again, cmpopts.EquateEmpty()))
			}
		})
	}
}

// TestDescribedIDs: the vectors of real boards come out of a described host.
func TestDescribedIDs(t *testing.T) {
	with := func(e []Endpoint, serial, asic uint64) []Endpoint {
		for i := range e {
			e[i].Serial, e[i].ASIC = serial, asic
		}
		return e
	}
	for _, c := range []struct {
		name      string
		endpoints []Endpoint
		cables    bool
		want      []uint64
	}{
		{"n300", with(boards(t, "n300", 1), 0x010001451170C0C4, 1), false, []uint64{9956278468, 14251245764}},
		{"n150", with(boards(t, "n150", 1), 0x010001861180B479, 1), false, []uint64{72059269368820857}},
		{"p100a", with(boards(t, "p100a", 1), 1, 0xF5DDD9F78D7E0BEE), false, []uint64{17716556166399396846}},
		{"p300a", with(boards(t, "p300a", 1), 0x000004513190F006, 1), false, []uint64{151896654217409, 151896654217408}}, // falling addresses
		{"p150b alone", with(boards(t, "p150b", 1), 0x000004123191110E, 5), true, []uint64{5}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []uint64
			for _, chip := range describe(t, c.endpoints, c.cables).Chips {
				got = append(got, chip.UniqueID)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s:\n%s", c.name, diff)
			}
		})
	}
	two := boards(t, "p150b", 2)
	two[0].Serial = 0x000004123191110E
	if d := describe(t, two, true); d.Chips[1].UniqueID != 143238000419264 {
		t.Errorf("p150b cabled: %d", d.Chips[1].UniqueID)
	}
}

// TestWormholeGalaxyWiring compares with the descriptor of a real one.
func TestWormholeGalaxyWiring(t *testing.T) {
	real := parseSample(t, "6u_cluster_desc.yaml")
	ours := describe(t, boards(t, "galaxy-wormhole", 1), false)
	if diff := cmp.Diff(linksByBus(real), linksByBus(ours)); diff != "" {
		t.Error(diff)
	}
}

func linksByBus(d *umd.Descriptor) []string {
	var s []string
	for _, l := range d.Links {
		ends := []string{}
		for _, e := range l {
			ends = append(ends, fmt.Sprintf("%02x.%02d", d.Chip(e.Chip).Bus, e.Channel))
		}
		slices.Sort(ends)
		s = append(s, strings.Join(ends, " "))
	}
	slices.Sort(s)
	return s
}

func TestDescribedCores(t *testing.T) {
	bits := func(mask uint32) (n int) {
		for ; mask != 0; mask &= mask - 1 {
			n++
		}
		return n
	}
	for _, c := range []struct {
		card, bundle string
		rows, dram   int // switched off
	}{
		{"n150", "", 1, 0},
		{"n300", "", 2, 0},
		{"galaxy-wormhole", "", 0, 0},
		{"p100a", "", 2, 1},
		{"p150a", "19.9.0.0", 2, 0},
		{"p150a", "18.0.0.0", 0, 0},
		{"galaxy-blackhole", "", 1, 0},
	} {
		t.Run(c.card+" "+c.bundle, func(t *testing.T) {
			e := boards(t, c.card, 1)[0]
			e.Bundle = c.bundle
			if h := harvest(e); bits(h.Tensix) != c.rows || bits(h.DRAM) != c.dram || !h.NOCTranslation {
				t.Errorf("%s %s: %+v", c.card, c.bundle, h)
			}
		})
	}
}

func TestDescribeRefuses(t *testing.T) {
	orion, _ := board.ByCard("orion")
	for want, endpoints := range map[string][]Endpoint{
		"there are no boards":          nil,
		"different generations":        append(boards(t, "n150", 1), boards(t, "p150a", 1)...),
		`UMD has no board type for "o`: {{Board: orion, BusID: "0000:01:00.0"}},
	} {
		t.Run(want, func(t *testing.T) {
			if _, err := Describe(endpoints, false, false); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
		})
	}
}

func TestOneGeneration(t *testing.T) {
	mixed := slices.Concat(boards(t, "p150a", 1), boards(t, "n150", 1), boards(t, "p100a", 1))
	for i := range mixed {
		mixed[i].Index = []int{7, 2, 5}[i]
	}
	if got := OneGeneration(mixed); len(got) != 1 || got[0].Board.Card != "n150" || len(mixed) != 3 {
		t.Errorf("%+v", got)
	}
	mixed[1].Index = 9
	if got := OneGeneration(mixed); len(got) != 2 || got[1].Board.Card != "p100a" {
		t.Errorf("%+v", got)
	}
	if OneGeneration(nil) != nil {
		t.Error("something came of nothing")
	}
}

// TestDescribedHostResolves: every chip of a described host is found by what
// sysfs would show of it.
func TestDescribedHostResolves(t *testing.T) {
	for _, card := range []string{"n150", "n300", "p100a", "p150a", "p300c", "galaxy-wormhole", "galaxy-blackhole"} {
		for _, cables := range []bool{false, true} {
			endpoints := boards(t, card, 2)
			d := describe(t, endpoints, cables)
			var seen []board.Endpoint
			for _, e := range endpoints {
				s := board.Endpoint{Index: e.Index, BusID: e.BusID, Card: card, Arch: e.Board.Arch, Serial: e.Serial, ASICID: e.ASIC}
				s.Tray, s.Slot, _ = e.Board.GalaxyPosition(e.BusID, false)
				seen = append(seen, s)
			}
			var r board.Resolver
			r.Update(seen)
			r.Learn(d.Placements())
			for _, c := range d.Chips {
				m := r.Match([]board.Sighting{{ID: c.UniqueID}})[0]
				if m.Certainty < board.Inferred || m.Remote != c.Remote() || !c.Remote() && m.Device != c.Device {
					t.Errorf("%s, cables %v: chip %+v was found as %+v", card, cables, c, m)
				}
				if c.Remote() && model.NoDevice == m.Device {
					t.Errorf("%s: a remote chip without its board: %+v", card, m)
				}
			}
		}
	}
}

// Hosts of a ring name each other: what leaves one arrives at the next, and the chips
// at the ends have ids of their own.
func TestRingOfHosts(t *testing.T) {
	for _, card := range []string{"n300", "p150a"} {
		t.Run(card, func(t *testing.T) {
			b, ok := board.ByCard(card)
			if !ok {
				t.Fatal("no such board")
			}
			var hosts []*umd.Descriptor
			for host := range uint64(3) {
				var list []Endpoint
				for i := range 2 {
					list = append(list, Endpoint{Board: b, Index: i, BusID: fmt.Sprintf("0000:%02x:00.0", i+1), Serial: host<<8 + uint64(i) + 1, ASIC: host<<8 + uint64(i) + 1})
				}
				d, err := Describe(list, true, true)
				if err != nil {
					t.Fatal(err)
				}
				hosts = append(hosts, d)
			}
			for i, d := range hosts {
				_, before := Gates(hosts[(i+2)%3])
				after, _ := Gates(hosts[(i+1)%3])
				Plug(d, before, after)
			}
			ends := map[[2]uint64][2]uint64{}
			for _, d := range hosts {
				for _, l := range d.Outside {
					ends[[2]uint64{d.Chip(l.End.Chip).UniqueID, uint64(l.End.Channel)}] = [2]uint64{l.RemoteID, uint64(l.RemoteChannel)}
				}
			}
			if len(ends) != 12 {
				t.Errorf("%d ends of cables, want 12", len(ends))
			}
			for a, b := range ends {
				if ends[b] != a || a == b {
					t.Errorf("%v leads to %v, which leads to %v", a, b, ends[b])
				}
			}
		})
	}
	b, _ := board.ByCard("p100a")
	if _, err := Describe([]Endpoint{{Board: b, BusID: "0000:01:00.0"}}, false, true); err == nil {
		t.Error("a board without Ethernet is cabled")
	}
}
