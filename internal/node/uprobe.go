package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/base/budget"
	"github.com/ttmon/ttmon/internal/book/claim"
	"github.com/ttmon/ttmon/internal/collect"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/hostfs/proc"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/model/apitype"
	"github.com/ttmon/ttmon/internal/node/api"
	"github.com/ttmon/ttmon/internal/node/handover"
	"github.com/ttmon/ttmon/internal/source/uprobe"
)

type uprobeConfig struct {
	Enabled   bool     `toml:"enabled" comment:"Needs root, or CAP_BPF and CAP_PERFMON."`
	Libraries []string `toml:"libraries" comment:"Globs of libtt_metal.so files to be watched before any program has loaded them."`
	Limit     float64  `toml:"limit" comment:"ttmond detaches from a program that hits the probes more often than this in a second."`
	Waits     bool     `toml:"waits" comment:"See what programs enqueue and wait for, too. The probes are on the program's own path: some microseconds a call."`
	MaxBlocks int64    `toml:"max_blocks" comment:"Live blocks kept of all watched programs, at about 64 bytes each; 0: a sixth of the memory. One user gets half."`
}

func (c *uprobeConfig) check() error {
	if c.Limit < 100 || c.Limit > 1e7 {
		return fmt.Errorf("uprobe.limit: %v is not between 100 and 10000000", c.Limit)
	}
	if c.MaxBlocks < 0 {
		return fmt.Errorf("uprobe.max_blocks: %d is negative", c.MaxBlocks)
	}
	for _, glob := range c.Libraries {
		if _, err := filepath.Match(glob, ""); err != nil || !filepath.IsAbs(glob) {
			return fmt.Errorf("uprobe.libraries: %q is not a pattern of absolute paths", glob)
		}
	}
	return nil
}

// watcher is the source that watches allocators, or why there is none.
type watcher struct {
	source *uprobe.Source
	off    bool
	why    error                  // why it cannot be on
	failed *atomic.Pointer[error] // why it no longer is
	log    *slog.Logger
}

// newWatcher loads the watching program into the kernel. Without it everything
// else works as before.
func (d *ttmond) newWatcher() watcher {
	w := watcher{log: d.log, off: !d.cfg.Uprobe.Enabled, failed: new(atomic.Pointer[error])}
	if w.off {
		for _, f := range d.inherited.watched { // a predecessor's: its probes go with them
			unix.Close(f.FD)
		}
		return w
	}
	o := uprobe.Options{Log: d.log, Libraries: d.cfg.Uprobe.Libraries, Limit: d.cfg.Uprobe.Limit, Waits: d.cfg.Uprobe.Waits, Blocks: d.memory.blocks(d.cfg.Uprobe.MaxBlocks), Memory: filepath.Join(d.cfg.StateDir, "libraries.json")}
	accounts, err := d.predecessorAccounts()
	if err != nil {
		d.log.Warn("cannot read allocator state of previous ttmond", "err", err)
	}
	if accounts != nil {
		if w.source, err = uprobe.OpenFrom(o, accounts, d.inherited.watched); err == nil {
			return w
		}
		d.log.Warn("cannot use allocator state of previous ttmond; attaching again", "err", err)
	}
	w.source, w.why = uprobe.Open(o)
	if w.why != nil {
		w.source = nil
		d.log.Info("uprobes disabled", "reason", reason(w.why))
	}
	return w
}

// reason is the sentence for people.
func reason(why error) string {
	obstacle, ok := errors.AsType[*uprobe.ObstacleError](why)
	if !ok {
		return why.Error()
	}
	return words.WatchObstacle(string(obstacle.Obstacle), obstacle.Err)
}

// run watches until ctx is done. If it fails the daemon continues without it.
func (w *watcher) run(ctx context.Context) error {
	if w.source == nil {
		return nil
	}
	if err := w.source.Run(ctx); err != nil {
		w.failed.Store(&err)
		w.log.Error("uprobes failed", "err", err)
	}
	return nil
}

