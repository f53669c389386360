package sim_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/ttmon/ttmon/internal/lab/sim"
)

// left lists what a host may have left behind: mounts and its directory.
func left(t *testing.T, h *sim.Host) []string {
	t.Helper()
	var found []string
	for _, file := range []string{"/proc/self/mounts", "/proc/1/mounts"} {
		b, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		if strings.Contains(string(b), filepath.Dir(h.Control)) {
			found = append(found, file)
		}
	}
	if _, err := os.Stat(filepath.Dir(h.Control)); err == nil {
		found = append(found, filepath.Dir(h.Control))
	}
	return found
}

func TestCommandRunsUnchanged(t *testing.T) {
	t.Parallel()
	h := start(t, sim.Options{Boards: "n150"})
	dir := t.TempDir()
	cmd := h.Command(context.Background(), "sh", "-c", `echo "$0 $1 $V"; pwd; cat; exit 7`, "zero", "one two")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "V=w")
	cmd.Stdin = strings.NewReader("in")
	out, err := cmd.Output()
	if e, ok := errors.AsType[*exec.ExitError](err); !ok || e.ExitCode() != 7 {
		t.Errorf("ended with %v, want exit 7", err)
	}
	if want := "zero one two w\n" + dir + "\nin"; string(out) != want {
		t.Errorf("printed %q, want %q", out, want)
	}
}

func TestTheRestOfTheHostIsThere(t *testing.T) {
	t.Parallel()
	h := start(t, sim.Options{Boards: "p150a"})
	for _, dir := range []string{"/sys", "/sys/class", "/sys/devices", "/sys/module", "/sys/bus", "/sys/bus/pci/drivers", "/sys/bus/pci/devices", "/sys/dev/char", "/dev", "/proc/driver"} {
		real, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range real {
			want, err := os.Lstat(filepath.Join(dir, e.Name()))
			if err != nil {
				continue // gone by now
			}
			got, err := os.Lstat(filepath.Join(h.Root()+dir, e.Name()))
			if err != nil {
				t.Errorf("missing in the simulated host: %v", err)
				continue
			}
			if e.Name() == "kmsg" { // the simulated host's own log, without the machine's lines
				continue
			}
			if got.Mode().Type() != want.Mode().Type() {
				t.Errorf("%s/%s is %v in the simulated host, %v in the real one", dir, e.Name(), got.Mode().Type(), want.Mode().Type())
			}
		}
	}
	want, err := os.ReadFile("/sys/devices/system/cpu/online")
	if err != nil {
		t.Fatal(err)
	}
	if got := mustRead(t, h, "/sys/devices/system/cpu/online"); got != string(want) {
		t.Errorf("CPUs %q, want %q", got, want)
	}
	cmd := h.Command(context.Background(), "sh", "-c", "echo x >/dev/null && echo y >/dev/shm/mine && ls /dev/shm")
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "mine\n" {
		t.Errorf("using /dev: %q, %v", out, err)
	}
	if _, err := os.Stat("/dev/shm/mine"); err == nil {
		t.Error("/dev/shm is the host's own")
	}
}

func TestMarker(t *testing.T) {
	t.Parallel()
	h := start(t, sim.Options{Boards: "n150,p150a"})
	var m struct {
		Version int
		Boards  string
		Control string
	}
	text := mustRead(t, h, "/sys/ttmon-sim")
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatal(err)
	}
	if m.Version != 1 || m.Boards != "n150,p150a" || m.Control != h.Control || strings.Count(text, "\n") != 1 {
		t.Errorf("marker %q", text)
	}
	if _, err := os.Stat("/sys/ttmon-sim"); err == nil {
		t.Error("the real host has the marker")
	}
	out, err := h.Command(context.Background(), "sh", "-c", "echo $TTMON_SIM_CONTROL").Output()
	if err != nil || string(out) != h.Control+"\n" {
		t.Errorf("environment says %q, %v; want %s", out, err, h.Control)
	}
}

