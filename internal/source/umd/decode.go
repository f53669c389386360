package umd

import (
	"cmp"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/ttmon/ttmon/internal/base/sorted"
	"github.com/ttmon/ttmon/internal/model"
)

// Parse parses a cluster descriptor. It accepts all formats UMD has written so
// far: without unique ids, boards or addresses, and with devices as plain
// numbers. Keys it does not know are skipped.
func Parse(src []byte) (*Descriptor, error) {
	root, err := parseYAML(src)
	if err != nil {
		return nil, fmt.Errorf("reading the cluster descriptor: %w", err)
	}
	b := decoder{chips: map[int]*Chip{}}
	if err := b.decode(root); err != nil {
		return nil, fmt.Errorf("reading the cluster descriptor: %w", err)
	}
	return b.descriptor(), nil
}

// decoder collects chips from the many maps that are keyed by them.
type decoder struct {
	d      Descriptor
	chips  map[int]*Chip
	hasIDs bool
}

func (b *decoder) descriptor() *Descriptor {
	for _, c := range b.chips {
		if !b.hasIDs {
			c.UniqueID, c.Synthetic = uint64(c.ID)<<32, true // as UMD does
		}
		b.d.Chips = append(b.d.Chips, *c)
	}
	sorted.By(b.d.Chips, func(x, y *Chip) int { return cmp.Compare(x.ID, y.ID) })
	return &b.d
}

// sections are the parts of the file. The first creates the chips; the others
// may only refer to those.
var sections = []struct {
	key  string
	read func(*decoder, node) error
}{
	{"arch", (*decoder).arch},
	{"chips", (*decoder).coords},
	{"chip_unique_ids", (*decoder).uniqueIDs},
	{"ethernet_connections", (*decoder).links},
	{"ethernet_connections_to_remote_devices", (*decoder).outsideLinks},
	{"chips_with_mmio", (*decoder).devices},
	{"harvesting", (*decoder).harvesting},
	{"chip_to_bus_id", (*decoder).buses},
	{"boards", (*decoder).boards},
	{"asic_locations", (*decoder).locations},
	{"chip_pci_bdfs", (*decoder).busIDs},
}

func (b *decoder) decode(root node) error {
	if root.kind != mapping {
		return &yamlError{root.line, "not a map of arch, chips, …"}
	}
	if _, ok := root.get("arch"); !ok {
		return &yamlError{root.line, "it has no key arch: not a cluster descriptor"}
	}
	for _, s := range sections {
		n, ok := root.get(s.key)
		if !ok || n.null() {
			continue
		}
		if err := s.read(b, n); err != nil {
			return fmt.Errorf("%s: %w", s.key, err)
		}
	}
	return nil
}

func (b *decoder) arch(n node) error {
	return n.eachInt(func(id int, v node) error {
		c := &Chip{ID: id, Arch: model.UnknownArch, Device: model.NoDevice, Bus: -1, Location: -1, Board: -1}
		switch strings.ToLower(v.text) {
		case "wormhole_b0", "wormhole":
			c.Arch = model.Wormhole
		case "blackhole":
			c.Arch = model.Blackhole
		}
		b.chips[id] = c
		return nil
	})
}

// eachChip calls f for every chip that is a key of n.
func (b *decoder) eachChip(n node, f func(*Chip, node) error) error {
	return n.eachInt(func(id int, v node) error {
		c, ok := b.chips[id]
		if !ok {
			return &yamlError{v.line, fmt.Sprintf("there is no chip %d", id)}
		}
		return f(c, v)
	})
}

func (b *decoder) coords(n node) error {
	return b.eachChip(n, func(c *Chip, v node) (err error) {
		var xyrs [4]int
		if v.kind != sequence || len(v.items) != len(xyrs) {
			return &yamlError{v.line, "want four coordinates: x, y, rack, shelf"}
		}
		for i := range xyrs {
			if xyrs[i], err = v.items[i].int(); err != nil {
				return err
			}
		}
		c.Coord = &Coord{xyrs[0], xyrs[1], xyrs[2], xyrs[3]}
		return nil
	})
}

func (b *decoder) uniqueIDs(n node) error {
	b.hasIDs = true
	return b.eachChip(n, func(c *Chip, v node) (err error) {
		c.UniqueID, err = v.uint(64)
		return err
	})
}

