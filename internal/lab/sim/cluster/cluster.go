// Package cluster says what UMD would find on the simulated boards: which
// chips there are, under which ids, and how they are linked.
//
// It stands between the simulated driver and programs that use tt-metal. A
// real ttnn in mock mode reads the descriptor that Write leaves, and then
// allocates on chips with the very ids that the driver's serial numbers and
// ASIC ids lead to; scripted workloads take their chips from Chips.
package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/ttmon/ttmon/internal/board"
	"github.com/ttmon/ttmon/internal/lab/sim/chip"
	"github.com/ttmon/ttmon/internal/lab/sim/descriptor"
	"github.com/ttmon/ttmon/internal/lab/sim/driver"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/source/umd"
)

// Options say what the driver does not know of the boards.
type Options struct {
	Cables bool // boards that can be are joined by cables, which changes the ids of their chips
	// Neighbours are the hosts that cables lead to; nil: none do.
	Neighbours *Neighbours
}

// Neighbours are where the cables of a host end: at the last chip of the host before
// it, and at the first chip of the host after it.
type Neighbours struct{ Before, After descriptor.Gate }

// Gates are where cables to other hosts are plugged into a host's boards: those from
// the host before it, and those to the host after it.
func Gates(d *driver.Driver, cables bool) (in, out descriptor.Gate, err error) {
	c, err := Of(d, Options{Cables: cables, Neighbours: &Neighbours{}})
	if err != nil || len(c.all) == 0 {
		return in, out, err
	}
	in, out = descriptor.Gates(c.all[0])
	return in, out, nil
}

// Chip is one chip of the host.
type Chip struct {
	Device int    // kernel index of the endpoint that leads to it
	Slot   int    // behind the endpoint: 0 its own chip, 1 the R of an n300
	Name   string // "L", "R" or empty
	BusID  string // of the endpoint
	Number int    // UMD's and tt-metal's own number, among the chips of its generation
	ID     uint64 // unique id: the number in the name of its accounting region
}

// Cluster is what UMD would find.
type Cluster struct {
	all []*umd.Descriptor // one per generation; first the one that a tt-metal process would use
}

// Of looks at the devices that the driver has now. A host without any has an
// empty cluster.
func Of(d *driver.Driver, o Options) (*Cluster, error) {
	c := new(Cluster)
	for rest := endpoints(d); len(rest) > 0; {
		one := descriptor.OneGeneration(rest)
		outside := o.Neighbours != nil && len(c.all) == 0
		desc, err := descriptor.Describe(one, o.Cables, outside)
		if err != nil {
			return nil, err
		}
		if outside {
			descriptor.Plug(desc, o.Neighbours.Before, o.Neighbours.After)
		}
		c.all = append(c.all, desc)
		rest = others(rest, one[0].Board.Arch)
	}
	return c, nil
}

func others(list []descriptor.Endpoint, arch model.Arch) (rest []descriptor.Endpoint) {
	for _, e := range list {
		if e.Board.Arch != arch {
			rest = append(rest, e)
		}
	}
	return rest
}

// endpoints are the bound devices, with what their firmware would tell UMD.
func endpoints(d *driver.Driver) []descriptor.Endpoint {
	var list []descriptor.Endpoint
	pairs := map[uint64]int{} // endpoints of a p300 seen so far, by serial number
	for _, dev := range d.Devices() {
		index, bound := dev.Index()
		b, known := board.ByCard(dev.Chip().Spec().Card)
		if !bound || !known {
			continue
		}
		id := dev.Chip().Identity()
		e := descriptor.Endpoint{Board: b, Index: index, BusID: dev.BDF(), Serial: id.Serial, ASIC: id.ASIC, Bundle: bundle(dev.Chip())}
		switch {
		case b.Galaxy():
			e.Tray, e.Location, _ = b.GalaxyPosition(dev.BDF(), false)
			e.TraySerial = traySerial(dev.BDF())
		case b.Endpoints == 2:
			// The left one, location 1, has the lower address: nothing may
			// take the order for the location.
			e.Location = 1 - pairs[id.Serial]
			pairs[id.Serial]++
		}
		list = append(list, e)
	}
	return list
}

func bundle(c *chip.Chip) string {
	b := c.Firmware().Bundle
	if b == (board.Bundle{}) {
		b = chip.DefaultBundle
	}
	return b.String()
}

