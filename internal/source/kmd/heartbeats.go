package kmd

import (
	"slices"
	"strings"
	"time"
)

// Heartbeat is the counter of a device's firmware as a Reader last read it. One
// that stopped is known to be hung only to a Reader that has watched it for a
// while: a successor would report the device as ok meanwhile.
type Heartbeat struct {
	BusID string    `json:"bus_id"`
	Value uint32    `json:"value"`
	Moved time.Time `json:"moved"`          // when Value was first read
	Seen  bool      `json:"seen,omitempty"` // the counter was seen to move
}

// Heartbeats are those of all devices, by bus id.
func (r *Reader) Heartbeats() (list []Heartbeat) {
	for bdf, d := range r.devices {
		if b := &d.beat; d.goneAt.IsZero() && !b.moved.IsZero() {
			list = append(list, Heartbeat{bdf, b.value, b.moved, b.seen})
		}
	}
	slices.SortFunc(list, func(a, b Heartbeat) int { return strings.Compare(a.BusID, b.BusID) })
	return list
}

// Restore takes over the heartbeats of another Reader. It is called before the
// first Read.
func (r *Reader) Restore(list []Heartbeat) {
	r.restored = map[string]heartbeat{}
	for _, h := range list {
		if !h.Moved.IsZero() && !h.Moved.After(time.Now()) { // else the clock was set back
			r.restored[h.BusID] = heartbeat{value: h.Value, moved: h.Moved, seen: h.Seen}
		}
	}
}
