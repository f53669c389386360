package proc

import (
	"bytes"
	"fmt"

	"golang.org/x/sys/unix"
)

// Mapping is a file that a process has mapped, all its parts together.
type Mapping struct {
	// Dev and Inode are those of the file's file system, to be compared with
	// st_dev and st_ino. They match on tmpfs (/dev/shm) and ordinary disks,
	// not on btrfs and overlayfs, whose stat gives other device numbers.
	Dev     uint64
	Inode   uint64
	Path    string // as in the process's mount namespace
	Deleted bool   // the file has no name any more
	Bytes   uint64 // of address space
}

// maxMaps bounds what a process with millions of mappings can cost.
const maxMaps = 64 << 20

// Mappings lists the files that a process maps and want accepts. want gets
// the path without " (deleted)" and must not keep it; it is asked for every
// mapping of a file, in the order of addresses. Needs the right to trace the
// process (the same user, or root).
func (r *Reader) Mappings(pid int, want func(path []byte) bool) ([]Mapping, error) {
	r.begin()
	return r.mappings(pid, want)
}

func (r *Reader) mappings(pid int, want func(path []byte) bool) ([]Mapping, error) {
	dir, err := r.open(pid)
	if err != nil {
		return nil, fmt.Errorf("reading the mappings of process %d: %w", pid, err)
	}
	defer dir.Close()
	s, _, err := r.readStat(dir)
	if err == nil {
		r.maps, err = r.readGuarded(identity{pid, s.Start}, dir, "maps", r.maps, maxMaps)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the mappings of process %d: %w", pid, err)
	}
	return parseMaps(r.maps, want), nil
}

func parseMaps(b []byte, want func(path []byte) bool) []Mapping {
	var out []Mapping
	for line := range bytes.Lines(b) {
		m, path, ok := parseMapsLine(line)
		if !ok || !want(path) {
			continue
		}
		if i := findMapping(out, &m, path); i >= 0 {
			out[i].Bytes += m.Bytes
			continue
		}
		m.Path = unescapeMaps(path)
		out = append(out, m)
	}
	return out
}

func findMapping(list []Mapping, m *Mapping, path []byte) int {
	for i := len(list) - 1; i >= 0; i-- { // parts of a file are neighbours
		l := &list[i]
		if l.Inode == m.Inode && l.Dev == m.Dev && l.Deleted == m.Deleted && l.Path == unescapeMaps(path) {
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
	_, rest, _ = bytes.Cut(rest, []byte{' '}) // permissions
	_, rest, _ = bytes.Cut(rest, []byte{' '}) // offset
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
	if !ok1 || !ok2 || !ok3 || !ok4 || !ok5 || end < start {
		return m, nil, false
	}
	path, m.Deleted = bytes.CutSuffix(path, []byte(" (deleted)"))
	m.Dev, m.Inode, m.Bytes = unix.Mkdev(uint32(maj), uint32(min)), ino, end-start
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
