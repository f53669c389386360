package server

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// adopted is what earlier releases kept in ttmond's state directory that is
// ttmon-server's now.
var adopted = []string{"history", "events", "snapshots", "recordings", "remote-write", "jobs.json", "alerts.json", "alerts-outbox.json"}

// Adopt makes the state directory to, gives it to a user, and moves the history
// there that a ttmond of an earlier release kept in from. What is there already
// stays. Root calls it, before the server runs.
//
// Ownership changes while things are still in from, where only root can write: in
// to, the user could put a link in the way.
func Adopt(from, to string, uid, gid int) (moved []string, err error) {
	if err := os.Mkdir(to, 0o750); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("making the state directory: %w", err)
	}
	st, err := os.Lstat(to)
	if err != nil || !st.IsDir() {
		return nil, fmt.Errorf("making the state directory: %s is not a directory", to)
	}
	if owner, ok := st.Sys().(*syscall.Stat_t); ok && owner.Uid == 0 { // just made, by us or for us
		if err := os.Lchown(to, uid, gid); err != nil {
			return nil, fmt.Errorf("giving %s to user %d: %w", to, uid, err)
		}
	}
	for _, name := range adopted {
		old, now := filepath.Join(from, name), filepath.Join(to, name)
		st, err := os.Lstat(old)
		if err != nil || st.Mode()&fs.ModeSymlink != 0 {
			continue
		}
		if _, err := os.Lstat(now); err == nil {
			continue
		}
		err = filepath.WalkDir(old, func(path string, _ fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return os.Lchown(path, uid, gid)
		})
		if err == nil {
			err = os.Rename(old, now)
		}
		if err != nil {
			return moved, fmt.Errorf("moving %s to %s: %w", old, to, err)
		}
		moved = append(moved, name)
	}
	return moved, nil
}
