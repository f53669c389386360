package proc

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/model"
)

// addProcess writes the files of a process that does not exist.
func (tr *tree) addProcess(pid int, comm, stat, cmdline, cgroup string) {
	dir := "proc/" + strconv.Itoa(pid)
	tr.write(dir+"/stat", strconv.Itoa(pid)+" ("+comm+")"+stat+"\n")
	tr.write(dir+"/statm", "1000 250 30 1 0 100 0\n")
	tr.write(dir+"/status", "Name:\t"+comm+"\nTgid:\t"+strconv.Itoa(pid)+"\nUid:\t1000\t1000\t1000\t1000\nNSpid:\t"+strconv.Itoa(pid)+"\t7\n")
	tr.write(dir+"/cmdline", cmdline)
	tr.write(dir+"/cgroup", cgroup)
}

func TestDescribe(t *testing.T) {
	tr := newTree(t, 0)
	tr.write("proc/stat", "cpu  1 2 3\nintr 5\nbtime 1700000000\nprocesses 7\n")
	tr.write("etc/passwd", "alice:x:1000:1000:Alice Jones,,,:/:/bin/sh\n")
	tr.mkdir("var/log/pods/ml_trainer-0_" + uid)
	tr.addProcess(4242, "python3", statTail, "python3\x00serve.py\x00--x=\x1b[2J\x00",
		"0::/kubepods.slice/kubepods-pod"+uid_+".slice/cri-containerd-"+id64+".scope\n")
	want := model.Process{
		PID: 4242, StartTicks: 987654, StartTime: time.Unix(1700000000, 0).Add(9876540 * time.Millisecond),
		PPID: 1, State: model.Running, UID: model.Value(1000), User: model.Value("alice"),
		Name: model.Value("python3"), Cmdline: model.Value("python3 serve.py --x=\x1b[2J"),
		CPU: model.Missing[float64](model.Pending, "needs two samples"),
		RSS: model.Value(uint64(250 * os.Getpagesize())), Threads: model.Value(12),
		Container: model.Container{Runtime: "containerd", ID: id64, Pod: uid, PodName: "trainer-0", Namespace: "ml"},
		Reach:     model.Reach{FullName: "Alice Jones", TTY: "pts/0"},
	}
	r := tr.reader()
	if diff := cmp.Diff([]model.Process{want}, r.Describe([]int{4242})); diff != "" {
		t.Error(diff)
	}

	// The same process after an exec: what is slow to read is read again.
	tr.write("etc/passwd", "bob:x:1000:1000::/:/bin/sh\nalice:x:1001:1001::/:\n")
	tr.addProcess(4242, "sh", statTail, "sh\x00", "0::/system.slice/x.service\n")
	got := r.Describe([]int{4242})[0]
	if got.Cmdline.V != "sh" || got.SystemdUnit != "x.service" || got.Container != (model.Container{}) || got.User.V != "bob" {
		t.Errorf("after an exec: %+v", got)
	}
	// And after one of the same name, which only the stack gives away.
	tr.addProcess(4242, "sh", statTail, "sh\x00again\x00", "0::/system.slice/x.service\n")
	if got := r.Describe([]int{4242})[0]; got.Cmdline.V != "sh" {
		t.Errorf("read again without a sign: %+v", got.Cmdline)
	}
	tr.addProcess(4242, "sh", strings.Replace(statTail, "140729600", "140729616", 1), "sh\x00again\x00", "0::/system.slice/x.service\n")
	if got := r.Describe([]int{4242})[0]; got.Cmdline.V != "sh again" {
		t.Errorf("after an exec of the same name: %+v", got.Cmdline)
	}
}

