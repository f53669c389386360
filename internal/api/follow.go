package api

import (
	"context"

	"github.com/ttmon/ttmon/internal/model"
)

// Follow calls f with every snapshot from now on until ctx is done. Whoever
// is slower than the collector gets the latest one and misses those between:
// nobody makes the collector wait.
func (f *Feed) Follow(ctx context.Context, each func(*model.Snapshot)) {
	for t := f.current(); ; t = f.current() {
		if t.snap != nil {
			each(t.snap)
		}
		select {
		case <-t.next:
		case <-ctx.Done():
			return
		}
	}
}
