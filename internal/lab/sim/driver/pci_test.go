package driver

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ttmon/ttmon/internal/lab/sim/tree"
)

// TestGalaxyLinks: of each tray of a Galaxy, the sixth chip has eight lanes and
// the others have one; that is all they can do.
func TestGalaxyLinks(t *testing.T) {
	for _, boards := range []string{"galaxy-wormhole", "galaxy-blackhole"} {
		d := newDriver(t, boards, "2.10.0", "", Surroundings{})
		for _, dev := range d.Devices() {
			t.Run(boards+" "+dev.BDF(), func(t *testing.T) {
				want := "1\n"
				if strings.HasSuffix(dev.BDF(), "6:00.0") {
					want = "8\n"
				}
				dir := "/sys/bus/pci/devices/" + dev.BDF()
				now, _ := show(t, d, dir+"/current_link_width")
				most, _ := show(t, d, dir+"/max_link_width")
				if now != want || most != want {
					t.Errorf("width %q of %q, want %q of both", now, most, want)
				}
			})
		}
	}
}

// TestPCIFiles checks what the PCI core shows of a function.
func TestPCIFiles(t *testing.T) {
	d := newDriver(t, "n150,p300c", "2.10.0", "", Surroundings{Nodes: []string{"0-3", "4-7"}})
	for _, tt := range []struct{ bdf, file, want string }{
		{"0000:41:00.0", "vendor", "0x1e52"},
		{"0000:41:00.0", "device", "0x401e"},
		{"0000:41:00.0", "subsystem_vendor", "0x1e52"},
		{"0000:41:00.0", "subsystem_device", "0x0018"},
		{"0000:41:00.0", "class", "0x120000"},
		{"0000:41:00.0", "revision", "0x01"},
		{"0000:41:00.0", "numa_node", "0"},
		{"0000:41:00.0", "local_cpulist", "0-3"},
		{"0000:41:00.0", "current_link_speed", "16.0 GT/s PCIe"},
		{"0000:41:00.0", "max_link_width", "16"},
		{"0000:41:00.0", "power/control", "on"},
		{"0000:41:00.0", "power/runtime_status", "active"},
		{"0000:42:00.0", "device", "0xb140"},
		{"0000:42:00.0", "subsystem_device", "0x0046"},
		{"0000:42:00.0", "revision", "0x00"},
		{"0000:42:00.0", "numa_node", "1"},
		{"0000:43:00.0", "numa_node", "1"}, // the same board
		{"0000:42:00.0", "local_cpulist", "4-7"},
		{"0000:42:00.0", "max_link_speed", "32.0 GT/s PCIe"},
		{"0000:42:00.0", "modalias", "pci:v00001E52d0000B140sv00001E52sd00000046bc12sc00i00"},
		{"0000:42:00.0", "local_cpus", "f0"},
		{"0000:42:00.0", "enable", "1"},
		{"0000:40:01.1", "class", "0x060400"},
		{"0000:40:01.1", "max_link_speed", "32.0 GT/s PCIe"},
		{"0000:40:01.1", "secondary_bus_number", "65"},
		{"0000:40:01.1", "modalias", "pci:v00001022d000014ABsv00000000sd00000000bc06sc04i00"},
		{"0000:42:00.0", "uevent", "DRIVER=tenstorrent\nPCI_CLASS=120000\nPCI_ID=1E52:B140\nPCI_SUBSYS_ID=1E52:0046\nPCI_SLOT_NAME=0000:42:00.0\nMODALIAS=pci:v00001E52d0000B140sv00001E52sd00000046bc12sc00i00"},
	} {
		t.Run(tt.bdf+" "+tt.file, func(t *testing.T) {
			if text, e := show(t, d, "/sys/bus/pci/devices/"+tt.bdf+"/"+tt.file); text != tt.want+"\n" || e != 0 {
				t.Errorf("%s/%s: %q %v, want %q", tt.bdf, tt.file, text, e, tt.want)
			}
		})
	}
	text, _ := show(t, d, "/sys/bus/pci/devices/0000:41:00.0/resource")
	if strings.Count(text, "\n") != 13 {
		t.Errorf("resource has %d lines, want 13", strings.Count(text, "\n"))
	}
	for name, size := range map[string]uint64{"resource0": 512 << 20, "resource2": 1 << 20, "resource4": 32 << 20} {
		t.Run(name, func(t *testing.T) {
			f := lookUp(d, "/sys/bus/pci/devices/0000:41:00.0/"+name).(*tree.File)
			if f.Size != size || f.Mode != 0o600 {
				t.Errorf("%d bytes, mode %o", f.Size, f.Mode)
			}
		})
	}
	for _, name := range []string{"correctable", "nonfatal", "fatal"} {
		text, _ := show(t, d, "/sys/bus/pci/devices/0000:41:00.0/aer_dev_"+name)
		if !strings.Contains(text, "TOTAL_ERR_") || !strings.HasSuffix(text, " 0\n") {
			t.Errorf("aer_dev_%s: %q", name, text)
		}
	}
}

