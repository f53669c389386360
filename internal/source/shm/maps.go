package shm

import (
	"path"
	"strings"

	"github.com/ttmon/ttmon/internal/hostfs/proc"
	"github.com/ttmon/ttmon/internal/source/devshm"
)

// inode identifies a file while it exists, whatever its path.
type inode = devshm.ID

// mapping is a region that a process has mapped.
type mapping struct {
	inode
	id       uint64 // of the chip, from the file's name
	deleted  bool   // the name is gone; the process still accounts there
	writable bool   // mapped as a writer maps it
}

// mappings are the files of tt-metal that a process maps.
type mappings struct {
	regions []mapping
	lib     library // zero if no libtt_metal.so is mapped
	// drives: it maps a device. Without that no program can access a chip's
	// memory: the driver has no call for it.
	drives bool
}

// library is the file a process runs tt-metal from.
type library struct {
	inode
	path string // in the process's own root
}

// libPrefix begins the name of tt-metal's library, and nodeDir the path of a
// device, perhaps below a container's root.
const (
	libPrefix = "libtt_metal"
	nodeDir   = "/dev/tenstorrent/"
)

// mappingsOf selects the regions, mapped by a writer or a reader, and the
// library from the mappings of a process.
func mappingsOf(list []proc.Mapping) (m mappings) {
	for i := range list {
		f := &list[i]
		key := inode{Dev: f.Dev, Ino: f.Inode}
		base := path.Base(f.Path)
		switch id, ok := ParseName(base); {
		case ok && f.Shared:
			m.addRegion(mapping{inode: key, id: id, deleted: f.Deleted, writable: f.Writable})
		case m.lib.path == "" && strings.HasPrefix(base, libPrefix) && strings.Contains(base, ".so"):
			m.lib = library{inode: key, path: f.Path}
		case strings.Contains(f.Path, nodeDir):
			m.drives = true
		}
	}
	return m
}

func (m *mappings) addRegion(r mapping) {
	for i, old := range m.regions {
		if old.inode == r.inode {
			m.regions[i].writable = old.writable || r.writable
			return
		}
	}
	m.regions = append(m.regions, r)
}

// find returns the mapping of a region's inode.
func (m *mappings) find(key inode) (mapping, bool) {
	for _, r := range m.regions {
		if r.inode == key {
			return r, true
		}
	}
	return mapping{}, false
}
