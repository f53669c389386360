package board

import (
	"maps"
	"slices"

	"github.com/ttmon/ttmon/internal/model"
)

// learned is what a Resolver knows beyond sysfs. The zero value is ready.
type learned struct {
	ids   map[uint64]pin
	trays map[string]trayPin // by tray serial number
}

type pin struct {
	busID string
	basis model.Basis
}

type trayPin struct {
	tray  int
	basis model.Basis
}

// maxPins bounds the chips that are remembered: far more than a host has, but a
// process that has a device open can account for any number. What is in use is
// learned again.
const maxPins = 4096

func (l *learned) pin(id uint64, busID string, basis model.Basis) {
	if _, again := l.ids[id]; l.ids == nil || !again && len(l.ids) >= maxPins {
		l.ids = map[uint64]pin{}
	}
	l.ids[id] = pin{busID, basis}
}

// pinTray records the tray of a tray serial number. One serial number has one
// tray and vice versa; the first result stays, unless it came from the order of
// devices and a descriptor contradicts it.
func (l *learned) pinTray(serial string, tray int, basis model.Basis) {
	if l.trays == nil {
		l.trays = map[string]trayPin{}
	}
	for other, p := range l.trays {
		switch {
		case other != serial && p.tray != tray:
		case outranks(basis, p.basis):
			delete(l.trays, other)
		default:
			return
		}
	}
	l.trays[serial] = trayPin{tray, basis}
}

func outranks(basis, old model.Basis) bool {
	return basis == model.ByDescriptor && old != model.ByDescriptor
}

// dropContradicted drops what was learned about an id if the process that
// accounts for it does not have the device open; and what was learned from an
// order of devices if the order says something else now. What remains then is a
// chip of one of several devices.
func (r *Resolver) dropContradicted(s Sighting) {
	if len(s.Open) == 0 {
		return
	}
	ordered, hasOrder := -1, false
	if claims := r.candidates(s.ID); len(claims) > 0 && claims[0].shared {
		ordered, hasOrder = r.byOrder(s, r.endpoints[claims[0].endpoint].Arch)
	}
	refuted := func(basis model.Basis, is func(Endpoint) bool) bool {
		open := slices.ContainsFunc(r.endpoints, func(e Endpoint) bool { return is(e) && slices.Contains(s.Open, e.Index) })
		return !open || basis == model.ByOrder && hasOrder && !is(r.endpoints[ordered])
	}
	if p, ok := r.learned.ids[s.ID]; ok && refuted(p.basis, func(e Endpoint) bool { return e.BusID == p.busID }) {
		delete(r.learned.ids, s.ID)
	}
	serial, _, ok := splitTrayID(s.ID)
	if !ok {
		return
	}
	if p, ok := r.learned.trays[serial]; ok && refuted(p.basis, func(e Endpoint) bool { return e.Tray == p.tray }) {
		delete(r.learned.trays, serial)
	}
}

// KnownChip is one thing that a Resolver learned, in a form that can be passed to
// the next one.
type KnownChip struct {
	ID     uint64      `json:"id,omitempty"` // of a chip at BusID
	BusID  string      `json:"bus_id,omitempty"`
	Serial string      `json:"serial,omitempty"` // of a tray, and which one that is
	Tray   int         `json:"tray,omitempty"`
	Basis  model.Basis `json:"basis"`
}

// Export lists what was learned, for Restore.
func (r *Resolver) Export() (list []KnownChip) {
	for _, id := range slices.Sorted(maps.Keys(r.learned.ids)) {
		p := r.learned.ids[id]
		list = append(list, KnownChip{ID: id, BusID: p.busID, Basis: p.basis})
	}
	for _, serial := range slices.Sorted(maps.Keys(r.learned.trays)) {
		p := r.learned.trays[serial]
		list = append(list, KnownChip{Serial: serial, Tray: p.tray, Basis: p.basis})
	}
	return list
}

// Restore adds what another Resolver exported.
func (r *Resolver) Restore(list []KnownChip) {
	for _, l := range list {
		if l.Serial != "" {
			r.learned.pinTray(l.Serial, l.Tray, l.Basis)
		} else {
			r.learned.pin(l.ID, l.BusID, l.Basis)
		}
	}
}

// pinEndpoint records that a shared id belongs to an endpoint, if that is one
// of its candidates. Ids that two boards claim by the same serial number cannot
// be resolved: their chips share one region.
func (r *Resolver) pinEndpoint(id uint64, endpoint int, basis model.Basis) {
	claims := r.candidates(id)
	if !slices.ContainsFunc(claims, func(c claim) bool { return c.shared && c.endpoint == endpoint }) {
		return
	}
	e := r.endpoints[endpoint]
	if serial, _, ok := splitTrayID(id); ok && e.Tray > 0 {
		r.learned.pinTray(serial, e.Tray, basis)
		return
	}
	if e.Card != "galaxy-wormhole" && len(claims) > 2 {
		return
	}
	for _, rival := range []uint64{id, id ^ 1} { // the other one of a p300 cannot be here as well
		p, ok := r.learned.ids[rival]
		if !ok || rival != id && p.busID != e.BusID {
			continue
		}
		if !outranks(basis, p.basis) {
			return
		}
		delete(r.learned.ids, rival)
	}
	r.learned.pin(id, e.BusID, basis)
}

// pinned chooses among the claims on id by what was learned.
func (r *Resolver) pinned(id uint64, claims []claim) (c claim, basis model.Basis, ok bool) {
	choose := func(basis model.Basis, want func(Endpoint) bool) (claim, model.Basis, bool) {
		i := slices.IndexFunc(claims, func(c claim) bool { return c.shared && want(r.endpoints[c.endpoint]) })
		if i < 0 {
			return claim{}, "", false
		}
		return claims[i], basis, true
	}
	if p, ok := r.learned.ids[id]; ok {
		return choose(p.basis, func(e Endpoint) bool { return e.BusID == p.busID })
	}
	if serial, _, ok := splitTrayID(id); ok {
		p, ok := r.learned.trays[serial]
		if !ok {
			return claim{}, "", false
		}
		return choose(model.ByTray, func(e Endpoint) bool { return e.Tray == p.tray })
	}
	if sibling, ok := r.learned.ids[id^1]; ok && len(claims) == 2 {
		return choose(model.BySibling, func(e Endpoint) bool { return e.BusID != sibling.busID })
	}
	return claim{}, "", false
}
