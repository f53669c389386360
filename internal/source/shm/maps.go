package shm

import (
	"bytes"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// inode names a file for as long as it exists, whatever its path.
type inode struct{ dev, ino uint64 }

// mapping is a region that a process has mapped.
type mapping struct {
	inode
	id       uint64 // of the chip, from the file's name
	deleted  bool   // the name is gone; the process still accounts there
	writable bool   // mapped as a writer maps it
}

// mappings is what /proc/<pid>/maps says about tt-metal.
type mappings struct {
	regions []mapping
	lib     library // zero if no libtt_metal.so is mapped
	empty   bool    // nothing at all is mapped
}

// library is the file a process runs tt-metal from.
type library struct {
	inode
	path string // in the process's own root
}

// add takes one line of /proc/<pid>/maps:
//
//	7f91-7f92 rw-s 00000000 00:1b 12   /dev/shm/tt_device_7_memory (deleted)
func (m *mappings) add(line []byte) {
	// Nearly all lines are about something else: look before parsing.
	isRegion := bytes.Contains(line, []byte("/"+namePrefix))
	isLib := !isRegion && bytes.Contains(line, []byte("/libtt_metal"))
	if !isRegion && !isLib {
		return
	}
	_, rest, _ := bytes.Cut(line, []byte{' '})
	perms, rest, _ := bytes.Cut(rest, []byte{' '})
	_, rest, _ = bytes.Cut(rest, []byte{' '})
	dev, rest, _ := bytes.Cut(rest, []byte{' '})
	ino, name, ok := bytes.Cut(rest, []byte{' '})
	if !ok {
		return
	}
	key, ok := parseInode(dev, ino)
	if !ok {
		return
	}
	file, deleted := strings.CutSuffix(strings.TrimLeft(string(name), " "), " (deleted)")
	base := path.Base(file)
	switch id, ok := ParseName(base); {
	case isRegion && ok && len(perms) == 4 && perms[3] == 's':
		m.addRegion(mapping{inode: key, id: id, deleted: deleted, writable: perms[1] == 'w'})
	case isLib && m.lib.path == "" && strings.HasPrefix(base, "libtt_metal") && strings.Contains(base, ".so"):
		m.lib = library{inode: key, path: file}
	}
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

// parseInode reads the "major:minor" (hexadecimal) and inode columns.
func parseInode(dev, ino []byte) (inode, bool) {
	maj, mnr, ok := strings.Cut(string(dev), ":")
	if !ok {
		return inode{}, false
	}
	hi, err1 := strconv.ParseUint(maj, 16, 32)
	lo, err2 := strconv.ParseUint(mnr, 16, 32)
	n, err3 := strconv.ParseUint(string(ino), 10, 64)
	if err1 != nil || err2 != nil || err3 != nil {
		return inode{}, false
	}
	return inode{dev: unix.Mkdev(uint32(hi), uint32(lo)), ino: n}, true
}
