package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/lab/hermetic"
)

// systemd is a real one, as process 1 of namespaces of its own, with our units.
type systemd struct {
	*host
	t    *testing.T
	pid1 int // as we see it
	log  *syncBuffer
}

// newSystemd starts systemd with the socket units. changes are lines that a
// drop-in adds to the service.
func newSystemd(t *testing.T, changes ...string) *systemd {
	t.Helper()
	const bin = "/lib/systemd/systemd"
	for _, tool := range []string{bin, "unshare", "nsenter", "systemctl"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("no %s on this machine: %v", tool, err)
		}
	}
	h := newHost(t)
	h.alloc = "/tmp/tt_allocation_server.sock" // the units'
	s := &systemd{host: h, t: t, log: new(syncBuffer)}
	units := filepath.Join(h.dir, "units")
	s.writeUnits(units, changes)
	script := `
mount -t tmpfs tmpfs /run; mount -t tmpfs tmpfs /etc/systemd/system; mount -t tmpfs tmpfs /var/lib
mkdir -p /run/systemd/system; cp -r "$1"/* /run/systemd/system/
rm -f /tmp/tt_allocation_server.sock
export container=lxc
exec ` + bin + ` --system --unit=ttmon-test.target --log-target=console --log-level=info --crash-reboot=0`
	s.pid1 = hermetic.StartInit(t, s.log, script, units)
	t.Cleanup(func() {
		if t.Failed() {
			status, _ := s.systemctl("status", "--no-pager", "--lines=0", "ttmond.service")
			t.Logf("log of systemd:\n%s\nof ttmond:\n%s\n%s", s.log, s.said(), status)
		}
	})
	end := time.Now().Add(30 * time.Second)
	for out, err := s.systemctl("is-active", "ttmond.socket"); out != "active"; out, err = s.systemctl("is-active", "ttmond.socket") {
		if time.Now().After(end) {
			t.Skipf("systemd does not run as process 1 of a namespace here: %s %v\n%s", out, err, s.log)
		}
		time.Sleep(50 * time.Millisecond)
	}
	h.api = fmt.Sprintf("/proc/%d/root/run/ttmon/ttmond.sock", s.pid1)
	return s
}

// writeUnits writes our units, the drop-in and a target for them.
func (s *systemd) writeUnits(dir string, changes []string) {
	s.t.Helper()
	dropIn := filepath.Join(dir, "ttmond.service.d")
	if err := os.MkdirAll(dropIn, 0o755); err != nil {
		s.t.Fatal(err)
	}
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			s.t.Fatal(err)
		}
	}
	units, err := filepath.Glob("../../packaging/systemd/ttmond*")
	if err != nil || len(units) != 3 {
		s.t.Fatalf("units %v, %v", units, err)
	}
	for _, u := range units {
		b, err := os.ReadFile(u)
		if err != nil {
			s.t.Fatal(err)
		}
		text := strings.ReplaceAll(string(b), "/usr/bin/ttmond", program(s.t))
		text = strings.Replace(text, "[Unit]\n", "[Unit]\nDefaultDependencies=no\n", 1)
		write(filepath.Join(dir, filepath.Base(u)), text)
	}
	lines := append([]string{"[Service]", "StandardError=append:/run/ttmond.log"}, changes...)
	write(filepath.Join(dropIn, "test.conf"), strings.Join(lines, "\n")+"\n")
	write(filepath.Join(dir, "ttmon-test.target"), "[Unit]\nDefaultDependencies=no\nRequires=ttmond.socket ttmond-api.socket\n")
}

// said is the log of the service.
func (s *systemd) said() string {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/root/run/ttmond.log", s.pid1))
	return string(b)
}

// inside runs a command in the namespaces.
func (s *systemd) inside(args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(context.Background(), 2*limit)
	s.t.Cleanup(cancel)
	return exec.CommandContext(ctx, "nsenter", append([]string{"-t", strconv.Itoa(s.pid1), "-m", "-p", "--"}, args...)...)
}

