package proc

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/model"
)

// An ordinary user sees its own holders, and how many processes it may not look
// into.
func TestUnprivileged(t *testing.T) {
	needRoot(t)
	if !inside(t, nil) {
		return
	}
	tr := newTree(t, 2)
	roots := start(t, nil, "hold", tr.node(0), tr.node(1))
	roots.line()
	become(t, unprivileged)
	own := start(t, nil, "hold", tr.node(0))
	own.line()
	tr2 := newTree(t, 0) // of our own, to which we may add
	tr2.show(roots.pid, own.pid)
	tr2.showKernelThread()
	if err := os.Remove(tr2.dir + "/dev/tenstorrent"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(tr.dir+"/dev/tenstorrent", tr2.dir+"/dev/tenstorrent"); err != nil {
		t.Fatal(err)
	}
	r := tr2.reader()

	if got, _ := check(r, roots.pid, 0); got != HoldUnknown {
		t.Errorf("check of root's process: %v, want HoldUnknown", got)
	}
	if got, _ := check(r, own.pid, 0); got != Held {
		t.Errorf("Check of our own process: %v, want held", got)
	}

	u := resolve(t, r, "2.4.0", notListed(0), notListed(1))
	wantUses(t, u, use{own.pid, model.Running, 0, 1, false})
	if want := (model.Doubt{Kind: model.ProcessesDenied, Count: 1, UID: os.Geteuid()}); len(u.Doubts[1]) != 1 || !u.Doubts[1][0].Equal(want) || u.Coverage.Denied != 1 {
		t.Errorf("doubts %+v, want %+v; coverage %+v", u.Doubts[1], want, u.Coverage)
	}

	// Kernels before 6.2 do not tell that a kernel thread holds nothing.
	old := tr2.reader()
	old.descriptors.sized = false
	if u := resolve(t, old, "2.4.0", notListed(0)); u.Coverage.Denied != 1 {
		t.Errorf("a kernel thread counts as one that may not be looked into: %+v", u.Coverage)
	}

	// The driver names root's process: it is described as far as anyone may.
	u = resolve(t, r, "2.10.0", listed(0, roots.pid, own.pid), listed(1, roots.pid))
	wantUses(t, u, inOrder(use{roots.pid, model.Running, 0, 1, false}, use{roots.pid, model.Running, 1, 1, false},
		use{own.pid, model.Running, 0, 1, false})...)
	if p := processOf(t, u, roots.pid); p.User.V != "root" || !p.Cmdline.Known() || !p.RSS.Known() || p.StartTime.IsZero() {
		t.Errorf("root's process: %+v", p)
	}
	if u.Coverage.Scanned {
		t.Error("scanned although the driver's word is all we can have")
	}

	// Driver 2.6: a pid that cannot be confirmed belongs to no process.
	u = resolve(t, r, "2.6.0", listed(0, roots.pid, own.pid))
	wantUses(t, u, use{0, model.Hidden, 0, 1, false}, use{own.pid, model.Running, 0, 1, false})

	for what, err := range map[string]error{
		"Maps":    second(mapsOf(r, roots.pid)),
		"Environ": second(environ(r, roots.pid, func(string) bool { return true })),
		"fdinfo":  second(fdinfo(r, roots.pid, 0)),
	} {
		t.Run(what, func(t *testing.T) {
			if !os.IsPermission(unwrapAll(err)) {
				t.Errorf("%s of root's process: %v, want a lack of permission", what, err)
			}
		})
	}
	if p, err := r.Process(roots.pid); err != nil || p.InnerPID != roots.pid {
		t.Errorf("numbers of root's process: %+v, %v", p, err)
	}
}

// showKernelThread adds a recorded one: no pid namespace but the host's first
// has any to look at.
func (tr *tree) showKernelThread() {
	tr.t.Helper()
	tr.write("proc/2/stat", "2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 25 0 0 18446744073709551615 0 0 0 0 0 0 0 2147483647 0 1 0 0 0 1 0 0 0 0 0 0 0 0 0 0 0 0 0\n")
	tr.mkdir("proc/2/fd")
	if err := os.Chmod(filepath.Join(tr.dir, "proc/2/fd"), 0); err != nil {
		tr.t.Fatal(err)
	}
}

func second[T any](_ T, err error) error { return err }

func unwrapAll(err error) error {
	for {
		u, ok := err.(interface{ Unwrap() error })
		if !ok || u.Unwrap() == nil {
			return err
		}
		err = u.Unwrap()
	}
}

// With hidepid=2 processes of others are as good as not there. They must not
// count as dead.
func TestHidepid(t *testing.T) {
	needRoot(t)
	for _, c := range []struct{ option, why string }{
		{"hidepid=2", "only root sees this process"},
		{"hidepid=1", "only root may read this process"},
	} {
		t.Run(c.option, func(t *testing.T) {
			if !inside(t, &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}) {
				return
			}
			testHidepid(t, c.option, c.why)
		})
	}
}

