package driver

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"syscall"

	"github.com/ttmon/ttmon/internal/sim/chip"
	"github.com/ttmon/ttmon/internal/sim/tree"
)

// file is an attribute of this device: what show prints, unless the device is
// in trouble or the file was told to print something else.
func (d *Device) file(name string, k kind, show func() (string, errno)) *tree.File {
	return tree.Attr(func() ([]byte, syscall.Errno) {
		if e := d.gate(name, k); e != 0 {
			return nil, e
		}
		d.mu.Lock()
		text, fixed := d.texts[name]
		e := d.errs[name]
		d.mu.Unlock()
		if e != 0 {
			return nil, e
		}
		if !fixed {
			if text, e = show(); e != 0 {
				return nil, e
			}
		}
		return []byte(text + "\n"), 0
	})
}

func (d *Device) constant(name, text string) *tree.File {
	return d.file(name, static, func() (string, errno) { return text, 0 })
}

// classDevice is /sys/class/tenstorrent/tenstorrent!N.
func (d *Device) classDevice(at string) *tree.Dir {
	dir := powered()
	dir.Add("dev", d.constant("dev", d.devNumber()))
	dir.Add("uevent", tree.Text(fmt.Sprintf("MAJOR=%d\nMINOR=%d\nDEVNAME=tenstorrent/%d", d.driver.major, d.index, d.index)))
	dir.Add("device", &tree.Link{Target: "../../../" + d.BDF()})
	dir.Add("subsystem", &tree.Link{Target: relative(at, "class/tenstorrent")})
	v := d.driver.version
	if v.AtLeast(v200) {
		dir.Add("pcie_perf_counters", d.perfCounters())
	}
	for _, a := range attributes {
		if v.has(d.since(a.wh, a.bh)) && d.offers(a.tag) {
			dir.Add(a.name, d.attribute(a))
		}
	}
	return dir
}

// powered is a directory with the power files that every device has.
func powered() *tree.Dir {
	dir := &tree.Dir{}
	power := dir.Dir("power")
	power.Add("control", tree.Text("auto"))
	power.Add("runtime_status", tree.Text("unsupported"))
	return dir
}

// offers tells whether the driver makes a tt_* file for the tag: since 2.3
// only if the firmware has it, before that always.
func (d *Device) offers(tag chip.Tag) bool {
	v, f := d.driver.version, d.chip.Firmware()
	switch {
	case f.NoTelemetry:
		return false
	case v.AtLeast(v230):
		return d.chip.Publishes(tag)
	}
	return true
}

// word reads a telemetry word the way this version does.
func (d *Device) word(tag chip.Tag, legacy bool) (uint32, errno) {
	if d.allOnes(telemetry) {
		return 0xFFFFFFFF, 0
	}
	now := d.driver.clock.now()
	if legacy {
		return d.chip.LegacyWord(tag, now), 0
	}
	if w, ok := d.chip.Word(tag, now); ok {
		return w, 0
	}
	v := d.driver.Version()
	switch {
	case v.AtLeast(v290):
		return 0, syscall.ENODATA
	case v.AtLeast(v220):
		return 0, syscall.EINVAL
	}
	return 0, 0 // up to 2.1 a missing tag read as zero
}

func (d *Device) attribute(a attribute) *tree.File {
	legacy := d.wormhole() && !d.driver.version.AtLeast(v220)
	mask := ^uint32(0)
	if legacy && a.legacy != 0 {
		mask = a.legacy
	}
	return d.file(a.name, telemetry, func() (string, errno) {
		hi, e := d.word(a.tag, legacy)
		var lo uint32
		if e == 0 && a.wide {
			lo, e = d.word(a.tag+1, legacy)
		}
		return a.format(hi&mask, lo), e
	})
}

// hwmonDevice is the hwmon directory, or nil if the driver makes none.
func (d *Device) hwmonDevice() *tree.Dir {
	v, f, arch := d.driver.version, d.chip.Firmware(), d.chip.Spec().Arch
	legacy := d.wormhole() && !v.AtLeast(v290)
	if f.NoTelemetry || !legacy && !f.LabelsOnly && !f.Table(arch) {
		return nil
	}
	dir := powered()
	dir.Add("name", d.constant("name", string(arch)))
	dir.Add("uevent", &tree.File{Mode: 0o644, Size: 4096, Show: func(tree.Caller) ([]byte, syscall.Errno) { return nil, 0 }})
	for _, l := range labels {
		text := l.bh
		if d.wormhole() {
			text = l.wh
		}
		if text != "" && (l.name != "fan1_label" || v.AtLeast(v200)) {
			dir.Add(l.name, d.constant(l.name, text))
		}
	}
	for _, s := range sensors {
		gated := v.AtLeast(v290) // before, the files were there whatever the firmware had
		if v.has(d.since(s.wh, s.bh)) && (!gated || d.chip.Publishes(s.tag)) {
			dir.Add(s.name, d.sensor(s, legacy))
		}
	}
	return dir
}

func (d *Device) sensor(s sensor, legacy bool) *tree.File {
	convert := s.convert
	if legacy {
		convert = s.legacy
	}
	return d.file(s.name, telemetry, func() (string, errno) {
		w, e := d.word(s.tag, legacy)
		return strconv.FormatUint(uint64(convert(w)), 10), e
	})
}