// TestConfigSpace: what tools read in the configuration space is what the
// other files say.
func TestConfigSpace(t *testing.T) {
	d := newDriver(t, "n150", "2.10.0", "", Surroundings{})
	dev := d.devices[0]
	if err := dev.SetLink(3, 8); err != nil {
		t.Fatal(err)
	}
	file := lookUp(d, "/sys/bus/pci/devices/0000:41:00.0/config").(*tree.File)
	c, _ := file.Show(tree.Caller{})
	at := func(offset, size int) (v uint64) {
		for i := range size {
			v |= uint64(c[offset+i]) << (8 * i)
		}
		return v
	}
	for what, got := range map[string][2]uint64{
		"vendor and device": {at(0, 4), 0x401E1E52}, "class and revision": {at(8, 4), 0x12000001}, "subsystem": {at(0x2C, 4), 0x00181E52},
	} {
		t.Run(what, func(t *testing.T) {
			if got[0] != got[1] {
				t.Errorf("%#x, want %#x", got[0], got[1])
			}
		})
	}
	dev.SetDead(true)
	c, _ = file.Show(tree.Caller{})
	if len(c) != headerSize || at(0, 8) != 1<<64-1 || at(headerSize-4, 4) != 0xFFFFFFFF {
		t.Errorf("of a dead chip: %d bytes, %x", len(c), c[:8])
	}
	for name, want := range map[string]string{
		"current_link_speed": "Unknown", "current_link_width": "63", "max_link_speed": "64.0 GT/s PCIe", "max_link_width": "63",
		"device": "0x401e",
	} {
		t.Run(name, func(t *testing.T) {
			if text, _ := show(t, d, "/sys/bus/pci/devices/0000:41:00.0/"+name); text != want+"\n" {
				t.Errorf("%s of a dead chip: %q, want %q", name, text, want)
			}
		})
	}
}

// TestDeadWhenBound: the driver makes no telemetry for a chip that does not
// answer, and the PCI core's files stay the ones they were.
func TestDeadWhenBound(t *testing.T) {
	d := newDriver(t, "p150a", "2.10.0", "", Surroundings{})
	dev, pci := d.devices[0], lookUp(d, "/sys/bus/pci/devices/0000:41:00.0/current_link_width")
	dev.SetDead(true)
	if err := dev.Rebind(); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(names(t, d, "/sys/class/tenstorrent/tenstorrent!0"), " "); got != "dev device pcie_perf_counters power subsystem uevent" {
		t.Errorf("class device: %s", got)
	}
	if len(names(t, d, "/sys/bus/pci/devices/0000:41:00.0/hwmon")) > 0 {
		t.Error("there is hwmon")
	}
	if text, _ := show(t, d, class0+"pcie_perf_counters/slv_rd_data_word_sent0"); text != "4294967295\n" {
		t.Errorf("counter: %q", text)
	}
	if lookUp(d, "/sys/bus/pci/devices/0000:41:00.0/current_link_width") != pci {
		t.Error("an open file of the PCI core would have died")
	}
	dev.SetDead(false)
	if err := dev.Rebind(); err != nil {
		t.Fatal(err)
	}
	if text, _ := show(t, d, class0+"tt_card_type"); text != "p150a\n" {
		t.Errorf("back on the bus: %q", text)
	}
}

