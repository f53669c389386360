package collect

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/hostfs/proc"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/source/kmsg"
)

var oomAt = time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)

// The kernel's log names who was killed.
func TestOOMKilledByLog(t *testing.T) {
	const killed = int(unix.SIGKILL)
	for _, tt := range []struct {
		name   string
		kill   model.OOMKill
		status model.Reading[int]
		want   bool
	}{
		{"killed", model.OOMKill{PID: 7, Time: oomAt.Add(-time.Second)}, model.Value(killed), true},
		{"status not known", model.OOMKill{PID: 7, Time: oomAt.Add(-time.Second)}, model.Missing[int](model.Absent, ""), true},
		{"another process", model.OOMKill{PID: 8, Time: oomAt.Add(-time.Second)}, model.Value(killed), false},
		{"an earlier process of that number", model.OOMKill{PID: 7, Time: oomAt.Add(-time.Hour)}, model.Value(killed), false},
		{"a later process of that number", model.OOMKill{PID: 7, Time: oomAt.Add(10 * time.Second)}, model.Value(killed), false},
		{"it exited by itself", model.OOMKill{PID: 7, Time: oomAt.Add(-time.Second)}, model.Value(1 << 8), false},
		{"another signal", model.OOMKill{PID: 7, Time: oomAt.Add(-time.Second)}, model.Value(int(unix.SIGTERM)), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := oomWatch{root: hostfs.At(t.TempDir()), kills: func() ([]model.OOMKill, bool) { return []model.OOMKill{tt.kill}, true }}
			id := model.ProcessID{PID: 7, StartTicks: 1}
			o.left(id, oomAt.Add(-time.Minute))
			o.readCounters(nil)
			list := []model.Exit{{ID: id, Time: oomAt, Status: tt.status}}
			if o.judge(list); list[0].OutOfMemory != tt.want {
				t.Errorf("%+v, want %v", list[0], tt.want)
			}
		})
	}
}

// oomHost is a host of files with processes in one control group.
type oomHost struct {
	t    *testing.T
	root string
}

func (h oomHost) write(path, text string) {
	h.t.Helper()
	path = filepath.Join(h.root, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

// Where the log cannot be read, the counter of the control group must have risen by
// as many as have left.
func TestOOMKilledByControlGroup(t *testing.T) {
	for _, tt := range []struct {
		name    string
		cgroup  string
		file    string
		rise    int
		leaving int
		status  model.Reading[int]
		want    bool
	}{
		{"version 2", "0::/user.slice/a.scope", "user.slice/a.scope/memory.events", 1, 1, model.Value(9), true},
		{"version 1", "4:memory:/job\n0::/", "memory/job/memory.oom_control", 1, 1, model.Value(9), true},
		{"killed by another", "0::/a", "a/memory.events", 0, 1, model.Value(9), false},
		{"all of the group", "0::/a", "a/memory.events", 2, 2, model.Value(9), true},
		{"one of two", "0::/a", "a/memory.events", 1, 2, model.Value(9), false},
		{"exited by itself", "0::/a", "a/memory.events", 1, 1, model.Value(0), false},
		{"status not known", "0::/a", "a/memory.events", 1, 1, model.Missing[int](model.Absent, ""), false},
		{"out of our namespace", "0::/../a", "a/memory.events", 1, 1, model.Value(9), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := oomHost{t, t.TempDir()}
			now := map[model.ProcessID]time.Time{}
			var list []model.Exit
			for pid := range tt.leaving {
				id := model.ProcessID{PID: pid + 1, StartTicks: 1}
				h.write(fmt.Sprintf("proc/%d/cgroup", id.PID), tt.cgroup+"\n")
				now[id] = oomAt
				list = append(list, model.Exit{ID: id, Time: oomAt, Status: tt.status})
			}
			count := func(n int) {
				h.write("sys/fs/cgroup/"+tt.file, fmt.Sprintf("low 0\noom 5\noom_kill %d\noom_group_kill 0\n", n))
			}
			count(3)
			o := oomWatch{root: hostfs.At(h.root), kills: func() ([]model.OOMKill, bool) { return nil, false }}
			o.readCounters(now)
			count(3 + tt.rise)
			for id := range now {
				o.left(id, oomAt)
			}
			o.readCounters(nil)
			o.judge(list)
			for _, x := range list {
				if x.OutOfMemory != tt.want {
					t.Errorf("%+v, want %v", x, tt.want)
				}
			}
		})
	}
}

// TestOOMKilledByKernel has the kernel kill a process in a memory control group of
// its own, and asks its log and its counters.
func TestOOMKilledByKernel(t *testing.T) {
	for _, tt := range []struct {
		name  string
		kills func(*testing.T) func() ([]model.OOMKill, bool) // nil: the log is not asked
	}{
		{"log", func(t *testing.T) func() ([]model.OOMKill, bool) {
			r := kmsg.New(hostfs.Root{})
			t.Cleanup(r.Close)
			if _, known := r.OOMKills(); !known {
				t.Skip("/dev/kmsg cannot be read")
			}
			return r.OOMKills
		}},
		{"control group", func(*testing.T) func() ([]model.OOMKill, bool) { return nil }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			kills := tt.kills(t)
			cmd, root := startInSmallGroup(t)
			st, err := proc.ReadStat(hostfs.Root{}, cmd.Process.Pid)
			if err != nil {
				t.Fatal(err)
			}
			e := exits{oom: oomWatch{root: hostfs.At(root), kills: kills}}
			if kills != nil {
				// The log has the number of the first pid namespace; tests have one of their own.
				// Its clock is not that of time.Now.
				before, _ := kills()
				before = slices.Clone(before)
				e.oom.kills = func() ([]model.OOMKill, bool) {
					list, known := kills()
					list = slices.Clone(list)
					for i := range list {
						if !slices.Contains(before, list[i]) {
							list[i].PID = cmd.Process.Pid
						}
					}
					return list, known
				}
			}
			defer e.pidfds.close()
			p := model.Process{PID: cmd.Process.Pid, StartTicks: st.Start, StartTime: time.Now(), State: model.Running, Devices: []model.DeviceUse{{}}}
			e.add(&model.Snapshot{Time: time.Now(), Processes: []model.Process{p}}, nil)
			if err := cmd.Process.Signal(unix.SIGCONT); err != nil {
				t.Fatal(err)
			}
			var info unix.Siginfo
			if err := unix.Waitid(unix.P_PID, cmd.Process.Pid, &info, unix.WEXITED|unix.WNOWAIT, nil); err != nil { // a zombie has its status
				t.Fatal(err)
			}
			s := &model.Snapshot{Time: time.Now()}
			e.add(s, nil)
			if len(s.Exits) != 1 || !s.Exits[0].OutOfMemory || s.Exits[0].Status != model.Value(int(unix.SIGKILL)) {
				t.Errorf("%+v", s.Exits)
			}
		})
	}
}

