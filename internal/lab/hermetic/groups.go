package hermetic

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// groupPrefix begins the name of every control group that tests make in a
// hierarchy of the machine. The number of the process that made it follows.
const groupPrefix = "ttmon-test-"

// Groups are control groups for processes of a test, one in each hierarchy in
// which this process may make one, below its own. A cgroup namespace that such a
// process makes has them as its root: what a systemd or a test does to control
// groups in there stays in there.
type Groups struct{ dirs []string }

// NewGroups makes groups, and removes those of earlier tests that were killed
// before they could do so. There are none where this process may make none; then
// its tests can change no group of the machine either.
func NewGroups() *Groups {
	g := new(Groups)
	own, err := ownGroups()
	if err != nil {
		return g
	}
	name := fmt.Sprintf("%s%d-%d", groupPrefix, os.Getpid(), time.Now().UnixNano())
	for _, parent := range own {
		removeAbandoned(parent)
		dir := filepath.Join(parent, name)
		if os.Mkdir(dir, 0o755) == nil {
			copySets(parent, dir)
			g.dirs = append(g.dirs, dir)
		}
	}
	return g
}

// copySets gives a group the processors and memory of its parent. A group of
// version 1 has neither at first, and takes no process then.
func copySets(parent, dir string) {
	for _, name := range []string{"cpuset.cpus", "cpuset.mems"} {
		if set, err := os.ReadFile(filepath.Join(parent, name)); err == nil {
			_ = os.WriteFile(filepath.Join(dir, name), set, 0o644) // version 2 inherits it
		}
	}
}

// Add moves a process into the groups.
func (g *Groups) Add(pid int) error { return g.move(pid, func(dir string) string { return dir }) }

// Return moves a process to where it was before Add, if it was in the group of
// this process.
func (g *Groups) Return(pid int) error { return g.move(pid, filepath.Dir) }

func (g *Groups) move(pid int, group func(dir string) string) error {
	var failed error
	for _, dir := range g.dirs {
		procs := filepath.Join(group(dir), "cgroup.procs")
		failed = errors.Join(failed, os.WriteFile(procs, []byte(strconv.Itoa(pid)), 0o644))
	}
	return failed
}

// Remove removes the groups, with those that were made in them. Their processes
// have been killed; the kernel may still be at work on it.
func (g *Groups) Remove() error {
	var failed error
	for _, dir := range g.dirs {
		failed = errors.Join(failed, removeGroup(dir, 10*time.Second))
	}
	return failed
}

// removeGroup removes a group and all below it.
func removeGroup(dir string, limit time.Duration) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := removeGroup(filepath.Join(dir, e.Name()), limit); err != nil {
				return err
			}
		}
	}
	for end := time.Now().Add(limit); ; time.Sleep(10 * time.Millisecond) {
		err := os.Remove(dir)
		if err == nil || errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if !errors.Is(err, syscall.EBUSY) || time.Now().After(end) {
			return err
		}
	}
}

// removeAbandoned removes the groups below parent whose maker does not run.
func removeAbandoned(parent string) {
	dirs, _ := filepath.Glob(filepath.Join(parent, groupPrefix+"*"))
	for _, dir := range dirs {
		number, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), groupPrefix), "-")
		pid, err := strconv.Atoi(number)
		if err != nil || syscall.Kill(pid, 0) == nil {
			continue
		}
		_ = removeGroup(dir, 0)
	}
}

// ownGroups are the directories of the groups that this process is in.
func ownGroups() (dirs []string, err error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	return groupDirs(string(mounts), string(groups)), nil
}

// groupDirs finds the directories of a process's groups: mounts is its
// mountinfo, groups its cgroup file, whose lines are ID:CONTROLLERS:PATH.
func groupDirs(mounts, groups string) (dirs []string) {
	lines := bufio.NewScanner(strings.NewReader(groups))
	for lines.Scan() {
		parts := strings.SplitN(lines.Text(), ":", 3)
		if len(parts) != 3 {
			continue
		}
		if dir, ok := mountedAt(mounts, parts[1], parts[2]); ok {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// mountedAt finds where the group path of a hierarchy is mounted. controllers
// is empty for version 2.
func mountedAt(mounts, controllers, path string) (dir string, ok bool) {
	for line := range strings.Lines(mounts) {
		where, what, found := strings.Cut(strings.TrimSpace(line), " - ")
		left, right := strings.Fields(where), strings.Fields(what)
		if !found || len(left) < 6 || len(right) < 3 {
			continue
		}
		switch {
		case right[0] == "cgroup2" && controllers == "":
		case right[0] == "cgroup" && controllers != "" && strings.Contains(","+right[2]+",", ","+controllers+","):
		default:
			continue
		}
		root, at := left[3], left[4]
		if rest, inside := strings.CutPrefix(path, root); inside {
			return filepath.Join(at, rest), true
		}
	}
	return "", false
}

// MountGroups is a shell script for a process in mount and cgroup namespaces of
// its own: it mounts the hierarchies again, so that /sys/fs/cgroup shows the
// groups of that namespace and nothing else. The directory that holds those of
// version 1 is a file system whose options are the machine's: it is replaced.
const MountGroups = `
groups=$(awk '($3 == "cgroup" || $3 == "cgroup2") && !seen[$2]++ { print $2, $3, $4 }' /proc/self/mounts)
if [ "$(stat -f -c %T /sys/fs/cgroup)" != cgroup2fs ]; then
	mount -t tmpfs -o mode=755 tmpfs /sys/fs/cgroup
fi
echo "$groups" | while read -r dir type options; do
	[ -n "$dir" ] || continue
	mkdir -p "$dir"
	[ "$type" = cgroup ] || options=rw
	mount -t "$type" -o "$options" "$type" "$dir"
done
`

// mountGroups runs MountGroups in the namespaces of this process.
func mountGroups() error {
	if out, err := exec.Command("sh", "-ec", MountGroups).CombinedOutput(); err != nil {
		return fmt.Errorf("mounting control groups: %w: %s", err, out)
	}
	return nil
}
