package board

import (
	"cmp"
	"slices"

	"github.com/ttmon/ttmon/internal/model"
)

// Certainty grades a Match.
type Certainty int

// Certainties, weakest first.
const (
	Unmatched Certainty = iota // no device of this host: a mock or simulator run, or hardware that is gone
	Ambiguous                  // one of Candidates; which one is unknown
	Inferred                   // Device, by what was learned about the host
	Exact                      // Device, by its own serial number or ASIC id
)

// Match says which chip an id means.
type Match struct {
	Certainty  Certainty
	Device     int    // kernel index; model.NoDevice unless Inferred or Exact
	Slot       int    // position of the chip in the device's Chips
	Name       string // "L", "R" or empty; known even where the device is not
	Remote     bool
	Candidates []int       // kernel indexes, where Ambiguous
	Basis      model.Basis // how it was found; empty if it was not
}

// Sighting is an id that was seen in use, and what may help to find its chip.
type Sighting struct {
	ID uint64
	// DeviceID is the logical number the region's writer gives the chip, and Open
	// the kernel indexes of all devices that the writer has open. Leave Open empty
	// unless the region has exactly one live writer (the number is that of the
	// process that attached last) and existed before the list was made: a process
	// opens all of its devices first, and its regions then.
	DeviceID uint32
	Open     []int
}

// Placement is a chip's place as a cluster descriptor has it.
type Placement struct {
	ID     uint64
	BusID  string // empty if the descriptor does not say
	Device int    // kernel index at that time; model.NoDevice if it does not say
}

// Resolver finds the chip that an accounting region belongs to. Most ids follow
// from what sysfs says. Two families need more: a p300's two endpoints share a
// serial number, and a Wormhole Galaxy's ids hold a tray serial number that
// sysfs does not have. For these it tries in order what a cluster descriptor
// said (Learn), the order in which a live process sees its devices, and what
// follows for the other chips from one that is known. It keeps what it learned,
// by PCI address, until a live process contradicts it.
//
// The zero Resolver knows no device. It is not safe for concurrent use.
type Resolver struct {
	endpoints []Endpoint
	claims    map[uint64][]claim
	learned   learned
}

// Update sets the current devices. It is cheap if nothing changed.
func (r *Resolver) Update(endpoints []Endpoint) {
	if slices.Equal(endpoints, r.endpoints) {
		return
	}
	r.endpoints = slices.Clone(endpoints)
	r.claims = make(map[uint64][]claim, 3*len(endpoints))
	for i, e := range r.endpoints {
		e.ids(func(id uint64, c claim) {
			c.endpoint = i
			r.claims[id] = append(r.claims[id], c)
		})
	}
}

// Learn adds what a cluster descriptor says about chips that sysfs does not
// identify. Placements that contradict sysfs are of another host or of a mock
// run, and ignored.
func (r *Resolver) Learn(placements []Placement) {
	for _, p := range placements {
		i := slices.IndexFunc(r.endpoints, func(e Endpoint) bool {
			return p.BusID == e.BusID || p.BusID == "" && p.Device == e.Index
		})
		if i >= 0 {
			r.pinEndpoint(p.ID, i, model.ByDescriptor)
		}
	}
}

// Match finds the chips of ids, in the order of the sightings. Pass them
// together: what one sighting shows helps with the others.
func (r *Resolver) Match(sightings []Sighting) []Match {
	for _, s := range sightings {
		r.dropContradicted(s)
	}
	for _, s := range sightings {
		if claims := r.candidates(s.ID); len(claims) > 0 && claims[0].shared {
			if i, ok := r.byOrder(s, r.endpoints[claims[0].endpoint].Arch); ok {
				r.pinEndpoint(s.ID, i, model.ByOrder)
			}
		}
	}
	for _, s := range sightings {
		r.dropContradicted(s) // by another of them: then neither counts
	}
	matches := make([]Match, len(sightings))
	for i, s := range sightings {
		matches[i] = r.match(s)
	}
	return matches
}

