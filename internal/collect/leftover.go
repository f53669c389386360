package collect

import (
	"errors"
	"io/fs"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/source/shm"
)

// Leftovers lists the accounting regions in which dead processes left
// something, or may have, as of the last Collect. ok is false if they
// were not read yet, or could not be.
func (c *Collector) Leftovers() (list []model.Leftover, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.swept == nil || c.swept.Err != nil && !errors.Is(c.swept.Err, fs.ErrNotExist) {
		return nil, false
	}
	for _, l := range c.swept.Leftovers() {
		list = append(list, Leftover(c.chips.devices, l))
	}
	return list, true
}

// Leftover is a region as the views show it, with the device that it is of.
func Leftover(devices []model.Device, l shm.Leftover) model.Leftover {
	r := l.Region
	out := model.Leftover{
		Region: r.Path, ChipID: r.ID, Device: model.NoDevice, Owner: r.Owner, Denied: r.Why == model.Denied, Blocked: l.Blocked,
	}
	for i := range devices {
		for j := range devices[i].Chips {
			if id, ok := devices[i].Chips[j].ID.Get(); ok && id == r.ID {
				out.Device = devices[i].Index
			}
		}
	}
	of := func(g shm.StaleSlot) model.StaleSlot {
		return model.StaleSlot{
			Region: r.Path, ChipID: r.ID, Device: out.Device, PID: g.PID, Name: g.Name, Bytes: g.Bytes, Updated: g.Updated, Mapped: len(r.Mapped) > 0,
		}
	}
	for _, g := range r.StaleSlots {
		out.StaleSlots = append(out.StaleSlots, of(g))
	}
	for _, g := range r.Unknown {
		out.Unseen = append(out.Unseen, of(g))
	}
	return out
}
