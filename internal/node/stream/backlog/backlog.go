// Package backlog is what ttmond keeps for followers that are away: the last
// events, numbered, on disk. What a follower misses while it is away is sent
// when it comes back; so are events from before ttmond was restarted.
//
// It holds about 5,000 events, hours of a busy host and months of a quiet one.
// Snapshots are not kept: to a follower, the time it was away is a gap.
package backlog

import (
	"context"
	"crypto/rand"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/base/replace"
	"github.com/ttmon/ttmon/internal/base/statedir"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/node/eventlog"
	"github.com/ttmon/ttmon/internal/node/eventlog/watch"
)

// Bounds of what is kept. An event has 0.3 to 1 kB.
const (
	fileBytes = 2 << 20
	recent    = 256
	nameFile  = "name"
)

// Backlog keeps the last events of a host. Its methods may be called by any
// goroutine.
type Backlog struct {
	dir    string
	log    *slog.Logger
	events atomic.Pointer[Events]
	failed atomic.Pointer[error] // why the disk takes nothing; nil: it does
}

// Events are those that are kept.
type Events struct {
	*eventlog.Log
	// Name names the numbering: a backlog that was lost begins another.
	Name string
}

// New returns the backlog below dir, which Run opens.
func New(dir string, log *slog.Logger) *Backlog { return &Backlog{dir: dir, log: log} }

// Events returns what is kept; nil until Run has opened it.
func (b *Backlog) Events() *Events { return b.events.Load() }

// Run finds out what happened from snapshot to snapshot until ctx is done. Where
// the disk does not take it, events are kept in memory.
func (b *Backlog) Run(ctx context.Context, feed Feed) {
	unlock, err := statedir.Wait(ctx, b.dir, "lock", nil) // a predecessor may not have closed it yet
	if err != nil {
		return
	}
	defer unlock()
	events, err := open(b.dir)
	if err != nil {
		b.changed(err)
	}
	defer events.Close()
	b.events.Store(events)
	var watcher watch.Watcher
	var checked time.Time
	feed.Follow(ctx, func(s *model.Snapshot) {
		if now := time.Now(); now.Sub(checked) >= checkEvery {
			checked = now
			b.changed(b.checkDisk())
		}
		b.Append(watcher.Next(s)...)
	})
}

// Append keeps events; before Run has opened the backlog they are dropped. It waits
// for the disk.
func (b *Backlog) Append(list ...model.Event) {
	events := b.Events()
	if events == nil || len(list) == 0 {
		return
	}
	if err := events.Append(list...); err != nil {
		b.changed(err)
	}
}

// Failed is why events are kept in memory only; nil: they are on the disk. It waits for
// nothing.
func (b *Backlog) Failed() error {
	if err := b.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// changed notes whether the disk takes events, and logs where that is new.
func (b *Backlog) changed(err error) {
	if err == nil {
		if b.failed.Swap(nil) != nil {
			b.log.Info("event backlog is on disk again")
		}
		return
	}
	if b.failed.Swap(&err) == nil {
		b.log.Warn("event backlog is in memory only", "err", err)
	}
}

// checkEvery is how often the disk is checked: a quiet host writes no event for days,
// and a full disk is to be known before one is lost.
const checkEvery = 5 * time.Second

// checkDisk says why the disk takes nothing. One that works is only asked for its free
// space; one that failed is written to.
func (b *Backlog) checkDisk() error {
	if b.Failed() != nil {
		return statedir.Probe(b.dir)
	}
	var st unix.Statfs_t
	if unix.Statfs(b.dir, &st) != nil || st.Blocks == 0 { // some file systems do not count
		return nil
	}
	if st.Bfree*uint64(st.Bsize) < statedir.Room {
		return fmt.Errorf("writing to %s: %w", b.dir, unix.ENOSPC)
	}
	return nil
}

// Feed is where snapshots come from.
type Feed interface {
	Follow(ctx context.Context, each func(*model.Snapshot))
}

func open(dir string) (*Events, error) {
	l, err := eventlog.Open(dir, eventlog.Sizes{File: fileBytes, Recent: recent})
	e := &Events{Log: l}
	if err == nil {
		e.Name, err = name(filepath.Join(dir, nameFile), l.Last() == 0)
	}
	if err != nil {
		e.Name = rand.Text() // numbers in memory are those of this process alone
	}
	return e, err
}

// name reads the name of the numbering, or makes one.
func name(path string, empty bool) (string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err == nil && !empty {
		defer f.Close()
		var b [64]byte
		n, err := f.Read(b[:])
		if text := strings.TrimSpace(string(b[:n])); err == nil && text != "" {
			return text, nil
		}
	}
	if err == nil {
		f.Close()
	} else if !os.IsNotExist(err) {
		return "", fmt.Errorf("reading the name of the event backlog: %w", err)
	}
	text := rand.Text()
	return text, replace.File(path, []byte(text+"\n"), fs.FileMode(0o600))
}
