package metric

import (
	"fmt"
	"strings"

	"github.com/ttmon/ttmon/internal/model"
)

func pcie() []Device {
	link := func(name, help, json string, prom Prom, get getDevice, synonyms ...Synonym) Device {
		return Device{Name: "pcie.link." + name, Kind: Gauge, Help: help, JSON: json, Prom: prom, Synonyms: synonyms, Get: get}
	}
	rate := func(name, help, json string, get getDevice) Device {
		return Device{Name: name, Kind: Gauge, Rate: true, Unit: "MiB/s", Per: mib, Decimals: 1, Help: help, JSON: json, Get: get}
	}
	total := func(name, help, json, direction string, get getDevice) Device {
		return Device{
			Name: name, Kind: Counter, Unit: "B", Help: help, JSON: json, Get: get,
			Prom: counter("pcie_transferred_bytes_total", `direction="`+direction+`"`),
		}
	}
	return []Device{
		link("gen.current", "PCIe generation of the link now", "pcie.gen", gauge("pcie_link_generation"),
			func(_ *model.Snapshot, d *model.Device) Value { return num(d.PCIe.Gen) }, same("pcie.link.gen.gpucurrent")...),
		link("gen.max", "the highest the board can do", "pcie.gen_max", gauge("pcie_link_generation_max"),
			func(_ *model.Snapshot, d *model.Device) Value { return num(d.PCIe.GenMax) }, same("pcie.link.gen.gpumax")...),
		link("gen.hostmax", "the highest the slot can do", "pcie.slot_gen_max", Prom{},
			func(_ *model.Snapshot, d *model.Device) Value { return num(d.PCIe.SlotGenMax) }),
		link("width.current", "lanes of the link now", "pcie.width", gauge("pcie_link_width"),
			func(_ *model.Snapshot, d *model.Device) Value { return num(d.PCIe.Width) }),
		link("width.max", "the most the board can do", "pcie.width_max", gauge("pcie_link_width_max"),
			func(_ *model.Snapshot, d *model.Device) Value { return num(d.PCIe.WidthMax) }),
		link("width.hostmax", "the most the slot can do", "pcie.slot_width_max", Prom{},
			func(_ *model.Snapshot, d *model.Device) Value { return num(d.PCIe.SlotWidthMax) }),
		{
			Name: "pcie.link.degraded", Kind: Bool, Help: "slower or narrower than both the slot and the board can do", JSON: "pcie.degraded", Prom: gauge("pcie_link_degraded"),
			Get: func(_ *model.Snapshot, d *model.Device) Value { return yes(d.PCIe.Degraded) },
		},
		rate("pcie.rx", "traffic to the device; needs a second sample", "pcie.to_device_bytes_per_s",
			func(_ *model.Snapshot, d *model.Device) Value { return num(d.PCIe.ToDeviceRate) }),
		rate("pcie.tx", "traffic from the device; needs a second sample", "pcie.from_device_bytes_per_s",
			func(_ *model.Snapshot, d *model.Device) Value { return num(d.PCIe.FromDeviceRate) }),
		total("pcie.rx.total", "bytes to the device since ttmon first saw it", "pcie.to_device_bytes_total", "to_device",
			func(_ *model.Snapshot, d *model.Device) Value { return num(d.PCIe.ToDeviceTotal) }),
		total("pcie.tx.total", "bytes from the device since ttmon first saw it", "pcie.from_device_bytes_total", "from_device",
			func(_ *model.Snapshot, d *model.Device) Value { return num(d.PCIe.FromDeviceTotal) }),
	}
}

// position is a place in a Galaxy; 0 means that there is none.
func position(n int) Value {
	if n == 0 {
		return Value{Why: "not in a Galaxy"}
	}
	return count(n)
}

// busPart is domain, bus or device of "0000:01:00.0", as nvidia-smi writes it.
func busPart(id string, i int) Value {
	id, _, _ = strings.Cut(id, ".")
	parts := strings.Split(id, ":")
	if len(parts) != 3 {
		return Value{}
	}
	return str("0x" + strings.ToUpper(parts[i]))
}

func pciID(device, vendor uint16) Value { return str(fmt.Sprintf("0x%04X%04X", device, vendor)) }