func TestDescribeOddOnes(t *testing.T) {
	tr := newTree(t, 0)
	kernel := strings.Replace(statTail, " 4194304 ", " 2129984 ", 1)
	tr.addProcess(7, "kworker/0:0", kernel, "", "0::/\n")
	tr.addProcess(8, "python3", strings.Replace(statTail, " S 1 ", " Z 70 ", 1), "", "0::/\n")
	zombie := strings.Replace(strings.Replace(statTail, " S 1 ", " Z 70 ", 1), " 20 0 12 ", " 20 0 1 ", 1)
	tr.addProcess(9, "python3", zombie, "", "0::/\n")
	tr.addProcess(10, "thread", statTail, "x\x00", "0::/\n")
	tr.write("proc/10/status", "Tgid:\t9\nUid:\t0\t0\t0\t0\n")
	tr.addProcess(11, "bare", " nonsense", "", "")
	tr.addProcess(12, "stopped", strings.Replace(statTail, " S 1 ", " T 1 ", 1), "x\x00", "0::/\n")
	got := tr.reader().Describe([]int{7, 8, 9, 10, 11, 12, 13})
	for i, want := range []struct {
		name    string
		state   model.ProcessState
		cmdline model.Reading[string]
		how     model.ProcessCondition
	}{
		{"kernel thread", model.Running, model.Value("[kworker/0:0]"), ""},
		{"first thread exited", model.Running, model.Value("[python3]"), ""}, // other threads live on
		{"zombie", model.Exited, model.Value("[python3]"), model.Zombie},
		{"thread of another process", model.Exited, model.Missing[string](model.Absent, "the process has exited"), ""}, // a thread took the number
		{"malformed stat", model.Running, model.Missing[string](model.Unsupported, ErrForm.Error()), ""},
		{"stopped", model.Running, model.Value("x"), model.Stopped},
		{"no process", model.Exited, model.Missing[string](model.Absent, "the process has exited"), ""},
	} {
		t.Run(want.name, func(t *testing.T) {
			p := got[i]
			if p.State != want.state || p.Cmdline != want.cmdline || p.Condition != want.how {
				t.Errorf("process %d: %s, %+v, %q; want %+v", p.PID, p.State, p.Cmdline, p.Condition, want)
			}
			if p.State == model.Exited && (p.RSS.Known() || p.CPU.Known() || p.Threads.Known()) {
				t.Errorf("process %d uses something and has exited: %+v", p.PID, p)
			}
		})
	}
	if user := got[0].User; user.V != "1000" {
		t.Errorf("a user without a name is %q, want the number", user.V)
	}
}

// cpuTime is what this process has used.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Everything against a process that is really there: this one.
func TestDescribeMyself(t *testing.T) {
	r := New(rootFS)
	first := r.Describe([]int{os.Getpid()})[0]
	if first.State != model.Running || first.UID.V != os.Getuid() || first.PPID != os.Getppid() {
		t.Errorf("%+v", first)
	}
	if want := strings.Join(os.Args, " "); first.Cmdline.V != want[:min(len(want), maxCmdline)] {
		t.Errorf("command line %q, want %q", first.Cmdline.V, want)
	}
	if age := time.Since(first.StartTime); age < -20*time.Millisecond || age > time.Hour {
		t.Errorf("started %v ago", age)
	}
	if first.CPU.Status != model.Pending {
		t.Errorf("CPU share from one sample: %+v", first.CPU)
	}
	for begun, used := time.Now(), cpuTime(t); time.Since(begun) < 2*minWindow || cpuTime(t)-used < 50*time.Millisecond; {
		_ = strings.Repeat("x", 1000) // be busy
	}
	second := r.Describe([]int{os.Getpid()})[0]
	if share, ok := second.CPU.Get(); !ok || share <= 0 {
		t.Errorf("CPU share of a busy process: %+v", second.CPU)
	}
	second.CPU, second.RSS, second.Threads = first.CPU, first.RSS, first.Threads
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("a process changes between two looks:\n%s", diff)
	}
}

func TestForget(t *testing.T) {
	tr := newTree(t, 0)
	tr.addProcess(7, "x", statTail, "x\x00", "")
	r := tr.reader()
	r.Describe([]int{7})
	r.known[7].lastUsed = time.Now().Add(-forgetAfter - time.Second)
	r.Describe(nil)
	if len(r.known) != 0 {
		t.Errorf("remembers %d unused processes", len(r.known))
	}
}

// TestCmdlineOfAnExit: a process that exits loses its arguments before it is gone.
// What was read of it before stays; one of which nothing was read goes by its name.
func TestCmdlineOfAnExit(t *testing.T) {
	for name, c := range map[string]struct {
		before model.Reading[string]
		want   string
	}{
		"read before": {model.Value("python train.py"), "python train.py"},
		"never read":  {model.Missing[string](model.Pending, "not read yet"), "[python3]"},
	} {
		t.Run(name, func(t *testing.T) {
			tr := newTree(t, 0)
			tr.addProcess(9, "python3", statTail, "", "0::/\n")
			r := tr.reader()
			p, err := r.Process(9)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Discard(p)
			p.cmdline = c.before
			if got := r.readCmdline(p, false); got != model.Value(c.want) {
				t.Errorf("%+v, want %q", got, c.want)
			}
		})
	}
}
