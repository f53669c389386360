package cluster

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ttmon/ttmon/internal/board"
	"github.com/ttmon/ttmon/internal/lab/sim/chip"
	"github.com/ttmon/ttmon/internal/lab/sim/driver"
	"github.com/ttmon/ttmon/internal/source/umd"
)

func hostWith(t *testing.T, list string) *driver.Driver {
	t.Helper()
	boards, err := chip.ParseBoards(list)
	if err != nil {
		t.Fatal(err)
	}
	d := driver.New(driver.Options{Boards: boards})
	t.Cleanup(d.Close)
	return d
}

func clusterOf(t *testing.T, d *driver.Driver, o Options) *Cluster {
	t.Helper()
	c, err := Of(d, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestChipsAreFoundByTheirIDs: the monitor's rules put every id where the
// simulation has the chip, or leave it open; they never put it elsewhere.
func TestChipsAreFoundByTheirIDs(t *testing.T) {
	for list, open := range map[string]bool{ // whether sysfs leaves chips open
		"n150": false, "2xn150": false, "n300": false, "4xn300": false, "p100a": false, "2xp150a": false,
		"n150,n300,p150a": false, "p300c": true, "galaxy-blackhole": false, "galaxy-wormhole": true,
	} {
		t.Run(list, func(t *testing.T) {
			for _, cables := range []bool{false, true} {
				d := hostWith(t, list)
				c := clusterOf(t, d, Options{Cables: cables})
				var r board.Resolver
				r.Update(resolverEndpoints(t, d))
				for _, ch := range c.Chips() {
					m := r.Match([]board.Sighting{{ID: ch.ID}})[0]
					switch {
					case m.Certainty == board.Exact && (m.Device != ch.Device || m.Slot != ch.Slot || m.Name != ch.Name):
						t.Errorf("%s cables=%v: chip %+v was found at %+v", list, cables, ch, m)
					case m.Certainty == board.Unmatched && list != "galaxy-wormhole", m.Certainty != board.Exact && !open:
						t.Errorf("%s cables=%v: chip %+v: %+v", list, cables, ch, m)
					}
				}
				// And what was left open the descriptor decides.
				for _, desc := range c.all {
					r.Learn(desc.Placements())
				}
				for _, ch := range c.Chips() {
					if m := r.Match([]board.Sighting{{ID: ch.ID}})[0]; m.Device != ch.Device || m.Slot != ch.Slot {
						t.Errorf("%s cables=%v with the descriptor: chip %+v was found at %+v", list, cables, ch, m)
					}
				}
			}
		})
	}
}

// resolverEndpoints is what a monitor knows of the devices.
func resolverEndpoints(t *testing.T, d *driver.Driver) (list []board.Endpoint) {
	t.Helper()
	for _, e := range endpoints(d) {
		tray, slot, _ := e.Board.GalaxyPosition(e.BusID, false)
		list = append(list, board.Endpoint{
			Index: e.Index, BusID: e.BusID, Card: e.Board.Card, Arch: e.Board.Arch, Serial: e.Serial, ASICID: e.ASIC, Tray: tray, Slot: slot,
		})
	}
	return list
}

func TestCablesChangeIDs(t *testing.T) {
	alone, joined := clusterOf(t, hostWith(t, "2xp150a"), Options{}), clusterOf(t, hostWith(t, "2xp150a"), Options{Cables: true})
	if a, b := alone.Chips()[0].ID, joined.Chips()[0].ID; a == b {
		t.Errorf("a p150 has the id %d with and without cables", a)
	}
}

func TestRemoteChips(t *testing.T) {
	c := clusterOf(t, hostWith(t, "p150a,2xn300"), Options{})
	var names []string
	for _, ch := range c.Chips() {
		if ch.Device == 2 {
			names = append(names, ch.Name)
		}
	}
	if !slices.Equal(names, []string{"L", "R"}) {
		t.Errorf("chips of the second n300: %v", names)
	}
	if n := len(c.Chips()); n != 5 {
		t.Errorf("%d chips, want 5", n)
	}
}

// TestFiles: a host with two generations has a descriptor of each, and the
// one of the first device is for tt-metal; without boards there is none.
func TestFiles(t *testing.T) {
	d := hostWith(t, "p150a,n300")
	dir := t.TempDir()
	write := func() map[string]string {
		t.Helper()
		if err := clusterOf(t, d, Options{}).Write(dir); err != nil {
			t.Fatal(err)
		}
		return filesIn(t, dir)
	}
	if _, err := Load(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing was loaded: %v", err)
	}
	got := write()
	loaded, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(clusterOf(t, d, Options{}).Chips(), loaded.Chips()); diff != "" {
		t.Errorf("loading changed the chips:\n%s", diff)
	}
	want := map[string]string{Name: "blackhole", "blackhole.yaml": "blackhole", "wormhole.yaml": "wormhole"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	devices := d.Devices()
	for i, want := range []map[string]string{{Name: "wormhole"}, {}} {
		if err := devices[i].Unplug(); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, write()); diff != "" {
			t.Errorf("after device %d was unplugged (-want +got):\n%s", i, diff)
		}
	}
}

// filesIn lists the descriptors in a directory, each with its generation.
func filesIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		d, err := umd.Parse(b)
		if err != nil {
			t.Fatalf("%s: %v", e.Name(), err)
		}
		files[e.Name()] = string(d.Chips[0].Arch)
	}
	return files
}
