// Package machine is a bare Debian 12 for tests: booted by a real systemd as
// process 1, in namespaces of its own, with nothing on it but what a test asks for.
// Its disk is a cached tree (tools/machine) below a layer in memory, so that every
// machine starts as bare as the first, and leaves nothing. The tests that use it
// are behind build tags: the first machine takes a minute and needs root.
package machine

import (
	"bytes"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/lab/e2e/ttnn"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
)

//go:embed boot.sh
var bootScript string

// Machine is a running one.
type Machine struct {
	t    testing.TB
	pid1 int // as we see it
	log  console
}

// console collects what systemd says.
type console struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (c *console) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.b.Write(b)
}

func (c *console) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.b.String()
}

// Boot starts a machine that has the packages of Debian besides systemd, and
// waits until systemd has started all it starts. It ends with the test.
func Boot(t testing.TB, packages ...string) *Machine {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root, to boot a machine")
	}
	tree := makeTree(t, packages)
	m := &Machine{t: t}
	m.pid1 = hermetic.StartInit(t, &m.log, bootScript, tree, t.TempDir())
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("console of the machine:\n%s", m.log.String())
		}
	})
	m.Await("the end of the boot", func() bool {
		state, _ := m.Try("systemctl", "is-system-running")
		return state == "running" || state == "degraded"
	})
	return m
}

// makeTree makes the machine's root directory, once for all tests.
func makeTree(t testing.TB, packages []string) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	packages = append([]string{"systemd", "systemd-sysv", "dbus"}, packages...)
	slices.Sort(packages)
	tree := filepath.Join(cache, "ttmon", "debian-12", strings.Join(packages, "+"))
	root, err := ttnn.Repository()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(root, "tools/machine"), append([]string{tree}, packages...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("making a Debian with %v: %v\n%s", packages, err, out)
	}
	return tree
}

// Command is one that runs on the machine.
func (m *Machine) Command(args ...string) *exec.Cmd {
	cmd := exec.Command("nsenter", append([]string{"-t", strconv.Itoa(m.pid1), "-m", "-p", "-u", "-i", "-C", "-r", "-w", "--"}, args...)...)
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8", "HOME=/", "DEBIAN_FRONTEND=noninteractive"}
	return cmd
}

// Try runs a command there and returns all that it said.
func (m *Machine) Try(args ...string) (string, error) {
	out, err := m.Command(args...).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// Run runs a command that must succeed.
func (m *Machine) Run(args ...string) string {
	m.t.Helper()
	out, err := m.Try(args...)
	if err != nil {
		m.t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// Path is how a file of the machine is reached from here.
func (m *Machine) Path(name string) string {
	return fmt.Sprintf("/proc/%d/root%s", m.pid1, filepath.Join("/", name))
}

// Copy puts a file of ours there, as it is.
func (m *Machine) Copy(from, to string) {
	m.t.Helper()
	st, err := os.Stat(from)
	if err != nil {
		m.t.Fatal(err)
	}
	b, err := os.ReadFile(from)
	if err != nil {
		m.t.Fatal(err)
	}
	m.Write(to, string(b), st.Mode().Perm())
}

// Write writes a file there.
func (m *Machine) Write(name, text string, mode os.FileMode) {
	m.t.Helper()
	path := m.Path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		m.t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		m.t.Fatal(err)
	}
}

// Await waits for something that must come; the limit is only there for tests
// that fail.
func (m *Machine) Await(what string, ok func() bool) {
	m.t.Helper()
	for end := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			m.t.Fatalf("timed out waiting for %s", what)
		}
	}
}

// Files lists everything that is on the machine's disk: path, mode, and what a
// link points to. What programs write down in passing, below the directories
// of except, is left out.
func (m *Machine) Files(except ...string) []string {
	m.t.Helper()
	args := []string{"find", "/", "-xdev"}
	for _, dir := range except {
		args = append(args, "-path", dir, "-prune", "-o")
	}
	args = append(args, "-printf", "%p %M %u %l\n")
	list := strings.Split(m.Run(args...), "\n")
	slices.Sort(list)
	return list
}
