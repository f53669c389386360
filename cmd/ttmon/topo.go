package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/ttmon/ttmon/internal/base/exit"
	"github.com/ttmon/ttmon/internal/board/mesh"
	"github.com/ttmon/ttmon/internal/cli/console"
	"github.com/ttmon/ttmon/internal/cli/host"
	"github.com/ttmon/ttmon/internal/cli/selection"
	"github.com/ttmon/ttmon/internal/collect"
	"github.com/ttmon/ttmon/internal/field/wire"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/view/text"
)

// topo is the command ttmon topo with its flags.
type topo struct {
	*app
	matrix, links, json bool
	ids                 []string
}

// newTopo makes the command; nvidia-smi has it as one of its own, so ttmon smi
// has it too.
func newTopo(a *app) *cobra.Command {
	t := &topo{app: a}
	cmd := &cobra.Command{
		Use:   "topo",
		Short: "Show how boards are connected: PCIe distances and Ethernet links",
		Long: `Shows what lies between each two devices: Ethernet links between their chips, and
otherwise how far apart they are on PCIe, in the words of nvidia-smi topo -m.

PCIe distances come from the kernel. Ethernet links come from the description
of the host that UMD leaves in /tmp whenever a program opens the boards: no chip is
read. It is trusted if its owner is root, you, or a user of the device.

Which links are up, and how often they trained again, is known where ttmond reads it
(firmware = "table" or "full"), or ttmon-server takes it from tt-telemetry.

Exit codes: as ttmon smi.`,
		Example: `  ttmon topo -m
  ttmon topo --links
  ttmon topo --json | jq '.pairs[] | select(.ethernet_links > 0)'`,
		RunE: func(*cobra.Command, []string) error { return t.run() },
	}
	f := cmd.Flags()
	addDevices(f, &t.ids, theseDevices)
	f.BoolVarP(&t.matrix, "matrix", "m", false, "print the matrix (the default of up to 16 devices)")
	f.BoolVar(&t.links, "links", false, "print a line per Ethernet link: state, retrains, codewords and traffic, as far as known")
	f.BoolVar(&t.json, "json", false, "print JSON (schema ttmon.topology/1)")
	return cmd
}

func (t *topo) run() error {
	if t.matrix && t.links {
		return exit.Usage("--matrix and --links cannot be used together")
	}
	h, err := host.Open(t.where)
	if err != nil {
		return err
	}
	defer h.Close()
	snap, err := h.Next(context.Background())
	if err != nil {
		return err
	}
	if err := h.Absence(snap); err != nil {
		return err
	}
	ids, err := selection.Parse(t.ids)
	if err == nil {
		snap, err = ids.From(snap)
	}
	if err != nil {
		return err
	}
	top := collect.Topology(h.Root, snap)
	if t.json {
		_, _, terminal := console.Size(t.Stdout)
		out := wire.AppendTopology(nil, &wire.Topology{Time: snap.Time, Simulated: snap.Simulated, Topology: top, Links: mesh.AllLinks(snap, top)}, terminal)
		return t.Output("").Write(append(out, '\n'))
	}
	o, err := t.TextOptions(t.Stdout)
	if err != nil {
		return err
	}
	var out []byte
	if t.links {
		out = text.AppendLinks(nil, snap, top, o)
	} else {
		out = text.AppendTopology(nil, snap, top, t.matrix, o)
	}
	if snap.Simulated {
		out = append(out, " "+words.Simulated+"\n"...)
	}
	return t.Output("").Write(out)
}
