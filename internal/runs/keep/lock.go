package keep

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

// lockFile is locked by the program that writes a directory of runs.
const lockFile = "lock"

// ErrLocked is the error of a directory that another program writes.
var ErrLocked = errors.New("another program writes these runs")

// Lock locks a directory of runs, which it makes: one Book at a time writes it. The
// lock ends with unlock, or with the process.
func Lock(dir string) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the directory of runs: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking the directory of runs: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, ErrLocked
		}
		return nil, fmt.Errorf("locking the directory of runs: %w", err)
	}
	return func() { f.Close() }, nil
}

// lockRetry is how often Wait tries.
const lockRetry = 200 * time.Millisecond

// Wait locks a directory of runs as soon as no other program writes it. Where it
// cannot be locked for another reason it cannot be written either, and unlock does
// nothing.
func Wait(ctx context.Context, dir string) (unlock func(), err error) {
	for {
		unlock, err := Lock(dir)
		switch {
		case err == nil:
			return unlock, nil
		case !errors.Is(err, ErrLocked):
			return func() {}, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for the directory of runs: %w", ctx.Err())
		case <-time.After(lockRetry):
		}
	}
}

// written reports whether a program writes a directory of runs now.
func written(dir string) bool {
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	defer f.Close()
	return unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB) != nil
}
