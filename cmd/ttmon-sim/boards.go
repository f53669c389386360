package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/ttmon/ttmon/internal/lab/sim/chip"
)

func boardsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "boards",
		Short: "List the boards that can be simulated",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "BOARD\tARCHITECTURE\tPCIe DEVICES\tPOWER\tAICLK\tFAN\t(simulated)")
			for _, name := range chip.Cards() {
				s, err := chip.SpecOf(name)
				if err != nil {
					return err
				}
				fan := "no"
				if s.Fan {
					fan = "yes"
				}
				fmt.Fprintf(w, "%s\t%s\t%d\t%.0f-%.0f W\t%d-%d MHz\t%s\n", s.Card, s.Arch, s.Endpoints, s.IdleW, s.BusyW, s.FMin, s.FMax, fan)
			}
			return w.Flush()
		},
	}
}