func testHidepid(t *testing.T, option, why string) {
	runtime.LockOSThread()
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("proc", "/proc", "proc", 0, option); err != nil {
		t.Fatal(err)
	}
	roots := start(t, nil, "hold", os.DevNull)
	roots.line()
	dead := start(t, nil, "hold", os.DevNull)
	dead.line()
	dead.stop()
	become(t, unprivileged)
	r := New(rootFS)
	p := r.Describe([]int{roots.pid})[0]
	if p.State != model.Running || p.Name.Status != model.Denied || !strings.Contains(p.Name.Why, why) {
		t.Errorf("a hidden process: %s, %+v; want denied with %q", p.State, p.Name, why)
	}
	if got, _ := check(r, roots.pid, 0); got != HoldUnknown {
		t.Errorf("check of a hidden process: %v, want HoldUnknown", got)
	}
	if p := r.Describe([]int{dead.pid})[0]; p.State != model.Exited {
		t.Errorf("a dead process: %s", p.State)
	}
	if got, _ := check(r, dead.pid, 0); got != NoSuchProcess {
		t.Errorf("Check of a dead process: %v, want NoSuchProcess", got)
	}
	s := scan(t, r)
	if s.Complete() || len(s.Doubts()) == 0 {
		t.Errorf("a scan with hidden processes passes for complete: %+v", s.Coverage)
	}
	wantUses(t, resolve(t, r, "2.10.0", listed(0, roots.pid)), use{roots.pid, model.Running, 0, 1, false})
}

// A pid is given to another process while the driver still lists it for a
// descriptor that its first bearer opened.
func TestPIDReuse(t *testing.T) {
	needRoot(t)
	if !inside(t, &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID}) {
		return
	}
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		t.Fatal(err)
	}
	tr := newTree(t, 1)
	opener := start(t, nil, "bequest", tr.node(0))
	inheritor := opener.number()
	tr.show(opener.pid, inheritor)
	r := tr.reader()
	before := resolve(t, r, "2.10.0", listed(0, opener.pid))
	wantUses(t, before, use{opener.pid, model.Running, 0, 1, false})
	first := before.Processes[0]
	held, err := r.Process(first.PID)
	if err != nil || !held.Alive() {
		t.Fatalf("the opener: %+v, %v", held, err)
	}
	r.Hold(held)
	defer r.Release(held)

	fmt.Fprintln(opener.in, "exit")
	_ = opener.cmd.Wait()
	time.Sleep(2 * time.Second / ticksPerSecond) // start times count in ticks
	startAs(t, opener.pid, "hold", os.DevNull)

	u := resolve(t, r, "2.10.0", listed(0, opener.pid))
	wantUses(t, u, inOrder(use{opener.pid, model.Exited, 0, 1, false}, use{inheritor, model.Running, 0, 1, true})...)
	gone := processOf(t, u, opener.pid)
	if gone.StartTicks != first.StartTicks || gone.Cmdline != first.Cmdline {
		t.Errorf("the new bearer of the number is blamed: %+v, want %+v", gone, first)
	}
	if held.Alive() || held.StartTicks != first.StartTicks {
		t.Error("the opener is dead, and the one who has its number answers for it")
	}
	if p := r.Describe([]int{opener.pid})[0]; p.StartTicks == first.StartTicks || p.CPU.Status != model.Pending {
		t.Errorf("the new bearer inherits from the old one: %+v", p)
	}

	// A reader that never saw the opener: the bearer lives and does not
	// hold the device, so it is not listed.
	u = resolve(t, tr.reader(), "2.10.0", listed(0, opener.pid))
	wantUses(t, u, use{inheritor, model.Running, 0, 1, true})
}

// startAs starts a role with a certain pid, in a pid namespace of our own. A
// shell does it, because it has no threads that would take the number first;
// ours may, so there are some tries.
func startAs(t *testing.T, pid int, role string, args ...string) {
	t.Helper()
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	if f, err := os.OpenFile("/proc/sys/kernel/ns_last_pid", os.O_WRONLY, 0); err != nil {
		t.Skip("needs a kernel with CONFIG_CHECKPOINT_RESTORE: ", err)
	} else {
		f.Close()
	}
	const script = `echo "$0" > /proc/sys/kernel/ns_last_pid && "$@"; true`
	for range 100 {
		c := startCommand(t, exec.Command("sh", append([]string{"-c", script, strconv.Itoa(pid - 1), self, role}, args...)...), nil, role)
		c.line()
		if s, err := ReadStat(rootFS, pid); err == nil && s.PPID == c.pid {
			return
		}
		c.stop()
	}
	t.Fatalf("could not get pid %d again", pid)
}

// Without a descriptor left to look with, nothing can be said; that must not
// be remembered as nothing held.
func TestHoldersOutOfDescriptors(t *testing.T) {
	if !inside(t, nil) {
		return
	}
	tr := newTree(t, 1)
	c := start(t, nil, "hold", tr.node(0))
	c.line()
	tr.show(c.pid)
	r := tr.reader()
	next, err := syscall.Open(os.DevNull, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	syscall.Close(next)
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	few := limit
	few.Cur = uint64(next) + 1 // enough for /proc
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	s := scan(t, r)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if s.Complete() || s.Skipped != 1 || len(s.Holders) != 0 {
		t.Errorf("without descriptors: %+v", s)
	}
	wantHolders(t, scan(t, r), 0, map[int]int{c.pid: 1})
}