func (r *Resolver) match(s Sighting) Match {
	claims := r.candidates(s.ID)
	switch {
	case len(claims) == 0:
		return r.matchForeign(s)
	case len(claims) == 1 && !claims[0].shared:
		return r.found(claims[0], Exact, model.BySysfs)
	}
	if c, basis, ok := r.pinned(s.ID, claims); ok {
		return r.found(c, Inferred, basis)
	}
	m := Match{Certainty: Ambiguous, Device: model.NoDevice, Name: claims[0].name}
	for _, c := range claims {
		m.Candidates = append(m.Candidates, r.endpoints[c.endpoint].Index)
		if c.name != m.Name {
			m.Name = ""
		}
	}
	slices.Sort(m.Candidates)
	return m
}

// candidates lists the chips that id can mean. They are shared if sysfs does
// not decide between them but something else may.
func (r *Resolver) candidates(id uint64) []claim {
	claims := r.claims[id]
	_, location, ok := splitTrayID(id)
	if len(claims) > 0 || !ok {
		return claims
	}
	for i, e := range r.endpoints {
		if e.Card == "galaxy-wormhole" && (e.Slot == 0 || e.Slot == location) {
			claims = append(claims, claim{endpoint: i, shared: true})
		}
	}
	return claims
}

// matchForeign places an id that no device is known to have: Metal's own small
// numbers, which it uses where UMD has none, and ids of chips of which sysfs
// says too little. Both only where a live process has that device open; else
// it may be a chip of any device of which too little is known.
func (r *Resolver) matchForeign(s Sighting) Match {
	if p, ok := r.learned.ids[s.ID]; ok {
		if i := r.endpointAt(p.busID); i >= 0 && r.endpoints[i].blind() {
			return r.found(claim{endpoint: i}, Inferred, p.basis)
		}
	}
	i, ok := r.byOrder(s, "")
	switch {
	case ok && s.ID == uint64(s.DeviceID):
		return r.found(claim{endpoint: i}, Inferred, model.ByOrder)
	case ok && r.endpoints[i].blind():
		r.learned.pin(s.ID, r.endpoints[i].BusID, model.ByOrder)
		return r.found(claim{endpoint: i}, Inferred, model.ByOrder)
	}
	m := Match{Device: model.NoDevice}
	for _, e := range r.endpoints {
		if e.blind() {
			m.Certainty, m.Candidates = Ambiguous, append(m.Candidates, e.Index)
		}
	}
	slices.Sort(m.Candidates)
	return m
}

func (r *Resolver) found(c claim, certainty Certainty, basis model.Basis) Match {
	return Match{
		Certainty: certainty, Device: r.endpoints[c.endpoint].Index,
		Slot: c.slot, Name: c.name, Remote: c.remote, Basis: basis,
	}
}

func (r *Resolver) endpointAt(busID string) int {
	return slices.IndexFunc(r.endpoints, func(e Endpoint) bool { return e.BusID == busID })
}

// byOrder finds the endpoint by the number its process gives it: UMD numbers
// the chips on PCIe in the order of their bus addresses, as text, and sees
// only one generation at a time. An empty arch is that of all open devices.
func (r *Resolver) byOrder(s Sighting, arch model.Arch) (endpoint int, ok bool) {
	var seen []int
	for i, e := range r.endpoints {
		switch {
		case !slices.Contains(s.Open, e.Index):
		case arch == "" && len(seen) > 0 && e.Arch != r.endpoints[seen[0]].Arch:
			return 0, false
		case arch == "" || e.Arch == arch:
			seen = append(seen, i)
		}
	}
	slices.SortFunc(seen, func(a, b int) int { return cmp.Compare(r.endpoints[a].BusID, r.endpoints[b].BusID) })
	if uint64(s.DeviceID) >= uint64(len(seen)) {
		return 0, false
	}
	return seen[s.DeviceID], true
}
