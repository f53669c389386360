package driver

import (
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/sim/tree"
)

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
		{"0000:42:00.0", "uevent", "DRIVER=tenstorrent\nPCI_CLASS=120000\nPCI_ID=1E52:B140\nPCI_SUBSYS_ID=1E52:0046\nPCI_SLOT_NAME=0000:42:00.0"},
	} {
		if text, e := show(t, d, "/sys/bus/pci/devices/"+tt.bdf+"/"+tt.file); text != tt.want+"\n" || e != 0 {
			t.Errorf("%s/%s: %q %v, want %q", tt.bdf, tt.file, text, e, tt.want)
		}
	}
	text, _ := show(t, d, "/sys/bus/pci/devices/0000:41:00.0/resource")
	if strings.Count(text, "\n") != 13 {
		t.Errorf("resource has %d lines, want 13", strings.Count(text, "\n"))
	}
	for name, size := range map[string]uint64{"resource0": 512 << 20, "resource2": 1 << 20, "resource4": 32 << 20} {
		f := lookUp(d, "/sys/bus/pci/devices/0000:41:00.0/"+name).(*tree.File)
		if f.Size != size || f.Mode != 0o600 {
			t.Errorf("%s: %d bytes, mode %o", name, f.Size, f.Mode)
		}
	}
	for _, name := range []string{"correctable", "nonfatal", "fatal"} {
		text, _ := show(t, d, "/sys/bus/pci/devices/0000:41:00.0/aer_dev_"+name)
		if !strings.Contains(text, "TOTAL_ERR_") || !strings.HasSuffix(text, " 0\n") {
			t.Errorf("aer_dev_%s: %q", name, text)
		}
	}
}

func TestLinkOfADevice(t *testing.T) {
	d := newDriver(t, "p150a", "2.10.0", "", Surroundings{})
	dev := d.devices[0]
	for _, bad := range [][2]int{{0, 16}, {6, 16}, {5, 0}, {5, 32}} {
		if dev.SetLink(bad[0], bad[1]) == nil {
			t.Errorf("generation %d width %d was taken", bad[0], bad[1])
		}
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
		if got := relative(tt.from, tt.to); got != tt.want {
			t.Errorf("from %s to %s: %s, want %s", tt.from, tt.to, got, tt.want)
		}
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
		if got := tt.f(tt.in); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
	for got, want := range map[string]string{
		ethernet(0x0006E003, 0): "6.14.3", version4(0x120B0000, 0): "18.11.0.0", hex64(0x01000186, 0x11905001): "0100018611905001",
		cardType(0x00000402, 0): "p150a", cardType(0x12345678, 0): "unknown", ethernet(^uint32(0), 0): "255.15.4095",
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
