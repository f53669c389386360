package proc

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
)

// tree is a host with device nodes that are plain files and whose processes
// are real ones, chosen by the test: proc/<pid> leads to /proc/<pid>.
type tree struct {
	t   testing.TB
	dir string
}

func newTree(t testing.TB, devices int) *tree {
	t.Helper()
	tr := &tree{t, sharedDir(t)}
	tr.mkdir("proc")
	tr.mkdir("dev/tenstorrent")
	for i := range devices {
		tr.write("dev/tenstorrent/"+strconv.Itoa(i), "")
	}
	tr.write("etc/passwd", "root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n")
	return tr
}

// sharedDir makes a directory that other users can use, too. Inside, where we
// may lose the right to remove it, that is left to the test outside.
func sharedDir(t testing.TB) string {
	t.Helper()
	dir, err := os.Getenv("TMPDIR"), error(nil)
	if os.Getenv(insideVariable) != "" {
		dir, err = os.MkdirTemp(dir, "tree")
	} else {
		dir = t.TempDir()
		err = os.Chmod(filepath.Dir(dir), 0o755)
	}
	if err == nil {
		err = os.Chmod(dir, 0o777)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func (tr *tree) mkdir(path string) {
	tr.t.Helper()
	if err := os.MkdirAll(filepath.Join(tr.dir, path), 0o755); err != nil {
		tr.t.Fatal(err)
	}
}

func (tr *tree) write(path, content string) {
	tr.t.Helper()
	tr.mkdir(filepath.Dir(path))
	if err := os.WriteFile(filepath.Join(tr.dir, path), []byte(content), 0o666); err != nil {
		tr.t.Fatal(err)
	}
}

func (tr *tree) node(device int) string {
	return filepath.Join(tr.dir, "dev/tenstorrent", strconv.Itoa(device))
}

// show makes processes visible in the tree.
func (tr *tree) show(pids ...int) {
	tr.t.Helper()
	for _, pid := range pids {
		name := strconv.Itoa(pid)
		if err := os.Symlink("/proc/"+name, filepath.Join(tr.dir, "proc", name)); err != nil {
			tr.t.Fatal(err)
		}
	}
}

func (tr *tree) reader() *Reader { return New(hostfs.At(tr.dir)) }

// child is a process that plays a role of roles, one step for each line that
// it is told, and answers each with a line.
type child struct {
	t   testing.TB
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
	pid int
	// lifeline is what processes that inherit from the child watch on descriptor
	// 3: they exit when it closes.
	lifeline *os.File
}

// start runs a role. It is over, at the latest, with the test.
func start(t testing.TB, attr *syscall.SysProcAttr, role string, args ...string) *child {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", append([]string{role}, args...)...)
	return startCommand(t, cmd, attr, role)
}

func startCommand(t testing.TB, cmd *exec.Cmd, attr *syscall.SysProcAttr, role string) *child {
	t.Helper()
	c := &child{t: t, cmd: cmd}
	c.cmd.Env = append(os.Environ(), roleVariable+"="+role)
	c.cmd.SysProcAttr, c.cmd.Stderr = attr, os.Stderr
	c.in, _ = c.cmd.StdinPipe()
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	watched, lifeline, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer watched.Close()
	c.lifeline, c.cmd.ExtraFiles = lifeline, []*os.File{watched}
	c.out = bufio.NewScanner(out)
	c.out.Buffer(nil, 1<<20)
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c.pid = c.cmd.Process.Pid
	t.Cleanup(c.stop)
	return c
}

// stop ends the child and the processes that inherited from it.
func (c *child) stop() {
	c.in.Close()
	c.lifeline.Close()
	if c.cmd.ProcessState == nil {
		_ = c.cmd.Process.Kill()
		_ = c.cmd.Wait()
	}
}

// line returns what the child says next.
func (c *child) line() string {
	c.t.Helper()
	if !c.out.Scan() {
		c.t.Fatalf("the child has ended: %v", c.out.Err())
	}
	return c.out.Text()
}

// send sends a line and waits for the answer.
func (c *child) send(step string) string {
	c.t.Helper()
	if _, err := fmt.Fprintln(c.in, step); err != nil {
		c.t.Fatal(err)
	}
	return c.line()
}

func (c *child) number() int {
	c.t.Helper()
	n, err := strconv.Atoi(c.line())
	if err != nil {
		c.t.Fatal(err)
	}
	return n
}

var rootFS = hostfs.At("/")

const roleVariable = "PROCFS_TEST_ROLE"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		play, ok := roles[role]
		if !ok {
			fmt.Fprintln(os.Stderr, "no such role:", role)
			os.Exit(2)
		}
		if err := play(os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, role+":", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	hermetic.Enter(hermetic.Options{})
	goleak.VerifyTestMain(m)
}

// inside runs the calling test again in a process of its own and returns
// false; in that process it returns true. attr gives it namespaces.
func inside(t *testing.T, attr *syscall.SysProcAttr) bool {
	t.Helper()
	if os.Getenv(insideVariable) == t.Name() {
		return true
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v=true", "-test.count=1")
	cmd.Env = append(os.Environ(), insideVariable+"="+t.Name(), "TMPDIR="+sharedDir(t))
	cmd.SysProcAttr = attr
	out, err := cmd.CombinedOutput()
	if strings.Contains(string(out), "--- SKIP: "+t.Name()) {
		t.Skipf("inside:\n%s", out)
	}
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("inside: %v\n%s", err, out)
	}
	return false
}

const insideVariable = "PROCFS_TEST_INSIDE"

// become turns the test process into an ordinary user's. There is no way back.
func become(t *testing.T, uid int) {
	t.Helper()
	if err := syscall.Setgroups(nil); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setgid(uid); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setuid(uid); err != nil {
		t.Fatal(err)
	}
}

const unprivileged = 65534

func needRoot(t testing.TB) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root: makes namespaces and changes users")
	}
}

// steps calls do for every line of standard input, until it ends.
func steps(do func(step string) error) error {
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		if err := do(strings.TrimSpace(in.Text())); err != nil {
			return err
		}
	}
	return in.Err()
}