// traySerial is that of a Wormhole Galaxy's tray, by the bus numbers on it. It
// is printed on the tray and known to its Ethernet firmware; the driver has no
// file for it.
func traySerial(bdf string) string {
	bus, _ := strconv.ParseUint(bdf[5:7], 16, 8)
	return fmt.Sprintf("519000%c", 'A'+rune(bus>>6))
}

// Connect tells the chips which of their Ethernet channels have a link.
func (c *Cluster) Connect(d *driver.Driver) {
	masks := map[string]uint32{}
	for _, desc := range c.all {
		end := func(e umd.End) {
			if ch := desc.Chip(e.Chip); ch != nil && !ch.Remote() {
				masks[ch.BusID] |= 1 << e.Channel
			}
		}
		for _, l := range desc.Links {
			end(l[0])
			end(l[1])
		}
		for _, l := range desc.Outside {
			end(l.End)
		}
	}
	for _, dev := range d.Devices() {
		dev.Chip().SetLinks(masks[dev.BDF()])
	}
}

// Chips lists all chips, by descriptor and UMD's number.
func (c *Cluster) Chips() []Chip {
	var list []Chip
	for _, d := range c.all {
		for _, ch := range d.Chips {
			list = append(list, locate(d, ch))
		}
	}
	return list
}

// locate finds the endpoint of a descriptor's chip. A remote chip has that of
// the chip with PCIe on its board: it is the R of an n300.
func locate(d *umd.Descriptor, ch umd.Chip) Chip {
	out := Chip{Device: ch.Device, BusID: ch.BusID, Number: ch.ID, ID: ch.UniqueID}
	if ch.Board < 0 || d.Boards[ch.Board].Type != "n300" {
		return out
	}
	out.Name = "L"
	for _, sibling := range d.Boards[ch.Board].Chips {
		if s := d.Chip(sibling); ch.Remote() && s != nil && !s.Remote() {
			out.Device, out.BusID, out.Slot, out.Name = s.Device, s.BusID, 1, "R"
		}
	}
	return out
}

// Load reads what Write left, for a program inside the host.
func Load(dir string) (*Cluster, error) {
	c := new(Cluster)
	for _, name := range []string{Name, "wormhole.yaml", "blackhole.yaml"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		d, err := umd.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", filepath.Join(dir, name), err)
		}
		if len(c.all) == 0 || d.Chips[0].Arch != c.all[0].Chips[0].Arch {
			c.all = append(c.all, d)
		}
	}
	if len(c.all) == 0 {
		return nil, fmt.Errorf("no descriptor of boards in %s: %w", dir, fs.ErrNotExist)
	}
	return c, nil
}

// Dir is where a simulated host has the descriptors of its boards, for
// tt-metal's mock mode; see Write for the files in it.
const Dir = "/dev/ttmon-sim"

// Name is the file for a tt-metal process.
const Name = "cluster_descriptor.yaml"

// Files are the descriptors as UMD reads them, by file name: Name is the one
// for a tt-metal process, and of a host with two generations, of which a
// process uses one, each has one of its own: wormhole.yaml, blackhole.yaml. A
// host without boards has none.
func (c *Cluster) Files() map[string][]byte {
	files := map[string][]byte{}
	for i, d := range c.all {
		text := descriptor.AppendYAML([]byte("# simulated by ttmon-sim\n"), d)
		if i == 0 {
			files[Name] = text
		}
		if len(c.all) > 1 {
			files[string(d.Chips[0].Arch)+".yaml"] = text
		}
	}
	return files
}

// Write brings dir, which holds nothing else, to Files. Each file is replaced
// as a whole, and only if it changes: a process may be reading it.
func (c *Cluster) Write(dir string) error {
	files := c.Files()
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if _, keep := files[e.Name()]; !keep {
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	for name, text := range files {
		if err := writeFile(filepath.Join(dir, name), text); err != nil {
			return err
		}
	}
	return nil
}

func writeFile(path string, text []byte) error {
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, text) {
		return nil
	}
	if err := os.WriteFile(path+".new", text, 0o644); err != nil {
		return err
	}
	if err := os.Chmod(path+".new", 0o644); err != nil { // whatever the umask: other users run ttnn, too
		return err
	}
	return os.Rename(path+".new", path)
}
