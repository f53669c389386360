package sim

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/ttmon/ttmon/internal/lab/sim/driver"
	"github.com/ttmon/ttmon/internal/lab/sim/tree"
)

// surroundings looks at what the real host has. It reads directory listings
// and CPU lists only.
func surroundings() (driver.Surroundings, error) {
	var host driver.Surroundings
	host.PCI = names("/sys/bus/pci/devices")
	host.Roots = names("/sys/devices")
	for _, name := range names("/sys/class/hwmon") {
		if n, err := strconv.Atoi(strings.TrimPrefix(name, "hwmon")); err == nil {
			host.Hwmon = append(host.Hwmon, n)
		}
	}
	devices, err := os.ReadFile("/proc/devices")
	if err != nil {
		return host, err
	}
	chars, _, _ := strings.Cut(string(devices), "Block devices:")
	for line := range strings.Lines(chars) {
		if f := strings.Fields(line); len(f) == 2 {
			if n, err := strconv.Atoi(f[0]); err == nil {
				host.Majors = append(host.Majors, n)
			}
		}
	}
	host.Nodes = numaNodes()
	return host, nil
}

// numaNodes is the CPU list of each node, or of the whole host where it has
// no nodes.
func numaNodes() []string {
	var nodes []string
	for n := 0; ; n++ {
		b, err := os.ReadFile(fmt.Sprintf("/sys/devices/system/node/node%d/cpulist", n))
		if err != nil {
			break
		}
		nodes = append(nodes, strings.TrimSpace(string(b)))
	}
	if len(nodes) == 0 {
		if b, err := os.ReadFile("/sys/devices/system/cpu/online"); err == nil {
			nodes = []string{strings.TrimSpace(string(b))}
		}
	}
	return nodes
}

func names(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	list := make([]string, len(entries))
	for i, e := range entries {
		list[i] = e.Name()
	}
	return list
}

// showThrough lets the host's own devices show beside the simulated ones in
// the directories that list both. Real Tenstorrent devices are left out.
func showThrough(root *tree.Dir) error {
	hidden := realBoards()
	hide := func(name, target string) bool {
		return slices.ContainsFunc(hidden, func(bdf string) bool { return strings.Contains(target+"/", "/"+bdf+"/") })
	}
	for _, dir := range []string{"/sys/class/hwmon", "/sys/bus/pci/devices", "/sys/dev/char"} {
		if _, err := os.Stat(dir); err != nil {
			continue
		}
		h, err := tree.OpenHostDir(dir, hide)
		if err != nil {
			return err
		}
		root.At(strings.Trim(dir, "/")).Beneath = h
	}
	return nil
}

// realBoards are the addresses of the Tenstorrent functions that the host
// really has.
func realBoards() []string {
	var found []string
	for _, bdf := range names("/sys/bus/pci/devices") {
		b, err := os.ReadFile(path.Join("/sys/bus/pci/devices", bdf, "vendor"))
		if err == nil && strings.TrimSpace(string(b)) == "0x1e52" {
			found = append(found, bdf)
		}
	}
	return found
}
