package hostfs_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/hostfs"
)

// What lies between two runs belongs to another goroutine, and stays open.
func TestCloseAll(t *testing.T) {
	for _, tc := range []struct {
		name  string
		close []int // places in the list of descriptors, in this order
	}{
		{"none", nil},
		{"one", []int{3}},
		{"a run", []int{0, 1, 2, 3, 4, 5, 6, 7}},
		{"two runs with a gap of one", []int{0, 1, 2, 4, 5, 6}},
		{"single ones", []int{1, 3, 5, 7}},
		{"downwards", []int{6, 5, 4, 3}},
		{"a run after a higher one", []int{5, 6, 7, 1, 2}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			fds := consecutive(t, 8)
			var list []int
			for _, i := range tc.close {
				list = append(list, fds[i])
			}
			hostfs.CloseAll(list)
			for i, fd := range fds {
				_, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
				closed := slices.Contains(tc.close, i)
				if closed != (err == unix.EBADF) {
					t.Errorf("descriptor %d of %v: closed is to be %v, fcntl: %v", i, fds, closed, err)
				}
				if !closed {
					unix.Close(fd)
				}
			}
		})
	}
}

// consecutive opens n descriptors with consecutive numbers, far from those that
// the runtime and other tests open.
func consecutive(t *testing.T, n int) []int {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fds := make([]int, n)
	for i := range fds {
		if fds[i], err = unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 200); err != nil {
			t.Fatal(err)
		}
		if i > 0 && fds[i] != fds[i-1]+1 {
			t.Fatalf("descriptors %v are not consecutive", fds[:i+1])
		}
	}
	return fds
}