// startInSmallGroup starts a program, stopped, that needs more memory than its
// control group has, and says below which directory that is mounted.
func startInSmallGroup(t *testing.T) (cmd *exec.Cmd, root string) {
	t.Helper()
	// As a container has them: they show the root of the tests' own namespace.
	root = t.TempDir()
	dir, kind, options, limit := filepath.Join(root, "sys/fs/cgroup/memory"), "cgroup", "memory", "memory.limit_in_bytes"
	if _, err := os.Stat("/sys/fs/cgroup/memory"); err != nil {
		dir, kind, options, limit = filepath.Dir(dir), "cgroup2", "", "memory.max"
	}
	mount(t, kind, dir, kind, 0, options)
	mount(t, "/proc", filepath.Join(root, "proc"), "", unix.MS_BIND, "")
	group := filepath.Join(dir, "ttmon-test-"+strconv.Itoa(os.Getpid()))
	if err := os.Mkdir(group, 0o755); err != nil {
		t.Skipf("no memory control group can be made here: %v", err)
	}
	t.Cleanup(func() { _ = os.Remove(group) })
	write := func(file, text string) error { return os.WriteFile(filepath.Join(group, file), []byte(text), 0o600) }
	if err := write(limit, "16777216"); err != nil {
		t.Skipf("the memory of a control group cannot be limited here: %v", err)
	}
	_ = write("memory.swap.max", "0")
	_ = write("memory.memsw.limit_in_bytes", "16777216")
	// tail keeps a line in memory until it ends.
	cmd = exec.Command("sh", "-c", "kill -STOP $$; exec tail -n 1 /dev/zero")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	for {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", cmd.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		if _, rest, _ := bytes.Cut(b, []byte(") ")); strings.HasPrefix(string(rest), "T") {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if err := write("cgroup.procs", strconv.Itoa(cmd.Process.Pid)); err != nil {
		t.Skipf("no process can be moved into a control group here: %v", err)
	}
	return cmd, root
}

func mount(t *testing.T, what, dir, kind string, flags uintptr, options string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(what, dir, kind, flags, options); err != nil {
		t.Skipf("%s cannot be mounted here: %v", what, err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
}
