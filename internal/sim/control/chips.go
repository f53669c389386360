package control

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/ttmon/ttmon/internal/sim/cluster"
)

var chipVerbs = []Verb{{
	Name: "chips", Short: "list the chips with the ids under which tt-metal accounts for their memory",
	Long: "NUMBER is UMD's and tt-metal's own, which a program knows a chip by.",
	run: func(h *Host, a *arguments) (string, error) {
		if !a.done() {
			return "", nil
		}
		c, err := cluster.Of(h.Driver, h.Cluster)
		if err != nil {
			return "", err
		}
		var b strings.Builder
		w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "DEVICE\tBUS ID\tCHIP\tNUMBER\tID\t(simulated)")
		for _, ch := range c.Chips() {
			name := ch.Name
			if name == "" {
				name = "-"
			}
			fmt.Fprintf(w, "%d\t%s\t%s\t%d\t%d\n", ch.Device, ch.BusID, name, ch.Number, ch.ID)
		}
		w.Flush()
		return b.String(), nil
	},
}}
