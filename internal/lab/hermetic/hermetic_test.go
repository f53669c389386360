package hermetic

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain also plays the part of another package's tests, in processes that
// the tests here start where the mark is out of sight: for those, that is
// outside.
func TestMain(m *testing.M) {
	Enter(Options{})
	switch os.Getenv(part) {
	case "look":
		printView()
	case "leave an orphan":
		if err := exec.Command("setsid", "sleep", orphan).Start(); err != nil {
			panic(err)
		}
		os.Exit(3)
	case "slow to start":
		waitForEver()
	}
	os.Exit(m.Run())
}

const (
	part   = "PART_OF_HERMETIC_TEST"
	orphan = "86399" // seconds that no other process sleeps
)

// waitForEver is what a goroutine is seen to do.
func waitForEver() { time.Sleep(time.Hour) }

// printView prints what a test sees of the machine.
func printView() {
	fmt.Println("inside", Inside(), "uid", os.Geteuid(), "processes", len(processes("")))
	for _, c := range covered {
		entries, err := os.ReadDir(c.path)
		fmt.Println(c.path, err, slices.DeleteFunc(names(entries), func(name string) bool { return c.path+"/"+name == mark }))
	}
	entries, err := os.ReadDir("/var/lib")
	fmt.Println("/var/lib", err, names(entries))
	err = os.WriteFile(filepath.Join(os.TempDir(), "written"), make([]byte, 1<<20), 0o600)
	fmt.Println("writing to", os.TempDir(), err)
	_, err = os.Stat("/proc/self/fd/77")
	fmt.Println("descriptor 77 is open:", err == nil)
	os.Exit(0)
}

func names(entries []os.DirEntry) (list []string) {
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

// processes lists those in sight whose command line has a word, but for pid 1
// and ourselves.
func processes(word string) (pids []int) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		panic(err)
	}
	for _, name := range names(entries) {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == 1 || pid == os.Getpid() {
			continue
		}
		if b, err := os.ReadFile("/proc/" + name + "/cmdline"); err == nil && strings.Contains(string(b), word) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// outside makes a command that runs this test binary on a shared machine:
// prepare is a shell script that sets it up. exe is a copy of the binary that
// everybody may run.
func outside(t *testing.T, prepare, play string, args ...string) *exec.Cmd {
	t.Helper()
	Need(t)
	if os.Geteuid() != 0 {
		t.Skip("needs root, to make a machine for the tests to run on")
	}
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	exe := filepath.Join("/var/tmp", fmt.Sprintf("hermetic-%d.test", time.Now().UnixNano()))
	if err := os.WriteFile(exe, self, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(exe) })
	script := "set -e\nmount -t tmpfs none /run\nmount -t tmpfs none /var/lib\nmkdir /var/lib/dpkg /var/lib/ttmon /var/lib/ttmon-server\n" + prepare + "\n"
	if !strings.Contains(prepare, "exec ") {
		script += `exec "$@"`
	}
	cmd := exec.Command("unshare", append([]string{"-m", "sh", "-c", script, "sh", exe}, args...)...)
	cmd.Env = append(os.Environ(), part+"="+play)
	cmd.Dir = "/" // the tree may lie below /tmp, and would then be seen there
	return cmd
}

func TestUnfriendlyMachine(t *testing.T) {
	unprivileged := `exec setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all "$@"`
	for name, c := range map[string]struct{ prepare, user string }{
		"regions of others": {prepare: "head -c 8576 /dev/zero >/dev/shm/tt_device_1_memory"},
		"a full /tmp":       {prepare: "mount -t tmpfs -o size=8k none /tmp; head -c 100000 /dev/zero >/tmp/all 2>/dev/null || true"},
		"other processes":   {prepare: "sleep 1000 >/dev/null 2>&1 & mkdir /run/ttmon; touch /run/ttmon/ttmond.sock"},
		"an ordinary user":  {prepare: "touch /dev/shm/x /tmp/x; " + unprivileged, user: "65534"},
		"TMPDIR is theirs":  {prepare: "export TMPDIR=/nowhere"},
		"an open file":      {prepare: "bash -c 'exec 77</dev/null && exec \"$@\"' bash \"$@\"; exit"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.user == "" {
				c.user = "0"
			}
			cmd := outside(t, c.prepare, "look")
			out, err := cmd.CombinedOutput()
			want := "inside true uid " + c.user + " processes 0\n/dev/shm <nil> []\n/tmp <nil> []\n/run <nil> []\n/var/lib <nil> [dpkg]\nwriting to /tmp <nil>\ndescriptor 77 is open: false\n"
			if err != nil || string(out) != want {
				t.Errorf("%v, seen:\n%s\nwant:\n%s", err, out, want)
			}
		})
	}
}

