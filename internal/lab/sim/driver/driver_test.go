package driver

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ttmon/ttmon/internal/lab/sim/chip"
	"github.com/ttmon/ttmon/internal/lab/sim/tree"
)

func newDriver(t *testing.T, boards, version, firmware string, host Surroundings) *Driver {
	t.Helper()
	specs, err := chip.ParseBoards(boards)
	if err != nil {
		t.Fatal(err)
	}
	v, err := ParseVersion(version)
	if err != nil {
		t.Fatal(err)
	}
	fw, err := chip.ParseFirmware(firmware)
	if err != nil {
		t.Fatal(err)
	}
	return New(Options{Boards: specs, Version: v, Firmware: fw, Frozen: true, Host: host})
}

// lookUp follows a path through the tree, with its links.
func lookUp(d *Driver, path string) tree.Node {
	var node tree.Node = d.Root
	parts := strings.Split(strings.Trim(path, "/"), "/")
	var at []string
	for i, p := range parts {
		if p == ".." {
			return lookUp(d, strings.Join(append(slices.Clone(at[:len(at)-1]), parts[i+1:]...), "/"))
		}
		dir, ok := node.(*tree.Dir)
		if !ok {
			return nil
		}
		node = dir.Get(p)
		if l, ok := node.(*tree.Link); ok && i < len(parts)-1 {
			rest := append(append(slices.Clone(at), strings.Split(l.Target, "/")...), parts[i+1:]...)
			return lookUp(d, strings.Join(rest, "/"))
		}
		at = append(at, p)
	}
	return node
}

func show(t *testing.T, d *Driver, path string) (string, syscall.Errno) {
	t.Helper()
	f, ok := lookUp(d, path).(*tree.File)
	if !ok {
		t.Fatalf("no file %s", path)
	}
	b, e := f.Show(tree.Caller{})
	return string(b), e
}

func names(t *testing.T, d *Driver, path string) []string {
	t.Helper()
	node := lookUp(d, path)
	if l, ok := node.(*tree.Link); ok {
		node = lookUp(d, path[:strings.LastIndex(path, "/")]+"/"+l.Target)
	}
	if dir, ok := node.(*tree.Dir); ok {
		return dir.Names()
	}
	return nil
}

// TestFilesByVersion is the table of what came when, for both architectures:
// files that are there since a version and not a version before.
func TestFilesByVersion(t *testing.T) {
	const class, mon, pids = "/sys/class/tenstorrent/tenstorrent!0/", "/sys/class/hwmon/hwmon3/", "/proc/driver/tenstorrent/0/pids"
	versions := []string{"1.34", "2.0.0", "2.1.0", "2.2.0", "2.3.0", "2.4.0", "2.5.0", "2.6.0", "2.7.0", "2.8.0", "2.9.0", "2.10.0", "2.10.1"}
	for _, tt := range []struct{ file, wh, bh string }{
		{class + "dev", "1.34", "1.34"},
		{class + "tt_aiclk", "1.34", "1.34"},
		{class + "tt_serial", "1.34", "1.34"},
		{class + "tt_card_type", "1.34", "1.34"},
		{class + "tt_fw_bundle_ver", "1.34", "1.34"},
		{class + "tt_m3app_fw_ver", "1.34", "1.34"},
		{class + "tt_arc_fw_ver", "1.34", ""},
		{class + "tt_eth_fw_ver", "1.34", ""},
		{class + "tt_m3bl_fw_ver", "1.34", ""},
		{class + "tt_ttflash_ver", "1.34", ""},
		{class + "tt_asic_id", "2.3.0", "2.1.0"},
		{class + "tt_heartbeat", "2.7.0", "2.7.0"},
		{class + "tt_therm_trip_count", "", "2.7.0"},
		{class + "pcie_perf_counters/mst_rd_data_word_received1", "2.0.0", "2.0.0"},
		{mon + "temp1_input", "1.34", "1.34"},
		{mon + "power1_label", "1.34", "1.34"},
		{mon + "temp1_max", "1.34", "2.9.0"},
		{mon + "in0_max", "1.34", "2.9.0"},
		{mon + "curr1_max", "1.34", "2.9.0"},
		{mon + "power1_max", "1.34", "2.9.0"},
		{mon + "fan1_input", "", "2.0.0"},
		{mon + "fan1_label", "", "2.0.0"},
		{pids, "2.5.0", "2.5.0"},
		{"/sys/module/tenstorrent/parameters/power_policy", "2.6.0", "2.6.0"},
		{"/sys/module/tenstorrent/parameters/idle_power_down_grace_ms", "2.9.0", "2.9.0"},
		{"/sys/module/tenstorrent/parameters/auto_reset_timeout", "1.34", "1.34"},
	} {
		t.Run(tt.file, func(t *testing.T) {
			for board, since := range map[string]string{"n150": tt.wh, "p150a": tt.bh} {
				there := false
				for _, v := range versions {
					there = there || v == since
					d := newDriver(t, board, v, "", Surroundings{})
					if got := lookUp(d, tt.file) != nil; got != there {
						t.Errorf("%s %s: %s there: %v, want since %q", board, v, tt.file, got, since)
					}
				}
			}
		})
	}
}

