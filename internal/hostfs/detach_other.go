//go:build !linux || (!amd64 && !arm64)

package hostfs

import "golang.org/x/sys/unix"

const stackSize = 0

// detach needs a few lines of assembly that this architecture does not have
// yet; reads run in threads instead.
func detach([]entry, []fdRange, []byte) (pid, fd int, err error) { return 0, -1, unix.ENOSYS }
