package uprobe

import (
	"context"
	"sync"
)

// retired are libraries that are no longer watched, until they are closed.
// The kernel waits for all processors when a probe is taken out: a tenth of a
// second on a busy machine, and a user can have many taken out at a time.
// Snapshots wait for mu, so nothing is closed while it is held.
type retired struct {
	mu   sync.Mutex
	list []func()
	more chan struct{}
}

func newRetired() *retired { return &retired{more: make(chan struct{}, 1)} }

// add has something closed later.
func (r *retired) add(closeIt func()) {
	r.mu.Lock()
	r.list = append(r.list, closeIt)
	r.mu.Unlock()
	select {
	case r.more <- struct{}{}:
	default:
	}
}

// waiting is how much is still to be closed.
func (r *retired) waiting() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.list)
}

// closeNext closes what has waited longest; false: nothing waits.
func (r *retired) closeNext() bool {
	r.mu.Lock()
	if len(r.list) == 0 {
		r.mu.Unlock()
		return false
	}
	closeIt := r.list[0]
	r.list = r.list[1:]
	r.mu.Unlock()
	closeIt()
	return true
}

// run closes until ctx is done. What is left then is closed by Source.close.
func (r *retired) run(ctx context.Context) error {
	for {
		for ctx.Err() == nil && r.closeNext() {
		}
		select {
		case <-r.more:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
