package words

import (
	"slices"
	"strconv"
	"strings"

	"github.com/ttmon/ttmon/internal/model"
)

// Idle is what stands where no process can be listed.
func Idle(s *model.Snapshot) string {
	if s.Host.HiddenFDs > 0 || slices.ContainsFunc(s.Devices, func(d model.Device) bool { return d.HiddenFDs > 0 }) {
		return "no process that can be seen from here uses a device"
	}
	return "no process uses a device"
}

// openers says where a device is held by others than those who opened it:
// a user waits for a device to become free, and the process to look for is
// not the one in the driver's list.
func (l *list) openers() {
	exited, inheritors := map[int][]string{}, map[int][]string{}
	var order []int
	for i := range l.snap.Processes {
		p := &l.snap.Processes[i]
		for j := range p.Devices {
			u := &p.Devices[j]
			switch {
			case p.State == model.Exited:
				exited[u.Device] = append(exited[u.Device], strconv.Itoa(p.PID))
			case u.Inherited:
				inheritors[u.Device] = append(inheritors[u.Device], strconv.Itoa(p.PID)+" "+Foreign(p.Name))
			default:
				continue
			}
			if !slices.Contains(order, u.Device) {
				order = append(order, u.Device)
			}
		}
	}
	for _, device := range order {
		gone, now := exited[device], inheritors[device]
		var text string
		switch {
		case len(gone) > 0 && len(now) > 0:
			text = "opened by " + strings.Join(gone, ", ") + ", which has exited; held open by " + strings.Join(now, ", ") + ", which inherited it"
		case len(gone) > 0:
			d := l.snap.Device(device)
			if d != nil && has(model.OpenerExited, d.Doubts) { // said with what keeps us from seeing more
				continue
			}
			text = "opened by " + strings.Join(gone, ", ") + ", which has exited; no process was found that holds it now"
		default:
			text = "held open by " + strings.Join(now, ", ") + ", which inherited it"
		}
		l.add(Info, "inherited", device, text)
	}
}
