package proc

import (
	"fmt"
	"strconv"

	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/model"
)

// Namespace is where a process's pids count.
type Namespace struct {
	// PIDs are its numbers, in the namespace of the host's /proc first and in
	// its innermost one, what it calls itself, last.
	PIDs []int
	// Ours: it is in the same pid namespace as we.
	Ours bool
	// Inode names the namespace; needs the right to trace the process.
	Inode model.Reading[uint64]
}

// Inner is the number by which the process knows itself.
func (n Namespace) Inner() int {
	if len(n.PIDs) == 0 {
		return 0
	}
	return n.PIDs[len(n.PIDs)-1]
}

// Namespace tells the pid namespace of a process and its numbers.
func (r *Reader) Namespace(pid int) (Namespace, error) {
	var ns Namespace
	dir, err := r.open(pid)
	if err != nil {
		return ns, fmt.Errorf("reading the namespace of process %d: %w", pid, err)
	}
	defer dir.Close()
	n, err := dir.Read("status", r.buf)
	if err != nil {
		return ns, fmt.Errorf("reading the namespace of process %d: %w", pid, err)
	}
	ns.PIDs = parseStatus(r.buf[:n]).nsPIDs
	if len(ns.PIDs) == 0 { // before Linux 4.1
		ns.PIDs = []int{pid}
	}
	ns.Ours = len(ns.PIDs) == 1 && r.view.ours
	var link [64]byte
	n, err = dir.Readlink("ns/pid", link[:])
	if err != nil {
		ns.Inode = model.Missing[uint64](hostfs.Status(err), err.Error())
		return ns, nil
	}
	if ino, ok := between(string(link[:n]), "pid:[", "]"); ok {
		if v, err := strconv.ParseUint(ino, 10, 64); err == nil {
			ns.Inode = model.Value(v)
			ns.Ours = v == r.ourNamespace()
		}
	}
	return ns, nil
}

// ourNamespace is the inode of the pid namespace we run in; 0 if unknown.
func (r *Reader) ourNamespace() uint64 {
	st, err := hostfs.At("/").Stat("/proc/self/ns/pid")
	if err != nil {
		return 0
	}
	return st.Ino
}

// innerPID is the number of a described process in its innermost namespace.
func (r *Reader) innerPID(pid int) int {
	if p := r.known[pid]; p != nil && p.inner != 0 {
		return p.inner
	}
	return pid
}
