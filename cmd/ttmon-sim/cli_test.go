package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/ttmon/ttmon/internal/lab/hermetic"
)

// asProgram makes the test binary be ttmon-sim.
const asProgram = "TTMON_SIM_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	hermetic.Main(m)
}

// program is ttmon-sim with arguments.
func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, args...)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	return cmd
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: mount namespaces and /dev/fuse")
	}
}

// result runs a program to its end.
func result(t *testing.T, cmd *exec.Cmd) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		return e.ExitCode(), out.String(), errs.String()
	}
	if err != nil {
		t.Fatal(err)
	}
	return 0, out.String(), errs.String()
}

func TestExitCodesOfTheCommand(t *testing.T) {
	t.Parallel()
	needRoot(t)
	for _, tt := range []struct {
		command []string
		want    int
	}{
		{[]string{"true"}, 0},
		{[]string{"sh", "-c", "exit 42"}, 42},
		{[]string{"sh", "-c", "kill -9 $$"}, 137},
		{[]string{"/nonexistent/program"}, 127},
		{[]string{"/etc/passwd"}, 126},
	} {
		t.Run(strings.Join(tt.command, " "), func(t *testing.T) {
			code, _, stderr := result(t, program(t, append([]string{"--boards", "n150", "--"}, tt.command...)...))
			if code != tt.want {
				t.Errorf("exit %d, want %d; %s", code, tt.want, stderr)
			}
			if tt.want > 125 && tt.want < 128 && !strings.Contains(stderr, tt.command[0]) {
				t.Errorf("%q does not name it", stderr)
			}
		})
	}
}

// started runs ttmon-sim with a shell in it and waits for the shell's first
// line.
func started(t *testing.T, script string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	cmd := program(t, "--boards", "n150", "--", "sh", "-c", script)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // without a terminal
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(out)
	if _, err := r.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	return cmd, r
}

func TestSignalsReachTheCommand(t *testing.T) {
	t.Parallel()
	needRoot(t)
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		cmd, out := started(t, `trap "echo got it; exit 9" TERM INT HUP; echo up; while :; do sleep 0.01; done`)
		cmd.Process.Signal(sig)
		rest, _ := io.ReadAll(out)
		cmd.Wait()
		if string(rest) != "got it\n" || cmd.ProcessState.ExitCode() != 9 {
			t.Errorf("%v: printed %q, exit %d", sig, rest, cmd.ProcessState.ExitCode())
		}
	}
}

