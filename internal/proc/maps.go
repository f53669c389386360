package proc

import (
	"bytes"

	"golang.org/x/sys/unix"
)

// Mapping is a file that a process has mapped, all its parts together.
type Mapping struct {
	// Dev and Inode are those of the file's file system, to be compared with
	// st_dev and st_ino. They match on tmpfs (/dev/shm) and ordinary disks,
	// not on btrfs and overlayfs, whose stat gives other device numbers.
	Dev      uint64
	Inode    uint64
	Path     string // as in the process's mount namespace
	Deleted  bool   // the file has no name any more
	Shared   bool   // what is written there is in the file
	Writable bool   // some part of it is
	Code     Range  // the first part that may be run; zero if none may
}

// Range is a part of a file in a process's memory.
type Range struct {
	Start, End uint64 // addresses
	Offset     uint64 // in the file
}

// maxMaps bounds what a process with millions of mappings can cost.
const maxMaps = 64 << 20

// KeepMappings makes Maps tell of the files whose path contains part. It is
// for whoever shares the Reader; to be called before the first sweep.
func (r *Reader) KeepMappings(part string) { r.keep = append(r.keep, []byte(part)) }

// Maps tells which of the files that KeepMappings named a process has mapped.
// They are read once per sweep, whoever asks. Needs the right to trace the
// process (the same user, or root).
func (r *Reader) Maps(p *Process) ([]Mapping, error) {
	if p.mapsSweep != r.sweep {
		return r.ReadMaps(p)
	}
	return p.maps, p.mapsErr
}

// ReadMaps is Maps as of now: for whoever must know what changed since.
func (r *Reader) ReadMaps(p *Process) ([]Mapping, error) {
	p.maps, p.mapsSweep = nil, r.sweep
	b, err := r.Guard.read(p, "maps", r.maps, maxMaps)
	r.maps = b
	if err == nil && len(b) == 0 {
		// The first thread may have ended, and left the others the memory.
		if thread := p.livingThread(); thread != "" {
			b, err = r.Guard.read(p, thread+"/maps", r.maps, maxMaps)
			r.maps = b
		}
	}
	if p.mapsErr = err; err == nil {
		p.maps = parseMaps(b, r.keep)
	}
	return p.maps, err
}

// parseMaps reads the lines of files whose path contains one of keep.
func parseMaps(b []byte, keep [][]byte) []Mapping {
	var out []Mapping
	for line := range bytes.Lines(b) {
		// Nearly all lines are about something else: look before parsing.
		if !containsAny(line, keep) {
			continue
		}
		m, path, ok := parseMapsLine(line)
		if !ok || !containsAny(path, keep) {
			continue
		}
		m.Path = unescapeMaps(path)
		if i := findMapping(out, &m); i >= 0 {
			out[i].Writable = out[i].Writable || m.Writable
			if out[i].Code == (Range{}) {
				out[i].Code = m.Code
			}
			continue
		}
		out = append(out, m)
	}
	return out
}

func containsAny(b []byte, parts [][]byte) bool {
	i := bytes.IndexByte(b, '/')
	if i < 0 {
		return false
	}
	for _, part := range parts {
		if bytes.Contains(b[i:], part) {
			return true
		}
	}
	return false
}

func findMapping(list []Mapping, m *Mapping) int {
	for i := len(list) - 1; i >= 0; i-- { // parts of a file are neighbours
		l := &list[i]
		if l.Inode == m.Inode && l.Dev == m.Dev && l.Deleted == m.Deleted && l.Shared == m.Shared && l.Path == m.Path {
			return i
		}
	}
	return -1
}

// parseMapsLine reads "start-end perms offset major:minor inode  path". Lines
// without a file (anonymous memory, [heap], [stack]) are not ok. The path is
// in the line's memory, still escaped.
func parseMapsLine(line []byte) (m Mapping, path []byte, ok bool) {
	line = bytes.TrimSuffix(line, []byte{'\n'})
	addresses, rest, ok := bytes.Cut(line, []byte{' '})
	if !ok {
		return m, nil, false
	}
	perms, rest, _ := bytes.Cut(rest, []byte{' '})
	offset, rest, _ := bytes.Cut(rest, []byte{' '})
	dev, rest, _ := bytes.Cut(rest, []byte{' '})
	inode, path, ok := bytes.Cut(rest, []byte{' '})
	if !ok {
		return m, nil, false
	}
	path = bytes.TrimLeft(path, " ")
	if len(path) == 0 || path[0] != '/' {
		return m, nil, false
	}
	from, to, _ := bytes.Cut(addresses, []byte{'-'})
	major, minor, _ := bytes.Cut(dev, []byte{':'})
	start, ok1 := parseHex(from)
	end, ok2 := parseHex(to)
	maj, ok3 := parseHex(major)
	min, ok4 := parseHex(minor)
	ino, ok5 := parseUint(inode)
	skipped, ok6 := parseHex(offset)
	if !ok1 || !ok2 || !ok3 || !ok4 || !ok5 || !ok6 || end < start || len(perms) != 4 {
		return m, nil, false
	}
	path, m.Deleted = bytes.CutSuffix(path, []byte(" (deleted)"))
	m.Dev, m.Inode = unix.Mkdev(uint32(maj), uint32(min)), ino
	m.Shared, m.Writable = perms[3] == 's', perms[1] == 'w'
	if perms[2] == 'x' {
		m.Code = Range{start, end, skipped}
	}
	return m, path, true
}

// unescapeMaps undoes the one escape the kernel uses there: a line break in
// a name is written \012.
func unescapeMaps(path []byte) string {
	if bytes.IndexByte(path, '\\') < 0 {
		return string(path)
	}
	return string(bytes.ReplaceAll(path, []byte(`\012`), []byte{'\n'}))
}

func parseHex(b []byte) (v uint64, ok bool) {
	if len(b) == 0 || len(b) > 16 {
		return 0, false
	}
	for _, c := range b {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		default:
			return 0, false
		}
		v = v<<4 | uint64(c)
	}
	return v, true
}
