package procfs

import (
	"bytes"
	"errors"
	"strconv"
)

// stat is the part of /proc/<pid>/stat that we use. Times are in clock ticks.
type stat struct {
	comm    []byte // in the caller's buffer
	state   byte   // R, S, D, Z, T, …
	ppid    int
	flags   uint64 // PF_*
	cpu     uint64 // utime + stime, of living and joined threads
	threads int
	start   uint64 // after boot
}

const pfKthread = 0x00200000

func (s *stat) kernelThread() bool { return s.flags&pfKthread != 0 }

// gone tells whether the process has exited and only waits for its parent to
// notice. A zombie that still has other threads is a living process whose
// first thread has ended.
func (s *stat) gone() bool {
	return (s.state == 'Z' || s.state == 'X') && s.threads <= 1
}

var errStat = errors.New("not in the form of /proc/<pid>/stat")

// parseStat reads "pid (comm) state ppid …". The name may hold blanks, line
// breaks and parentheses; the last ")" ends it.
func parseStat(b []byte) (s stat, err error) {
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 0 || end < open || end+2 >= len(b) {
		return s, errStat
	}
	s.comm = b[open+1 : end]
	var utime, stime, ppid, threads uint64
	n := 3 // the first field after the name, counted as in proc(5)
	for field := range bytes.FieldsSeq(b[end+1:]) {
		var dst *uint64
		switch n {
		case 3:
			s.state = field[0]
		case 4:
			dst = &ppid
		case 9:
			dst = &s.flags
		case 14:
			dst = &utime
		case 15:
			dst = &stime
		case 20:
			dst = &threads
		case 22:
			dst = &s.start
		}
		if dst != nil {
			v, ok := parseUint(field)
			if !ok {
				return stat{}, errStat
			}
			*dst = v
		}
		if n == 22 {
			s.cpu, s.ppid, s.threads = utime+stime, int(ppid), int(threads)
			return s, nil
		}
		n++
	}
	return stat{}, errStat
}

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

// parseUint reads a decimal number without making a string of it.
func parseUint(b []byte) (v uint64, ok bool) {
	if len(b) == 0 || len(b) > 20 {
		return 0, false
	}
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		next := v*10 + uint64(c-'0')
		if v > (1<<64-1)/10 || next < v {
			return 0, false
		}
		v = next
	}
	return v, true
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
