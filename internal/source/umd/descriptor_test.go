package umd

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ttmon/ttmon/internal/board"
	"github.com/ttmon/ttmon/internal/model"
)

func parseSample(t *testing.T, name string) *Descriptor {
	t.Helper()
	d, err := Parse(samples(t)[name])
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return d
}

func TestParseN300(t *testing.T) {
	want := &Descriptor{
		Chips: []Chip{
			{
				ID: 0, Arch: model.Wormhole, UniqueID: 9956278468, Device: 1, BusID: "0000:41:00.0", Bus: 0x41,
				Coord: &Coord{}, Location: 0, Harvest: Harvest{NOCTranslation: true, Tensix: 544},
			},
			{
				ID: 1, Arch: model.Wormhole, UniqueID: 14251245764, Device: model.NoDevice, Bus: 0x41,
				Coord: &Coord{Y: 1}, Location: 1, Harvest: Harvest{NOCTranslation: true, Tensix: 513},
			},
		},
		Boards: []BoardEntry{{ID: 72058990194901188, Type: "n300", Chips: []int{1, 0}}},
		Links:  []Link{{{0, 8}, {1, 0}}, {{0, 9}, {1, 1}}},
	}
	if diff := cmp.Diff(want, parseSample(t, "wormhole_N300_pci_bdf.yaml"), cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
}

// local is how many of a descriptor's chips are on PCIe.
func local(d *Descriptor) (n int) {
	for _, c := range d.Chips {
		if !c.Remote() {
			n++
		}
	}
	return n
}

func TestParseSamples(t *testing.T) {
	for name, c := range map[string]struct{ chips, local, boards, links, outside int }{
		"2x2_n300_cluster_desc.yaml":                 {4, 2, 2, 8, 0},
		"6u_cluster_desc.yaml":                       {32, 32, 1, 208, 0},
		"blackhole_4xP150.yaml":                      {4, 4, 4, 16, 0},
		"blackhole_P100.yaml":                        {1, 1, 1, 0, 0},
		"blackhole_P150.yaml":                        {1, 1, 1, 0, 0},
		"blackhole_P300_both_mmio.yaml":              {2, 2, 1, 2, 0},
		"wormhole_N150_unique_ids.yaml":              {1, 1, 1, 0, 0},
		"wormhole_N300_pci_bdf.yaml":                 {2, 1, 1, 2, 0},
		"wormhole_N300_with_remote_connections.yaml": {2, 1, 1, 2, 6},
	} {
		t.Run(name, func(t *testing.T) {
			d := parseSample(t, name)
			got := struct{ chips, local, boards, links, outside int }{len(d.Chips), local(d), len(d.Boards), len(d.Links), len(d.Outside)}
			if got != c {
				t.Errorf("%s: %+v, want %+v", name, got, c)
			}
		})
	}
	if d := parseSample(t, "blackhole_P100.yaml"); d.Chips[0].UniqueID != 17716556166399396846 {
		t.Errorf("64 bits did not survive: %d", d.Chips[0].UniqueID)
	}
	if d := parseSample(t, "wormhole_N300_with_remote_connections.yaml"); !d.Chip(1).Synthetic || d.Chip(1).UniqueID != 1<<32 || len(d.Placements()) != 0 {
		t.Errorf("without ids UMD makes them up, and they are not used: %+v", d.Chips)
	}
	if d := parseSample(t, "blackhole_P150.yaml"); d.Chip(1) != nil || d.Chip(0).BusID != "0000:01:00.0" {
		t.Errorf("%+v", d.Chips)
	}
}

func TestParseOldShapes(t *testing.T) {
	d, err := Parse([]byte("arch: {0: wormhole_b0, 1: quasar}\nchips: {}\nethernet_connections: []\nchips_with_mmio: [0, 1]\nchip_to_boardtype: {0: n150}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if c := d.Chips[1]; c.Device != 1 || c.Arch != model.UnknownArch || c.Bus != -1 || c.Location != -1 || c.Board != -1 || c.Coord != nil {
		t.Errorf("%+v", c)
	}
}

func TestPlacements(t *testing.T) {
	got := parseSample(t, "6u_cluster_desc.yaml").Placements()
	if want := (board.Placement{ID: 87029889494954051, BusID: "0000:c1:00.0", Device: 11}); got[0] != want {
		t.Errorf("by bus number: %+v, want %+v", got[0], want)
	}
	got = parseSample(t, "blackhole_P300_both_mmio.yaml").Placements()
	want := []board.Placement{{ID: 9493540888584, Device: 1}, {ID: 9493540888585, Device: 0}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("by kernel index only:\n%s", diff)
	}
}

// TestDescriptorResolvesAGalaxy: a descriptor of a real Galaxy, and the ids of
// its chips, which sysfs does not have.
func TestDescriptorResolvesAGalaxy(t *testing.T) {
	d := parseSample(t, "6u_cluster_desc.yaml")
	galaxy, _ := board.ByCard("galaxy-wormhole")
	var endpoints []board.Endpoint
	for _, p := range d.Placements() {
		e := board.Endpoint{Index: p.Device, BusID: p.BusID, Card: galaxy.Card, Arch: galaxy.Arch, Serial: 0x0100035100000000}
		e.Tray, e.Slot, _ = galaxy.GalaxyPosition(p.BusID, false)
		endpoints = append(endpoints, e)
	}
	var r board.Resolver
	r.Update(endpoints)
	r.Learn(d.Placements())
	for _, c := range d.Chips {
		if m := r.Match([]board.Sighting{{ID: c.UniqueID}})[0]; m.Certainty != board.Inferred || m.Device != c.Device {
			t.Errorf("chip %d of device %d: %+v", c.ID, c.Device, m)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for src, want := range map[string]string{
		"":                       "the file is empty",
		"- 1\n":                  "not a map",
		"a: 1\n":                 "not a cluster descriptor",
		"arch: 5\n":              "arch: line 1: want a map by chip",
		"arch: {x: blackhole}\n": `arch: line 1: "x" is not a number`,
		"arch: {0: blackhole}\nchip_unique_ids: {0: -1}\n":                     `chip_unique_ids: line 2: "-1" is not a number`,
		"arch: {0: blackhole}\nchip_unique_ids: {0: 18446744073709551616}\n":   "is not a number of 64 bits",
		"arch: {0: blackhole}\nchip_unique_ids: {1: 5}\n":                      "chip_unique_ids: line 2: there is no chip 1",
		"arch: {0: blackhole}\nchips: {0: [1, 2]}\n":                           "want four coordinates",
		"arch: {0: blackhole}\nethernet_connections: [[{chip: 0, chan: 1}]]\n": "want the two ends of a link",
		"arch: {0: blackhole}\nethernet_connections: [[{chip: 0}, {chip: 1}]]": "chan: line 2:",
		"arch: {0: blackhole}\nboards: [[{board_id: x}]]\n":                    "boards: board_id: line",
		"arch: {0: blackhole}\nchip_to_bus_id: {0: \"0xzz\"}\n":                "is not a bus number",
		"arch: {0: blackhole}\nchips_with_mmio: [{0: x}]\n":                    "chips_with_mmio: line 2",
		"arch: {0: blackhole}\nchips_with_mmio: [1]\n":                         "there is no chip 1",
		"arch: {0: blackhole}\nharvesting: {0: 5}\n":                           "want a map of masks",
	} {
		t.Run(src, func(t *testing.T) {
			d, err := Parse([]byte(src))
			if err == nil || !strings.Contains(err.Error(), want) || d != nil {
				t.Errorf("%q: %v, want %q", src, err, want)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, src := range samples(f) {
		if len(src) < 560 { // long seeds make the fuzzer minimise instead of search
			f.Add(src)
		}
	}
	for _, src := range []string{
		"arch: {0: wormhole_b0}\nchips_with_mmio: [0]\nchips: {0: [1, 2, 3, 4]}\n",
		"arch: {0: blackhole}\nboards: [[{board_id: 1}, {board_type: p150}, {chips: [0]}]]\nharvesting: {0: {harvest_mask: 3}}\n",
		"arch: {0: blackhole}\nethernet_connections:\n- [{chip: 0, chan: 1}, {chip: 0, chan: 2}]\nchip_to_bus_id: {0: \"0x1\"}\n",
		"arch: {0: blackhole}\nethernet_connections_to_remote_devices: [[{chip: 0, chan: 1}, {remote_chip_id: 9, chan: 2}]]\n",
	} {
		f.Add([]byte(src))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		d, err := Parse(src)
		if err != nil {
			return
		}
		d.Placements()
		for i, c := range d.Chips {
			if i > 0 && d.Chips[i-1].ID >= c.ID {
				t.Errorf("chips are not in order: %d, %d", d.Chips[i-1].ID, c.ID)
			}
		}
	})
}

// BenchmarkParse reads a Galaxy's descriptor; the floor looks at each byte once.
func BenchmarkParse(b *testing.B) {
	src := samples(b)["6u_cluster_desc.yaml"]
	b.Run("galaxy", func(b *testing.B) {
		b.SetBytes(int64(len(src)))
		for b.Loop() {
			if _, err := Parse(src); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("floor", func(b *testing.B) {
		b.SetBytes(int64(len(src)))
		for b.Loop() {
			bytes.Count(src, []byte{'\n'})
		}
	})
}