func TestByIDLinks(t *testing.T) {
	for _, tt := range []struct {
		version, firmware string
		want              bool
	}{{"2.5.0", "", false}, {"2.6.0", "", true}, {"2.10.0", "18.3", false}} {
		t.Run(tt.version, func(t *testing.T) {
			d := newDriver(t, "p150a", tt.version, tt.firmware, Surroundings{})
			links := names(t, d, "/dev/tenstorrent/by-id")
			if got := len(links) == 1 && strings.HasPrefix(links[0], "blackhole-"); got != tt.want {
				t.Errorf("driver %s, firmware %q: by-id holds %v", tt.version, tt.firmware, links)
			}
		})
	}
}

// TestWithoutTags has the shapes that firmware without some tags leads to.
func TestWithoutTags(t *testing.T) {
	const class, mon = "/sys/class/tenstorrent/tenstorrent!0", "/sys/class/hwmon/hwmon3"
	bare := "dev device pcie_perf_counters power subsystem uevent"
	labels := "curr1_label device in0_label name power power1_label subsystem temp1_label uevent"
	for _, tt := range []struct {
		board, version, firmware, class, hwmon string
	}{
		{"p150a", "2.10.0", "no-telemetry", bare, ""},
		{"n150", "2.10.0", "no-telemetry", bare, ""},
		{"n150", "2.10.0", "labels-only", bare, labels},
		{"n150", "2.10.0", "18.3", bare, ""}, // old firmware loses hwmon with 2.9
	} {
		t.Run(tt.board+" "+tt.firmware, func(t *testing.T) {
			d := newDriver(t, tt.board, tt.version, tt.firmware, Surroundings{})
			if got := strings.Join(names(t, d, class), " "); got != tt.class {
				t.Errorf("%+v: class device holds %s", tt, got)
			}
			if got := strings.Join(names(t, d, mon), " "); got != tt.hwmon {
				t.Errorf("%+v: hwmon holds %q, want %q", tt, got, tt.hwmon)
			}
		})
	}
	d := newDriver(t, "p150a", "2.10.0", "fanless", Surroundings{})
	if lookUp(d, mon+"/fan1_label") == nil || lookUp(d, mon+"/fan1_input") != nil {
		t.Error("fanless firmware must have the label and not the value")
	}
	for version, want := range map[string]errno{"2.10.0": 0, "2.11.0": syscall.ENODATA} {
		t.Run(version, func(t *testing.T) {
			d = newDriver(t, "p150a", version, "", Surroundings{})
			d.devices[0].chip.SetWord(chip.FanRPM, 0xFFFF_FFFF)
			if text, e := show(t, d, mon+"/fan1_input"); e != want {
				t.Errorf("no fan reads as %q, %v", text, e)
			}
		})
	}
	d = newDriver(t, "n150", "2.8.0", "18.3", Surroundings{})
	if lookUp(d, class+"/tt_aiclk") != nil || lookUp(d, mon+"/temp1_input") == nil {
		t.Error("old Wormhole firmware under 2.8 has no tt_* but its legacy hwmon")
	}
	d = newDriver(t, "n150", "2.1.0", "18.3", Surroundings{})
	if text, e := show(t, d, class+"/tt_aiclk"); text != "500\n" || e != 0 {
		t.Errorf("legacy clock %q %v", text, e)
	}
}

