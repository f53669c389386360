package board

import "github.com/ttmon/ttmon/internal/model"

// Endpoint is what the driver says about the identity of one device.
type Endpoint struct {
	Index          int    // kernel index
	BusID          string // 0000:01:00.0
	Card           string // name in the catalogue; empty if not identified
	Arch           model.Arch
	Serial, ASICID uint64 // 0: not known
	Tray, Slot     int    // place in a Galaxy; 0: not known
}

// EndpointOf returns the identity of a device.
func EndpointOf(d *model.Device) Endpoint {
	b, _ := Identify(d.Board.V, d.Serial.V, d.PCIID.SubDevice, d.Arch)
	e := Endpoint{Index: d.Index, BusID: d.BusID, Card: b.Card, Arch: b.Arch, Tray: d.Tray, Slot: d.Slot}
	if id, ok := ParseID(d.Serial.V); ok {
		e.Serial = id
	}
	if id, ok := ParseID(d.ASICID.V); ok {
		e.ASICID = id
	}
	return e
}

// claim is a chip that an id may mean.
type claim struct {
	endpoint int // position in Resolver.endpoints
	slot     int // position in the device's chips
	name     string
	remote   bool
	shared   bool // the id is one of the board's, but of which of its endpoints is not said
}

// ids lists the ids that the chips behind e can have, as far as sysfs says. A
// Wormhole Galaxy's are not among them: the serial number of its trays is not
// in sysfs.
func (e Endpoint) ids(add func(id uint64, c claim)) {
	b, _ := ByCard(e.Card)
	serial, asic := e.Serial != 0, e.ASICID != 0
	if e.Arch == model.Blackhole && asic {
		add(e.ASICID, claim{}) // Galaxies, and every chip without a trained link
	}
	switch {
	case !serial:
	case b.UMDType == "n300":
		add(e.Serial, claim{name: "L"})
		add(wormholeID(e.Serial, kindN300+n300Left), claim{name: "L"})
		add(wormholeID(e.Serial, kindN300+n300Right), claim{name: "R", slot: 1, remote: true})
	case b.UMDType == "n150":
		add(e.Serial, claim{})
		add(wormholeID(e.Serial, kindN150), claim{})
	case b.UMDType == "p150":
		add(blackholeID(e.Serial, 0), claim{})
	case b.UMDType == "p300":
		add(blackholeID(e.Serial, p300Left), claim{name: "L", shared: true})
		add(blackholeID(e.Serial, p300Right), claim{name: "R", shared: true})
	case e.Arch == model.Wormhole && !b.Galaxy():
		add(e.Serial, claim{})
	}
}

// SoleID is the id of the chip in a slot of the device, if the driver's values
// leave only one possible. Elsewhere it depends on cables, or is not in sysfs.
func (e Endpoint) SoleID(slot int) (id uint64, ok bool) {
	n := 0
	e.ids(func(candidate uint64, c claim) {
		if c.slot == slot {
			id, n = candidate, n+1
		}
	})
	return id, n == 1 && !e.blind()
}

// blind reports whether e may have an id that it would list if the driver said
// more: old drivers and firmware leave out the ASIC id, or both.
func (e Endpoint) blind() bool {
	b, _ := ByCard(e.Card)
	switch {
	case !b.Identified():
		return true
	case e.Arch == model.Wormhole:
		return e.Serial == 0
	case b.UMDType == "p100" || b.Galaxy(): // those of a Blackhole
		return e.ASICID == 0
	}
	return e.ASICID == 0 || e.Serial == 0
}
