package selftest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/cli/selftest/report"
	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/model"
)

const deviceFolder = "/dev/tenstorrent/"

// opener is a process that has a device open.
type opener struct{ pid, device int }

// openers finds who has a device open by looking at every process's
// descriptors, as far as this user may.
func openers(root hostfs.Root) map[opener]bool {
	found := map[opener]bool{}
	folders, _ := filepath.Glob(root.Path("/proc/[0-9]*/fd"))
	for _, folder := range folders {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(folder)))
		if err != nil {
			continue
		}
		names, err := os.ReadDir(folder)
		if err != nil {
			continue // another user's, or gone
		}
		for _, name := range names {
			if device, ok := deviceOf(root, filepath.Join(folder, name.Name())); ok {
				found[opener{pid, device}] = true
			}
		}
	}
	return found
}

// deviceOf is the device that a descriptor is of. One of the same name may be of
// another host, where that is a container's or a simulated one: its node is
// another file.
func deviceOf(root hostfs.Root, descriptor string) (device int, ok bool) {
	target, err := os.Readlink(descriptor)
	if err != nil {
		return 0, false
	}
	n, ok := strings.CutPrefix(target, deviceFolder)
	if !ok {
		return 0, false
	}
	if device, err = strconv.Atoi(n); err != nil {
		return 0, false
	}
	var open, node unix.Stat_t // stat opens nothing
	if unix.Stat(descriptor, &open) != nil || unix.Stat(root.Path(target), &node) != nil {
		return 0, false
	}
	if node.Mode&unix.S_IFMT == unix.S_IFCHR {
		return device, open.Rdev == node.Rdev
	}
	return device, open.Dev == node.Dev && open.Ino == node.Ino
}

// users compares who has a device open. Processes come and go: what differs is
// read again.
func (t *test) users(ctx context.Context, r *report.Report) {
	var s *model.Snapshot
	var wrong map[int][2]string // by device: ours and the witness's
	for range rounds {
		before := openers(t.root)
		s = t.snapshot(ctx)
		after := openers(t.root)
		if wrong = t.differing(s, before, after); len(wrong) == 0 || ctx.Err() != nil {
			break
		}
	}
	for i := range s.Devices {
		index := s.Devices[i].Index
		out := row(report.Users, "users", index, report.Right, "")
		out.By = "descriptors in /proc"
		out.Ours = listed(ours(s, index))
		out.Witness = out.Ours
		if !t.isRoot {
			out.By += ", this user's"
		}
		if lists, ok := wrong[index]; ok {
			out.Ours, out.Witness, out.Verdict = lists[0], lists[1], report.Wrong
		}
		r.Add(out)
	}
}

// differing are the devices where ttmon misses a process that the witness saw
// before and after, or, where it sees all, shows one that it did not see.
func (t *test) differing(s *model.Snapshot, before, after map[opener]bool) map[int][2]string {
	wrong := map[int][2]string{}
	for i := range s.Devices {
		index := s.Devices[i].Index
		shown, seen := ours(s, index), []int{}
		for o := range before {
			if o.device == index && after[o] {
				seen = append(seen, o.pid)
			}
		}
		slices.Sort(seen)
		missing := slices.ContainsFunc(seen, func(pid int) bool { return !slices.Contains(shown, pid) })
		invented := t.isRoot && slices.ContainsFunc(shown, func(pid int) bool {
			o := opener{pid, index}
			return !before[o] && !after[o]
		})
		if missing || invented {
			wrong[index] = [2]string{listed(shown), listed(seen)}
		}
	}
	return wrong
}

// ours are the processes that ttmon shows with an open descriptor of a device.
func ours(s *model.Snapshot, device int) (pids []int) {
	for i := range s.Processes {
		p := &s.Processes[i]
		if p.State != model.Running {
			continue
		}
		for j := range p.Devices {
			if u := &p.Devices[j]; u.Device == device && !(u.OpenFDs.Known() && u.OpenFDs.V == 0) {
				pids = append(pids, p.PID)
			}
		}
	}
	slices.Sort(pids)
	return pids
}

// listed names a few pids, and counts many.
func listed(pids []int) string {
	switch len(pids) {
	case 0:
		return "none"
	case 1, 2, 3:
		return strings.Trim(fmt.Sprint(pids), "[]")
	default:
		return fmt.Sprintf("%d processes", len(pids))
	}
}
