package api

import (
	"context"

	"github.com/ttmon/ttmon/internal/model"
)

// FollowEncoded is Follow, with the JSON of all of the snapshot, which others who
// see all of it get too.
func (f *Feed) FollowEncoded(ctx context.Context, each func(s *model.Snapshot, body []byte)) {
	f.follow(ctx, func(t *tick) { each(t.snap, t.encode(Viewpoint{})) })
}

// Follow calls each with every snapshot from now on until ctx is done, those that are
// extra too: what a client was shown is an event. A caller slower than the collector
// gets the latest one and misses those between: the collector never waits.
func (f *Feed) Follow(ctx context.Context, each func(*model.Snapshot)) {
	f.follow(ctx, func(t *tick) { each(t.snap) })
}

func (f *Feed) follow(ctx context.Context, each func(*tick)) {
	for t := f.current(); ; t = f.current() {
		if t.snap != nil {
			each(t)
		}
		select {
		case <-t.next:
		case <-ctx.Done():
			return
		}
	}
}
