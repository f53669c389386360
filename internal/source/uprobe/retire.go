package uprobe

import (
	"context"
	"slices"
	"sync"
)

// retired are libraries that are no longer watched, until they are closed.
// The kernel waits for all processors when a probe is taken out: a tenth of a
// second on a busy machine, and a user can have many taken out at a time.
// Snapshots wait for mu, so nothing is closed while it is held.
type retired struct {
	mu   sync.Mutex
	list []retiredLibrary
	// closing is what is being closed now; closed is signalled when one is. With mu.
	closing map[fileID]bool
	closed  *sync.Cond
	more    chan struct{}
}

type retiredLibrary struct {
	id      fileID
	closeIt func()
}

func newRetired() *retired {
	r := &retired{more: make(chan struct{}, 1), closing: map[fileID]bool{}}
	r.closed = sync.NewCond(&r.mu)
	return r
}

// add has a library closed later.
func (r *retired) add(id fileID, closeIt func()) {
	r.mu.Lock()
	r.list = append(r.list, retiredLibrary{id, closeIt})
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
	defer r.mu.Unlock()
	if len(r.list) == 0 {
		return false
	}
	r.closeAt(0)
	return true
}

// closeAt closes what is at a place of the list. With mu, which it gives back
// meanwhile.
func (r *retired) closeAt(i int) {
	x := r.list[i]
	r.list = slices.Delete(r.list, i, i+1)
	r.closing[x.id] = true
	r.mu.Unlock()
	x.closeIt()
	r.mu.Lock()
	delete(r.closing, x.id)
	r.closed.Broadcast()
}

// finish returns when no probe of a file is left: with new ones beside the old, each
// call would count twice.
func (r *retired) finish(id fileID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		i := slices.IndexFunc(r.list, func(x retiredLibrary) bool { return x.id == id })
		switch {
		case i >= 0:
			r.closeAt(i)
		case r.closing[id]:
			r.closed.Wait()
		default:
			return
		}
	}
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
