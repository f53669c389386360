//go:build packages

package packages

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ttmon/ttmon/internal/lab/e2e/machine"
	"github.com/ttmon/ttmon/internal/lab/e2e/ttnn"
)

const allocSocket = "/tmp/tt_allocation_server.sock"

// passing are directories where Debian's own tools write down what they did.
var passing = []string{
	"/var/lib/dpkg", "/var/log", "/var/cache", "/var/lib/apt", "/var/lib/systemd", "/var/tmp",
	"/etc/systemd/system/multi-user.target.wants.dpkg-new", "/var/backups",
}

// copyPackages copies packages of a release to the machine.
func copyPackages(t *testing.T, m *machine.Machine, dir, version string, names ...string) (paths []string) {
	t.Helper()
	for _, name := range names {
		paths = append(paths, copyPackage(m, dir, fmt.Sprintf("%s_%s-1_%s.deb", name, tilde(version), runtime.GOARCH)))
	}
	return paths
}

func copyPackage(m *machine.Machine, dir, file string) (path string) {
	m.Copy(filepath.Join(dir, file), "/var/tmp/"+file)
	return "/var/tmp/" + file
}

func install(m *machine.Machine, paths []string) string {
	return m.Run(append([]string{"dpkg", "--install"}, paths...)...)
}

// client is an old C++ client on the machine.
type client struct {
	t   *testing.T
	in  io.Writer
	out *bufio.Reader
	cmd *exec.Cmd
}

func startClient(t *testing.T, m *machine.Machine) *client {
	t.Helper()
	c := &client{t: t, cmd: m.Command("/var/tmp/client", allocSocket)}
	in, err := c.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.in, c.out = in, bufio.NewReader(out)
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.end)
	return c
}

func (c *client) end() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}

// do sends a command and returns the answer; an empty one if the client died.
func (c *client) do(format string, args ...any) string {
	fmt.Fprintf(c.in, format+"\n", args...)
	line, _ := c.out.ReadString('\n')
	return strings.TrimSpace(line)
}

// held are the bytes of DRAM on device 0 that all clients together hold.
func (c *client) held() (bytes uint64) {
	var kind, device int
	_, _ = fmt.Sscan(c.do("query 0"), &kind, &device, &bytes)
	return bytes
}

// compileClient makes the client for a machine without any library.
func compileClient(t *testing.T, m *machine.Machine) {
	t.Helper()
	root, err := ttnn.Repository()
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(t.TempDir(), "client")
	output(t, "g++", "-static", "-O1", "-o", bin, filepath.Join(root, "testdata/oldclients/alloc_client.cpp"))
	m.Copy(bin, "/var/tmp/client")
}

// The life of the packages: installed, upgraded under load, removed while a
// program reports, installed again, purged.
func TestDebianLife(t *testing.T) {
	from, to := release(t, oldRelease), release(t, newRelease)
	m := machine.Boot(t)
	compileClient(t, m)
	before := m.Files(passing...)

	names := []string{"ttmon", "ttmond", "libttmon1", "libttmon-dev"}
	install(m, copyPackages(t, m, from, oldVersion, names...))
	for _, unit := range []string{"ttmond.service", "ttmond.socket", "ttmond-api.socket"} {
		if m.Run("systemctl", "is-enabled", unit) != "enabled" || m.Run("systemctl", "is-active", unit) != "active" {
			t.Errorf("%s is not enabled and active", unit)
		}
	}
	if got := m.Run("ttmon", "daemon", "status"); !strings.Contains(got, oldVersion) {
		t.Errorf("no %s in:\n%s", oldVersion, got)
	}
	const edited = "\n# edited\n"
	config := m.Run("cat", "/etc/ttmon/ttmond.toml") + edited
	m.Write("/etc/ttmon/ttmond.toml", config, 0o644)

	load := startLoad(t, m)
	install(m, copyPackages(t, m, to, newVersion, names...))
	if got := m.Run("ttmon", "daemon", "status"); !strings.Contains(got, newVersion) {
		t.Errorf("after the upgrade no %s in:\n%s", newVersion, got)
	}
	load.stop()
	if got := m.Run("cat", "/etc/ttmon/ttmond.toml"); !strings.Contains(got, strings.TrimSpace(edited)) {
		t.Error("the upgrade took the edited configuration away")
	}

	// Removed while a program is connected: it continues, and nothing stays when
	// it has ended.
	c := load.clients[0]
	m.Run("dpkg", "--remove", "ttmond")
	if got := c.do("alloc 0 %d 5 0", 1<<40); got != "ok" {
		t.Errorf("the client after the removal: %q", got)
	}
	if out, err := m.Try("test", "-e", "/etc/ttmon/ttmond.toml"); err != nil {
		t.Errorf("removal took the configuration: %s", out)
	}
	for _, c := range load.clients {
		c.end()
	}
	m.Await("the end of what kept the connections", func() bool {
		_, err := m.Try("sh", "-c", "grep -l ttmond /proc/[0-9]*/comm")
		return err != nil
	})

	install(m, copyPackages(t, m, to, newVersion, "ttmond")) // with the configuration that was left
	if m.Run("systemctl", "is-active", "ttmond.service") != "active" {
		t.Error("it does not run when it is installed again")
	}
	m.Run(append([]string{"dpkg", "--purge"}, names...)...)
	if diff := cmp.Diff(before, m.Files(passing...)); diff != "" {
		t.Errorf("what purge left (+) or took (-):\n%s", diff)
	}
	for _, place := range []string{"/run/ttmon", "/var/lib/ttmon", allocSocket, "/var/lib/systemd/deb-systemd-helper-enabled/ttmond.service.dsh-also"} {
		if _, err := m.Try("test", "!", "-e", place); err != nil {
			t.Errorf("%s is left", place)
		}
	}
	if got := m.Run("systemctl", "is-system-running"); got != "running" {
		t.Errorf("the machine is %s", got)
	}
}

