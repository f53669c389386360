package proc

import (
	"bytes"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/hostfs"
)

const nodeDir = "/dev/tenstorrent/"

// deviceInLink parses the device's number from the target of a descriptor:
// "/dev/tenstorrent/3", the same below a container's or simulator's root, or
// with " (deleted)" behind it when the node is gone.
func deviceInLink(link []byte) (device int, ok bool) {
	link = bytes.TrimSuffix(link, []byte(" (deleted)"))
	i := bytes.LastIndexByte(link, '/') + 1
	digits := link[i:]
	if !bytes.HasSuffix(link[:i], []byte(nodeDir)) || len(digits) > 1 && digits[0] == '0' {
		return 0, false
	}
	v, ok := parseUint(digits)
	return int(v), ok && v < maxDevices
}

// maxDevices is the number of possible minor numbers.
const maxDevices = 1 << 20

// nodes identifies descriptors of device nodes. It is valid for one sweep:
// nodes appear and disappear with hot-plug, the major number with the module.
type nodes struct {
	root   hostfs.Root
	major  uint32 // of the driver's character devices; 0 if it has none
	byName map[int]node
}

// node is the file at /dev/tenstorrent/N.
type node struct {
	exists             bool
	devMajor, devMinor uint32
	ino                uint64
}

// refresh drops the nodes of the last sweep and reads the driver's major
// number.
func (n *nodes) refresh() {
	if n.byName == nil {
		n.byName = map[int]node{}
	}
	clear(n.byName)
	n.major = 0
	if b, err := n.root.Read("/proc/devices", 64<<10); err == nil {
		n.major = parseCharMajor(b, "tenstorrent")
	}
}

// parseCharMajor finds the major number of a character driver in
// /proc/devices; 0 where it is not loaded.
func parseCharMajor(b []byte, driver string) uint32 {
	for line := range bytes.Lines(b) {
		if bytes.HasPrefix(line, []byte("Block devices:")) {
			break
		}
		number, name, ok := bytes.Cut(bytes.TrimSpace(line), []byte{' '})
		if ok && string(name) == driver {
			v, _ := parseUint(number)
			return uint32(v)
		}
	}
	return 0
}

// nodeAt returns the file at the device's usual path. Stat does not open it.
func (n *nodes) nodeAt(device int) node {
	if d, ok := n.byName[device]; ok {
		return d
	}
	var d node
	if st, err := n.root.Stat(nodeDir + strconv.Itoa(device)); err == nil {
		d = node{
			exists: true, ino: st.Ino,
			devMajor: unix.Major(st.Dev), devMinor: unix.Minor(st.Dev),
		}
	}
	n.byName[device] = d
	return d
}

// isNode reports whether a file is the node of a device, by its numbers alone:
// its link need not be read.
func (n *nodes) isNode(device int, st *unix.Statx_t) bool {
	if n.major != 0 && st.Mode&unix.S_IFMT == unix.S_IFCHR && st.Rdev_major == n.major {
		return int(st.Rdev_minor) == device
	}
	return n.nodeAt(device).sameFile(st)
}

// sameFile reports whether st is of this file.
func (d node) sameFile(st *unix.Statx_t) bool {
	return d.exists && d.ino == st.Ino && d.devMajor == st.Dev_major && d.devMinor == st.Dev_minor
}

// match returns the device that the descriptor at name below dir belongs to;
// link is its target. A node of the driver is identified by its device number,
// under any name (a container may use another one). Simulated nodes are files:
// they are identified by name, and must be the file that is there now. If there
// is none any more, the name suffices, unless a driver is loaded, whose nodes
// are not files.
func (n *nodes) match(dir hostfs.Dir, name string, link []byte) (device int, ok bool) {
	device, named := deviceInLink(link)
	if !named && (n.major == 0 || len(link) == 0 || link[0] != '/' || string(link) == "/dev/null") {
		return 0, false // most descriptors: sockets, pipes, event queues
	}
	var st unix.Statx_t
	if err := dir.Stat(name, &st); err != nil {
		return device, named && !n.nodeAt(device).exists
	}
	if n.major != 0 && st.Mode&unix.S_IFMT == unix.S_IFCHR && st.Rdev_major == n.major {
		return int(st.Rdev_minor), true
	}
	if !named {
		return 0, false
	}
	at := n.nodeAt(device)
	if !at.exists {
		return device, n.major == 0
	}
	return device, at.sameFile(&st)
}
