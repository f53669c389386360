package proc

import (
	"bytes"
	"strconv"
)

// parseStatm returns the resident pages of /proc/<pid>/statm. The kernel
// counts them more exactly there than in stat (since 6.17 over all cores).
func parseStatm(b []byte) (pages uint64, ok bool) {
	_, rest, ok := bytes.Cut(b, []byte{' '})
	if !ok {
		return 0, false
	}
	field, _, _ := bytes.Cut(rest, []byte{' '})
	return parseUint(field)
}

// parsePID reads a pid: a positive number that fits the kernel's pid_t.
func parsePID(b []byte) (pid int, ok bool) {
	v, ok := parseUint(b)
	if !ok || v == 0 || v > 1<<31-1 {
		return 0, false
	}
	return int(v), true
}

// status is the part of /proc/<pid>/status that we use.
type status struct {
	tgid   int   // of the process; another number means that pid is a thread
	uid    int   // effective; -1 if not told
	nsPIDs []int // in the namespace of the /proc mount first, innermost last
}

func parseStatus(b []byte) status {
	s := status{uid: -1}
	for line := range bytes.Lines(b) {
		key, value, ok := bytes.Cut(line, []byte{':'})
		if !ok {
			continue
		}
		switch string(key) {
		case "Tgid":
			s.tgid, _ = strconv.Atoi(string(bytes.TrimSpace(value)))
		case "Uid":
			s.uid = effectiveUID(value)
		case "NSpid":
			for f := range bytes.FieldsSeq(value) {
				if pid, ok := parsePID(f); ok {
					s.nsPIDs = append(s.nsPIDs, pid)
				}
			}
		}
	}
	return s
}

// effectiveUID takes the second of the four ids in "real effective saved fs".
func effectiveUID(value []byte) int {
	n := 0
	for f := range bytes.FieldsSeq(value) {
		if n++; n == 2 {
			if v, ok := parseUint(f); ok && v <= 1<<32-1 {
				return int(v)
			}
			break
		}
	}
	return -1
}