// TestNothingOutlivesUs: children in the background, also ones that left the
// namespace and ignore signals, end with the command.
func TestNothingOutlivesUs(t *testing.T) {
	t.Parallel()
	needRoot(t)
	cmd := program(t, "--boards", "n150", "--procs", "name=w", "--", "sh", "-c",
		`trap "" TERM HUP; sleep 1001 >&- 2>&- & echo $!; unshare -m setsid sleep 1002 >&- 2>&- & echo $!; cat /proc/driver/tenstorrent/0/pids; dirname $TTMON_SIM_CONTROL`)
	code, stdout, stderr := result(t, cmd)
	lines := strings.Fields(stdout)
	if code != 0 || len(lines) != 4 {
		t.Fatalf("exit %d: %s%s", code, stdout, stderr)
	}
	for _, pid := range lines[:3] {
		if b, err := os.ReadFile("/proc/" + pid + "/stat"); err == nil && !strings.Contains(string(b), ") Z ") {
			t.Errorf("process %s is left: %s", pid, b)
		}
	}
	if _, err := os.Stat(lines[3]); err == nil {
		t.Errorf("%s is left", lines[3])
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil || strings.Contains(string(mounts), lines[3]) {
		t.Errorf("mounts are left: %v", err)
	}
}

func TestKeepExecCtl(t *testing.T) {
	t.Parallel()
	needRoot(t)
	socket := filepath.Join(t.TempDir(), "sock")
	keeper := program(t, "--boards", "n150,p150a", "--keep", "--control", socket)
	out, err := keeper.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := keeper.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { keeper.Process.Kill(); keeper.Wait() }()
	if line, _ := bufio.NewReader(out).ReadString('\n'); line != "simulated host ready\n" {
		t.Fatalf("said %q", line)
	}
	code, stdout, stderr := result(t, program(t, "exec", "--control", socket, "--", "sh", "-c", "ls /sys/class/tenstorrent; exit 3"))
	if code != 3 || stdout != "tenstorrent!0\ntenstorrent!1\n" {
		t.Errorf("exec: exit %d, %q %s", code, stdout, stderr)
	}
	code, stdout, stderr = result(t, program(t, "ctl", "--control", socket, "list"))
	if code != 0 || !strings.Contains(stdout, "p150a") || !strings.Contains(stdout, "simulated") {
		t.Errorf("ctl list: exit %d, %q %s", code, stdout, stderr)
	}
	inside := program(t, "exec", "--control", socket, "--", "/proc/self/exe", "ctl", "set", "0", "tt_aiclk", "--5")
	exe, _ := os.Executable()
	inside.Args[5] = exe
	if code, _, stderr = result(t, inside); code != 0 {
		t.Errorf("ctl inside: exit %d, %s", code, stderr)
	}
	_, stdout, _ = result(t, program(t, "exec", "--control", socket, "--", "cat", "/sys/class/tenstorrent/tenstorrent!0/tt_aiclk"))
	if stdout != "--5\n" {
		t.Errorf("what ctl set reads %q", stdout)
	}
	if code, _, stderr = result(t, program(t, "ctl", "--control", socket, "explode")); code != 1 || !strings.Contains(stderr, "explode") {
		t.Errorf("unknown verb: exit %d, %s", code, stderr)
	}
	keeper.Process.Signal(syscall.SIGTERM)
	if err := keeper.Wait(); err != nil {
		t.Errorf("the keeper ended with %v", err)
	}
	if code, _, stderr = result(t, program(t, "ctl", "--control", socket, "list")); code != 1 || !strings.Contains(stderr, socket) {
		t.Errorf("ctl without a host: exit %d, %s", code, stderr)
	}
}

// TestRealBoardsAreHidden takes a simulated host for a real one: what it has
// must not show in one that is simulated inside it.
func TestRealBoardsAreHidden(t *testing.T) {
	t.Parallel()
	needRoot(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := result(t, program(t, "--boards", "2xn300,p150a", "--", exe, "--boards", "n150", "--", "sh", "-c",
		`cat /sys/class/tenstorrent/*/tt_card_type; ls /dev/tenstorrent/by-id /proc/driver/tenstorrent; cat /sys/bus/pci/devices/*/vendor | grep -c 0x1e52; cat /sys/class/hwmon/*/name; grep -c tenstorrent /proc/devices; cat /sys/class/hwmon/hwmon*/name | grep -c hole`))
	lines := strings.Fields(stdout)
	if code != 0 || len(lines) < 5 || lines[0] != "n150" || strings.Count(stdout, "wormhole-") != 1 || strings.Count(stdout, "n300") != 0 {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
	}
	if !strings.HasSuffix(stdout, "k10temp\nwormhole\n1\n1\n") {
		t.Errorf("hwmon, /proc/devices: %s", stdout)
	}
	code, stdout, stderr = result(t, program(t, "--boards", "n300", "--", exe, "--boards", "n150", "--driver", "none", "--", "sh", "-c",
		`ls /sys/class/tenstorrent /sys/module/tenstorrent /dev/tenstorrent /proc/driver/tenstorrent 2>/dev/null; true`))
	if code != 0 || stdout != "" {
		t.Errorf("without the module: exit %d: %s%s", code, stdout, stderr)
	}
}

func TestMistakes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"--boards", "n151", "--", "true"}, "n151"},
		{[]string{"--boards", "n150"}, "-- COMMAND"},
		{[]string{"--", "true"}, "--boards"},
		{[]string{"ls"}, "put --"},
		{[]string{"--boards", "n150", "ls"}, "put --"},
		{[]string{"--bords", "n150"}, "--bords"},
		{[]string{"--boards", "n150", "--driver", "9", "--", "true"}, "driver version"},
		{[]string{"--boards", "n150", "--root", "/etc"}, "/etc"},
		{[]string{"--boards", "n150", "--root", "/nonexistent/x", "--procs", "name=w"}, "plain tree"},
		{[]string{"exec", "--", "true"}, "--control"},
		{[]string{"ctl", "list"}, "--control"},
		{[]string{"ctl"}, "ctl --help"},
	} {
		t.Run(strings.Join(tt.args, " "), func(t *testing.T) {
			cmd := program(t, tt.args...)
			cmd.Env = append(cmd.Env, "TTMON_SIM_CONTROL=")
			code, stdout, stderr := result(t, cmd)
			if code != exitUsage || !strings.Contains(stderr, tt.want) || stdout != "" || strings.Count(stderr, "\n") != 1 {
				t.Errorf("exit %d, %q %q; want exit 2 and one line with %q", code, stdout, stderr, tt.want)
			}
		})
	}
}

