package server

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// MakeStateDir makes the state directory and gives it to the user that the server
// runs as. Root calls it where no systemd does so, before the server runs.
func MakeStateDir(dir string, uid, gid int) error {
	if err := os.Mkdir(dir, 0o750); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("making the state directory: %w", err)
	}
	st, err := os.Lstat(dir)
	if err != nil || !st.IsDir() {
		return fmt.Errorf("making the state directory: %s is not a directory", dir)
	}
	if owner, ok := st.Sys().(*syscall.Stat_t); !ok || owner.Uid != 0 { // it has an owner already
		return nil
	}
	if err := os.Lchown(dir, uid, gid); err != nil {
		return fmt.Errorf("giving %s to user %d: %w", dir, uid, err)
	}
	return nil
}
