package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/lab/sim"
)

func openCommand() *cobra.Command {
	var devices string
	cmd := &cobra.Command{
		Use:   "open [--devices 0,1] -- COMMAND [ARG…]",
		Short: "Open simulated devices, then exec a command that keeps them open",
		Long: `Opens simulated devices and becomes the command, which then has them open
under its own pid. The real ttnn in mock mode accounts for memory without
opening a node; this makes it a user of the devices, as on real boards. It
works inside a simulated host only: real boards are never opened.`,
		Example: "  ttmon-sim --boards p300c -- ttmon-sim open -- python3 model.py",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError{errors.New("no command to run: add -- COMMAND")}
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if _, err := os.Stat(sim.Marker); err != nil {
				return usageError{errors.New("this host is not a simulated one, and real boards are never opened: run it inside ttmon-sim")}
			}
			nodes, err := deviceNodes(devices)
			if err != nil {
				return usageError{err}
			}
			return execWith(nodes, args)
		},
	}
	cmd.Flags().StringVar(&devices, "devices", "", "the `INDICES` of the devices, separated by commas (default: all)")
	return cmd
}

// deviceNodes returns the paths of the devices in a list of indices, or of all
// devices if it is empty.
func deviceNodes(list string) ([]string, error) {
	const dir = "/dev/tenstorrent"
	if list == "" {
		nodes, err := filepath.Glob(dir + "/[0-9]*")
		if err == nil && len(nodes) == 0 {
			err = errors.New("the simulated host has no device")
		}
		return nodes, err
	}
	var nodes []string
	for part := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || n < 0 {
			return nil, fmt.Errorf("--devices %s: %q is not a device index", list, part)
		}
		nodes = append(nodes, filepath.Join(dir, strconv.Itoa(n)))
	}
	return nodes, nil
}

// execWith replaces this process by a program that has the nodes open.
func execWith(nodes, argv []string) error {
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return err
	}
	for _, node := range nodes {
		if _, err := unix.Open(node, unix.O_RDWR, 0); err != nil { // without O_CLOEXEC: the program inherits it
			return fmt.Errorf("opening %s: %w", node, err)
		}
	}
	return fmt.Errorf("running %s: %w", path, syscall.Exec(path, argv, os.Environ()))
}