// load are clients that report all the time.
type load struct {
	t       *testing.T
	clients []*client
	fds     []string
	sent    atomic.Uint64
	end     atomic.Bool
	done    sync.WaitGroup
}

func startLoad(t *testing.T, m *machine.Machine) *load {
	t.Helper()
	l := &load{t: t}
	for i := range 4 {
		c := startClient(t, m)
		l.clients = append(l.clients, c)
		l.fds = append(l.fds, c.do("fds"))
		l.done.Go(func() {
			for n := 1; !l.end.Load(); n++ {
				if got := c.do("alloc 0 %d 100 0", 4096*(n+i<<32)); got != "ok" {
					t.Errorf("client %d, report %d: %q", i, n, got)
					return
				}
				l.sent.Add(100)
			}
		})
	}
	m.Await("the load", func() bool { return l.sent.Load() > 100_000 })
	return l
}

// stop ends it, and looks whether everything arrived over the first connections.
func (l *load) stop() {
	l.t.Helper()
	l.end.Store(true)
	l.done.Wait()
	for i, c := range l.clients {
		if got := c.do("fds"); got != l.fds[i] {
			l.t.Errorf("client %d has %s descriptors open, at first %s: it reconnected", i, got, l.fds[i])
		}
	}
	// Reports have no reply: those of the other clients are read soon.
	end := time.Now().Add(5 * time.Minute)
	for l.clients[0].held() != l.sent.Load() {
		if time.Now().After(end) {
			l.t.Fatalf("ttmond knows of %d bytes, reported were %d", l.clients[0].held(), l.sent.Load())
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// An old allocation server that is running stays.
func TestDebianLeavesOldServerAlone(t *testing.T) {
	dir := release(t, newRelease)
	m := machine.Boot(t, "python3-minimal")
	server := m.Command("python3", "-c", `
import socket, sys
s = socket.socket(socket.AF_UNIX); s.bind("`+allocSocket+`"); s.listen()
print("listens", flush=True)
while True:
    c, _ = s.accept(); c.sendall(b"old"); c.close()`)
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Process.Kill(); _ = server.Wait() })
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	said := install(m, copyPackages(t, m, dir, newVersion, "ttmond"))
	if !strings.Contains(said, "another program serves") {
		t.Errorf("the installation says nothing of it:\n%s", said)
	}
	if state, _ := m.Try("systemctl", "is-active", "ttmond.service"); state != "inactive" {
		t.Errorf("ttmond is %s", state)
	}
	ask := `import socket; s = socket.socket(socket.AF_UNIX); s.connect("` + allocSocket + `"); print(s.recv(3).decode())`
	if got := m.Run("python3", "-c", ask); got != "old" {
		t.Errorf("the old server's clients get %q", got)
	}
}

// The simulated host from its package, with the boards of a workstation.
func TestDebianSim(t *testing.T) {
	dir := release(t, newRelease)
	m := machine.Boot(t, "fuse3")
	install(m, copyPackages(t, m, dir, newVersion, "ttmon", "ttmon-sim"))
	if got := m.Run("ttmon-sim", "--boards", "n300,p150a", "--", "ttmon", "smi"); !strings.Contains(got, "p150a") || !strings.Contains(got, "simulated") {
		t.Errorf("ttmon smi says:\n%s", got)
	}
	if _, err := os.Stat(m.Path("/usr/share/man/man1/ttmon-smi.1.gz")); err != nil {
		t.Error(err)
	}
}

// Lintian has nothing to say but what is overridden by name.
func TestLintian(t *testing.T) {
	dir := release(t, newRelease)
	var list []string
	for _, name := range packageNames(t) {
		made, err := filepath.Glob(filepath.Join(dir, name+"_*.deb"))
		if err != nil || len(made) == 0 {
			t.Errorf("no package %s, %v", name, err)
		}
		list = append(list, made...)
	}
	out := output(t, "lintian", append([]string{"--allow-root", "--fail-on", "none", "--tag-display-limit", "0"}, list...)...)
	for line := range strings.Lines(out) {
		if !strings.HasPrefix(line, "N: ") {
			t.Error(strings.TrimSpace(line))
		}
	}
}
