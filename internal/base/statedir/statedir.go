// Package statedir is a directory that one program at a time writes: who writes it, and
// whether the disk takes anything.
//
// Its place is below all stores: the journal, the history, the event backlog and the
// runs.
package statedir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// ErrLocked is the error of a directory that another program writes.
var ErrLocked = errors.New("another program writes this directory")

// Lock locks a directory, which it makes, by a file in it. The lock ends with unlock, or
// with the process.
func Lock(dir, file string) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making a directory to be locked: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking a directory: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, ErrLocked
		}
		return nil, fmt.Errorf("locking %s: %w", dir, err)
	}
	return func() { f.Close() }, nil
}

// retry is how often Wait tries at first, since a successor waits for it, and rareRetry
// how often in the end.
const (
	retry     = 20 * time.Millisecond
	rareRetry = 200 * time.Millisecond
)

// waitsLong is after how long a wait is worth a message.
const waitsLong = 5 * time.Second

// Wait locks a directory as soon as no other program writes it; long is called once if
// that takes long, and may be nil. A directory that cannot be locked for another reason
// cannot be written either: then unlock does nothing.
func Wait(ctx context.Context, dir, file string, long func()) (unlock func(), err error) {
	for begun := time.Now(); ; {
		unlock, err := Lock(dir, file)
		switch {
		case err == nil:
			return unlock, nil
		case !errors.Is(err, ErrLocked):
			return func() {}, nil
		}
		if long != nil && time.Since(begun) > waitsLong {
			long()
			long = nil
		}
		select {
		case <-ctx.Done():
			return func() {}, fmt.Errorf("waiting for %s: %w", dir, ctx.Err())
		case <-time.After(min(retry+time.Since(begun)/10, rareRetry)):
		}
	}
}

// Written reports whether a program has a directory locked by a file.
func Written(dir, file string) bool {
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	defer f.Close()
	return unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB) != nil
}

// Room is what Probe writes.
const Room = 64 << 10

// Probe reports whether a directory, which it makes, takes as much as a block.
func Probe(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, "probe")
	if err != nil {
		return err
	}
	defer f.Close()
	if err := os.Remove(f.Name()); err != nil { // it ends with its descriptor, whatever happens
		return err
	}
	if _, err := f.Write(make([]byte, Room)); err != nil {
		return err
	}
	return f.Sync()
}
