package e2e

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/collect/assess"
	"github.com/ttmon/ttmon/internal/lab/sim"
	"github.com/ttmon/ttmon/internal/model"
)

// TestNoDriver and TestNoBoards: one sentence that says which it is, what to
// do, and that a simulator exists; an exit code of its own; no made-up data.
func TestNoDriver(t *testing.T) {
	empty := t.TempDir()
	for _, args := range [][]string{{"smi"}, {"smi", "-L"}, {"smi", "-q"}, {"smi", "--query-device=index", "--format=csv"}, {"smi", "-s", "--snapshot_no_tty"}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			r := finish(t, exec.Command(filepath.Join(bin, "ttmon"), append(args, "--root", empty)...))
			if r.code != 9 || !strings.Contains(r.err, "driver") || !strings.Contains(r.err, "ttmon-sim") || strings.Count(r.err, "\n") != 1 {
				t.Errorf("exit code %d, want 9; it said %q", r.code, r.err)
			}
			if r.out != "" {
				t.Errorf("%v without a driver printed:\n%s", args, r.out)
			}
		})
	}
}

func TestNoBoards(t *testing.T) {
	h := start(t, sim.Options{})
	r := runIn(t, h, "smi")
	if r.code != 6 || !strings.Contains(r.err, "no ") || !strings.Contains(r.err, "ttmon-sim") || strings.Count(r.err, "\n") != 1 || r.out != "" {
		t.Errorf("exit code %d, want 6; out %q, err %q", r.code, r.out, r.err)
	}
}

func TestBadArguments(t *testing.T) {
	h := start(t, sim.Options{Boards: "n150"})
	for _, c := range []struct {
		args []string
		code int
		says []string
	}{
		{[]string{"smi", "--query-device=temperature.asik", "--format=csv"}, 2, []string{"temperature.asik", "temperature.asic"}},
		{[]string{"smi", "-i", "7"}, 2, []string{`"7"`, "0"}},
		{[]string{"smi", "--jsno"}, 2, []string{"--jsno", "--json"}},
		{[]string{"smi", "-q", "-d", "TEMPERATUR"}, 2, []string{"TEMPERATUR", "TEMPERATURE"}},
		{[]string{"smi", "--query-device=index", "--format=xml"}, 2, []string{"xml", "csv"}},
		{[]string{"smi", "-l", "never"}, 2, []string{"never"}},
		{[]string{"smy"}, 2, []string{"smy", "smi"}},
		{[]string{"smi", "--reset", "0"}, 3, []string{"reset"}},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			r := runIn(t, h, c.args...)
			if r.code != c.code || strings.Count(r.err, "\n") != 1 || r.out != "" {
				t.Errorf("exit code %d, want %d and one line; out %q, err %q", r.code, c.code, r.out, r.err)
			}
			for _, word := range c.says {
				if !strings.Contains(r.err, word) {
					t.Errorf("%q does not name %q", r.err, word)
				}
			}
		})
	}
}

// TestSelect: a device is found by any of its names.
func TestSelect(t *testing.T) {
	h := start(t, sim.Options{Boards: "n150,p150a,p300c"})
	all := smi(t, h, 0)
	d := device(t, all, 1)
	for _, name := range []string{"1", d.BusID, strings.TrimPrefix(d.BusID, "0000:"), d.Serial.V, d.ASICID.V, strings.ToLower(d.ASICID.V)} {
		s := smi(t, h, 0, "-i", name)
		if len(s.Devices) != 1 || s.Devices[0].BusID != d.BusID {
			t.Errorf("-i %s gives %d devices", name, len(s.Devices))
		}
	}
	// Both chips of a p300 have the board's serial number.
	if s := smi(t, h, 0, "-i", device(t, all, 2).Serial.V); len(s.Devices) != 2 {
		t.Errorf("-i with a p300's serial gives %d devices, want 2", len(s.Devices))
	}
	if s := smi(t, h, 0, "-i", "2,0"); len(s.Devices) != 2 {
		t.Errorf("-i 2,0 gives %d devices", len(s.Devices))
	}
}

