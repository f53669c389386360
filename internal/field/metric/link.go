package metric

import (
	"fmt"
	"strings"

	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
)

func pcie() []Device {
	link := func(name, title, help, json string, prom Prom, get getDevice, synonyms ...Synonym) Device {
		as := Generation
		if strings.HasPrefix(name, "width") {
			as = Lanes
		}
		return Device{Name: "pcie.link." + name, Title: title, As: as, Kind: Gauge, Help: help, JSON: json, Prom: prom, Synonyms: synonyms, Get: get}
	}
	rate := func(name, head, title, help, json string, get getDevice) Device {
		return Device{Name: name, Head: head, Title: title, Kind: Gauge, Rate: true, Unit: "MiB/s", Per: mib, Decimals: 1, Help: help, JSON: json, Get: get}
	}
	total := func(name, title, help, json, direction string, get getDevice) Device {
		return Device{
			Name: name, Title: title, Kind: Counter, Unit: "B", Help: help, JSON: json, Get: get,
			Prom: counter("pcie_transferred_bytes_total", `direction="`+direction+`"`),
		}
	}
	return []Device{
		{
			Name: "pcie.link", Head: "PCIe", Title: "Link", Fact: model.FactLinkGen, Help: "generation and lanes of the link now, as text",
			Get: func(_ *model.Snapshot, d *model.Device) Value {
				if !d.PCIe.Gen.Known() && !d.PCIe.Width.Known() {
					return missing(d.PCIe.Gen)
				}
				return str(words.Link(d.PCIe.Gen, d.PCIe.Width))
			},
		},
		link("gen.current", "Generation", "PCIe generation of the link now", "pcie.gen", gauge("pcie_link_generation"),
			func(_ *model.Snapshot, d *model.Device) Value { return num(d.PCIe.Gen) }, same("pcie.link.gen.gpucurrent")...),
		link("gen.max", "Generation Max", "the highest the board can do", "pcie.gen_max", gauge("pcie_link_generation_max"),
			func(_ *model.Snapshot, d *model.Device) Value { return num(d.PCIe.GenMax) }, same("pcie.link.gen.gpumax")...),
		link("gen.hostmax", "Generation Max of the Slot", "the highest the slot can do", "pcie.slot_gen_max", Prom{},
			func(_ *model.Snapshot, d *model.Device) Value { return num(d.PCIe.SlotGenMax) }),
		link("width.current", "Width", "lanes of the link now", "pcie.width", gauge("pcie_link_width"),
			func(_ *model.Snapshot, d *model.Device) Value { return num(d.PCIe.Width) }),
		link("width.max", "Width Max", "the most the board can do", "pcie.width_max", gauge("pcie_link_width_max"),
			func(_ *model.Snapshot, d *model.Device) Value { return num(d.PCIe.WidthMax) }),
		link("width.hostmax", "Width Max of the Slot", "the most the slot can do", "pcie.slot_width_max", Prom{},
			func(_ *model.Snapshot, d *model.Device) Value { return num(d.PCIe.SlotWidthMax) }),
		{
			Name: "pcie.link.degraded", Title: "Degraded", Kind: Bool, Help: "slower or narrower than both the slot and the board can do", JSON: "pcie.degraded", Prom: gauge("pcie_link_degraded"),
			Get: func(_ *model.Snapshot, d *model.Device) Value { return yes(d.PCIe.Degraded) },
		},
		rate("pcie.rx", "To device", "To Device", "traffic to the device; needs a second sample", "pcie.to_device_bytes_per_s",
			func(_ *model.Snapshot, d *model.Device) Value { return num(d.PCIe.ToDeviceRate) }),
		rate("pcie.tx", "From device", "From Device", "traffic from the device; needs a second sample", "pcie.from_device_bytes_per_s",
			func(_ *model.Snapshot, d *model.Device) Value { return num(d.PCIe.FromDeviceRate) }),
		total("pcie.rx.total", "To Device, Since First Seen", "bytes to the device since ttmon first saw it", "pcie.to_device_bytes_total", "to_device",
			func(_ *model.Snapshot, d *model.Device) Value { return num(d.PCIe.ToDeviceTotal) }),
		total("pcie.tx.total", "From Device, Since First Seen", "bytes from the device since ttmon first saw it", "pcie.from_device_bytes_total", "from_device",
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
