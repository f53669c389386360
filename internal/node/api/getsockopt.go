package api

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// getsockopt reads an option that is a list of numbers; n says how many.
func getsockopt(fd, level, name int, list []uint32) (n int, err error) {
	size := uint32(4 * len(list))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), uintptr(level), uintptr(name),
		uintptr(unsafe.Pointer(&list[0])), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 {
		return 0, errno
	}
	return int(size / 4), nil
}
