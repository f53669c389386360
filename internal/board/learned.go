package board

import "slices"

// How a chip was found, as users see it.
const (
	basisSysfs      = "serial number and ASIC id"
	basisDescriptor = "cluster descriptor"
	basisOrder      = "order of the devices its process has open"
	basisSibling    = "the other chip of the board is known"
	basisTray       = "its tray is known"
	basisOpen       = "several devices can have this chip"
	basisNone       = "no device of this host has this id"
)

// learned is what a Resolver knows beyond sysfs. The zero value is ready.
type learned struct {
	ids   map[uint64]pin
	trays map[string]trayPin // by tray serial number
}

type pin struct{ busID, basis string }

type trayPin struct {
	tray  int
	basis string
}

func (l *learned) pin(id uint64, busID, basis string) {
	if l.ids == nil {
		l.ids = map[uint64]pin{}
	}
	l.ids[id] = pin{busID, basis}
}

// pinTray notes the tray of a tray serial number. One serial number has one
// tray and the other way round; the first answer stays, unless it came from
// the order of devices and a descriptor contradicts it.
func (l *learned) pinTray(serial string, tray int, basis string) {
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

func outranks(basis, old string) bool { return basis == basisDescriptor && old != basisDescriptor }

// learn notes that a shared id belongs to an endpoint, if that is one of its
// candidates. Ids that two boards claim by the same serial number are beyond
// help: their chips share one region.
func (r *Resolver) learn(id uint64, endpoint int, basis string) {
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
func (r *Resolver) pinned(id uint64, claims []claim) (c claim, basis string, ok bool) {
	choose := func(basis string, want func(Endpoint) bool) (claim, string, bool) {
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
		return choose(basisTray, func(e Endpoint) bool { return e.Tray == p.tray })
	}
	if sibling, ok := r.learned.ids[id^1]; ok && len(claims) == 2 {
		return choose(basisSibling, func(e Endpoint) bool { return e.BusID != sibling.busID })
	}
	return claim{}, "", false
}
