package server

import (
	"context"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/node/api"
	"github.com/ttmon/ttmon/internal/node/stream"
)

// Host is the host that is served: a ttmond's (package follow), or this process's
// own view of it (package local).
type Host interface {
	// Run gives snapshots and events to sink until ctx is done.
	Run(ctx context.Context, sink Sink) error
	// State is the host's present state; the zero State before the first.
	State() (state stream.State, known bool)
	// Check adds to the server's health how the host is doing.
	Check(h *api.Health)
	// Serve completes the options of the API with the calls that are the host's.
	Serve(o *api.Options)
}

// Sink takes what a host gives.
type Sink interface {
	// Snapshot takes a snapshot, which must not change any more. body is its JSON
	// where the host has it, which then must not change either; nil: it has not.
	Snapshot(s *model.Snapshot, body []byte)
	// Events returns when they are kept.
	Events(ctx context.Context, list []model.Event)
	// Resume is the last event that is kept. It waits until that is known.
	Resume(ctx context.Context) (model.EventOrigin, error)
}
