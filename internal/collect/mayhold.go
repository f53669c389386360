package collect

import (
	"time"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/proc"
)

// believe decides whether the author of a claim may speak for its chip: only
// a process that has the device open can hold memory there, and none more than
// there is. Any user can write to the socket, or into a file in /dev/shm.
func (j *join) believe(h *holding, p *model.Process) {
	if h.at.device == noPlace || p == nil {
		return
	}
	d := &j.snap.Devices[h.at.device]
	if !j.mayHold(p, d) {
		h.refused = true
		return
	}
	limit := physical(d)
	for pool := range h.Bytes {
		if n, _, ok := h.Bytes[pool].Best(); ok && limit[pool] != 0 && n > limit[pool] {
			h.refused = true
		}
	}
}

// mayHold reports whether a process can hold memory of a device: unless it is
// certain that it does not have it open.
func (j *join) mayHold(p *model.Process, d *model.Device) bool {
	for i := range p.Devices {
		if p.Devices[i].Device == d.Index {
			return true
		}
	}
	if p.State == model.Hidden {
		return d.HiddenFDs > 0
	}
	return !j.opensNot(p.ID(), d.Index)
}

// openings remembers of processes that are not in the driver's list whether
// they hold a device: a child has what its parent opened. To look takes the
// process's whole list of descriptors.
type openings struct {
	processes *proc.Reader
	known     map[openingKey]opening
}

type openingKey struct {
	process model.ProcessID
	device  int
}

type opening struct {
	certainlyNot bool
	at           time.Time
	used         bool
}

// openingAge is how long an answer stays valid.
const openingAge = 5 * time.Second

// opensNot reports whether it is certain that a process does not have a device open.
func (o *openings) opensNot(id model.ProcessID, device int) bool {
	key := openingKey{id, device}
	known, ok := o.known[key]
	if !ok || time.Since(known.at) > openingAge {
		known = opening{certainlyNot: o.processes.DoesNotHold(id.PID, device), at: time.Now()}
	}
	known.used = true
	o.known[key] = known
	return known.certainlyNot
}

// forget drops answers that were not used since the last call.
func (o *openings) forget() {
	for key, known := range o.known {
		if !known.used {
			delete(o.known, key)
			continue
		}
		known.used = false
		o.known[key] = known
	}
}
