package api

import (
	"net/http"
	"sync"
	"time"

	"github.com/ttmon/ttmon/internal/board/mesh"
	"github.com/ttmon/ttmon/internal/field/wire"
	"github.com/ttmon/ttmon/internal/model"
)

// topologyAge is how long an answer about the topology holds.
const topologyAge = 5 * time.Second

// topologies keeps the last answer: boards are hardly ever moved, and the files
// that tell of them are not to be read for every viewer.
type topologies struct {
	mu sync.Mutex
	at time.Time
	of *model.Topology
}

func (t *topologies) get(find func(*model.Snapshot) *model.Topology, s *model.Snapshot) *model.Topology {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now := time.Now(); t.of == nil || now.Sub(t.at) > topologyAge {
		t.of, t.at = find(s), now
	}
	return t.of
}

// topology answers with how the devices hang together.
func (s *Server) topology(w http.ResponseWriter, _ *http.Request) {
	snap := s.opt.Feed.Latest()
	if snap == nil {
		Fail(w, http.StatusServiceUnavailable, "there is no snapshot yet; try again")
		return
	}
	top := s.topologies.get(s.opt.Topology, snap)
	t := wire.Topology{Time: snap.Time, Simulated: snap.Simulated, Topology: top, Links: mesh.AllLinks(snap, top)}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(append(wire.AppendTopology(nil, &t, false), '\n')) // the client has left
}
