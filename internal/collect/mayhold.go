package collect

import (
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/book/claim"
	"github.com/ttmon/ttmon/internal/hostfs/proc"
	"github.com/ttmon/ttmon/internal/model"
)

// believe decides whether the author of a claim may speak for its chip: only
// a process that has the device open can hold memory there, and none more than
// there is. Any user can write to the socket, or into a file in /dev/shm: where the
// administrator lets them speak for devices that they do not have open, those are
// figures with a doubt.
func (j *join) believe(h *holding, p *model.Process) {
	if h.at.device == noPlace || p == nil {
		return
	}
	d := &j.snap.Devices[h.at.device]
	switch hold := j.hold(p, d); {
	case hold == proc.NotHeld && j.unopened && h.source == model.FromSocket:
		h.Held = unproven(h.Held, model.Unopened)
	case hold == proc.NotHeld:
		h.refused = true
		return
	case hold == proc.HoldUnknown:
		h.Held = unproven(h.Held, model.OpenUnproven)
	}
	limit := physical(d)
	for pool := range h.Bytes {
		if n, _, ok := h.Bytes[pool].Best(); ok && limit[pool] != 0 && n > limit[pool] {
			h.refused, h.tooMuch = true, true
		}
	}
}

// hold reports whether a process can hold memory of a device, which it can if it has
// it open.
func (j *join) hold(p *model.Process, d *model.Device) proc.Hold {
	for i := range p.Devices {
		if p.Devices[i].Device == d.Index {
			return proc.Held
		}
	}
	switch {
	case p.State != model.Hidden:
		return j.opens(p.ID(), d.Index)
	case d.HiddenFDs > 0:
		return proc.Held
	default:
		return proc.NotHeld
	}
}

// unproven is the claim of a process that does not have the device open, or perhaps not.
func unproven(h *claim.Held, why model.DoubtKind) *claim.Held {
	c := *h
	c.Pools = nil
	for pool := range c.Bytes {
		c.Bytes[pool] = c.Bytes[pool].Doubted(model.Unsure)
	}
	c.Doubts = model.AddDoubts(slices.Clone(h.Doubts), model.Doubt{Kind: why, PID: h.Process.PID})
	return &c
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
	hold proc.Hold
	at   time.Time
	used bool
}

// openingAge is how long an answer stays valid.
const openingAge = 5 * time.Second

// opens reports whether a process has a device open.
func (o *openings) opens(id model.ProcessID, device int) proc.Hold {
	key := openingKey{id, device}
	known, ok := o.known[key]
	if !ok || time.Since(known.at) > openingAge {
		known = opening{hold: o.processes.HasOpen(id.PID, device), at: time.Now()}
	}
	known.used = true
	o.known[key] = known
	return known.hold
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
