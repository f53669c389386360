package proc

import (
	"context"

	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/model"
)

// scanHolders finds all holders of all devices.
func (res *resolution) scanHolders(ctx context.Context, proc hostfs.Dir) (err error) {
	res.found, err = res.r.holders(ctx, proc)
	return err
}

// addUnlisted adds the holders that are missing from the driver's lists.
func (res *resolution) addUnlisted(devices []Openers, claims []*claim) {
	for _, d := range devices {
		var own []*claim
		for _, c := range claims {
			if c.device == d.Device {
				own = append(own, c)
			}
		}
		holders := res.found.Holders[d.Device]
		switch {
		case d.PIDs.Status == model.Lost:
			res.addToLostDevice(d.Device, holders)
		case !d.PIDs.Known():
			res.addAll(d.Device, holders)
		case !res.r.view.ownPIDs:
			res.addForeign(d, holders)
		case !res.trusted:
			res.matchInnerPIDs(own, holders)
		default:
			res.addInheritors(d.Device, own, holders)
		}
	}
}

// addAll is for devices without a list: openers and inheritors cannot be
// distinguished.
func (res *resolution) addAll(device int, holders []Holder) {
	for _, h := range holders {
		res.addHolder(h, model.DeviceUse{Device: device, OpenFDs: model.Value(len(h.FDs))})
	}
	res.doubts[device] = res.found.Doubts()
}

// addForeign is for a container that reads the host's /proc: the list has pids
// of our namespace (mostly zeros), the scan those of the host's.
func (res *resolution) addForeign(d Openers, holders []Holder) {
	delete(res.hidden, d.Device)
	lines, seen := len(d.PIDs.V), 0
	for _, h := range holders {
		seen += len(h.FDs)
	}
	res.addAll(d.Device, holders)
	if lines > seen && !res.found.Complete() {
		res.addHidden(d.Device, lines-seen, model.HolderUnseen)
	}
}

// matchInnerPIDs is for drivers that list pids of the opener's namespace: a pid
// belongs to the holder that has it in its innermost namespace.
func (res *resolution) matchInnerPIDs(claims []*claim, holders []Holder) {
	var rest []Holder
	for _, h := range holders {
		p := res.describe(h.PID)
		if p.State != model.Running {
			continue
		}
		c := findClaim(claims, res.r.innerPID(h.PID))
		if c == nil {
			rest = append(rest, h)
			continue
		}
		c.verdict = holder
		res.addUse(p, model.DeviceUse{Device: c.device, OpenFDs: model.Value(c.lines)})
	}
	var open []*claim
	for _, c := range claims {
		if c.verdict == holder {
			continue
		}
		open = append(open, c)
		if res.addExited(c) {
			continue
		}
		res.addHidden(c.device, c.lines, model.NumberForeign)
	}
	if len(open) > 0 {
		for _, h := range rest {
			res.addHolder(h, model.DeviceUse{
				Device: open[0].device, OpenFDs: model.Value(len(h.FDs)), Inherited: true,
				Doubts: []model.Doubt{{Kind: model.InheritedFromUnknown}},
			})
		}
	}
}

// findClaim finds a claim of this pid that no other holder has matched.
func findClaim(claims []*claim, pid int) *claim {
	for _, c := range claims {
		if c.pid == pid && c.verdict == unchecked {
			return c
		}
	}
	return nil
}

// addInheritors adds the holders that did not open the device, if there is an
// opener from which they can have the descriptor.
func (res *resolution) addInheritors(device int, claims []*claim, holders []Holder) {
	var lost []*claim
	openers := map[int]bool{}
	for _, c := range claims {
		if c.verdict == holder {
			openers[c.pid] = true
		} else {
			lost = append(lost, c)
		}
	}
	if len(lost) == 0 {
		return
	}
	found := false
	for _, h := range holders {
		if openers[h.PID] {
			continue
		}
		if h.FDs = res.notShared(h, openers, holders); len(h.FDs) == 0 {
			continue // its parent's, which runs
		}
		found = true
		res.addHolder(h, model.DeviceUse{Device: device, OpenFDs: model.Value(len(h.FDs)), Inherited: true, Doubts: []model.Doubt{origin(lost)}})
	}
	if !found {
		res.doubts[device] = res.holderNotFound(lost)
	}
}

// origin is where an inherited descriptor comes from.
func origin(lost []*claim) model.Doubt {
	c := lost[0]
	switch {
	case len(lost) > 1:
		return model.Doubt{Kind: model.InheritedFromSeveral, Count: len(lost)}
	case c.verdict == openerExited:
		return model.Doubt{Kind: model.InheritedFromExited, PID: c.pid}
	default:
		return model.Doubt{Kind: model.HandedOn, PID: c.pid}
	}
}

// holderNotFound explains that the holder of a descriptor was not found.
func (res *resolution) holderNotFound(lost []*claim) []model.Doubt {
	c := lost[0]
	kind := model.OpenerExited
	if c.verdict == passedOn {
		kind = model.OpenerHandedOn
	}
	return append([]model.Doubt{{Kind: kind, PID: c.pid}}, res.found.Doubts()...)
}

// addHolder adds a process found by the scan, unless it has exited since.
func (res *resolution) addHolder(h Holder, u model.DeviceUse) {
	if p := res.describe(h.PID); p.State == model.Running {
		res.addUse(p, u)
	}
}