// TestMissingTagByVersion is what a read gives where the file is there and
// the tag is not.
func TestMissingTagByVersion(t *testing.T) {
	for _, tt := range []struct {
		version string
		text    string
		errno   syscall.Errno
	}{
		{"2.1.0", "0\n", 0}, {"2.2.0", "", syscall.EINVAL}, {"2.8.0", "", syscall.EINVAL}, {"2.9.0", "", syscall.ENODATA},
	} {
		t.Run(tt.version, func(t *testing.T) {
			d := newDriver(t, "p150a", tt.version, "", Surroundings{})
			d.devices[0].chip.SetFirmware(chip.Firmware{Omit: []chip.Tag{chip.AIClk}})
			text, e := show(t, d, "/sys/class/tenstorrent/tenstorrent!0/tt_aiclk")
			if text != tt.text || e != tt.errno {
				t.Errorf("%q %v, want %q %v", text, e, tt.text, tt.errno)
			}
		})
	}
	d := newDriver(t, "p150a", "2.10.0", "omit=62", Surroundings{})
	if _, e := show(t, d, "/sys/class/tenstorrent/tenstorrent!0/tt_asic_id"); e != syscall.ENODATA {
		t.Errorf("tt_asic_id without its low word: %v, want ENODATA", e)
	}
}

func TestLegacyTemperature(t *testing.T) {
	d := newDriver(t, "n150", "2.8.0", "", Surroundings{})
	d.devices[0].chip.SetWord(chip.ASICTemp, 45<<16|0x9000) // 45.5625
	if text, _ := show(t, d, "/sys/class/hwmon/hwmon3/temp1_input"); text != "45562\n" {
		t.Errorf("sixteenths of a degree read %q, want 45562", text)
	}
	d.devices[0].SetDead(true)
	if text, _ := show(t, d, "/sys/class/hwmon/hwmon3/temp1_input"); text != "4095937\n" {
		t.Errorf("dead legacy temperature %q", text)
	}
}

func TestGalaxyOrdinals(t *testing.T) {
	for _, tt := range []struct {
		board, version string
		want           map[int]string // bus by index
	}{
		{"galaxy-wormhole", "2.8.0", map[int]string{0: "c1", 7: "c8", 8: "81", 16: "01", 24: "41", 31: "48"}},
		{"galaxy-blackhole", "2.10.0", map[int]string{0: "01", 8: "41", 15: "48", 16: "c1", 24: "81", 31: "88"}},
		{"galaxy-wormhole", "2.7.0", map[int]string{0: "01", 8: "41", 16: "81", 24: "c1", 31: "c8"}}, // lowest free
	} {
		t.Run(tt.board+" "+tt.version, func(t *testing.T) {
			d := newDriver(t, tt.board, tt.version, "", Surroundings{})
			got := make(map[int]string)
			for index := range tt.want {
				dev, err := d.Device(fmt.Sprint(index))
				if err != nil {
					t.Fatal(err)
				}
				got[index] = dev.BDF()[5:7]
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s %s (-want +got):\n%s", tt.board, tt.version, diff)
			}
		})
	}
}

func TestSerialsAndASICs(t *testing.T) {
	d := newDriver(t, "2xn300,p300c,p150a", "2.10.0", "", Surroundings{})
	if n := len(d.devices); n != 5 {
		t.Fatalf("%d devices, want 5: an n300 has one endpoint, a p300 two", n)
	}
	serials, asics := make(map[string][]int), make(map[string]bool)
	for i := range d.devices {
		class := fmt.Sprintf("/sys/class/tenstorrent/tenstorrent!%d/", i)
		serial, _ := show(t, d, class+"tt_serial")
		asic, _ := show(t, d, class+"tt_asic_id")
		serials[serial], asics[asic] = append(serials[serial], i), true
	}
	if len(serials) != 4 || len(asics) != 5 {
		t.Errorf("serials %v, %d ASIC ids; want four boards and five chips", serials, len(asics))
	}
	g := newDriver(t, "galaxy-wormhole", "2.10.0", "", Surroundings{})
	if text, _ := show(t, g, "/sys/class/tenstorrent/tenstorrent!31/tt_serial"); text != "0100035100000000\n" {
		t.Errorf("Galaxy serial %q", text)
	}
}

