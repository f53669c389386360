package driver

import (
	"fmt"
	"strconv"
	"syscall"

	"github.com/ttmon/ttmon/internal/lab/sim/arc"
	"github.com/ttmon/ttmon/internal/lab/sim/chip"
	"github.com/ttmon/ttmon/internal/lab/sim/tree"
)

// file is an attribute of this device: what show prints, unless the device is
// in trouble or the file was told to print something else.
func (d *Device) file(name string, k kind, show func() (string, errno)) *tree.File {
	return tree.Attr(func() ([]byte, syscall.Errno) {
		if e := d.gate(name, k); e != 0 {
			return nil, e
		}
		if k != static {
			d.reads.Add(1)
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

// classDevice is /sys/class/tenstorrent/tenstorrent!N without its telemetry.
func (d *Device) classDevice(at string) *tree.Dir {
	dir := powered()
	dir.Add("dev", d.constant("dev", d.devNumber()))
	dir.Add("uevent", d.writableText("uevent", fmt.Sprintf("MAJOR=%d\nMINOR=%d\nDEVNAME=tenstorrent/%d", d.driver.major, d.index, d.index)))
	dir.Add("device", &tree.Link{Target: "../../../" + d.BDF()})
	dir.Add("subsystem", &tree.Link{Target: relative(at, "class/tenstorrent")})
	if d.driver.version.AtLeast(v200) {
		dir.Add("pcie_perf_counters", d.perfCounters())
	}
	return dir
}

// addAttributes adds the tt_* files that this driver makes for this firmware.
func (d *Device) addAttributes(dir *tree.Dir) {
	for _, a := range attributes {
		if d.driver.version.has(d.since(a.wh, a.bh)) && d.offers(a.tag) {
			dir.Add(a.name, d.attribute(a))
		}
	}
}

// powered is a directory with the power files that every device has.
func powered() *tree.Dir {
	dir := &tree.Dir{}
	dir.Add("power", powerFiles("auto", "unsupported"))
	return dir
}

// offers reports whether the driver makes a tt_* file for the tag: since 2.3
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
	if legacy {
		return d.chip.LegacyWord(tag), 0
	}
	if w, ok := d.chip.Word(tag); ok {
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
		if s.tag == chip.FanRPM && w == arc.AllOnes && d.driver.Version().AtLeast(v2110) {
			return "", syscall.ENODATA // the firmware's word for no fan
		}
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
					n = d.chip.Count(chip.Counter(c), noc)
				}
				return strconv.FormatUint(uint64(n), 10), 0
			}))
		}
	}
	return dir
}
