package board

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// chipTruth is a chip of a made-up host and where it really is.
type chipTruth struct {
	id            uint64
	endpoint      int
	slot          int
	name          string
	remote, exact bool // exact: sysfs alone must do, unless another board has the same id
}

// drawHost makes a host of any mix of cards, at any addresses, under any
// numbers, with what firmware and UMD would make of them.
func drawHost(t *rapid.T) (endpoints []Endpoint, chips []chipTruth) {
	cards := rapid.SliceOfN(rapid.SampledFrom([]string{"n150", "n300", "p100a", "p150a", "p150c", "p300b", "galaxy-blackhole"}), 1, 6).Draw(t, "cards")
	addresses := rapid.SliceOfNDistinct(rapid.IntRange(1, 255), 12, 12, rapid.ID).Draw(t, "addresses")
	numbers := rapid.Permutation([]int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}).Draw(t, "numbers")
	for i, name := range cards {
		b, _ := ByCard(name)
		serial := uint64(b.Code)<<36 | rapid.Uint64Range(1, 1<<36-1).Draw(t, fmt.Sprintf("serial %d", i))
		linked := rapid.Bool().Draw(t, "linked") && b.EthPorts != 0 || name == "n300" || name == "p300b"
		for n := range min(b.Endpoints, 2) {
			at := len(endpoints)
			asic := rapid.Uint64Range(1<<63, 1<<64-2).Draw(t, "asic")
			endpoints = append(endpoints, Endpoint{
				Index: numbers[at], BusID: fmt.Sprintf("0000:%02x:00.0", addresses[at]),
				Card: name, Arch: b.Arch, Serial: serial, ASICID: asic,
			})
			for slot, s := range b.Slots {
				silicon := Silicon{Serial: serial, ASIC: asic, Location: slot, Linked: linked}
				c := chipTruth{endpoint: at, slot: slot, name: s.Name, remote: s.Remote, exact: true}
				if name == "p300b" {
					silicon.Location, c.exact = n, false
					c.name = []string{"R", "L"}[n]
				}
				c.id = b.ChipID(silicon)
				chips = append(chips, c)
			}
		}
	}
	return endpoints, chips
}

// sight is what a region shows of a chip whose process has some devices open.
func (c chipTruth) sight(endpoints []Endpoint, open []int) Sighting {
	s := Sighting{ID: c.id}
	me := endpoints[c.endpoint]
	var seen []string
	for _, i := range append(open, c.endpoint) {
		if !slices.Contains(s.Open, endpoints[i].Index) {
			s.Open = append(s.Open, endpoints[i].Index)
			if endpoints[i].Arch == me.Arch {
				seen = append(seen, endpoints[i].BusID)
			}
		}
	}
	slices.Sort(seen)
	s.DeviceID = uint32(slices.Index(seen, me.BusID))
	if c.remote {
		s.DeviceID = uint32(len(seen))
	}
	return s
}

// TestNeverOnTheWrongChip: whatever the host and whatever is known about the
// writers, a chip is found where it is, or among the candidates.
func TestNeverOnTheWrongChip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		endpoints, chips := drawHost(t)
		claimed := map[uint64]int{}
		for _, c := range chips {
			claimed[c.id]++
		}
		sightings := make([]Sighting, len(chips))
		for i, c := range chips {
			sightings[i] = Sighting{ID: c.id}
			if rapid.Bool().Draw(t, "alive") {
				open := rapid.SliceOf(rapid.IntRange(0, len(endpoints)-1)).Draw(t, "open")
				sightings[i] = c.sight(endpoints, open)
			}
		}
		r := resolver(endpoints)
		for i, m := range r.Match(sightings) {
			c, unique := chips[i], claimed[chips[i].id] == 1
			want := endpoints[c.endpoint].Index
			switch m.Certainty {
			case Exact, Inferred:
				if m.Device != want || m.Slot != c.slot || m.Remote != c.remote || m.Name != c.name {
					t.Fatalf("chip %+v of device %d was found at %+v", c, want, m)
				}
			case Ambiguous:
				if c.exact && unique && !r.shadowed(c) {
					t.Fatalf("chip %+v of device %d is ambiguous: %+v", c, want, m)
				}
				if !slices.Contains(m.Candidates, want) {
					t.Fatalf("chip %+v of device %d is none of %v", c, want, m.Candidates)
				}
			case Unmatched:
				t.Fatalf("chip %+v of device %d was not found", c, want)
			}
			if !c.exact && len(sightings[i].Open) > 0 && m.Certainty == Ambiguous && unique {
				t.Fatalf("a live process did not place chip %+v: %+v", c, m)
			}
		}
	})
}

// shadowed reports whether another board could have c's id too, for instance two
// n150 whose serial numbers differ only in bits that Ethernet firmware drops.
func (r *Resolver) shadowed(c chipTruth) bool {
	return slices.ContainsFunc(r.claims[c.id], func(o claim) bool { return o.endpoint != c.endpoint })
}

// TestForeignIDsMatchNothing: the chips of one host are none of another's.
func TestForeignIDsMatchNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		endpoints, _ := drawHost(t)
		r := resolver(endpoints)
		id := rapid.Uint64().Draw(t, "id")
		if len(r.claims[id]) > 0 {
			t.Skip("drew one of the host's own")
		}
		if m := r.one(Sighting{ID: id}); m.Certainty != Unmatched {
			t.Fatalf("%d is %+v", id, m)
		}
	})
}