func TestPCITable(t *testing.T) {
	d := newDriver(t, "p150a", "2.10.0", "", Surroundings{Hwmon: []int{0}})
	line := func(driver string) string {
		return "4009\t102214ab\t20" + strings.Repeat("\t               0", 14) + "\t\n" +
			"4100\t1e52b140\t40\t      200000000c\t               0\t      202000000c\t               0\t      280000000c\t               0\t               0" +
			"\t        20000000\t               0\t          100000\t               0\t       800000000\t               0\t               0\t" + driver + "\n"
	}
	if diff := cmp.Diff(line("tenstorrent"), string(d.PCITable())); diff != "" {
		t.Errorf("bound (-want +got):\n%s", diff)
	}
	if err := d.Reload(Version{}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(line(""), string(d.PCITable())); diff != "" {
		t.Errorf("unbound (-want +got):\n%s", diff)
	}
	if err := d.devices[0].Unplug(); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(d.PCITable()), "1e52") {
		t.Error("a board that was pulled is in the table")
	}
}

func TestCPUMask(t *testing.T) {
	for list, want := range map[string]string{"0": "1", "0-3": "f", "0-3,32": "1,0000000f", "": "0", "64": "1,00000000,00000000"} {
		t.Run(list, func(t *testing.T) {
			if got := cpuMask(list); got != want {
				t.Errorf("%q: %s, want %s", list, got, want)
			}
		})
	}
}

func TestLinkOfADevice(t *testing.T) {
	d := newDriver(t, "p150a", "2.10.0", "", Surroundings{})
	dev := d.devices[0]
	for _, bad := range [][2]int{{0, 16}, {6, 16}, {5, 0}, {5, 32}} {
		t.Run(fmt.Sprint(bad), func(t *testing.T) {
			if dev.SetLink(bad[0], bad[1]) == nil {
				t.Errorf("generation %d width %d was taken", bad[0], bad[1])
			}
		})
	}
	if err := dev.SetLink(1, 1); err != nil {
		t.Fatal(err)
	}
	if text, _ := show(t, d, class0+"device/current_link_speed"); text != "2.5 GT/s PCIe\n" {
		t.Errorf("speed %q", text)
	}
}

func TestRelative(t *testing.T) {
	for _, tt := range []struct{ from, to, want string }{
		{"class/hwmon", "devices/a/b", "../../devices/a/b"},
		{"devices/a/b/hwmon/hwmon3", "class/hwmon", "../../../../../class/hwmon"},
		{"devices/a", "devices/a/b", "b"},
		{"bus/pci/devices", "devices/a", "../../../devices/a"},
	} {
		t.Run(tt.from, func(t *testing.T) {
			if got := relative(tt.from, tt.to); got != tt.want {
				t.Errorf("from %s to %s: %s, want %s", tt.from, tt.to, got, tt.want)
			}
		})
	}
}

// TestConversions are the driver's own, overflows included.
func TestConversions(t *testing.T) {
	for _, tt := range []struct {
		name     string
		f        func(uint32) uint32
		in, want uint32
	}{
		{"45.5 °C", fixed16, 0x2D8000, 45500},
		{"-4.5 °C", fixed16, 0xFFFB8000, 65531500},
		{"no answer", fixed16, 0xFFFFFFFF, 65535999},
		{"sensor error", fixed16, 0x80000000, 32768000},
		{"amperes", milli, 37, 37000},
		{"amperes, no answer", milli, 0xFFFFFFFF, 4294966296},
		{"watts", micro, 42, 42000000},
		{"watts, no answer", micro, 0xFFFFFFFF, 4293967296},
		{"limits", upper, 950<<16 | 700, 950},
		{"legacy watts, no answer", low(micro), 0xFFFFFFFF, 1110490560},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.f(tt.in); got != tt.want {
				t.Errorf("%d, want %d", got, tt.want)
			}
		})
	}
	for got, want := range map[string]string{
		ethernet(0x0006E003, 0): "6.14.3", version4(0x120B0000, 0): "18.11.0.0", hex64(0x01000186, 0x11905001): "0100018611905001",
		cardType(0x00000402, 0): "p150a", cardType(0x12345678, 0): "unknown", ethernet(^uint32(0), 0): "255.15.4095",
	} {
		t.Run(want, func(t *testing.T) {
			if got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}