// TestIndexOrder: the number shown is the kernel's, in the kernel's order.
func TestIndexOrder(t *testing.T) {
	h := start(t, sim.Options{Boards: "12xp150a"})
	s := smi(t, h, 0)
	for i := range s.Devices {
		if s.Devices[i].Index != i {
			t.Errorf("place %d has device %d", i, s.Devices[i].Index)
		}
	}
	r := runIn(t, h, "smi", "--query-device=index", "--format=csv,noheader")
	if got := strings.Fields(r.out); len(got) != 12 || got[2] != "2" || got[10] != "10" {
		t.Errorf("the query's order: %v", got)
	}
}

// TestGalaxy: 32 chips with tray and slot.
func TestGalaxy(t *testing.T) {
	for _, boards := range []string{"galaxy-wormhole", "galaxy-blackhole"} {
		t.Run(boards, func(t *testing.T) {
			s := smi(t, start(t, sim.Options{Boards: boards}), 0)
			if len(s.Devices) != 32 {
				t.Fatalf("%d devices", len(s.Devices))
			}
			for i := range s.Devices {
				d := &s.Devices[i]
				if d.Tray != i/8+1 || d.Slot != i%8+1 {
					t.Errorf("device %d on %s: tray %d, slot %d", i, d.BusID, d.Tray, d.Slot)
				}
				// One lane is all that most chips of a tray have.
				if assess.SlowLink(d) || d.PCIe.Width.V != map[bool]int{true: 8, false: 1}[d.Slot == 6] {
					t.Errorf("device %d, slot %d: width %+v, slow: %v", i, d.Slot, d.PCIe.Width, assess.SlowLink(d))
				}
			}
		})
	}
}

// TestSaysSimulated: the simulator's numbers cannot be mistaken for real ones.
func TestSaysSimulated(t *testing.T) {
	h := start(t, sim.Options{Boards: "n150"})
	if s := smi(t, h, 0); !s.Simulated {
		t.Error("the snapshot does not say that it is simulated")
	}
	for _, args := range [][]string{{"smi"}, {"smi", "-q"}, {"smi", "-L"}, {"smi", "--query-device=simulated", "--format=csv,noheader"}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			if r := runIn(t, h, args...); !strings.Contains(strings.ToLower(r.out+r.err), "simulated") && !strings.Contains(r.out, "yes") && !strings.Contains(r.out, "true") {
				t.Errorf("%v does not say that the host is simulated:\n%s", args, r.out)
			}
		})
	}
}

// TestBoards: each board of the catalogue is recognised, with its chips.
func TestBoards(t *testing.T) {
	for boards, want := range map[string]struct {
		devices, chips int
		arch           model.Arch
	}{
		"n150": {1, 1, model.Wormhole}, "n300": {1, 2, model.Wormhole},
		"p100a": {1, 1, model.Blackhole}, "p150a": {1, 1, model.Blackhole}, "p150b": {1, 1, model.Blackhole},
		"p150c": {1, 1, model.Blackhole}, "p300a": {2, 1, model.Blackhole}, "p300b": {2, 1, model.Blackhole}, "p300c": {2, 1, model.Blackhole},
	} {
		t.Run(boards, func(t *testing.T) {
			s := smi(t, start(t, sim.Options{Boards: boards}), 0)
			if len(s.Devices) != want.devices {
				t.Fatalf("%d devices, want %d", len(s.Devices), want.devices)
			}
			d := &s.Devices[0]
			wantValue(t, "board", d.Board, boards)
			if len(d.Chips) != want.chips || d.Arch != want.arch {
				t.Errorf("%d chips, %s", len(d.Chips), d.Arch)
			}
			if !d.Memory.Pools[model.DRAM].Total.Known() {
				t.Error("no DRAM capacity")
			}
		})
	}
}
