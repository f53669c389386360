package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/lab/sim"
	"github.com/ttmon/ttmon/internal/lab/sim/metal"
	"github.com/ttmon/ttmon/internal/model"
)

// TestPlaces: whose region a file is follows from the boards' identities, with
// cables and without. Every chip holds another number of bytes, so that none
// can be mistaken for another.
func TestPlaces(t *testing.T) {
	t.Parallel()
	for _, boards := range []string{"n150,n150", "n300,n300", "4xn300", "p100a,p150a", "2xp150a", "p300c", "n150,n300,p150b,p300a", "galaxy-blackhole", "galaxy-wormhole"} {
		for _, cables := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s cables=%v", boards, cables), func(t *testing.T) {
				c := newScriptedHost(t, sim.Options{Boards: boards, Cables: cables, UMDDump: true})
				p := c.play(metal.Options{})
				for i, ch := range chipsIn(t, c.host) {
					if ch.Slot == 0 && ch.Device != 0 {
						c.do(p, fmt.Sprintf("device /dev/tenstorrent/%d", ch.Device))
					}
					c.do(p, fmt.Sprintf("open %d %d", ch.ID, ch.Number), fmt.Sprintf("alloc %d dram %d", ch.ID, 1000+i))
				}
				s := c.shows()
				for i, ch := range chipsIn(t, c.host) {
					at := s.Device(ch.Device).Chips[ch.Slot]
					wantBytes(t, fmt.Sprintf("DRAM of device %d chip %d", ch.Device, ch.Slot), at.Memory.Pools[model.DRAM].Used, uint64(1000+i))
					if at.Remote != (ch.Slot > 0) || at.Name != ch.Name && ch.Name != "" {
						t.Errorf("device %d chip %d: %+v", ch.Device, ch.Slot, at)
					}
				}
				if len(s.Unmatched) > 0 {
					t.Errorf("chips that no device here has: %+v", s.Unmatched)
				}
			})
		}
	}
}

// TestPlacesByOrder: where sysfs leaves chips open and there is no
// descriptor, UMD's numbers and the devices that the process has open decide.
func TestPlacesByOrder(t *testing.T) {
	c := newScriptedHost(t, sim.Options{Boards: "p150a,p300c,p300c"})
	chips := chipsIn(t, c.host)
	// It sees only some of the devices, and numbers those.
	visible := map[int]bool{0: true, 2: true, 3: true, 4: true}
	p := c.play(metal.Options{})
	number := 0
	for i, ch := range chips { // in the order of addresses
		if !visible[ch.Device] {
			continue
		}
		if ch.Device != 0 {
			c.do(p, fmt.Sprintf("device /dev/tenstorrent/%d", ch.Device))
		}
		c.do(p, fmt.Sprintf("open %d %d", ch.ID, number), fmt.Sprintf("alloc %d dram %d", ch.ID, 1000+i))
		number++
	}
	s := snapshot(t, c.host)
	for i, ch := range chips {
		want := uint64(1000 + i)
		if !visible[ch.Device] {
			want = 0
		}
		wantBytes(t, fmt.Sprintf("DRAM of device %d", ch.Device), s.Device(ch.Device).Memory.Pools[model.DRAM].Used, want)
	}
	if m := &s.Device(3).Memory; !doubted(m.Doubts, model.ChipInferred) {
		t.Errorf("nothing says that the place was inferred: %+v", m.Doubts)
	}
}

// TestPlacesLeftOpen: with nothing to go by, a chip is put on no board; and a
// board that may be the one is not said to be empty.
func TestPlacesLeftOpen(t *testing.T) {
	c := newScriptedHost(t, sim.Options{Boards: "p300c"})
	chips := chipsIn(t, c.host)
	p := c.play(metal.Options{}, "device /dev/tenstorrent/1", "open @", "alloc @ dram 5M")
	s := c.shows() // UMD's number and the open devices tell
	if s.Device(0).Chips[0].ID.V != chips[0].ID {
		t.Errorf("chip %d is not on device 0", chips[0].ID)
	}
	c.play(metal.Options{}, "device /dev/tenstorrent/1", "open @ 1", "alloc @ dram 3M") // it says another number
	s = snapshot(t, c.host)
	if len(s.Unmatched) != 1 || s.Unmatched[0].ID.V != chips[0].ID || !slices.Equal(s.Unmatched[0].Candidates, []int{0, 1}) {
		t.Errorf("unmatched %+v", s.Unmatched)
	}
	wantBytes(t, "of one of the devices", s.Unmatched[0].Memory.Pools[model.DRAM].Used, 8<<20)
	wantBytes(t, "the process's", chipUse(s, p.PID, chips[0].ID).Memory[model.DRAM], 5<<20)
	for i := range s.Devices {
		if u := s.Devices[i].Memory.Pools[model.DRAM].Used; u.Known() {
			t.Errorf("device %d is said to have %+v in use, with a chip that may be its own or not", i, u)
		}
		if m := &s.Devices[i].Memory; m.Tracking == model.TrackOK || !doubted(m.Doubts, model.ChipAmbiguous) {
			t.Errorf("device %d: tracking %s: %+v", i, m.Tracking, m.Doubts)
		}
	}
}

// TestUnmatched: a mock or simulator run on a chip that is not here is shown
// as such: not hidden, and on no board.
func TestUnmatched(t *testing.T) {
	c := newScriptedHost(t, sim.Options{Boards: "n150"})
	p := c.play(metal.Options{}, "name mock", "open 4476187513037", "alloc 4476187513037 dram 3G", "alloc 4476187513037 l1 5M")
	s := snapshot(t, c.host)
	if len(s.Unmatched) != 1 {
		t.Fatalf("unmatched chips: %+v", s.Unmatched)
	}
	wantBytes(t, "DRAM of the chip", s.Unmatched[0].Memory.Pools[model.DRAM].Used, 3<<30)
	use := chipUse(s, p.PID, 4476187513037)
	if use == nil {
		t.Fatal("the process is not on it")
	}
	wantBytes(t, "DRAM of the process", use.Memory[model.DRAM], 3<<30)
	// It has the n150 open: whether it holds something there is not known.
	if u := used(s); u.Known() {
		t.Errorf("%+v on the n150", u)
	}
	for _, args := range [][]string{{"smi"}, {"smi", "-q"}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			if r := runIn(t, c.host, args...); !strings.Contains(r.out, "4476187513037") || !strings.Contains(r.out, "3.0 GiB") {
				t.Errorf("%v does not show the chip:\n%s", args, r.out)
			}
		})
	}
}
