package proc

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/ttmon/ttmon/internal/hostfs"
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

// Status is the part of /proc/<pid>/status that we use.
type Status struct {
	TGID   int   // of the process; another number means that pid is a thread
	UID    int   // effective; −1 if unknown
	UIDs   []int // all that it has: real, effective, saved, of files
	NSPIDs []int // in the namespace of the /proc mount first, innermost last
	Memory bool  // it has an address space: kernel threads and zombies have none
}

// Inner is the pid of a process in its innermost namespace: what getpid returns
// to it. Kernels before 4.1 do not report it; there it is pid.
func (s *Status) Inner(pid int) int {
	if n := len(s.NSPIDs); n > 0 {
		return s.NSPIDs[n-1]
	}
	return pid
}

func parseStatus(b []byte) Status {
	s := Status{UID: -1}
	for line := range bytes.Lines(b) {
		key, value, ok := bytes.Cut(line, []byte{':'})
		if !ok {
			continue
		}
		switch string(key) {
		case "Tgid":
			s.TGID, _ = strconv.Atoi(string(bytes.TrimSpace(value)))
		case "Uid":
			s.UIDs = parseUIDs(value)
			if len(s.UIDs) > 1 {
				s.UID = s.UIDs[1]
			}
		case "NSpid":
			for f := range bytes.FieldsSeq(value) {
				if pid, ok := parsePID(f); ok {
					s.NSPIDs = append(s.NSPIDs, pid)
				}
			}
		case "VmSize":
			s.Memory = true
		}
	}
	return s
}

// parseUIDs parses "real effective saved fs", up to the first malformed one.
func parseUIDs(value []byte) (ids []int) {
	for f := range bytes.FieldsSeq(value) {
		v, ok := parseUint(f)
		if !ok || v > 1<<32-1 {
			break
		}
		ids = append(ids, int(v))
	}
	return ids
}

// ReadStatus reads the status of the process with a pid. It needs no Reader.
func ReadStatus(root hostfs.Root, pid int) (Status, error) {
	b, err := root.Read("/proc/"+strconv.Itoa(pid)+"/status", 16<<10)
	if err != nil {
		return Status{}, err
	}
	return parseStatus(b), nil
}

// Executable returns the path of the program that a process runs, as the
// process sees it. Needs the right to trace the process.
func Executable(root hostfs.Root, pid int) (string, error) {
	return root.Readlink("/proc/" + strconv.Itoa(pid) + "/exe")
}

// Owner returns the user that a process runs as.
func Owner(root hostfs.Root, pid int) (uid int, err error) {
	st, err := root.Stat("/proc/" + strconv.Itoa(pid))
	if err != nil {
		return -1, fmt.Errorf("cannot find process %d: %w", pid, err)
	}
	return int(st.Uid), nil
}

// OpenDescriptors counts the open descriptors of this process.
func OpenDescriptors() (int, error) {
	names, err := hostfs.Root{}.Names("/proc/self/fd")
	if err != nil {
		return 0, err
	}
	return len(names) - 1, nil // one is the directory
}
