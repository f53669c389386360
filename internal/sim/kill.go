package sim

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// killInside ends every process in our mount namespace but ourselves. outer
// is the namespace we were started from: if ours is the same, something is
// badly wrong and nobody is killed.
func killInside(outer string) {
	inner, err := os.Readlink("/proc/self/ns/mnt")
	if err != nil || inner == outer || outer == "" {
		return
	}
	for _, sig := range []unix.Signal{unix.SIGTERM, unix.SIGKILL} {
		deadline := time.Now().Add(time.Second)
		for wait := time.Millisecond; time.Now().Before(deadline); wait = min(2*wait, 50*time.Millisecond) {
			pids := inside(inner)
			if len(pids) == 0 {
				return
			}
			if wait == time.Millisecond || sig == unix.SIGKILL {
				for _, pid := range pids {
					unix.Kill(pid, sig)
				}
			}
			time.Sleep(wait)
		}
	}
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