// TestPrivilege runs as nobody: once without access to /dev/fuse, where it
// must say so, and once with, in a user namespace.
func TestPrivilege(t *testing.T) {
	t.Parallel()
	needRoot(t)
	dir, err := os.MkdirTemp("/tmp", "ttmon-sim-test-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	exe := filepath.Join(dir, "ttmon-sim") // where no user may read it
	self, _ := os.Executable()
	if out, err := exec.Command("cp", self, exe).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	asNobody := func(fuseMode string) (int, string, string) {
		script := fmt.Sprintf(`
mount --make-rprivate / && mount -t tmpfs tmpfs %[1]s/ns && mknod -m %[2]s %[1]s/ns/fuse c 10 229 && mount --bind %[1]s/ns/fuse /dev/fuse || exit 99
cd / && exec setpriv --reuid 65534 --regid 65534 --clear-groups env TMPDIR=%[1]s %[1]s/ttmon-sim --boards n150,p150a -- cat "/sys/class/tenstorrent/tenstorrent!1/tt_card_type" /sys/devices/system/cpu/online`, dir, fuseMode)
		cmd := exec.Command("unshare", "-m", "sh", "-c", script)
		cmd.Env = append(os.Environ(), asProgram+"=1")
		return result(t, cmd)
	}
	if err := os.Mkdir(filepath.Join(dir, "ns"), 0o755); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := asNobody("0600")
	if code == 99 {
		t.Skipf("cannot mount a tmpfs here: %s", stderr)
	}
	if code != exitDenied || !strings.Contains(stderr, "/dev/fuse") && !strings.Contains(stderr, "user namespaces") || !strings.Contains(stderr, "--root") {
		t.Errorf("without access: exit %d, %q %q", code, stdout, stderr)
	}
	if b, err := os.ReadFile("/proc/sys/user/max_user_namespaces"); err != nil || strings.TrimSpace(string(b)) == "0" {
		t.Skip("needs user namespaces")
	}
	code, stdout, stderr = asNobody("0666")
	if code != 0 || !strings.HasPrefix(stdout, "p150a\n0") {
		t.Errorf("in a user namespace: exit %d, %q %q", code, stdout, stderr)
	}
}

// TestEveryCommandIsDocumented walks the commands: help is the documentation.
func TestEveryCommandIsDocumented(t *testing.T) {
	t.Parallel()
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Short == "" {
			t.Errorf("%s has no description", c.CommandPath())
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(rootCommand())
	var out bytes.Buffer
	if code := run([]string{"ctl", "reset", "--help"}, &out, &out); code != 0 || !strings.Contains(out.String(), "ENODATA") {
		t.Errorf("help of reset: %d %s", code, &out)
	}
}

func TestBoardsList(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	if code := run([]string{"boards"}, &out, &errs); code != 0 || !strings.Contains(out.String(), "galaxy-blackhole") || !strings.Contains(out.String(), "simulated") {
		t.Errorf("exit %d: %s%s", code, &out, &errs)
	}
}

func TestRootMode(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "tree")
	code, stdout, stderr := result(t, program(t, "--boards", "n300", "--root", dir))
	if code != 0 || !strings.Contains(stdout, "simulated tree") {
		t.Fatalf("exit %d: %s%s", code, stdout, stderr)
	}
	code, stdout, stderr = result(t, program(t, "--boards", "p150a", "--root", dir, "--", "sh", "-c",
		`cat $TTMON_SIM_ROOT/sys/class/tenstorrent/tenstorrent!0/tt_card_type $TTMON_SIM_ROOT/proc/driver/tenstorrent/0/pids; exit 5`))
	if code != 5 || stdout != "p150a\n" {
		t.Errorf("exit %d: %q %s", code, stdout, stderr)
	}
}

// TestHostDies: the command must not go on in a host that is no more.
func TestHostDies(t *testing.T) {
	t.Parallel()
	needRoot(t)
	cmd, _ := started(t, `echo up; exec sleep 1000`)
	var host string
	for deadline := time.Now().Add(time.Minute); host == "" && time.Now().Before(deadline); {
		out, _ := exec.Command("pgrep", "-P", fmt.Sprint(cmd.Process.Pid), "-f", "ttmon-sim-host").Output()
		host = strings.TrimSpace(string(out))
	}
	var pid int
	if _, err := fmt.Sscan(host, &pid); err != nil {
		cmd.Process.Kill()
		t.Fatalf("no host process: %v", err)
	}
	syscall.Kill(pid, syscall.SIGKILL)
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 128+int(syscall.SIGTERM) {
		t.Errorf("exit %d, want that of a command ended by SIGTERM", code)
	}
}

// What is installed beside ttmon-sim is found by the command it runs.
func TestOwnProgramsAreFound(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cmd := program(t, "--boards", "n150", "--root", dir, "--", "sh", "-c", "echo $PATH")
	code, out, errs := result(t, cmd)
	if code != 0 || !strings.HasPrefix(out, filepath.Dir(exe)+":") {
		t.Errorf("exit code %d, PATH %q, %s", code, out, errs)
	}
}
