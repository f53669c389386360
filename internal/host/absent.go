package host

import (
	"fmt"
	"strings"

	"github.com/ttmon/ttmon/internal/exit"
	"github.com/ttmon/ttmon/internal/model"
)

const trySim = "; to see ttmon without a board, run it in a simulated host: ttmon-sim --boards n300 -- ttmon smi"

// Absence says in one sentence why there is nothing to show, and what to do;
// nil if there is something.
func Absence(s *model.Snapshot) error {
	if len(s.Devices) > 0 {
		return nil
	}
	waiting := boards(s.Host.Unbound)
	switch {
	case !s.Host.DriverLoaded && waiting != "":
		return exit.With(exit.NoDriver, "the Tenstorrent driver is not loaded for %s: run modprobe tenstorrent, or install tt-kmd"+trySim, waiting)
	case !s.Host.DriverLoaded:
		return exit.With(exit.NoDriver, "the Tenstorrent driver is not loaded, and no Tenstorrent board is on the PCI bus: install tt-kmd if there should be one"+trySim)
	case waiting != "":
		return exit.With(exit.NoDevice, "no device: the driver is loaded but has not taken %s: see what it says in dmesg"+trySim, waiting)
	default:
		return exit.With(exit.NoDevice, "no device: the driver is loaded, but no Tenstorrent board is on the PCI bus"+trySim)
	}
}

// boards names functions on the PCI bus: all of a few, the number of many.
func boards(bdfs []string) string {
	if len(bdfs) > 4 {
		return fmt.Sprintf("%d Tenstorrent functions on the PCI bus (%s, …)", len(bdfs), bdfs[0])
	}
	return strings.Join(bdfs, ", ")
}

// Troubled is the error of a snapshot with a device that is hung or lost: a
// code and no words, since the output says them.
func Troubled(s *model.Snapshot) error {
	for i := range s.Devices {
		if s.Devices[i].Trouble() {
			return exit.Silent(exit.Trouble)
		}
	}
	return nil
}
