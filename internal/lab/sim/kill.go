package sim

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// killInside ends every process in our mount namespace but ourselves. outer
// is the namespace we were started from: if ours is the same, something is
// badly wrong and no process is killed.
func killInside(outer string) {
	inner, err := os.Readlink("/proc/self/ns/mnt")
	if err != nil || inner == outer || outer == "" {
		return
	}
	killAll(func() []int { return inside(inner) })
}

// killAll ends the processes that list returns, with SIGTERM and, after a
// second, with SIGKILL, until there are none.
func killAll(list func() []int) {
	for _, sig := range []unix.Signal{unix.SIGTERM, unix.SIGKILL} {
		deadline := time.Now().Add(time.Second)
		told := make(map[int]bool)
		for wait := time.Millisecond; time.Now().Before(deadline); wait = min(2*wait, 50*time.Millisecond) {
			pids := list()
			if len(pids) == 0 {
				return
			}
			for _, pid := range pids {
				if !told[pid] {
					told[pid] = true
					unix.Kill(pid, sig)
				}
			}
			time.Sleep(wait)
		}
	}
}

// KillDescendants ends every process that descends from this one, but for one
// and those that descend from that.
func KillDescendants(except int) {
	killAll(func() []int { return descendants(os.Getpid(), except) })
}

// descendants lists the living processes below pid, from /proc.
func descendants(pid, except int) []int {
	children := make(map[int][]int)
	for _, name := range names("/proc") {
		child, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if parent, state := parentOf(child); state != 'Z' && state != 'X' {
			children[parent] = append(children[parent], child)
		}
	}
	var list []int
	for todo := []int{pid}; len(todo) > 0; todo = todo[1:] {
		for _, child := range children[todo[0]] {
			if child != except {
				list = append(list, child)
				todo = append(todo, child)
			}
		}
	}
	return list
}

// parentOf reads a process's parent and state; the name in between may hold
// anything, so it is skipped from behind.
func parentOf(pid int) (parent int, state byte) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 'X'
	}
	_, err = fmt.Sscanf(string(b[bytes.LastIndexByte(b, ')')+1:]), " %c %d", &state, &parent)
	if err != nil {
		return 0, 'X'
	}
	return parent, state
}

// inside lists the processes in a mount namespace, without ourselves and
// without those that have ended and wait to be collected.
func inside(ns string) []int {
	var pids []int
	for _, name := range names("/proc") {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == os.Getpid() {
			continue
		}
		if to, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/mnt", pid)); err == nil && to == ns {
			pids = append(pids, pid)
		}
	}
	return pids
}
