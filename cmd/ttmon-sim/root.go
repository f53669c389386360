package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/spf13/cobra"

	"github.com/ttmon/ttmon/internal/sim"
)

func run(args []string) int {
	var o sim.Options
	code := 0
	cmd := &cobra.Command{Use: "ttmon-sim", SilenceUsage: true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := sim.Start(o)
			if err != nil {
				return err
			}
			defer h.Close()
			c := h.Command(context.Background(), args[0], args[1:]...)
			c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
			err = c.Run()
			if e, ok := errors.AsType[*exec.ExitError](err); ok {
				code = e.ExitCode()
				return nil
			}
			return err
		}}
	cmd.Flags().StringVar(&o.Boards, "boards", "", "")
	cmd.Flags().StringVar(&o.Driver, "driver", "", "")
	cmd.Flags().StringVar(&o.Firmware, "firmware", "", "")
	cmd.Flags().Uint64Var(&o.Seed, "seed", 0, "")
	cmd.Flags().Float64Var(&o.Load, "load", 0, "")
	cmd.Flags().BoolVar(&o.Frozen, "frozen", false, "")
	cmd.SetArgs(args)
	if err := cmd.Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "ttmon-sim:", err)
		return 1
	}
	return code
}
