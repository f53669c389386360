package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
)

// Commands that findings name.
const (
	loadDriver = "modprobe tenstorrent; if there is no such module, install tt-kmd (github.com/tenstorrent/tt-kmd) with dkms"
	flash      = "update the firmware with tt-flash, all boards of a kind to the same bundle"
)

func (e *examiner) driver() {
	h := &e.Snapshot.Host
	waiting := words.Escape(strings.Join(h.Unbound, ", "))
	switch {
	case !h.DriverLoaded && waiting != "":
		e.addHost(Driver, Critical, "driver_absent", "the driver is not loaded for these boards: "+waiting, loadDriver)
		return
	case !h.DriverLoaded:
		e.addHost(Driver, Unknown, "no_board", "the driver is not loaded, and no Tenstorrent board is on the PCI bus",
			"if this host has a board, check that it is seated and powered (lspci -d 1e52:); a container sees boards only if /sys shows them")
		return
	case waiting != "":
		e.addHost(Driver, Critical, "unbound", "the driver has not bound these boards: "+waiting,
			"dmesg | grep tenstorrent says why; a reset or an update of the firmware may help")
	case len(e.Snapshot.Devices) == 0:
		e.addHost(Driver, Unknown, "no_board", "the driver is loaded, and no Tenstorrent board is on the PCI bus",
			"check that the board is seated and powered (lspci -d 1e52:)")
		return
	}
	v, ok := h.DriverVersion.Get()
	if !ok {
		e.addHost(Driver, Hint, "driver_version", "the driver does not report its version", "")
		return
	}
	if before(v, 2, 7) {
		e.addHost(Driver, Warning, "driver_removal",
			"tt-kmd "+words.Escape(v)+" can crash the kernel if a board is removed, or the driver unloaded, while a program reads its sensors, as ttmon and every reader of hwmon does",
			"update tt-kmd to 2.7 or later; until then stop ttmond and other monitors before you remove a board or unload the driver")
	}
	lacks := notOffered(v)
	switch {
	case len(lacks) > 0:
		e.addHost(Driver, Hint, "driver_old", "tt-kmd "+words.Escape(v)+" does not provide "+strings.Join(lacks, ", "), "update tt-kmd to 2.9 or later")
	default:
		e.addHost(Driver, OK, "driver", fmt.Sprintf("tt-kmd %s has %s", words.Escape(v), count(len(e.Snapshot.Devices), "device")), "")
	}
}

// before reports whether a driver release is older than another. One that cannot
// be understood is not.
func before(version string, major, minor int) bool {
	var x, y int
	if _, err := fmt.Sscanf(version, "%d.%d", &x, &y); err != nil {
		return false
	}
	return x < major || x == major && y < minor
}

// notOffered is what a driver release does not provide and ttmon would show.
func notOffered(version string) (list []string) {
	for _, f := range []struct {
		major, minor int
		what         string
	}{
		{2, 0, "PCIe traffic"}, {2, 5, "who has a device open"}, {2, 7, "a heartbeat (firmware that hangs does not show)"}, {2, 9, "values that can be trusted during a reset"},
	} {
		if before(version, f.major, f.minor) {
			list = append(list, f.what)
		}
	}
	return list
}

func (e *examiner) devices() {
	trouble := e.trouble(Devices)
	trouble = e.repeat(Devices, map[string]string{string(model.ConditionTripped): "check the airflow and the fans: the board has switched itself off before"}) || trouble
	if n := len(e.Snapshot.Devices); n > 0 && !trouble {
		text := "all well: " + count(n, "device")
		if n == 1 {
			text = "all well"
		}
		if slices.ContainsFunc(e.Snapshot.Devices, func(d model.Device) bool { return d.StateReason.Cause != "" }) {
			text += ", as far as can be told without seeing heartbeats move"
		}
		e.addHost(Devices, OK, "devices", text, "")
	}
}

func (e *examiner) firmware() {
	if len(e.Snapshot.Devices) == 0 {
		return
	}
	if e.repeat(Firmware, map[string]string{"firmware": flash}) {
		return
	}
	var versions, silent []string
	at := map[string][]int{}
	var missing []int
	for i := range e.Snapshot.Devices {
		d := &e.Snapshot.Devices[i]
		v, ok := d.Firmware.Bundle.Get()
		if !ok {
			if d.State == model.StateOK { // of one in trouble that is said above
				missing = append(missing, d.Index)
			}
			continue
		}
		if at[v] == nil {
			versions = append(versions, v)
		}
		at[v] = append(at[v], d.Index)
	}
	for _, v := range versions {
		silent = append(silent, words.Escape(v)+" on "+words.Ranges(at[v]))
	}
	if len(missing) > 0 {
		e.add(Finding{
			Area: Firmware, Level: Hint, Code: "firmware_silent", Devices: missing, Do: flash,
			Text: "no version of the firmware can be read of " + words.Ranges(missing) + ": it is too old for this driver",
		})
	}
	if len(versions) > 0 {
		e.addHost(Firmware, OK, "firmware", "bundle "+strings.Join(silent, "; "), "")
	}
}

func (e *examiner) links() {
	if len(e.Snapshot.Devices) == 0 {
		return
	}
	slow := e.trouble(Links)
	index := map[string]int{}
	for i := range e.Snapshot.Devices {
		index[e.Snapshot.Devices[i].BusID] = e.Snapshot.Devices[i].Index
	}
	for _, f := range e.Setup.Functions {
		fatal, nonfatal := f.FatalErrors.V, f.NonfatalErrors.V
		at, known := index[f.BusID]
		if fatal+nonfatal == 0 || !known {
			continue
		}
		slow = true
		e.add(Finding{
			Area: Links, Level: Warning, Code: "pcie_errors", Devices: []int{at},
			Text: fmt.Sprintf("device %d: the PCIe link has had %d fatal and %d other errors since the host started", at, fatal, nonfatal),
			Do:   "reseat the board, or try another slot; dmesg | grep AER lists the errors",
		})
	}
	if !slow {
		e.addHost(Links, OK, "links", "PCIe links run at the full speed and width of both ends", "")
	}
}

// count is "1 device", "3 devices".
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