// TestFuseThatHangs: a file system whose server does not answer lies in the
// way.
func TestFuseThatHangs(t *testing.T) {
	// The descriptor is never answered, not even its first request.
	cmd := outside(t, `mkdir -p /tmp/stuck; exec 9<>/dev/fuse; mount -i -t fuse -o fd=9,rootmode=40000,user_id=0,group_id=0 none /tmp/stuck; exec "$@"`, "look")
	if f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0); err != nil {
		t.Skipf("needs /dev/fuse: %v", err)
	} else {
		f.Close()
	}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "/tmp <nil> []") {
		t.Errorf("%v: %s", err, out)
	}
}

// TestNothingIsLeft: what the tests started ends with them, however they end,
// and their exit code is the program's.
func TestNothingIsLeft(t *testing.T) {
	cmd := outside(t, "", "leave an orphan")
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != 3 {
		t.Errorf("%v: %s", err, out)
	}
	if left := processes(orphan); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestStuck never ends where it is asked not to.
func TestStuck(t *testing.T) {
	switch os.Getenv(part) {
	case "stuck":
		_ = exec.Command("sleep", orphan).Run()
	case "stopped":
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		time.Sleep(time.Minute) // another thread may have to be run to take the signal
	case "":
		t.Skip("plays a part in TestLimit only")
	}
}

func TestLimit(t *testing.T) {
	Long(t)
	for play, want := range map[string]string{
		"stuck":         "TestStuck", // in go's own list of what still runs, or on a stack
		"slow to start": "hermetic.waitForEver(",
		"stopped":       "did not end within 1s: killed",
	} {
		t.Run(play, func(t *testing.T) {
			cmd := outside(t, "", play, "-test.run=^TestStuck$", "-test.timeout=1s")
			out, err := cmd.CombinedOutput()
			if code := cmd.ProcessState.ExitCode(); code != 2 || !strings.Contains(string(out), want) {
				t.Errorf("%v, exit code %d, want 2 and %q in:\n%s", err, code, want, out)
			}
			if left := processes(orphan); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// TestKilledFromOutside: go test kills what does not end, and knows only the
// process that it started. When go test is killed itself, nothing waits for the
// tests any more.
func TestKilledFromOutside(t *testing.T) {
	for killed, prepare := range map[string]string{
		"the tests": "",
		"go test":   `printf '#!/bin/sh\n"$@" & wait\n' >/run/go; chmod +x /run/go; exec /run/go "$@"`,
	} {
		t.Run(killed, func(t *testing.T) {
			cmd := outside(t, prepare, "stuck", "-test.run=^TestStuck$")
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			for len(processes(orphan)) == 0 {
				time.Sleep(10 * time.Millisecond)
			}
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			for left := processes(orphan); len(left) > 0; left = processes(orphan) { // the limit of this package ends it
				time.Sleep(10 * time.Millisecond)
			}
		})
	}
}

// TestWithoutTheRight: a warning, and a skip with a reason, is all there is.
func TestWithoutTheRight(t *testing.T) {
	cmd := outside(t, `exec setpriv --bounding-set=-sys_admin "$@"`, "", "-test.run=^TestUnfriendlyMachine$", "-test.v")
	out, err := cmd.CombinedOutput()
	for _, want := range []string{"hermetic: the tests run among the processes", "--- SKIP: TestUnfriendlyMachine", "needs a host of its own: ", "CAP_SYS_ADMIN"} {
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%v, no %q in:\n%s", err, want, out)
		}
	}
}

func TestWithLimit(t *testing.T) {
	for in, want := range map[string]string{
		"x":                                "x -test.timeout=25m0s",
		"x -test.v":                        "x -test.timeout=25m0s -test.v",
		"x -test.timeout=40m0s -test.v":    "x -test.timeout=25m0s -test.v",
		"x --test.timeout=40m0s":           "x -test.timeout=25m0s",
		"x -test.timeout=30m0s":            "x -test.timeout=25m0s",
		"x -test.timeout=10m0s":            "x -test.timeout=10m0s",
		"x -test.timeout=20s":              "x -test.timeout=20s",
		"x -test.timeout=20":               "x -test.timeout=20",
		"x -test.timeout=0s":               "x -test.timeout=0s",
		"x -test.fuzz=F -test.timeout=10m": "x -test.fuzz=F -test.timeout=10m",
		"x -test.bench=. -test.timeout=3m": "x -test.bench=. -test.timeout=3m",
	} {
		t.Run(in, func(t *testing.T) {
			got, _ := withLimit(strings.Fields(in), DefaultLimit)
			if strings.Join(got, " ") != want {
				t.Errorf("%s: %s, want %s", in, strings.Join(got, " "), want)
			}
		})
	}
}

func TestEnvironment(t *testing.T) {
	got := environment([]string{"HOME=/x", "TMPDIR=/y", "TT_METAL_HOME=/z", "TTMON_SOCKET=/s", "TESTED_PROGRAMS=/tmp/b", "PATH=/bin", "TTY=1", "NOTIFY_SOCKET=@n"})
	if want := []string{"GORACE=atexit_sleep_ms=0", "HOME=/x", "PATH=/bin", "TTY=1"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestCoveredEntry(t *testing.T) {
	for path, want := range map[string]string{
		"/tmp/go-build1/b001/x.test": "/tmp/go-build1", "/tmp/x.test": "/tmp/x.test", "/run/systemd/resolve/stub": "/run/systemd",
		"/tmp": "", "/tmpx/y": "", "/home/u": "", "": "", "/dev/shm/../../etc/x": "",
	} {
		t.Run(path, func(t *testing.T) {
			if got, _ := coveredEntry(path); got != want {
				t.Errorf("%s: %q, want %q", path, got, want)
			}
		})
	}
}

// The groups of a process are found whichever versions of control groups a
// machine has, and wherever they are mounted.
func TestGroupDirs(t *testing.T) {
	const (
		one     = "30 20 0:26 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
		shared  = "31 20 0:27 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
		named   = "32 20 0:28 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd\n"
		two     = "33 20 0:29 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
		partial = "34 20 0:29 /docker/1 /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
	)
	for _, test := range []struct {
		name, mounts, groups string
		want                 []string
	}{
		{"version 1", one + shared + named, "3:memory:/a\n2:cpu,cpuacct:/\n1:name=systemd:/b/c\n", []string{"/sys/fs/cgroup/memory/a", "/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/systemd/b/c"}},
		{"version 2", two, "0::/user.slice/x.scope\n", []string{"/sys/fs/cgroup/user.slice/x.scope"}},
		{"a part is mounted", partial, "0::/docker/1/tests\n", []string{"/sys/fs/cgroup/tests"}},
		{"another part is mounted", partial, "0::/user.slice\n", nil},
		{"none is mounted", "", "0::/\n", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := groupDirs(test.mounts, test.groups); !slices.Equal(got, test.want) {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// What tests do to control groups stays in groups of their own, and those go
// with the tests.
func TestGroups(t *testing.T) {
	Need(t)
	if os.Geteuid() != 0 {
		t.Skip("only root has groups")
	}
	own, err := ownGroups()
	if err != nil || len(own) == 0 {
		t.Skipf("no control groups here: %v %v", own, err)
	}
	g := NewGroups()
	if len(g.dirs) == 0 {
		t.Fatal("no group was made")
	}
	child := exec.Command("sleep", orphan)
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = child.Process.Kill(); _ = child.Wait() }()
	if err := g.Add(child.Process.Pid); err != nil {
		t.Fatal(err)
	}
	for _, dir := range g.dirs {
		if err := os.Mkdir(filepath.Join(dir, "below"), 0o755); err != nil {
			t.Error(err)
		}
		if b, err := os.ReadFile(filepath.Join(dir, "cgroup.procs")); string(b) != fmt.Sprintln(child.Process.Pid) {
			t.Errorf("%s has the processes %q, %v", dir, b, err)
		}
	}
	_ = child.Process.Kill()
	_ = child.Wait()
	if err := g.Remove(); err != nil {
		t.Error(err)
	}
	for _, dir := range g.dirs {
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s is still there", dir)
		}
	}
}
