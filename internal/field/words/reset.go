package words

import (
	"slices"
	"strconv"
	"strings"

	"github.com/ttmon/ttmon/internal/model"
)

// ResetCommand is how Tenstorrent's tool resets a device. Only a path is safe: a
// bare number is UMD's id, which is not the kernel's index, and a target that
// matches nothing resets every chip of the host.
const ResetCommand = "tt-smi -r " + nodePath + "N"

const nodePath = "/dev/tenstorrent/"

// Reset says how devices are reset, and which processes are to be stopped before
// that, or that another program of the host sees to it. Every advice to reset a
// device is made here.
func Reset(s *model.Snapshot, devices []int) string {
	if at := broker(s); at != "" {
		return BrokerResets(at)
	}
	paths := make([]string, len(devices))
	for i, index := range devices {
		paths[i] = nodePath + strconv.Itoa(index)
	}
	command := strings.TrimSuffix(ResetCommand, nodePath+"N") + strings.Join(paths, ",")
	if who := holders(s, devices); who != "" {
		return "first stop " + who + ", then " + command
	}
	return command
}

// BrokerResets stands in place of an advice to reset a device where Tenstorrent's
// device broker was found. A reset behind its back would hit the jobs it started.
func BrokerResets(at string) string {
	return "left to this host's device broker (" + Escape(at) + ")"
}

// broker is where Tenstorrent's device broker was found: its directory, or the
// scope of a job that it started.
func broker(s *model.Snapshot) string {
	if s.Host.Broker != "" {
		return s.Host.Broker
	}
	for i := range s.Processes {
		if unit := s.Processes[i].SystemdUnit; strings.HasPrefix(unit, "ttdev-") {
			return unit
		}
	}
	return ""
}

// namedHolders is how many processes an advice names.
const namedHolders = 3

// holders names the live processes that use devices: "PID 4711 (serve.py, alice)".
func holders(s *model.Snapshot, devices []int) string {
	var list []string
	unseen := unseenHolders(s, devices)
	for i := range s.Processes {
		p := &s.Processes[i]
		if p.State == model.Exited || !slices.ContainsFunc(p.Devices, func(u model.DeviceUse) bool { return slices.Contains(devices, u.Device) }) {
			continue
		}
		if p.PID == 0 { // in a pid namespace beside ours
			unseen = true
			continue
		}
		list = append(list, "PID "+strconv.Itoa(p.PID)+" ("+Program(p)+", "+Foreign(p.User)+")")
	}
	if n := len(list) - namedHolders; n > 0 {
		list = append(list[:namedHolders], plural(n, "other", "others"))
	}
	if unseen {
		list = append(list, "processes that cannot be seen from here")
	}
	if n := len(list); n > 1 {
		return strings.Join(list[:n-1], ", ") + " and " + list[n-1]
	}
	return strings.Join(list, "")
}

func unseenHolders(s *model.Snapshot, devices []int) bool {
	return s.Host.HiddenFDs > 0 || slices.ContainsFunc(devices, func(index int) bool {
		d := s.Device(index)
		return d != nil && (d.HiddenFDs > 0 || has(model.UsersHidden, d.Doubts) || has(model.UsersUnknown, d.Doubts))
	})
}
