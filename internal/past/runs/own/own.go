// Package own keeps runs for a user where no ttmon-server does: while ttmon top runs,
// in the user's state directory, which is also that of the user's own ttmon-server.
// One program writes it at a time.
//
// Its place in the flow: ttmon top feeds it with the snapshots that it shows, and
// never waits for it; ttmon runs reads what it kept.
package own

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/ttmon/ttmon/internal/base/statedir"
	"github.com/ttmon/ttmon/internal/book/runs"
	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/hostfs/proc"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/past/runs/keep"
	"github.com/ttmon/ttmon/internal/view/runwords"
)

// maxBytes is what the runs of a user take on the disk.
const maxBytes = 16 << 20

const (
	askEvery     = 10 * time.Second // whether a ttmon-server keeps runs, and whether the directory is free
	saveEvery    = 10 * time.Second // ttmon runs reads what was written
	closeTimeout = 2 * time.Second  // a home directory on a network may not answer
)

// Dir is where the runs of a user are kept; empty: the user has no home. Those of a
// simulated host are kept apart.
func Dir(getenv func(string) string, simulated bool) string {
	state := getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(state) {
		home := getenv("HOME")
		if !filepath.IsAbs(home) {
			return ""
		}
		state = filepath.Join(home, ".local", "state")
	}
	name := "runs"
	if simulated {
		name = "runs-simulated"
	}
	return filepath.Join(state, "ttmon", name)
}

// Options of a Keeper.
type Options struct {
	Dir      string
	Interval time.Duration // between two snapshots
	// Kept reports whether a ttmon-server keeps the runs of this host.
	Kept func(context.Context) bool
}

// Keeper keeps runs as long as nothing else does.
type Keeper struct {
	opt       Options
	snapshots chan *model.Snapshot
	cancel    context.CancelFunc
	done      chan struct{}

	book   *keep.Book // nil: another program keeps them
	unlock func()
	asked  time.Time
}

// Start begins to keep runs in the background.
func Start(o Options) *Keeper {
	ctx, cancel := context.WithCancel(context.Background())
	k := &Keeper{opt: o, snapshots: make(chan *model.Snapshot, 1), cancel: cancel, done: make(chan struct{})}
	go k.run(ctx)
	return k
}

// Observe takes a snapshot in. It never waits: while the disk is slow, snapshots are
// left out, and the runs know that.
func (k *Keeper) Observe(s *model.Snapshot) {
	select {
	case k.snapshots <- s:
	default:
	}
}

// Close writes what is not on the disk yet, unless that takes long.
func (k *Keeper) Close() {
	k.cancel()
	select {
	case <-k.done:
	case <-time.After(closeTimeout):
	}
}

func (k *Keeper) run(ctx context.Context) {
	defer close(k.done)
	defer k.release()
	for {
		select {
		case <-ctx.Done():
			return
		case s := <-k.snapshots:
			k.take(ctx, s)
		}
	}
}

func (k *Keeper) take(ctx context.Context, s *model.Snapshot) {
	if time.Since(k.asked) >= askEvery {
		k.asked = time.Now()
		k.choose(ctx)
	}
	if k.book != nil {
		k.book.Observe(s)
	}
}

// choose finds out who keeps runs now.
func (k *Keeper) choose(ctx context.Context) {
	switch kept := k.opt.Kept(ctx); {
	case kept:
		k.release()
	case k.book == nil:
		unlock, err := statedir.Lock(k.opt.Dir, keep.LockFile)
		if err != nil { // another ttmon top, or a disk that cannot be written: a screen has no place for it
			return
		}
		k.unlock = unlock
		k.book = keep.New(keep.Options{Dir: k.opt.Dir, MaxBytes: maxBytes, SaveEvery: saveEvery, Interval: func() time.Duration { return k.opt.Interval }})
		k.book.Restore()
	}
}

// release lets another program keep the runs.
func (k *Keeper) release() {
	if k.book != nil {
		k.book.Close()
		k.unlock()
		k.book = nil
	}
}

// ErrNone: nothing has been kept.
var ErrNone = errors.New("no run has been recorded")

// Find lists the runs of a query that a ttmon top has kept, with their words.
func Find(dir string, q runs.Query) (*runs.Answer, error) {
	name, _ := os.Hostname()
	list, more, err := keep.Read(dir, q, func(host string, id model.ProcessID) bool {
		if host != name { // a home directory that several hosts share: not to be known here
			return true
		}
		st, err := proc.ReadStat(hostfs.Root{}, id.PID)
		return err == nil && st.Start == id.StartTicks && !st.Gone()
	})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, ErrNone
	case err != nil:
		return nil, err
	}
	if list == nil {
		list = []runs.Run{}
	}
	runwords.Present(list)
	return &runs.Answer{Schema: runs.Schema, Time: time.Now().UTC(), Runs: list, More: more}, nil
}
