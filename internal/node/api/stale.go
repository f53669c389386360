package api

import (
	"net/http"
	"time"

	"github.com/ttmon/ttmon/internal/field/wire"
	"github.com/ttmon/ttmon/internal/model"
)

// stale lists what dead processes left in accounting regions, for those who
// may not read the regions themselves.
func (s *Server) stale(w http.ResponseWriter, r *http.Request) {
	v := s.Viewpoint(r)
	list, ok := s.opt.Stale()
	if !ok {
		Fail(w, http.StatusServiceUnavailable, "the accounting regions cannot be read yet")
		return
	}
	out := wire.Stale{Time: time.Now().UTC()}
	if snap := s.opt.Feed.Latest(); snap != nil {
		out.Simulated = snap.Simulated
	}
	for _, l := range list {
		out.Regions = append(out.Regions, v.leftover(l))
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(append(wire.AppendStale(nil, &out, false), '\n')) // the client has left
}

// leftover is a region as the viewer may see it: how many bytes, and not whose
// where processes are hidden.
func (v Viewpoint) leftover(l model.Leftover) model.Leftover {
	if !v.Hides(model.Value(l.Owner)) {
		return l
	}
	l.StaleSlots, l.Unseen = nameless(l.StaleSlots), nameless(l.Unseen)
	if l.Blocked != nil {
		blocked := *l.Blocked
		blocked.PIDs = nil
		l.Blocked = &blocked
	}
	return l
}

func nameless(list []model.StaleSlot) []model.StaleSlot {
	out := make([]model.StaleSlot, len(list))
	for i, g := range list {
		g.Name = ""
		out[i] = g
	}
	return out
}