func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	h := start(t, sim.Options{Boards: "n150", Procs: []string{"name=w,forks=2", "name=o,orphan"}})
	// A child that ignores SIGTERM and outlives its parent, holding the device.
	out, err := h.Command(context.Background(), "sh", "-c", `trap "" TERM; exec 3</dev/tenstorrent/0; (sleep 1000 >/dev/null 2>&1 & echo $!)`).Output()
	if err != nil {
		t.Fatal(err)
	}
	child := strings.TrimSpace(string(out))
	pids := []string{child, strconv.Itoa(h.PID)}
	for line := range strings.Lines(mustRead(t, h, pids0)) {
		pids = append(pids, strings.TrimSpace(line))
	}
	if len(pids) < 4 {
		t.Fatalf("too few processes: %v", pids)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	for _, pid := range pids {
		if state := procState(atoi(t, pid)); state != 0 && state != 'Z' {
			t.Errorf("process %s is left, in state %c", pid, state)
		}
	}
	if found := left(t, h); found != nil {
		t.Errorf("left behind: %v", found)
	}
}

func TestHostEndsWithItsStarter(t *testing.T) {
	t.Parallel()
	needRoot(t)
	if os.Getenv("SIM_TEST_STARTER") != "" {
		h := start(t, sim.Options{Boards: "n150", Procs: []string{"name=w"}})
		fmt.Println("PID", h.PID, h.Control)
		select {} // until killed
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestHostEndsWithItsStarter$")
	cmd.Env = append(os.Environ(), "SIM_TEST_STARTER=1")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	var control string
	if _, err := fmt.Fscanf(stdout, "PID %d %s\n", &pid, &control); err != nil {
		t.Fatal(err)
	}
	cmd.Process.Kill()
	cmd.Wait()
	until(t, "the host to end", func() bool { s := procState(pid); return s == 0 || s == 'Z' })
	until(t, "its directory to go", func() bool { _, err := os.Stat(filepath.Dir(control)); return os.IsNotExist(err) })
}

func TestHostKilled(t *testing.T) {
	t.Parallel()
	needRoot(t)
	h, err := sim.Start(sim.Options{Boards: "n150", Procs: []string{"name=w"}})
	if err != nil {
		t.Fatal(err)
	}
	worker := atoi(t, strings.TrimSpace(mustRead(t, h, pids0)))
	ctl(t, h, "block", "0")
	cmd := reader(t, h, class("0", "tt_aiclk"))
	untilStuck(t, h, cmd)
	syscall.Kill(h.PID, syscall.SIGKILL)
	<-h.Done()
	cmd.Wait() // the kernel frees readers when the server is gone
	until(t, "the workload to end", func() bool { s := procState(worker); return s == 0 || s == 'Z' })
	if err := h.Close(); err == nil {
		t.Error("closing a host that was killed says nothing")
	}
	if found := left(t, h); found != nil {
		t.Errorf("left behind: %v", found)
	}
}

func TestManyHostsAtOnce(t *testing.T) {
	t.Parallel()
	boards := []string{"n150", "2xn300", "p300c", "galaxy-wormhole"}
	hosts := make([]*sim.Host, len(boards))
	for i, b := range boards {
		hosts[i] = start(t, sim.Options{Boards: b, Seed: uint64(i)})
	}
	want := []int{1, 2, 2, 32}
	for i, h := range hosts {
		entries, err := os.ReadDir(h.Root() + "/sys/class/tenstorrent")
		if err != nil || len(entries) != want[i] {
			t.Errorf("%s: %d devices, %v; want %d", boards[i], len(entries), err, want[i])
		}
	}
	ctl(t, hosts[0], "dead", "0")
	if got := mustRead(t, hosts[1], class("0", "tt_card_type")); got != "n300\n" {
		t.Errorf("a fault in one host shows in another: %q", got)
	}
}

func TestMistakesInOptions(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		o    sim.Options
		want string
	}{
		{sim.Options{Boards: "n151"}, `no board "n151"`},
		{sim.Options{Boards: "0xn150"}, "1 to 32"},
		{sim.Options{Boards: "33xn150"}, "1 to 32"},
		{sim.Options{Boards: "galaxy-wormhole,n150"}, "33 PCIe functions"},
		{sim.Options{Boards: "n150,"}, "empty item"},
		{sim.Options{Boards: "n150", Driver: "1.20"}, "1.34 to 2.11.0"},
		{sim.Options{Boards: "n150", Driver: "two"}, "not a driver version"},
		{sim.Options{Boards: "n150", Firmware: "old"}, "neither a bundle version"},
		{sim.Options{Boards: "n150", Load: 2}, "between 0 and 1"},
		{sim.Options{Boards: "n150", Procs: []string{"nam=x"}}, `no setting "nam"`},
	} {
		t.Run(tt.o.Boards+": "+tt.want, func(t *testing.T) {
			h, err := sim.Start(tt.o)
			if err == nil {
				h.Close()
				t.Errorf("%+v: no error, want %q", tt.o, tt.want)
				return
			}
			if _, ok := errors.AsType[*sim.OptionError](err); !ok || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%+v: %v, want an OptionError with %q", tt.o, err, tt.want)
			}
		})
	}
}

