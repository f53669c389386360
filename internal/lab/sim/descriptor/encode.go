package descriptor

import (
	"fmt"
	"strconv"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/source/umd"
)

// AppendYAML writes a descriptor in the form that UMD reads (and itself
// writes), and that TT_METAL_MOCK_CLUSTER_DESC_PATH can point to.
func AppendYAML(b []byte, d *umd.Descriptor) []byte {
	w := yamlWriter{b}
	w.perChip("arch", d.Chips, func(c umd.Chip) string { return umdArch(c.Arch) })
	w.perChip("chips", d.Chips, func(c umd.Chip) string {
		if c.Coord == nil {
			return ""
		}
		return fmt.Sprintf("[%d, %d, %d, %d]", c.Coord.X, c.Coord.Y, c.Coord.Rack, c.Coord.Shelf)
	})
	w.perChip("chip_unique_ids", d.Chips, func(c umd.Chip) string {
		if c.Synthetic {
			return ""
		}
		return strconv.FormatUint(c.UniqueID, 10)
	})
	list(&w, "ethernet_connections", d.Links, func(l umd.Link) string {
		return fmt.Sprintf("[%s, %s]", flow(l[0]), flow(l[1]))
	})
	list(&w, "ethernet_connections_to_remote_devices", d.Outside, func(l umd.OutsideLink) string {
		return fmt.Sprintf("[%s, {remote_chip_id: %d, chan: %d}]", flow(l.End), l.RemoteID, l.RemoteChannel)
	})
	list(&w, "chips_with_mmio", local(d), func(c umd.Chip) string { return fmt.Sprintf("{%d: %d}", c.ID, c.Device) })
	w.line("io_device_type: PCIe")
	w.perChip("harvesting", d.Chips, func(c umd.Chip) string {
		return fmt.Sprintf("{noc_translation: %t, harvest_mask: %d, dram_harvesting_mask: %d, eth_harvesting_mask: %d, pcie_harvesting_mask: %d, l2cpu_harvesting_mask: %d}",
			c.Harvest.NOCTranslation, c.Harvest.Tensix, c.Harvest.DRAM, c.Harvest.Eth, c.Harvest.PCIe, c.Harvest.L2CPU)
	})
	w.perChip("chip_to_bus_id", d.Chips, func(c umd.Chip) string {
		if c.Bus < 0 {
			return ""
		}
		return fmt.Sprintf("\"0x%04x\"", c.Bus)
	})
	list(&w, "boards", d.Boards, func(e umd.BoardEntry) string {
		return fmt.Sprintf("[{board_id: %d}, {board_type: %s}, {chips: [%s]}]", e.ID, e.Type, commas(e.Chips))
	})
	w.perChip("asic_locations", d.Chips, func(c umd.Chip) string {
		if c.Location < 0 {
			return ""
		}
		return strconv.Itoa(c.Location)
	})
	w.perChip("chip_pci_bdfs", local(d), func(c umd.Chip) string { return c.BusID })
	return w.b
}

func local(d *umd.Descriptor) []umd.Chip {
	var chips []umd.Chip
	for _, c := range d.Chips {
		if !c.Remote() {
			chips = append(chips, c)
		}
	}
	return chips
}

func umdArch(a model.Arch) string {
	if a == model.Wormhole {
		return "wormhole_b0"
	}
	return string(a)
}

func flow(e umd.End) string { return fmt.Sprintf("{chip: %d, chan: %d}", e.Chip, e.Channel) }

func commas(ids []int) string {
	var b []byte
	for i, id := range ids {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = strconv.AppendInt(b, int64(id), 10)
	}
	return string(b)
}

type yamlWriter struct{ b []byte }

func (w *yamlWriter) line(format string, args ...any) {
	w.b = fmt.Appendf(w.b, format+"\n", args...)
}

// perChip writes a map by chip; chips for which value is empty are left out,
// and a map without any is left out too, unless UMD insists on it.
func (w *yamlWriter) perChip(key string, chips []umd.Chip, value func(umd.Chip) string) {
	head := len(w.b)
	w.line("%s:", key)
	body := len(w.b)
	for _, c := range chips {
		if v := value(c); v != "" {
			w.line("  %d: %s", c.ID, v)
		}
	}
	if len(w.b) > body {
		return
	}
	if w.b = w.b[:head]; key == "chips" {
		w.line("chips: {}")
	}
}

func list[T any](w *yamlWriter, key string, items []T, value func(T) string) {
	if len(items) == 0 {
		w.line("%s: []", key)
		return
	}
	w.line("%s:", key)
	for _, item := range items {
		w.line("  - %s", value(item))
	}
}