// ended is why it no longer watches, though it did; nil: it does, or never has.
func (w *watcher) ended() error {
	if w.failed == nil {
		return nil
	}
	if err := w.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// Claims is for the collector.
func (w *watcher) Claims() claim.Set {
	if w.source == nil {
		return claim.Set{Source: model.FromUprobe}
	}
	return w.source.Claims()
}

// find finds the allocators of a process, for the collector.
func (w *watcher) find(pid int) (collect.Allocators, bool) {
	if w.source == nil {
		return collect.Allocators{}, false
	}
	p, ok := w.source.Find(pid)
	return collect.Allocators{Source: model.FromUprobe, Process: p}, ok
}

// follow is for the API; nil where nothing is watched.
func (w *watcher) follow() func(allow func(pid, uid int) bool) api.Changes {
	if w.source == nil {
		return nil
	}
	return func(allow func(pid, uid int) bool) api.Changes {
		return w.source.Follow(func(pid int) bool {
			uid, err := proc.Owner(hostfs.Root{}, pid)
			return err == nil && allow(pid, uid)
		})
	}
}

// followPrograms is the same for the programs that run on chips.
func (w *watcher) followPrograms() func(allow func(pid, uid int) bool) api.Programs {
	if w.source == nil {
		return nil
	}
	return func(allow func(pid, uid int) bool) api.Programs { return w.source.FollowPrograms(allow) }
}

// budgets are what users have of the watcher.
func (w *watcher) budgets() []budget.State {
	if w.source == nil {
		return nil
	}
	return w.source.Budgets()
}

func (w *watcher) health() *api.Watch {
	switch {
	case w.off:
		return &api.Watch{State: apitype.WatchOff, Reason: "switched off by --no-uprobe or uprobe.enabled"}
	case w.source == nil:
		return &api.Watch{State: apitype.WatchUnavailable, Reason: reason(w.why)}
	}
	st := w.source.Stats()
	h := &api.Watch{State: apitype.WatchOn, Waits: st.Waits, Processes: st.Processes, Events: st.Events, Lost: st.Lost, Detached: st.Detached}
	if why := w.ended(); why != nil {
		h.State, h.Reason = apitype.WatchFailed, reason(why)
	} else if !st.Ready {
		h.State, h.Reason = apitype.WatchStarting, "programs that are running already are being looked for"
	}
	if st.Slow != nil {
		h.Late = "programs with a library that is new here are noticed up to five seconds late: " + reason(st.Slow)
	}
	for _, l := range st.Libraries {
		row := api.WatchLibrary{Path: l.Path}
		if l.Err != nil {
			row.Reason = l.Err.Error()
		}
		for _, kind := range l.Unseen {
			row.Unseen = append(row.Unseen, string(kind))
		}
		h.Libraries = append(h.Libraries, row)
	}
	return h
}

// nameWatched begins the names of the watcher's descriptors in a takeover, and
// nameAccounts is the file of its accounts.
const (
	nameWatched  = "uprobe "
	nameAccounts = "accounts"
)

// exportedWatcher is the watcher, stopped, for a successor.
type exportedWatcher struct {
	files    []handover.File
	accounts int // of them
	done     func(taken bool)
}

// export stops the watcher and makes it ready for a successor; nil: there is
// nothing to hand over. The accounts go into a file, so that neither of the two
// has to work on them while clients wait.
func (w *watcher) export() *exportedWatcher {
	if w.source == nil {
		return nil
	}
	accounts, list, done, err := w.source.Export()
	if err != nil {
		w.log.Warn("cannot hand over allocator state", "err", err)
		return nil
	}
	x := &exportedWatcher{done: done}
	if x.accounts, err = handover.MemoryFile("ttmond-accounts", accounts); err != nil {
		w.log.Warn("cannot hand over allocator state", "err", err)
		done(false)
		return nil
	}
	for _, f := range append(list, uprobe.File{Name: nameAccounts, FD: x.accounts}) {
		x.files = append(x.files, handover.File{Name: nameWatched + f.Name, FD: f.FD})
	}
	return x
}

// end lets the watcher resume, or ends it if a successor has taken over.
func (x *exportedWatcher) end(taken bool) {
	if x == nil {
		return
	}
	unix.Close(x.accounts)
	x.done(taken)
}

// predecessorAccounts reads what a predecessor's watcher knew; nil: there was none.
func (d *ttmond) predecessorAccounts() ([]byte, error) {
	i := slices.IndexFunc(d.inherited.watched, func(f uprobe.File) bool { return f.Name == nameAccounts })
	if i < 0 {
		return nil, nil
	}
	fd := d.inherited.watched[i].FD
	defer unix.Close(fd)
	d.inherited.watched = slices.Delete(d.inherited.watched, i, i+1)
	return handover.ReadMemory(fd)
}

// extractWatched extracts the watcher's descriptors from those of a predecessor.
func extractWatched(files *[]handover.File) (list []uprobe.File) {
	rest := (*files)[:0]
	for _, f := range *files {
		if name, ok := strings.CutPrefix(f.Name, nameWatched); ok {
			list = append(list, uprobe.File{Name: name, FD: f.FD})
		} else {
			rest = append(rest, f)
		}
	}
	*files = rest
	return list
}
