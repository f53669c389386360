package collect

import (
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/source/kmd"
)

// countHidden counts the descriptors whose processes cannot be seen from here.
// The driver's list alone does not tell: it has zeros for another pid
// namespace, whose processes a mount of the host's /proc may show.
func countHidden(s *model.Snapshot, sweep kmd.Sweep) {
	seen := 0 // of devices that the driver keeps no list of
	for i := range s.Processes {
		p := &s.Processes[i]
		for _, u := range p.Devices {
			d := s.Device(u.Device)
			switch {
			case d == nil:
			case p.State == model.Hidden:
				d.HiddenFDs += u.OpenFDs.V
			case !listed(sweep, u.Device):
				seen += u.OpenFDs.V
			}
		}
	}
	// The module counts all, including processes this user may not inspect.
	if all, ok := sweep.OpenFDs.Get(); ok && all > seen {
		s.Host.HiddenFDs = all - seen
	}
	if len(s.Devices) == 1 {
		s.Devices[0].HiddenFDs += s.Host.HiddenFDs
		s.Host.HiddenFDs = 0
	}
}

// listed reports whether the driver keeps a list of who has a device open.
func listed(sweep kmd.Sweep, device int) bool {
	for i := range sweep.Found {
		if f := &sweep.Found[i]; f.Device.Index == device {
			return f.Openers.Known()
		}
	}
	return false
}