func (b *decoder) devices(n node) error {
	return n.each(func(v node) error {
		if v.kind == mapping {
			return b.eachChip(v, func(c *Chip, v node) (err error) {
				c.Device, err = v.int()
				return err
			})
		}
		id, err := v.int() // old files: only that it is on PCIe; UMD uses the same number
		if err != nil {
			return err
		}
		return b.eachChip(node{kind: mapping, keys: []string{v.text}, items: []node{v}}, func(c *Chip, _ node) error {
			c.Device = id
			return nil
		})
	})
}

func (b *decoder) harvesting(n node) error {
	return b.eachChip(n, func(c *Chip, v node) error {
		if v.kind != mapping {
			return &yamlError{v.line, "want a map of masks"}
		}
		translation, _ := v.get("noc_translation")
		c.Harvest.NOCTranslation = translation.text == "true"
		for key, mask := range map[string]*uint32{
			"harvest_mask": &c.Harvest.Tensix, "dram_harvesting_mask": &c.Harvest.DRAM, "eth_harvesting_mask": &c.Harvest.Eth,
			"pcie_harvesting_mask": &c.Harvest.PCIe, "l2cpu_harvesting_mask": &c.Harvest.L2CPU,
		} {
			m, ok := v.get(key)
			if !ok {
				continue
			}
			bits, err := m.uint(32)
			if err != nil {
				return err
			}
			*mask = uint32(bits)
		}
		return nil
	})
}

func (b *decoder) buses(n node) error {
	return b.eachChip(n, func(c *Chip, v node) error {
		bus, err := strconv.ParseUint(strings.TrimPrefix(v.text, "0x"), 16, 16)
		if err != nil || v.kind != scalar {
			return &yamlError{v.line, fmt.Sprintf("%q is not a bus number", v.text)}
		}
		c.Bus = int(bus)
		return nil
	})
}

func (b *decoder) busIDs(n node) error {
	return b.eachChip(n, func(c *Chip, v node) error {
		c.BusID = strings.ToLower(v.text)
		return nil
	})
}

func (b *decoder) locations(n node) error {
	return b.eachChip(n, func(c *Chip, v node) (err error) {
		c.Location, err = v.int()
		return err
	})
}

func (b *decoder) boards(n node) error {
	return n.each(func(v node) error {
		fields := map[string]node{}
		if err := v.each(func(v node) error {
			if v.kind != mapping {
				return &yamlError{v.line, "want board_id, board_type and chips"}
			}
			maps.Insert(fields, v.all())
			return nil
		}); err != nil {
			return err
		}
		entry := BoardEntry{Type: fields["board_type"].text}
		var err error
		if entry.ID, err = fields["board_id"].uint(64); err != nil {
			return fmt.Errorf("board_id: %w", err)
		}
		err = fields["chips"].each(func(v node) error {
			id, err := v.int()
			if c := b.chips[id]; c != nil {
				c.Board = len(b.d.Boards)
			}
			entry.Chips = append(entry.Chips, id)
			return err
		})
		b.d.Boards = append(b.d.Boards, entry)
		return err
	})
}

func (b *decoder) links(n node) error {
	return n.each(func(v node) error {
		if v.kind != sequence || len(v.items) < 2 { // a third item is about routing
			return &yamlError{v.line, "want the two ends of a link"}
		}
		var l Link
		for i := range l {
			var err error
			if l[i], err = v.items[i].end(); err != nil {
				return err
			}
		}
		b.d.Links = append(b.d.Links, l)
		return nil
	})
}

func (b *decoder) outsideLinks(n node) error {
	return n.each(func(v node) (err error) {
		if v.kind != sequence || len(v.items) < 2 {
			return &yamlError{v.line, "want the two ends of a link"}
		}
		var l OutsideLink
		if l.End, err = v.items[0].end(); err != nil {
			return err
		}
		id, _ := v.items[1].get("remote_chip_id")
		if l.RemoteID, err = id.uint(64); err != nil {
			return fmt.Errorf("remote_chip_id: %w", err)
		}
		channel, _ := v.items[1].get("chan")
		l.RemoteChannel, err = channel.int()
		b.d.Outside = append(b.d.Outside, l)
		return err
	})
}
