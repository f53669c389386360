package proc

import (
	"fmt"
	"slices"
	"strconv"
)

// PIDs lists all visible processes of the host, in the order of /proc: by pid.
func (r *Reader) PIDs() ([]int, error) {
	dir, err := r.root.OpenDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("listing processes: %w", err)
	}
	defer dir.Close()
	var pids []int
	err = dir.Each(r.buf, func(name []byte) bool {
		if pid, ok := parsePID(name); ok {
			pids = append(pids, pid)
		}
		return true
	})
	if err != nil {
		return nil, fmt.Errorf("listing processes: %w", err)
	}
	return r.simulation.ownProcesses(r.root, pids), nil
}

// EachStatus visits the processes with memory of their own, the newest first,
// and reads only the status of those that want accepts. It stops when visit
// returns false.
func (r *Reader) EachStatus(want func(pid int) bool, visit func(pid int, s *Status) bool) error {
	pids, err := r.PIDs()
	if err != nil {
		return err
	}
	proc, err := r.root.OpenDir("/proc")
	if err != nil {
		return fmt.Errorf("listing processes: %w", err)
	}
	defer proc.Close()
	for _, pid := range slices.Backward(pids) {
		if !want(pid) {
			continue
		}
		var buf [4096]byte
		n, err := proc.Read(strconv.Itoa(pid)+"/status", buf[:])
		if err != nil {
			continue // it has exited
		}
		s := parseStatus(buf[:n])
		if s.Memory && !visit(pid, &s) {
			break
		}
	}
	return nil
}