func (d *Device) perfCounters() *tree.Dir {
	dir := &tree.Dir{}
	for c, base := range chip.CounterNames {
		for noc := range chip.NOCs {
			name := base + strconv.Itoa(noc)
			dir.Add(name, d.file(name, counter, func() (string, errno) {
				n := uint32(0xFFFFFFFF)
				if !d.allOnes(counter) {
					n = d.chip.Count(chip.Counter(c), noc, d.driver.clock.now())
				}
				return strconv.FormatUint(uint64(n), 10), 0
			}))
		}
	}
	return dir
}

// pciDir makes a PCI function's directory with the files all have, and its
// link in /sys/bus/pci/devices.
func (d *Driver) pciDir(at, vendor, device, class string) *tree.Dir {
	sys := d.Root.Dir("sys")
	dir := sys
	parts := splitPath(at)
	for _, p := range parts {
		dir = dir.Dir(p)
	}
	for name, text := range map[string]string{
		"vendor": vendor, "device": device, "class": class, "revision": "0x00",
		"subsystem_vendor": vendor, "subsystem_device": "0x0000", "irq": "0", "enable": "1",
	} {
		dir.Add(name, tree.Text(text))
	}
	power := dir.Dir("power")
	power.Add("control", tree.Text("on"))
	power.Add("runtime_status", tree.Text("active"))
	dir.Add("subsystem", &tree.Link{Target: relative(at, "bus/pci")})
	bdf := parts[len(parts)-1]
	dir.Add("uevent", tree.Text("PCI_SLOT_NAME="+bdf))
	sys.Dir("bus").Dir("pci").Dir("devices").Add(bdf, &tree.Link{Target: relative("bus/pci/devices", at)})
	return dir
}

// findFunction is the function's directory if it is there.
func (d *Device) findFunction() *tree.Dir {
	dir := d.driver.Root.Dir("sys")
	for _, p := range splitPath(d.addr.dir()) {
		sub, ok := dir.Get(p).(*tree.Dir)
		if !ok {
			return nil
		}
		dir = sub
	}
	return dir
}

// pciFunction makes /sys/devices/…/BDF with what the PCI core shows of it.
func (d *Device) pciFunction() *tree.Dir {
	if d.addr.bridge != "" {
		bridgeDir := "devices/" + d.addr.root + "/" + d.addr.bridge
		if d.driver.Root.Dir("sys").Dir("bus").Dir("pci").Dir("devices").Get(d.addr.bridge) == nil {
			d.driver.pciDir(bridgeDir, "0x1022", "0x14ab", "0x060400")
		}
	}
	spec := d.chip.Spec()
	devID, rev := "0xb140", "0x00"
	if d.wormhole() {
		devID, rev = "0x401e", "0x01"
	}
	dir := d.driver.pciDir(d.addr.dir(), "0x1e52", devID, "0x120000")
	node, cpus := d.numa()
	texts := map[string]string{
		"vendor": "0x1e52", "device": devID, "class": "0x120000", "revision": rev,
		"subsystem_vendor": "0x1e52", "subsystem_device": fmt.Sprintf("0x%04x", spec.Code),
		"numa_node": strconv.Itoa(node), "local_cpulist": cpus,
		"max_link_speed": linkSpeed(spec.LinkGen), "max_link_width": strconv.Itoa(spec.LinkWidth),
		"resource": d.resources(), "irq": strconv.Itoa(64 + d.slot), "enable": "1", "ari_enabled": "0",
		"modalias": fmt.Sprintf("pci:v00001E52d0000%sv00001E52sd%08Xbc12sc00i00", devID[2:], spec.Code),
	}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		dir.Add(name, d.constant(name, texts[name]))
	}
	for _, name := range []string{"aer_dev_correctable", "aer_dev_nonfatal", "aer_dev_fatal"} {
		dir.Add(name, d.constant(name, aerLines(name)))
	}
	dir.Add("current_link_speed", d.file("current_link_speed", static, func() (string, errno) {
		d.mu.Lock()
		defer d.mu.Unlock()
		return linkSpeed(d.linkGen), 0
	}))
	dir.Add("current_link_width", d.file("current_link_width", static, func() (string, errno) {
		d.mu.Lock()
		defer d.mu.Unlock()
		return strconv.Itoa(d.linkWidth), 0
	}))
	dir.Add("uevent", tree.Text(fmt.Sprintf("DRIVER=tenstorrent\nPCI_CLASS=120000\nPCI_ID=1E52:%s\nPCI_SUBSYS_ID=1E52:%04X\nPCI_SLOT_NAME=%s", upperHex(devID), spec.Code, d.BDF())))
	dir.Add("driver", &tree.Link{Target: relative(d.addr.dir(), "bus/pci/drivers/tenstorrent")})
	dir.Add("remove", &tree.File{Mode: 0o200, Size: 4096, Store: d.storeRemove})
	dir.Add("rescan", &tree.File{Mode: 0o200, Size: 4096, Store: d.storeNothing("rescan")})
	for _, bar := range d.bars() {
		dir.Add("resource"+strconv.Itoa(bar.number), &tree.File{Mode: 0o600, Size: bar.size})
	}
	return dir
}