func TestWorkloadForMissingDevice(t *testing.T) {
	t.Parallel()
	needRoot(t)
	h, err := sim.Start(sim.Options{Boards: "n150", Procs: []string{"name=w,devices=3"}})
	if err == nil {
		h.Close()
		t.Fatal("a workload on a device that is not there started")
	}
	if !strings.Contains(err.Error(), "/dev/tenstorrent/3") {
		t.Errorf("error %v does not name the node", err)
	}
}

func TestDriverNone(t *testing.T) {
	t.Parallel()
	h := start(t, sim.Options{Boards: "n150", Driver: "none"})
	for _, path := range []string{"/sys/class/tenstorrent", "/sys/module/tenstorrent", "/dev/tenstorrent", "/proc/driver/tenstorrent", "/sys/bus/pci/drivers/tenstorrent"} {
		if _, err := os.Stat(h.Root() + path); !os.IsNotExist(err) {
			t.Errorf("%s without the module: %v", path, err)
		}
	}
	if got := mustRead(t, h, "/sys/bus/pci/devices/0000:41:00.0/vendor"); got != "0x1e52\n" {
		t.Errorf("vendor %q", got)
	}
	if _, err := os.Lstat(h.Root() + "/sys/bus/pci/devices/0000:41:00.0/driver"); !os.IsNotExist(err) {
		t.Errorf("driver link without the module: %v", err)
	}
	ctl(t, h, "driver", "2.4.0")
	if _, err := os.Stat(h.Root() + "/proc/driver/tenstorrent"); !os.IsNotExist(err) {
		t.Errorf("2.4 has no pids: %v", err)
	}
	ctl(t, h, "driver", "2.5.0")
	mustRead(t, h, pids0)
	if got := mustRead(t, h, "/sys/module/tenstorrent/version"); got != "2.5.0\n" {
		t.Errorf("version %q", got)
	}
	if !strings.Contains(mustRead(t, h, "/proc/devices"), " tenstorrent\n") {
		t.Error("/proc/devices does not know the driver")
	}
}

func TestControlTellsMistakes(t *testing.T) {
	t.Parallel()
	h := start(t, sim.Options{Boards: "n150"})
	for _, tt := range []struct{ cmd, want string }{
		{"explode 0", `no command "explode"`},
		{"reset", "DEVICE"},
		{"reset 9", `no simulated device "9"`},
		{"reset 0 block=soon", "not a time"},
		{"reset 0 later", `"later" is too much`},
		{"load 0 2", "0 to 1"},
		{"set 0 nofile x", `no file "nofile"`},
		{"fail 0 tt_aiclk EWHAT", "EWHAT"},
		{"link 0 gen=9 width=1", "generation 1…4"},
		{"plug 0000:41:00.0", "already"},
		{"counters 0 nofile 5", "nofile"},
		{"word 0 zero 1", "zero"},
		{"kill missing", "missing"},
		{"driver 3.0", "cannot be simulated"},
		{"block 0 nofile", "nofile"},
		{"post-reset 0", "not between"},
		{"", "no command"},
	} {
		t.Run(tt.cmd, func(t *testing.T) {
			out, err := h.Ctl(strings.Fields(tt.cmd)...)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%q: %q, %v; want an error with %q", tt.cmd, out, err, tt.want)
			}
		})
	}
}

func TestControlSurvivesGarbage(t *testing.T) {
	t.Parallel()
	h := start(t, sim.Options{Boards: "n150"})
	conn, err := net.Dial("unix", h.Control)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	answers := bufio.NewScanner(conn)
	for _, line := range []string{"garbage", `{"args":3}`, `{}`, `{"args":["list"]}`} {
		fmt.Fprintln(conn, line)
		if !answers.Scan() || !json.Valid(answers.Bytes()) {
			t.Fatalf("%s: answer %q, %v", line, answers.Text(), answers.Err())
		}
		if got, want := strings.Contains(answers.Text(), `"error"`), !strings.Contains(line, "list"); got != want {
			t.Errorf("%s: %s", line, answers.Text())
		}
	}
}

func atoi(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
