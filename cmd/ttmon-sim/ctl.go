package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ttmon/ttmon/internal/lab/sim"
	"github.com/ttmon/ttmon/internal/lab/sim/control"
)

func ctlCommand() *cobra.Command {
	var socket string
	cmd := &cobra.Command{
		Use:   "ctl [--control SOCKET] COMMAND [ARG…]",
		Short: "Control a simulated host: faults, values, workloads",
		Long: `Controls a running simulated host. Inside it, the control socket is
known from ` + sim.ControlEnv + `; from outside, give --control.

DEVICE is an index, a PCI address or all. TIME is 500ms, 2s, 1m.`,
		Example: `  ttmon-sim ctl reset 0 block=2s window=3s
  ttmon-sim ctl block 1 tt_heartbeat
  ttmon-sim ctl set 0 temp1_input 65531500
  ttmon-sim ctl unplug 1; ttmon-sim ctl plug 0000:42:00.0 index=5 hwmon=9`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError{errors.New("no command for the simulated host; see ttmon-sim ctl --help")}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { // an unknown verb: the host knows them best
			return sendCommand(cmd, socket, args)
		},
	}
	cmd.PersistentFlags().StringVar(&socket, "control", "", "control `SOCKET` of the host (default $"+sim.ControlEnv+")")
	for _, v := range control.Verbs() {
		long := strings.TrimSpace(capital(v.Short) + ".\n\n" + v.Long)
		verb := &cobra.Command{
			Use: strings.TrimSpace(v.Name + " " + v.Usage), Short: v.Short,
			Long:                  long,
			DisableFlagsInUseLine: true,
			RunE: func(cmd *cobra.Command, args []string) error {
				return sendCommand(cmd, socket, append([]string{v.Name}, args...))
			},
		}
		verb.Flags().SetInterspersed(false) // texts and command lines may hold dashes
		cmd.AddCommand(verb)
	}
	return cmd
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

func sendCommand(cmd *cobra.Command, socket string, args []string) error {
	socket, err := findControl(socket)
	if err != nil {
		return err
	}
	out, err := sim.Ctl(socket, args...)
	fmt.Fprint(cmd.OutOrStdout(), out)
	return err
}