func (s *systemd) systemctl(args ...string) (string, error) {
	out, err := s.inside(append([]string{"systemctl"}, args...)...).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// must has systemctl do something.
func (s *systemd) must(args ...string) {
	s.t.Helper()
	if out, err := s.systemctl(args...); err != nil {
		s.t.Fatalf("systemctl %v: %v: %s", args, err, out)
	}
}

// show returns a property of the service.
func (s *systemd) show(property string) string {
	out, _ := s.systemctl("show", "--value", "-p", property, "ttmond.service")
	return out
}

// main is the pid of the service, in the namespace.
func (s *systemd) main() string { return s.show("MainPID") }

// client starts a C++ client inside.
func (s *systemd) client() *client {
	s.t.Helper()
	return startClient(s.t, "nsenter", "-t", strconv.Itoa(s.pid1), "-m", "-p", "--", cpp(s.t, 144), s.alloc)
}

// Our units under a real systemd: clients start the service by connecting, and
// live through restarts, crashes, the watchdog and stops.
func TestSystemd(t *testing.T) {
	hermetic.Long(t)
	t.Parallel()
	s := newSystemd(t, "WatchdogSec=6s", "RestartSec=50ms", "Environment=GORACE=atexit_sleep_ms=0", "ExecStart=",
		"ExecStart="+program(t))
	if s.show("ActiveState") != "inactive" {
		t.Fatalf("the service runs before anybody has come: %s", s.show("ActiveState"))
	}
	c := s.client() // starts it
	fds := c.do("fds")
	report := func(id, size int) {
		t.Helper()
		if got := c.do("alloc 0 %d %d 0", id, size); got != "ok" {
			t.Fatalf("the client: %q", got)
		}
	}
	report(4194304, 1000)
	s.await("the service", func() bool { return s.show("ActiveState") == "active" })
	s.awaitSums(0, sums{dram: 1000})
	s.checkHardening(t)
	s.checkWatching(t)

	first := s.main()
	s.must("restart", "ttmond.service")
	s.awaitSums(0, sums{dram: 1000}) // the keeper had it
	if s.main() == first {
		t.Error("it was not restarted")
	}
	report(4194368, 1)
	s.awaitSums(0, sums{dram: 1001})

	s.must("stop", "ttmond.service") // a report would start it again: the socket unit listens
	report(4194432, 2)
	s.must("start", "ttmond.service")
	s.awaitSums(0, sums{dram: 1003})

	first = s.main()
	for range 3 {
		s.must("reload", "ttmond.service")
		report(4194432+64, 2)
		s.awaitSums(0, sums{dram: 1005})
	}
	if n := strings.Count(s.said(), "resumed from previous ttmond"); s.main() != first || s.show("NRestarts") != "0" || n < 3 {
		t.Errorf("after three reloads: pid %s, was %s; %s restarts; resumed %d times", s.main(), first, s.show("NRestarts"), n)
	}
	s.checkHardening(t)

	s.await("the descriptor store", func() bool { return s.show("NFileDescriptorStore") != "0" })
	before := s.main()
	if out, err := s.inside("kill", "-KILL", before).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	report(8388608, 20) // no daemon serves; systemd has the connection
	s.await("the next one", func() bool { return s.show("ActiveState") == "active" && s.main() != before })
	s.awaitSums(0, sums{dram: 20}) // what it held before is not known any more

	before = s.main()
	if out, err := s.inside("kill", "-STOP", before).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	s.await("the watchdog to replace it", func() bool { return s.show("ActiveState") == "active" && s.main() != before && s.main() != "0" })
	report(8388672, 3)
	s.awaitSums(0, sums{dram: 3})
	if got := c.do("fds"); got != fds {
		t.Errorf("the client has %s descriptors open, at first %s: it reconnected", got, fds)
	}
}

// capabilities are those that the service may have, by number.
var capabilities = map[string]int{
	"cap_dac_read_search": unix.CAP_DAC_READ_SEARCH, "cap_sys_ptrace": unix.CAP_SYS_PTRACE, // to read about all processes
	"cap_syslog": unix.CAP_SYSLOG,                               // to read the kernel's log: /dev/kmsg
	"cap_bpf":    unix.CAP_BPF, "cap_perfmon": unix.CAP_PERFMON, // to watch allocators
	"cap_setuid": unix.CAP_SETUID, "cap_setgid": unix.CAP_SETGID, "cap_kill": unix.CAP_KILL, // for commands of alerts
}

// checkWatching sees that what the service may do is enough to watch allocators,
// where this kernel lets anybody do that.
func (s *systemd) checkWatching(t *testing.T) {
	t.Helper()
	here := newHost(t)
	here.start()
	state := here.watchState()
	here.stop()
	if state["state"] != "on" {
		t.Logf("the kernel does not let us watch: %v", state["reason"])
		return
	}
	if st := s.watchState(); st["state"] != "on" {
		t.Errorf("the service does not watch allocators: %v", st)
		return
	}
	c := startAllocating(t, "nsenter", "-t", strconv.Itoa(s.pid1), "-m", "-p", "--")
	c.do("make %d 5", 1<<20)
	s.await("a program to be watched", func() bool {
		c.do("take 64")
		st := s.watchState()
		return st["processes"].(float64) > 0 && st["events"].(float64) > 0
	})
	c.kill()
}

// checkHardening looks at what the service may do.
func (s *systemd) checkHardening(t *testing.T) {
	t.Helper()
	if got := s.show("MemoryMax"); got != strconv.Itoa(2<<30) {
		t.Errorf("MemoryMax is %s", got)
	}
	out, err := s.inside("cat", "/proc/"+s.main()+"/status", "/proc/"+s.main()+"/limits").CombinedOutput()
	if err != nil {
		t.Fatalf("%v %s", err, out)
	}
	fields := strings.Join(strings.Fields(string(out)), " ")
	caps := uint64(0)
	for name := range strings.FieldsSeq(s.show("CapabilityBoundingSet")) {
		bit, ok := capabilities[name]
		if !ok {
			t.Errorf("%s: may it do that? Then add it here", name)
		}
		caps |= 1 << bit
	}
	for _, want := range []string{fmt.Sprintf("CapBnd: %016x", caps), "NoNewPrivs: 1", "Seccomp: 2", "Max open files"} {
		if !strings.Contains(fields, want) {
			t.Errorf("no %q in %s", want, fields)
		}
	}
	// Nothing but its own directories can be written to.
	for path, writable := range map[string]bool{"/tmp": false, "/usr": false, "/etc": false, "/run/ttmon": true, "/var/lib/ttmon": true} {
		probe := s.inside("nsenter", "-t", s.main(), "-m", "--", "sh", "-c", "touch "+path+"/.probe && rm "+path+"/.probe")
		if out, err := probe.CombinedOutput(); (err == nil) != writable {
			t.Errorf("%s: writable is %v, want %v: %s", path, err == nil, writable, out)
		}
	}
}
