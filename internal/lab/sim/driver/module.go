package driver

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
	"syscall"

	"github.com/ttmon/ttmon/internal/lab/sim/tree"
)

// module makes what is in /sys/module/tenstorrent. The directory itself stays
// the same one, for it may be mounted.
func (d *Driver) module() {
	m := d.Root.At("sys/module/tenstorrent")
	for _, name := range m.Names() {
		m.Remove(name)
	}
	for name, text := range map[string]string{
		"version": d.version.String(), "srcversion": srcversion(d.version),
		"initstate": "live", "taint": "OE", "coresize": strconv.Itoa(CoreSize), "initsize": "0",
	} {
		m.Add(name, tree.Text(text))
	}
	m.Add("uevent", &tree.File{Mode: 0o200, Size: 4096})
	m.Dir("holders")
	m.Dir("drivers").Add("pci:tenstorrent", &tree.Link{Target: "../../../bus/pci/drivers/tenstorrent"})
	m.Add("refcnt", tree.Attr(func() ([]byte, syscall.Errno) {
		return fmt.Appendln(nil, d.OpenCount()), 0
	}))
	for _, p := range []struct {
		name, text string
		since      Version
		mode       uint32
	}{
		{"max_devices", "32", always, 0o444},
		{"dma_address_bits", "0", always, 0o444},
		{"reset_limit", "10", always, 0o444},
		{"auto_reset_timeout", "10", always, 0o444},
		{"power_policy", "Y", v260, 0o444},
		{"idle_power_down_grace_ms", "5000", v290, 0o644},
	} {
		if d.version.has(p.since) {
			f := tree.Text(p.text)
			f.Mode = p.mode
			m.Dir("parameters").Add(p.name, f)
		}
	}
}

// srcversion is the hash modpost would print; that of 2.10.1-pre is the one
// seen in the field.
func srcversion(v Version) string {
	if v.String() == "2.10.1-pre" {
		return "1DD697C309215E0B2069ECE"
	}
	sum := sha256.Sum256([]byte("tt-kmd " + v.String()))
	return fmt.Sprintf("%X", sum)[:23]
}

// CoreSize is the module's size in bytes.
const CoreSize = 163840

// Major is the driver's character device number.
func (d *Driver) Major() int { return d.major }

// OpenCount is the number of open descriptions of all device nodes, those of
// devices that are gone included: what holds the module.
func (d *Driver) OpenCount() int { return int(d.open.Load()) }

// unrelatedHwmon adds a sensor that has nothing to do with us where the host
// has none, so that a reader who takes the first hwmon it finds is found out.
// It returns the next free number.
func (d *Driver) unrelatedHwmon() int {
	if len(d.host.Hwmon) > 0 {
		return max(slices.Max(d.host.Hwmon)+2, 3)
	}
	a := address{bus: 0x40, root: "pci0000:40"}
	if slices.Contains(d.host.Roots, a.root) {
		return 3 // a host with sockets that big and no sensors: leave it so
	}
	const bdf = "0000:40:18.3"
	dir := "devices/pci0000:40/" + bdf
	d.sensor = &function{at: dir, vendor: 0x1022, device: 0x1463, class: 0x060000, node: -1, cpus: "0", driver: noDriver}
	pci := d.sensor.add(d.Root)
	mon := pci.At("hwmon/hwmon0")
	mon.Add("name", tree.Text("k10temp"))
	mon.Add("temp1_input", tree.Text("41250"))
	mon.Add("temp1_label", tree.Text("Tctl"))
	mon.Add("device", &tree.Link{Target: "../../../" + bdf})
	mon.Add("subsystem", &tree.Link{Target: relative(dir+"/hwmon/hwmon0", "class/hwmon")})
	sys := d.Root.Dir("sys")
	sys.At("class/hwmon").Add("hwmon0", &tree.Link{Target: "../../" + dir + "/hwmon/hwmon0"})
	return 3
}
