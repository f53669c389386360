package proc

import (
	"bytes"
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/hostfs"
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
	Shared   bool   // writes go to the file
	Writable bool   // some part of it
	Code     Range  // the first executable part; zero if there is none
}

// Range is a part of a file in a process's memory.
type Range struct {
	Start, End uint64 // addresses
	Offset     uint64 // in the file
}

// These bound the cost of a process with millions of mappings: the list is read
// page by page, which is as much as the kernel gives at a time, up to maxMaps, and at
// most maxMappings of the wanted files are kept.
const (
	maxMaps     = 64 << 20
	maxMappings = 1024
)

// errTooManyMappings means that a process maps more than maxMappings of those
// files.
var errTooManyMappings = errors.New("too many mappings of that name")

// KeepMappings makes Maps include the files whose path contains part. Each user
// of a shared Reader calls it before the first sweep.
func (r *Reader) KeepMappings(part string) { r.mapParts = append(r.mapParts, []byte(part)) }

// Maps returns which of the files named by KeepMappings a process has mapped.
// They are read once per sweep. Needs the right to trace the process (the same
// user, or root).
func (r *Reader) Maps(p *Process) ([]Mapping, error) {
	if p.mapsSweep != r.sweep {
		return r.ReadMaps(p)
	}
	return p.maps, p.mapsErr
}

// ReadMaps is Maps without the cache: it reads the list now.
func (r *Reader) ReadMaps(p *Process) ([]Mapping, error) {
	p.mapsSweep = r.sweep
	list, read, err := r.readMaps(p, "maps")
	if err == nil && read == 0 {
		// The first thread may have exited while the others still have the memory.
		if thread := p.livingThread(); thread != "" {
			list, _, err = r.readMaps(p, thread+"/maps")
		}
	}
	p.maps, p.mapsErr = list, err
	return list, err
}

// readMaps reads a list of mappings, of which read bytes were there.
func (r *Reader) readMaps(p *Process, name string) (list []Mapping, read int, err error) {
	type answer struct {
		parser mapsParser
		read   int
		err    error
	}
	a := &answer{parser: mapsParser{keep: r.mapParts}} // the reads may outlive us
	if _, err := r.Guard.RunIn(p, func(dir hostfs.Dir) {
		a.read, a.err = dir.Pieces(name, make([]byte, os.Getpagesize()), maxMaps, a.parser.add)
	}); err != nil {
		return nil, 0, err
	}
	if a.err != nil {
		return nil, a.read, a.err
	}
	return a.parser.out, a.read, nil
}

// mapsParser parses the lines of files whose path contains one of keep.
type mapsParser struct {
	keep [][]byte
	out  []Mapping
	rest []byte // the beginning of a line
}

// add parses the next piece of the list.
func (x *mapsParser) add(b []byte) error {
	for len(b) > 0 {
		line, after, whole := bytes.Cut(b, []byte{'\n'})
		if !whole {
			x.rest = append(x.rest, line...)
			return nil
		}
		if len(x.rest) > 0 {
			x.rest = append(x.rest, line...)
			line = x.rest
		}
		if err := x.addLine(line); err != nil {
			return err
		}
		b, x.rest = after, x.rest[:0]
	}
	return nil
}

func (x *mapsParser) addLine(line []byte) error {
	// Nearly all lines are of other files: search before parsing.
	if !containsAny(line, x.keep) {
		return nil
	}
	m, path, ok := parseMapsLine(line)
	if !ok || !containsAny(path, x.keep) {
		return nil
	}
	m.Path = unescapeMaps(path)
	if i := findMapping(x.out, &m); i >= 0 {
		x.out[i].Writable = x.out[i].Writable || m.Writable
		if x.out[i].Code == (Range{}) {
			x.out[i].Code = m.Code
		}
		return nil
	}
	if len(x.out) == maxMappings {
		return errTooManyMappings
	}
	x.out = append(x.out, m)
	return nil
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
