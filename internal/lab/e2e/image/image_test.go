//go:build container

package image

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/lab/e2e/programs"
	"github.com/ttmon/ttmon/internal/lab/e2e/ttnn"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
)

func TestMain(m *testing.M) {
	hermetic.Enter(hermetic.Options{Limit: 20 * time.Minute})
	os.Exit(m.Run())
}

// podman runs the image on the simulated host that the test is in: the second
// half of TestImage is a script, since everything happens inside.
type podman struct {
	t    *testing.T
	dir  string // its images and containers
	sim  string // control of the simulated host
	name string // of the image
}

// in runs a command on the simulated host.
func (p *podman) in(args ...string) (string, error) {
	cmd := exec.Command("ttmon-sim", append([]string{"exec", "--control", p.sim, "--"}, args...)...)
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func (p *podman) must(args ...string) string {
	p.t.Helper()
	out, err := p.in(args...)
	if err != nil {
		p.t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func (p *podman) command(args ...string) []string {
	return append([]string{"podman", "--root", p.dir + "/root", "--runroot", p.dir + "/run", "--cgroup-manager=cgroupfs", "--runtime=runc", "--log-level=error"}, args...)
}

// This machine may not raise limits, which podman would do; tests of others
// lose nothing by it.
var limits = []string{"--ulimit", "nofile=4096:4096", "--ulimit", "nproc=4096:4096"}

// whole is what the documentation says the container needs.
var whole = []string{
	"--pid=host", "--network=host", "--cap-add=SYS_PTRACE,DAC_READ_SEARCH,BPF,PERFMON", "--security-opt=apparmor=unconfined",
	"-v", "/:/host:ro,rslave",
}

// run runs ttmon of the image.
func (p *podman) run(options []string, args ...string) string {
	p.t.Helper()
	line := append(append([]string{"run", "--rm"}, limits...), options...)
	out, _ := p.in(p.command(append(append(line, "--entrypoint", "/usr/bin/ttmon", p.name), args...)...)...)
	return out
}

func start(t *testing.T) *podman {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root, to run containers next to a simulated host")
	}
	for _, tool := range []string{"podman", "runc"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("no %s on this machine", tool)
		}
	}
	bin, err := programs.Build(false, "ttmon", "ttmond", "ttmon-sim")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	// Not below /tmp, which is the simulated host's own.
	dir, err := os.MkdirTemp("/var/tmp", "ttmon-image-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	p := &podman{t: t, dir: dir, sim: filepath.Join(dir, "control")}
	host := exec.Command("ttmon-sim", "--boards", "n300,p150a", "--control", p.sim, "--", "sleep", "infinity")
	host.Stderr = os.Stderr
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = host.Process.Kill(); _ = host.Wait() })
	await(t, "the simulated host", func() bool { _, err := p.in("true"); return err == nil })
	return p
}

func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Minute); !ok(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("timed out waiting for %s", what)
		}
	}
}

// load makes the image and gives it to podman.
func (p *podman) load() {
	p.t.Helper()
	root, err := ttnn.Repository()
	if err != nil {
		p.t.Fatal(err)
	}
	build := exec.Command(filepath.Join(root, "tools/package/build"), "image", filepath.Join(p.dir, "dist"))
	build.Env = append(os.Environ(), "VERSION=0.1.0-test", "ARCHES="+runtime.GOARCH)
	if out, err := build.CombinedOutput(); err != nil {
		p.t.Fatalf("making the image: %v\n%s", err, out)
	}
	out := p.must(p.command("load", "--quiet", "-i", filepath.Join(p.dir, "dist/ttmon_0.1.0-test_image.oci.tar"))...)
	_, p.name, _ = strings.Cut(out[strings.LastIndex(out, "Loaded image"):], ": ")
}

// The image sees the host: its boards, its processes, their memory; what it is
// not given it does not see, and says so.
func TestImage(t *testing.T) {
	p := start(t)
	p.load()
	pid := p.must("ttmon-sim", "ctl", "--control", p.sim, "run", "name=llama,devices=0,kind=metal,dram=2G")

	table := p.run(whole, "--root", "/host", "smi")
	for _, want := range []string{"n300", "p150a", "0000:42:00.0", "llama", pid, "4.0/24.0 GiB", "SIMULATED"} {
		if !strings.Contains(table, want) {
			t.Errorf("no %q in:\n%s", want, table)
		}
	}
	if out := p.run(whole, "--root", "/host", "doctor"); !strings.Contains(out, "can inspect all processes and their memory") {
		t.Errorf("doctor, with all that it needs:\n%s", out)
	}
	for what, c := range map[string]struct {
		options []string
		root    string
		want    string
	}{
		"no pids":         {[]string{"--cap-add=SYS_PTRACE", "-v", "/:/host:ro,rslave"}, "/host", "--pid=host"},
		"no capabilities": {[]string{"--pid=host", "-v", "/:/host:ro,rslave"}, "/host", "--cap-add=SYS_PTRACE,DAC_READ_SEARCH,BPF,PERFMON"},
		"no mount":        {[]string{"--pid=host"}, "/", "-v /:/host:ro,rslave"},
	} {
		t.Run(what, func(t *testing.T) {
			if out := p.run(append(c.options, "--network=host"), "--root", c.root, "doctor"); !strings.Contains(out, c.want) {
				t.Errorf("doctor does not say %q:\n%s", c.want, out)
			}
		})
	}
	p.daemon(pid)
}

// daemon runs the image as it is meant to be run, and asks it from the host.
func (p *podman) daemon(pid string) {
	t := p.t
	t.Helper()
	p.must("mkdir", "-p", "/run/ttmon")
	line := append(append([]string{"run", "--detach", "--name", "ttmond"}, limits...), whole...)
	line = append(line, "-v", "/run/ttmon:/run/ttmon", "-v", "/tmp:/tmp", p.name, "--root", "/host", "--listen", "off")
	p.must(p.command(line...)...)
	t.Cleanup(func() { _, _ = p.in(p.command("kill", "ttmond")...) })
	var out string
	await(t, "ttmond in its container", func() bool {
		var err error
		out, err = p.in("ttmon", "smi", "--json")
		return err == nil && strings.Contains(out, `"source":"daemon"`) && strings.Contains(out, "llama")
	})
	var snap struct {
		Processes []struct {
			PID     int
			Name    string
			Devices []struct {
				DRAM *uint64 `json:"dram_bytes"`
			}
		}
	}
	if err := json.Unmarshal([]byte(out), &snap); err != nil {
		t.Fatal(err)
	}
	if len(snap.Processes) != 1 || fmt.Sprint(snap.Processes[0].PID) != pid || snap.Processes[0].Devices[0].DRAM == nil || *snap.Processes[0].Devices[0].DRAM != 4<<30 {
		t.Errorf("ttmond in a container tells the host: %+v", snap.Processes)
	}
	logs, _ := p.in(p.command("logs", "ttmond")...)
	t.Logf("log of the container:\n%s", logs)
}
