package collect

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/source/umd"
)

func TestDistance(t *testing.T) {
	at := func(node int) *model.Device { return &model.Device{NUMANode: model.Value(node)} }
	nowhere := &model.Device{}
	for _, c := range []struct {
		name   string
		a, b   *model.Device
		pa, pb string
		want   model.Distance
	}{
		{"one host bridge", at(0), at(0), "pci0000:00/0000:00:01.0/0000:01:00.0", "pci0000:00/0000:00:02.0/0000:02:00.0", model.HostBridge},
		{"two host bridges", at(0), at(0), "pci0000:00/0000:00:01.0/0000:01:00.0", "pci0000:40/0000:40:01.0/0000:41:00.0", model.SameNode},
		{"another node", at(0), at(1), "pci0000:00/0000:00:01.0/0000:01:00.0", "pci0000:40/0000:40:01.0/0000:41:00.0", model.AcrossNodes},
		{"unknown node", at(0), nowhere, "pci0000:00/0000:00:01.0/0000:01:00.0", "pci0000:40/0000:40:01.0/0000:41:00.0", model.UnknownLength},
		{"one switch", at(0), at(0), "pci0000:00/p/up/down1/a", "pci0000:00/p/up/down2/b", model.OneSwitch},
		{"one card", at(0), at(0), "pci0000:00/p/a", "pci0000:00/p/b", model.OneSwitch}, // two functions of a card
		{"two switches", at(0), at(0), "pci0000:00/p/up/down1/up/down1/a", "pci0000:00/p/up/down2/b", model.Switches},
		{"unknown path", at(0), at(0), "", "pci0000:00/p/up/down2/b", model.UnknownLength},
	} {
		t.Run(c.name, func(t *testing.T) {
			split := func(s string) []string {
				if s == "" {
					return nil
				}
				return strings.Split(s, "/")
			}
			if got := distance(c.a, c.b, split(c.pa), split(c.pb)); got != c.want {
				t.Errorf("%s and %s: %s, want %s", c.pa, c.pb, got, c.want)
			}
			if got := distance(c.b, c.a, split(c.pb), split(c.pa)); got != c.want {
				t.Errorf("%s and %s: %s, want %s", c.pb, c.pa, got, c.want)
			}
		})
	}
}

// TestPCIPath: the way to a function is in the link's target.
func TestPCIPath(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "sys/bus/pci/devices/0000:01:00.0")
	if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../../../devices/pci0000:00/0000:00:01.0/0000:01:00.0", link); err != nil {
		t.Fatal(err)
	}
	root := hostfs.At(dir)
	if diff := cmp.Diff([]string{"pci0000:00", "0000:00:01.0", "0000:01:00.0"}, pciPath(root, "0000:01:00.0")); diff != "" {
		t.Error(diff)
	}
	if p := pciPath(root, "0000:02:00.0"); p != nil {
		t.Errorf("a function that is not there is at %q", p)
	}
}

// TestDescribe: the description that knows most devices speaks, chips without
// PCIe are on the board of one that has it, and foreign chips are counted.
func TestDescribe(t *testing.T) {
	n300 := []model.Chip{{Name: "L"}, {Name: "R", Remote: true}}
	s := &model.Snapshot{Devices: []model.Device{
		{Index: 0, BusID: "0000:01:00.0", Chips: n300}, {Index: 3, BusID: "0000:02:00.0", Chips: n300},
	}}
	none := model.NoDevice
	full := &umd.Descriptor{
		Chips: []umd.Chip{
			{ID: 0, Device: 7, BusID: "0000:01:00.0", Board: 0},
			{ID: 1, Device: 8, BusID: "0000:02:00.0", Board: 1, UniqueID: 71},
			{ID: 2, Device: none, Board: 0},
			{ID: 3, Device: none, Board: 1},
			{ID: 4, Device: 9, BusID: "0000:99:00.0", Board: -1},
			{ID: 5, Device: none, Board: -1},
		},
		Links: []umd.Link{
			{{Chip: 3, Channel: 6}, {Chip: 2, Channel: 7}},
			{{Chip: 0, Channel: 8}, {Chip: 2, Channel: 0}},
			{{Chip: 0, Channel: 1}, {Chip: 4, Channel: 1}},
			{{Chip: 0, Channel: 2}, {Chip: 5, Channel: 1}},
		},
		Outside: []umd.OutsideLink{{End: umd.End{Chip: 1, Channel: 4}, RemoteID: 99, RemoteChannel: 5}, {End: umd.End{Chip: 4, Channel: 4}}},
	}
	part := &umd.Descriptor{Chips: full.Chips[:1]}
	top := &model.Topology{}
	describe(top, s, []umd.Found{{Path: "/new", Descriptor: part}, {Path: "/full", Descriptor: full}, {Path: "/old", Descriptor: full}})
	port := func(device int, name string, channel int) model.Port {
		return model.Port{ChipPlace: model.ChipPlace{Device: device, Name: name}, Channel: channel}
	}
	want := &model.Topology{
		Described: "/full", Unplaced: 2, Outside: []model.OutsideLink{{From: port(3, "L", 4), Remote: model.RemotePort{Own: 71, Chip: 99, Channel: 5}}},
		Links: []model.Ethernet{{From: port(0, "L", 8), To: port(0, "R", 0)}, {From: port(0, "R", 7), To: port(3, "R", 6)}},
	}
	if diff := cmp.Diff(want, top); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if top.Between(3, 0) != 1 || top.Between(0, 0) != 1 {
		t.Errorf("%d links between 0 and 3", top.Between(3, 0))
	}
}
