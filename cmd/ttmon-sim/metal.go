package main

import (
	"github.com/spf13/cobra"

	"github.com/ttmon/ttmon/internal/lab/sim/metal"
)

func metalCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "metal [FLAGS]",
		Short: "Simulate a tt-metal process that accounts for device memory",
		Long: `Simulates one tt-metal process: it keeps statistics regions in /dev/shm
as tt-metal does, and does what a script or its standard input says. Use it
inside a simulated host. For a workload that also holds device nodes, see
kind=metal in "ttmon-sim ctl run --help".

Commands:
` + metal.Usage,
		Example:            `  ttmon-sim --boards n150 -- ttmon-sim metal -e "open 72057700439674881; alloc 72057700439674881 dram 1G"`,
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, a := range args {
				if a == "-h" || a == "--help" {
					return cmd.Help()
				}
			}
			if code := metal.Main(args); code != 0 {
				return exitError(code)
			}
			return nil
		},
	}
}
