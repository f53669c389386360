package host

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ttmon/ttmon/internal/base/exit"
	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/model"
)

// Absence says in one sentence why a snapshot has nothing to show, and what to
// do; nil if it has something.
func Absence(s *model.Snapshot) error { return absence(s, "") }

// Absence is the function of the same name, which also knows whether the host
// has the driver installed.
func (h *Host) Absence(s *model.Snapshot) error {
	if len(s.Devices) > 0 {
		return nil
	}
	return absence(s, installedDriver(h.Root))
}

// absence takes the file of the driver that is installed; empty: none is known.
func absence(s *model.Snapshot, driver string) error {
	if len(s.Devices) > 0 {
		return nil
	}
	waiting := boards(s.Host.Unbound)
	load := "install tt-kmd and run modprobe tenstorrent"
	if driver != "" {
		load = "it is installed (" + driver + "): run modprobe tenstorrent"
	}
	switch {
	case !s.Host.DriverLoaded && waiting != "":
		return exit.With(exit.NoDriver, "the Tenstorrent driver is not loaded for %s: %s%s", waiting, load, trySim())
	case !s.Host.DriverLoaded && driver != "":
		return exit.With(exit.NoDriver, "the Tenstorrent driver is not loaded, and no Tenstorrent board is on the PCI bus; if this host has a board: %s%s", load, trySim())
	case !s.Host.DriverLoaded:
		return exit.With(exit.NoDriver, "the Tenstorrent driver is not loaded, and no Tenstorrent board is on the PCI bus; if this host has a board: %s%s", load, trySim())
	case waiting != "":
		return exit.With(exit.NoDevice, "no device: the driver is loaded but has not bound %s: see dmesg%s", waiting, trySim())
	default:
		return exit.With(exit.NoDevice, "no device: the driver is loaded, but no Tenstorrent board is on the PCI bus%s", trySim())
	}
}

// trySim says how to see ttmon without a board, where the simulator is
// installed.
func trySim() string {
	if _, err := exec.LookPath("ttmon-sim"); err == nil {
		return "; to try ttmon without a board, run: ttmon-sim --boards n300 -- ttmon smi"
	}
	if exe, err := os.Executable(); err == nil {
		if sim := filepath.Join(filepath.Dir(exe), "ttmon-sim"); executable(sim) {
			return "; to try ttmon without a board, run: " + sim + " --boards n300 -- ttmon smi"
		}
	}
	return "; to try ttmon without a board, install ttmon-sim"
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// maxModules bounds the list of the kernel's modules; a distribution's has
// half a megabyte.
const maxModules = 8 << 20

// installedDriver is the driver's module in the list of the running kernel's
// modules, relative to their folder.
func installedDriver(root hostfs.Root) string {
	release, err := root.ReadString("/proc/sys/kernel/osrelease")
	if err != nil || release == "" || strings.Contains(release, "/") {
		return ""
	}
	list, err := root.Read("/lib/modules/"+release+"/modules.dep", maxModules)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(list)) {
		file, _, _ := strings.Cut(line, ":")
		if strings.HasPrefix(filepath.Base(file), "tenstorrent.ko") {
			return file
		}
	}
	return ""
}

// boards names functions on the PCI bus: all of a few, the number of many.
func boards(bdfs []string) string {
	if len(bdfs) > 4 {
		return fmt.Sprintf("%d Tenstorrent functions on the PCI bus (%s, …)", len(bdfs), bdfs[0])
	}
	return strings.Join(bdfs, ", ")
}

// Warned is Troubled for those who want to know of warnings too: whatever was
// found wrong with a device or the host.
func Warned(s *model.Snapshot) error {
	if slices.ContainsFunc(s.Conditions, func(c model.Condition) bool { return c.Level >= model.Warning }) {
		return exit.Silent(exit.Trouble)
	}
	return Troubled(s)
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