// TestAwayFromTheHost: names that the host has are not taken.
func TestAwayFromTheHost(t *testing.T) {
	for _, tt := range []struct {
		name, board string
		host        Surroundings
		want        string // link of device 0 in class/tenstorrent
	}{
		{"free", "n150", Surroundings{Roots: []string{"pci0000:00"}}, "pci0000:40/0000:40:01.1/0000:41:00.0"},
		{"root taken", "n150", Surroundings{Roots: []string{"pci0000:00", "pci0000:40"}}, "pci0001:40/0001:40:01.1/0001:41:00.0"},
		{"address taken", "n150", Surroundings{PCI: []string{"0000:41:00.0"}}, "pci0001:40/0001:40:01.1/0001:41:00.0"},
		{"tray of low buses", "galaxy-blackhole", Surroundings{Roots: []string{"pci0000:00"}}, "pci0000:01/0000:01:00.0"},
		{"tray of low buses, free", "galaxy-blackhole", Surroundings{}, "pci0000:00/0000:00:01.1/0000:01:00.0"},
		{"server", "galaxy-blackhole", Surroundings{Roots: []string{"pci0000:00", "pci0000:40", "pci0000:80", "pci0000:c0"}}, "pci0001:00/0001:00:01.1/0001:01:00.0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := newDriver(t, tt.board, "2.10.0", "", tt.host)
			link := lookUp(d, "/sys/class/tenstorrent/tenstorrent!0").(*tree.Link)
			if want := "../../devices/" + tt.want + "/tenstorrent/tenstorrent!0"; link.Target != want {
				t.Errorf("%s, want %s", link.Target, want)
			}
		})
	}
	d := newDriver(t, "n150", "2.10.0", "", Surroundings{Hwmon: []int{0, 1, 7}, Majors: []int{246, 245}})
	if lookUp(d, "/sys/class/hwmon/hwmon9/name") == nil || lookUp(d, "/sys/class/hwmon/hwmon0") != nil {
		t.Errorf("hwmon numbers %v: the host's are 0, 1 and 7", names(t, d, "/sys/class/hwmon"))
	}
	if text, _ := show(t, d, "/sys/class/tenstorrent/tenstorrent!0/dev"); text != "244:0\n" {
		t.Errorf("dev %q, want the first free major", text)
	}
}

// TestEveryLinkLeadsSomewhere walks the whole tree of a big host.
func TestEveryLinkLeadsSomewhere(t *testing.T) {
	d := newDriver(t, "galaxy-blackhole", "2.10.0", "", Surroundings{Roots: []string{"pci0000:00"}})
	links := 0
	var walk func(dir *tree.Dir, path string)
	walk = func(dir *tree.Dir, path string) {
		for _, name := range dir.Names() {
			switch n := dir.Get(name).(type) {
			case *tree.Dir:
				walk(n, path+"/"+name)
			case *tree.Link:
				links++
				if lookUp(d, path+"/"+n.Target) == nil && n.Target[len(n.Target)-7:] != "bus/pci" {
					t.Errorf("%s/%s leads nowhere: %s", path, name, n.Target)
				}
			}
		}
	}
	walk(d.Root, "")
	if links < 32*6 {
		t.Errorf("only %d links", links)
	}
}

func TestParseVersion(t *testing.T) {
	for _, tt := range []struct{ in, want string }{{"1.34", "1.34"}, {"2.10.1-pre", "2.10.1-pre"}, {"2.9.0-rc1", "2.9.0-rc1"}, {"2.10", "2.10"}} {
		t.Run(tt.in, func(t *testing.T) {
			v, err := ParseVersion(tt.in)
			if err != nil || v.String() != tt.want {
				t.Errorf("%q: %v %v", tt.in, v, err)
			}
		})
	}
	for _, bad := range []string{"", "2", "2.x", "1.33", "2.12.0", "3.0", "2.1.0.0", "-1.2", "2..1"} {
		if v, err := ParseVersion(bad); err == nil {
			t.Errorf("%q gave %v", bad, v)
		}
	}
}

func FuzzParseVersion(f *testing.F) {
	f.Add("2.10.1-pre")
	f.Add("1.34")
	f.Fuzz(func(t *testing.T, s string) {
		v, err := ParseVersion(s)
		if err == nil && (!v.AtLeast(Oldest) || v.Major > 2) {
			t.Errorf("%q gave %v", s, v)
		}
	})
}
