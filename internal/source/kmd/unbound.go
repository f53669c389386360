package kmd

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/hostfs"
)

// How old the list of unclaimed functions may be while the driver's devices are
// the same. Without the kernel's table every function of the bus has to be
// opened, which is done less often.
const (
	tableAge  = 2 * time.Second
	searchAge = 30 * time.Second
)

// unbound finds Tenstorrent functions that no driver has claimed: a probe that
// failed, or a module that is not loaded.
type unbound struct {
	found []string
	bound string    // the devices that the driver had
	until time.Time // found is good until then
}

// list returns the addresses of the unclaimed functions, with their domains.
// When bound, which identifies the driver's devices, changes, it searches
// again.
func (u *unbound) list(root hostfs.Root, bound string, now time.Time) []string {
	if bound == u.bound && now.Before(u.until) {
		return u.found
	}
	u.bound, u.until = bound, now.Add(tableAge)
	table, err := root.Read("/proc/bus/pci/devices", 1<<20)
	if err != nil {
		u.until = now.Add(searchAge)
		u.found = withoutDriver(root, func(string) bool { return true })
		return u.found
	}
	var functions []string // of the table, which has no domains
	for line := range strings.Lines(string(table)) {
		if f, ok := parseUnbound(line); ok {
			functions = append(functions, ":"+f)
		}
	}
	if u.found = nil; len(functions) > 0 {
		u.found = withoutDriver(root, func(bdf string) bool {
			return slices.ContainsFunc(functions, func(f string) bool { return strings.HasSuffix(bdf, f) })
		})
	}
	return u.found
}

// withoutDriver scans the bus for Tenstorrent functions without a driver, among
// those that may accepts.
func withoutDriver(root hostfs.Root, may func(bdf string) bool) []string {
	const bus = "/sys/bus/pci/devices/"
	var list []string
	names, _ := root.Names(bus)
	for _, bdf := range names {
		if !may(bdf) || root.Exists(bus+bdf+"/driver") {
			continue
		}
		if vendor, err := root.ReadString(bus + bdf + "/vendor"); err == nil && vendor == "0x1e52" {
			list = append(list, bdf)
		}
	}
	slices.Sort(list)
	return list
}

// parseUnbound reads a line of /proc/bus/pci/devices: bus and function, ids,
// numbers, and last the driver's name if there is one. The domain is not in it.
func parseUnbound(line string) (function string, ok bool) {
	f := strings.Fields(line)
	if len(f) != 17 || len(f[0]) != 4 || !strings.HasPrefix(f[1], "1e52") {
		return "", false
	}
	n, err := strconv.ParseUint(f[0], 16, 16)
	if err != nil {
		return "", false
	}
	return fmt.Sprintf("%02x:%02x.%x", n>>8, n>>3&31, n&7), true
}
