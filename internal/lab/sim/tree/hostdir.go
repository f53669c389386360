package tree

import (
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// HostDir is a directory of links on the real host, held open so that it
// stays reachable when a mount covers it. It is read again each time, so what
// the host plugs in later shows through as well.
type HostDir struct {
	fd   int
	hide func(name, target string) bool

	mu    sync.Mutex
	links map[string]*Link // one node per name and target, so that ids are stable
}

// OpenHostDir opens a directory such as /sys/class/hwmon. Entries for which
// hide returns true are left out; hide may be nil. The descriptor stays open
// for the life of the process.
func OpenHostDir(path string, hide func(name, target string) bool) (*HostDir, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", path, err)
	}
	return &HostDir{fd: fd, hide: hide, links: make(map[string]*Link)}, nil
}

// get returns the link of that name, or nil.
func (h *HostDir) get(name string) *Link {
	var buf [4096]byte
	n, err := unix.Readlinkat(h.fd, name, buf[:])
	if err != nil {
		return nil
	}
	target := string(buf[:n])
	if h.hide != nil && h.hide(name, target) {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if l := h.links[name]; l != nil && l.Target == target {
		return l
	}
	l := &Link{Target: target}
	h.links[name] = l
	return l
}

// Names lists the links that show through, sorted.
func (h *HostDir) Names() []string {
	fd, err := unix.Openat(h.fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	var names []string
	var buf [8192]byte
	for {
		n, err := unix.ReadDirent(fd, buf[:])
		if err == unix.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			break
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return h.get(name) == nil })
	slices.Sort(names)
	return names
}
