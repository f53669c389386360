package main

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/ttmon/ttmon/internal/lab/sim"
)

func execCommand() *cobra.Command {
	var socket string
	cmd := &cobra.Command{
		Use:   "exec [--control SOCKET] -- COMMAND [ARG…]",
		Short: "Run a command on a simulated host that is already running",
		Long: `Runs a command on the simulated host of another ttmon-sim, for instance one
started with --keep, which prints the socket; inside a simulated host it is in
$` + sim.ControlEnv + `.`,
		Example: "  ttmon-sim exec --control /tmp/ttmon-sim-123/control -- ttmon smi",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError{errors.New("no command to run: add -- COMMAND")}
			}
			socket, err := findControl(socket)
			if err != nil {
				return err
			}
			h, err := sim.Attach(socket)
			if err != nil {
				return err
			}
			return runInside(h.Command(context.Background(), args[0], args[1:]...), nil)
		},
	}
	cmd.Flags().StringVar(&socket, "control", "", "control `SOCKET` of the host (default $"+sim.ControlEnv+")")
	return cmd
}

// findControl is the socket asked for, or that of the host we are in.
func findControl(socket string) (string, error) {
	if socket == "" {
		socket = os.Getenv(sim.ControlEnv)
	}
	if socket == "" {
		return "", usageError{errors.New("which simulated host? Give --control SOCKET (ttmon-sim --keep prints it), or run this inside one")}
	}
	return socket, nil
}
