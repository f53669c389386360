package truth

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/ttmon/ttmon/internal/model"
)

// holder is a process, and what it really holds on its chip.
type holder struct {
	pid     int // on the host
	chip    int // number among the host's chips
	devices []int
	used    [model.NumPools]uint64
	inDRAM  int64 // what its blocks take of DRAM, or one of the below
	other   bool  // it is no tt-metal program
	child   bool  // it has its parent's descriptors
	library bool  // libttmon is in it
	// watched: a ttmond that watches was there before it, and has not been
	// restarted since.
	watched   bool
	everyChip bool // it holds the same on each chip of its devices
}

// Why it is not known what the blocks of a process take.
const (
	unknowable = -1 // it has no allocator
	notSaid    = -2 // its allocator does not say it to us
)

// actor plays a program.
type actor interface {
	alloc(mib uint64, thread bool)
	allocL1(mib uint64)
	free()
	fork(mib uint64)
	spawn()
	exec()
	kill()
	end()
	holders() []*holder
}

// newActor starts a program, which then holds what it begins with.
func (h *composedHost) newActor(p program) actor {
	h.Helper()
	first := &holder{chip: p.Chip, devices: h.opens(p), library: p.Library, watched: h.watches()}
	base := cast{composedHost: h, program: p, all: []*holder{first}}
	switch p.Kind {
	case standIn:
		return h.startStandIn(base)
	case scripted:
		return h.startScripted(base)
	case realTTNN:
		return h.startTTNN(base)
	case reports:
		return h.startReporter(base)
	case sleeper:
		return h.startSleeper(base)
	case linked:
		return h.startLinked(base)
	}
	h.Fatalf("no program is a %q", p.Kind)
	return nil
}

// watches reports whether a ttmond is there that watches allocators.
func (h *composedHost) watches() bool { return h.c.Uprobe && h.d != nil }

// opens are the devices that a program has open.
func (h *composedHost) opens(p program) (devices []int) {
	for _, ch := range h.chips {
		if (p.OpenAll || ch.Device == h.chips[p.Chip].Device) && !slices.Contains(devices, ch.Device) {
			devices = append(devices, ch.Device)
		}
	}
	return devices
}

// cast is what all actors have. What a program cannot do, no composition asks for.
type cast struct {
	*composedHost
	program program
	all     []*holder // the program itself first
}

func (a *cast) holders() []*holder { return a.all }
func (a *cast) alloc(uint64, bool) { a.Fatalf("%s: it cannot allocate", a.program) }
func (a *cast) allocL1(uint64)     { a.Fatalf("%s: it cannot allocate in L1", a.program) }
func (a *cast) free()              { a.Fatalf("%s: it cannot free", a.program) }
func (a *cast) fork(uint64)        { a.Fatalf("%s: it cannot fork", a.program) }
func (a *cast) spawn()             { a.Fatalf("%s: it cannot spawn", a.program) }
func (a *cast) exec()              { a.Fatalf("%s: it cannot exec", a.program) }
func (a *cast) kill()              { a.Fatalf("%s: it is not to be killed", a.program) }

// over is the end of a program and of its children.
func (a *cast) over() {
	a.Helper()
	pids := pidsOf(a.all)
	a.all = nil
	a.gone(pids...)
}

// leaves notes what the accounting may keep of processes that do not close.
func (a *cast) leaves(list ...*holder) {
	for _, x := range list {
		total := uint64(0)
		for _, n := range x.used {
			total += n
		}
		for i := range a.chips {
			if a.on(x, i) {
				a.left = append(a.left, leftover{chip: i, bytes: total})
			}
		}
	}
}

// before is the command in front of a program: where it runs, its container, its
// user, libttmon, and the devices that it has open.
func (a *cast) before() (line []string) {
	line = a.secretly()
	if a.program.Container {
		mounts := "mount -t proc proc /proc"
		if a.program.PrivateShm {
			mounts += " && mount -t tmpfs -o mode=1777 shm /dev/shm"
		}
		line = append(line, "unshare", "--pid", "--fork", "--kill-child", "--mount", "sh", "-c", mounts+` && exec "$@"`, "sh")
	}
	if a.program.UID != 0 {
		line = append(line, asUser(a.program.UID)...)
	}
	if a.program.Library {
		line = append(line, filepath.Join(bin, "ttmon"), "run", "--quiet", "--")
	}
	var devices []string
	for _, d := range a.all[0].devices {
		devices = append(devices, strconv.Itoa(d))
	}
	return append(line, filepath.Join(bin, "ttmon-sim"), "open", "--devices", strings.Join(devices, ","), "--")
}

// asUser is the command that runs another one as a user without any right.
func asUser(uid int) []string {
	return []string{"setpriv", fmt.Sprintf("--reuid=%d", uid), fmt.Sprintf("--regid=%d", uid), "--clear-groups", "--inh-caps=-all"}
}

// command is a command in the host, with a directory for what it caches.
func (a *cast) command(line ...string) *exec.Cmd {
	a.Helper()
	cmd := a.host.Command(context.Background(), line[0], line[1:]...)
	cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+a.open777())
	a.Cleanup(func() { wipe(cmd) })
	return cmd
}

// wipe ends a command with all that it has started.
func wipe(cmd *exec.Cmd) {
	if cmd.Process == nil || cmd.ProcessState != nil {
		return
	}
	for _, pid := range descendants(cmd.Process.Pid) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

// onHost finds the process below another one that has this pid in the
// innermost of its pid namespaces.
func (s *stage) onHost(below, pid int) (found int) {
	s.Helper()
	s.until(fmt.Sprintf("process %d is seen from the host", pid), func() bool {
		found = 0
		for _, p := range append(descendants(below), below) {
			status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", p))
			_, rest, _ := strings.Cut(string(status), "\nNSpid:")
			line, _, _ := strings.Cut(rest, "\n")
			if inner := strings.Fields(line); len(inner) > 0 && inner[len(inner)-1] == strconv.Itoa(pid) && found == 0 {
				found = p
			}
		}
		return found != 0
	})
	return found
}

// descendants are all processes below one.
func descendants(pid int) (list []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, path := range lists {
		text, _ := os.ReadFile(path)
		for _, word := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(word); err == nil {
				list = append(append(list, child), descendants(child)...)
			}
		}
	}
	return list
}

// gone waits until processes have ended.
func (h *composedHost) gone(pids ...int) {
	h.Helper()
	for _, pid := range pids {
		h.until(fmt.Sprintf("process %d has ended", pid), func() bool {
			maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
			return err != nil || len(maps) == 0
		})
	}
}

func pidsOf(list []*holder) (pids []int) {
	for _, h := range list {
		pids = append(pids, h.pid)
	}
	return pids
}
