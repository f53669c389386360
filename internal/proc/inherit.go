package proc

import (
	"context"

	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/model"
)

// scan finds all holders of all devices.
func (res *resolution) scan(ctx context.Context, proc hostfs.Dir) (err error) {
	res.found, err = res.r.holders(ctx, proc)
	return err
}

// complete enters the holders that the driver's lists do not name.
func (res *resolution) complete(devices []Openers, claims []*claim) {
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
			res.addLast(d.Device, holders)
		case !d.PIDs.Known():
			res.addAll(d.Device, holders)
		case !res.r.view.ours:
			res.addForeign(d, holders)
		case !res.trusted:
			res.confirm(own, holders)
		default:
			res.addInheritors(d.Device, own, holders)
		}
	}
}

// addAll is for devices without a list: who opened and who inherited cannot
// be told apart.
func (res *resolution) addAll(device int, holders []Holder) {
	for _, h := range holders {
		res.addHolder(h, model.DeviceUse{Device: device, OpenFDs: model.Value(len(h.FDs))})
	}
	res.doubts[device] = res.found.Doubts()
}

// addForeign is for a container that looks at the host's /proc: the list
// speaks of our namespace (and is mostly zeros), the scan of the host's.
func (res *resolution) addForeign(d Openers, holders []Holder) {
	delete(res.hidden, d.Device)
	lines, seen := len(d.PIDs.V), 0
	for _, h := range holders {
		seen += len(h.FDs)
	}
	res.addAll(d.Device, holders)
	if lines > seen && !res.found.Complete() {
		res.hide(d.Device, lines-seen, model.HolderUnseen)
	}
}

// confirm is for drivers that list numbers of the opener's namespace: a
// number belongs to the holder that has it in its innermost namespace.
func (res *resolution) confirm(claims []*claim, holders []Holder) {
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
		res.use(p, model.DeviceUse{Device: c.device, OpenFDs: model.Value(c.lines)})
	}
	var open []*claim
	for _, c := range claims {
		if c.verdict == holder {
			continue
		}
		open = append(open, c)
		if res.mustBeGone(c) {
			continue
		}
		res.hide(c.device, c.lines, model.NumberForeign)
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

// findClaim finds the claim of a number that no other holder has taken.
func findClaim(claims []*claim, pid int) *claim {
	for _, c := range claims {
		if c.pid == pid && c.verdict == unjudged {
			return c
		}
	}
	return nil
}

// addInheritors enters the holders that did not open the device, if there is
// an opener whose descriptor they can have.
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
			continue // its parent's, which lives
		}
		found = true
		res.addHolder(h, model.DeviceUse{Device: device, OpenFDs: model.Value(len(h.FDs)), Inherited: true, Doubts: []model.Doubt{origin(lost)}})
	}
	if !found {
		res.doubts[device] = res.noHeir(lost)
	}
}

// origin is where an inherited descriptor comes from.
func origin(lost []*claim) model.Doubt {
	c := lost[0]
	switch {
	case len(lost) > 1:
		return model.Doubt{Kind: model.InheritedFromSeveral, Count: len(lost)}
	case c.verdict == dead:
		return model.Doubt{Kind: model.InheritedFromExited, PID: c.pid}
	default:
		return model.Doubt{Kind: model.HandedOn, PID: c.pid}
	}
}

// noHeir is for a descriptor whose holder was not found.
func (res *resolution) noHeir(lost []*claim) []model.Doubt {
	c := lost[0]
	kind := model.OpenerExited
	if c.verdict == passedOn {
		kind = model.OpenerHandedOn
	}
	return append([]model.Doubt{{Kind: kind, PID: c.pid}}, res.found.Doubts()...)
}

// addHolder enters a process found by the scan, unless it has ended since.
func (res *resolution) addHolder(h Holder, u model.DeviceUse) {
	if p := res.describe(h.PID); p.State == model.Running {
		res.use(p, u)
	}
}
