package e2e

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/field/wire"
	"github.com/ttmon/ttmon/internal/lab/e2e/ttnn"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/lab/sim"
	"github.com/ttmon/ttmon/internal/model"
)

// prototype is a host of the prototype's users: four Blackhole boards, the old server,
// and links of the old names.
type prototype struct {
	*testing.T
	host   *sim.Host
	daemon *daemon
	names  string // directory of the links
	log    string // of the server
}

func newPrototype(t *testing.T) *prototype {
	t.Helper()
	u := &prototype{T: t, host: start(t, sim.Options{Boards: "4xp150a"}), names: t.TempDir()}
	for _, name := range []string{"allocation_server_poc", "allocation_monitor_client", "tt_smi", "tt_smi_umd", "memory_monitor_test"} {
		if err := os.Symlink(filepath.Join(bin, "ttmon"), filepath.Join(u.names, name)); err != nil {
			t.Fatal(err)
		}
	}
	u.log = filepath.Join(u.names, "log")
	u.daemon = startDaemonBy(t, u.host, []string{"/bin/sh", "-c", `exec "$0" "$@" 2>` + u.log, filepath.Join(u.names, "allocation_server_poc")}, "--config", watchingFromTheStart(t))
	return u
}

// command is a command line that begins with an old name.
func (u *prototype) command(ctx context.Context, line string) *exec.Cmd {
	words := strings.Fields(line)
	cmd := u.host.Command(ctx, filepath.Join(u.names, words[0]), words[1:]...)
	cmd.Env = append(environment(u.T), "TTMON_SOCKET="+u.daemon.api)
	return cmd
}

// run runs a command line to its end.
func (u *prototype) run(line string) result {
	u.Helper()
	ctx, cancel := context.WithTimeout(u.Context(), 5*time.Minute)
	defer cancel()
	return finish(u.T, u.command(ctx, line))
}

// snapshot is what tt_smi shows.
func (u *prototype) snapshot() *model.Snapshot {
	u.Helper()
	r := u.run("tt_smi --json")
	s, err := wire.Decode([]byte(r.out))
	if err != nil {
		u.Fatalf("%v\n%s%s", err, r.out, r.err)
	}
	return s
}

// devicesHold compares what tt_smi shows of each device with what is held there; no other
// pool and device has anything.
func (u *prototype) devicesHold(when string, held map[int]map[model.Pool]uint64) {
	u.Helper()
	for i, d := range u.snapshot().Devices {
		for _, pool := range []model.Pool{model.DRAM, model.L1, model.L1Small, model.Trace} {
			if got := d.Memory.Pools[pool].Used; !got.Exactly(held[i][pool]) {
				u.Errorf("%s: %v of device %d: %+v, %d are held", when, pool, i, got, held[i][pool])
			}
		}
	}
}

// watched lets a command that never ends print until its output matches.
func (u *prototype) watched(line, pattern string) {
	u.Helper()
	ctx, cancel := context.WithTimeout(u.Context(), 5*time.Minute)
	defer cancel()
	cmd := u.command(ctx, line)
	out, err := cmd.StdoutPipe()
	if err != nil {
		u.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		u.Fatal(err)
	}
	defer func() {
		cancel()
		_ = cmd.Wait()
	}()
	found, all := regexp.MustCompile(pattern), strings.Builder{}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		all.WriteString(lines.Text() + "\n")
		if found.MatchString(all.String()) {
			return
		}
	}
	u.Errorf("%s never printed %q but\n%s", line, pattern, all.String())
}

// oldClient is a program of the fork: a client of the old protocol that has devices open.
type oldClient struct {
	cmd *exec.Cmd
	in  io.Writer
	out *bufio.Reader
}

// client starts one that has devices open; it has none where there are none named.
func (u *prototype) client(program, devices string) *oldClient {
	u.Helper()
	line := []string{filepath.Join(bin, "ttmon-sim"), "open", "--devices", devices, "--", program, u.daemon.alloc}
	if devices == "" {
		line = line[5:]
	}
	cmd := u.host.Command(context.Background(), line[0], line[1:]...)
	in, err := cmd.StdinPipe()
	if err != nil {
		u.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		u.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		u.Fatal(err)
	}
	u.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return &oldClient{cmd, in, bufio.NewReader(out)}
}

func (u *prototype) do(c *oldClient, command, want string) {
	u.Helper()
	fmt.Fprintln(c.in, command)
	if line, err := c.out.ReadString('\n'); err != nil || !strings.HasPrefix(strings.TrimSpace(line), want) {
		u.Fatalf("%s: %q, %v", command, line, err)
	}
}

// compiled builds the client of the fork that sends messages of a size.
func (u *prototype) compiled(size int) string {
	u.Helper()
	root, err := ttnn.Repository()
	if err != nil {
		u.Fatal(err)
	}
	if _, err := exec.LookPath("c++"); err != nil {
		u.Skip("no C++ compiler")
	}
	program := filepath.Join(u.names, fmt.Sprint("client", size))
	if out, err := exec.Command("c++", "-O1", "-std=c++17", fmt.Sprint("-DMESSAGE_SIZE=", size), filepath.Join(root, "testdata/oldclients/alloc_client.cpp"), "-o", program).CombinedOutput(); err != nil {
		u.Fatalf("%v\n%s", err, out)
	}
	return program
}

// TestPrototypeUsersDay plays the day of a user of the prototype, by the old names only:
// programs of the fork and an unmodified ttnn program beside the old server, and every
// figure that is shown against what is held.
func TestPrototypeUsersDay(t *testing.T) {
	hermetic.Long(t)
	u := newPrototype(t)
	u.daemon.mustWatch()
	const mib, gib = uint64(1) << 20, uint64(1) << 30

	// In the morning there is nothing.
	for i, d := range u.snapshot().Devices {
		if !d.Memory.Pools[model.DRAM].Used.Exactly(0) || d.Board.V != "p150a" {
			t.Errorf("device %d: %+v", i, d.Memory.Pools[model.DRAM])
		}
	}
	if out := u.run("tt_smi").out; strings.Count(out, "p150a") != 4 || strings.Count(out, "Blackhole") != 4 {
		t.Errorf("four boards are not in\n%s", out)
	}

	// Two programs of the fork, with messages of the newest and of the oldest size.
	a, b := u.client(u.compiled(144), "0"), u.client(u.compiled(72), "1")
	u.do(a, fmt.Sprint("alloc 0 1048576 ", 3*gib, " 0"), "ok")
	u.do(a, fmt.Sprint("alloc 0 8192 ", 20*mib, " 1"), "ok")
	u.do(a, fmt.Sprint("alloc 0 40960 ", 4*mib, " 1"), "ok")
	u.do(a, "free 0 40960", "ok")
	u.do(a, fmt.Sprint("cb_alloc 0 4096 ", 2*mib), "ok")
	u.do(a, fmt.Sprint("load 0 77 ", mib, " 0"), "ok")
	u.do(b, fmt.Sprint("alloc 0 1048576 ", gib, " 0"), "ok")
	u.do(b, "query 0", fmt.Sprint("4 0 ", 4*gib, " ", 20*mib)) // the old server added devices of all programs up by their own numbers
	u.do(a, "query 0", fmt.Sprint("4 0 ", 4*gib, " ", 20*mib, " 0 0 ", 2*mib, " ", mib))
	u.do(a, "info -1", "7 -1")

	// An unmodified ttnn program.
	j := ttnn.Play(t, ttnn.Options{Release: ttnn.Newest, Dir: t.TempDir(), Descriptor: sim.MockDescriptor, Command: inHost(u.host, true)})
	for _, s := range []ttnn.Step{{"do": "open", "l1_small": 32768}, {"do": "alloc", "name": "x", "pool": "dram", "bytes": 64 << 20}, {"do": "alloc", "name": "y", "pool": "l1", "bytes": 1 << 20}} {
		if _, err := j.Do(s); err != nil {
			t.Fatal(err)
		}
	}
	s := u.snapshot()
	for _, c := range []struct {
		pid, device int
		holds       map[model.Pool]uint64
	}{
		{a.cmd.Process.Pid, 0, map[model.Pool]uint64{model.DRAM: 3 * gib, model.L1: 20 * mib, model.CB: 2 * mib, model.Kernel: mib}},
		{b.cmd.Process.Pid, 1, map[model.Pool]uint64{model.DRAM: gib, model.L1: 0}},
		{j.PID, 0, map[model.Pool]uint64{model.DRAM: j.Held["dram"], model.L1: j.Held["l1"]}},
	} {
		t.Run(fmt.Sprint("process ", c.pid), func(t *testing.T) {
			p := processOf(t, s, c.pid)
			i := slices.IndexFunc(p.Devices, func(u model.DeviceUse) bool { return u.Device == c.device })
			if i < 0 {
				t.Fatalf("it does not use device %d: %+v", c.device, p.Devices)
			}
			for pool, n := range c.holds {
				if got := p.Devices[i].Memory[pool]; !got.Exactly(n) {
					t.Errorf("%v: %+v, it holds %d", pool, got, n)
				}
			}
		})
	}
	u.devicesHold("with three programs", map[int]map[model.Pool]uint64{
		0: {model.DRAM: 3*gib + j.Held["dram"], model.L1: 20*mib + j.Held["l1"]}, 1: {model.DRAM: gib},
	})
	for pool, n := range map[model.Pool]uint64{model.CB: 2 * mib, model.Kernel: mib} {
		t.Run(pool.String(), func(t *testing.T) {
			if got, _, known := u.snapshot().Devices[0].Memory.Pools[pool].Used.Best(); !known || got < n {
				t.Errorf("%d of device 0, %d are held", got, n)
			}
		})
	}
	u.do(b, "free 0 1048576", "ok")
	u.do(b, "query 0", fmt.Sprint("4 0 ", 3*gib, " ", 20*mib))
	u.do(b, fmt.Sprint("alloc 0 2097152 ", gib, " 0"), "ok")
	u.watched("allocation_monitor_client -a -r 500", `dram=3\.\d/31\.9GiB`)
	u.watched("allocation_monitor_client -d 1 -r 500", `device=1 dram=~?1\.0/31\.9GiB`)
	u.watched("tt_smi -w -r 500", `(?s)3\.\d/31\.9 GiB.*3\.\d/31\.9 GiB`) // more than once
	if out := u.run("tt_smi -d").out; !strings.Contains(out, "KERNEL") {
		t.Errorf("no details in\n%s", out)
	}
	if out := u.run("tt_smi_umd").out; !strings.Contains(out, "3.0 GiB") {
		t.Errorf("the program of the fork is not in\n%s", out)
	}

	// Any process may report, also one that has no device open: with a doubt.
	c := u.client(u.compiled(144), "")
	u.do(c, fmt.Sprint("alloc 3 1048576 ", gib/2, " 0"), "ok")
	if n, bound, _ := u.snapshot().Devices[3].Memory.Pools[model.DRAM].Used.Best(); n != gib/2 || bound != model.Unsure {
		t.Errorf("a report for a device that is not open: %d %s", n, bound)
	}
	if out := u.run("tt_smi").out; strings.Count(out, "Device open") != 3 || strings.Count(out, "Connected") != 1 {
		t.Errorf("three programs have a device open, one only reports:\n%s", out)
	}
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()

	// A program is killed: it is gone at the next look, and the server says what it held.
	_ = a.cmd.Process.Kill()
	_ = a.cmd.Wait()
	for _, p := range u.snapshot().Processes {
		if p.PID == a.cmd.Process.Pid {
			t.Errorf("listed after its death: %+v", p)
		}
	}
	u.devicesHold("after a program was killed", map[int]map[model.Pool]uint64{0: {model.DRAM: j.Held["dram"], model.L1: j.Held["l1"]}, 1: {model.DRAM: gib}})
	if err := j.End(); err != nil {
		t.Fatal(err)
	}
	_ = b.cmd.Process.Kill()
	_ = b.cmd.Wait()
	u.devicesHold("in the evening", nil)
	if s := u.snapshot(); len(s.Processes) != 0 {
		t.Errorf("listed after all have ended: %+v", s.Processes)
	}
	if out := u.run("tt_smi").out; strings.Contains(out, "Device open") {
		t.Errorf("no program has a device open:\n%s", out)
	}
	if r := u.run("tt_smi -c"); r.code != 0 || !strings.Contains(r.out, "nothing stale") {
		t.Errorf("tt_smi -c: exit code %d\n%s%s", r.code, r.out, r.err)
	}
	log := ""
	for limit := time.Now().Add(time.Minute); time.Now().Before(limit) && !strings.Contains(log, "still allocated"); time.Sleep(20 * time.Millisecond) {
		text, err := os.ReadFile(u.log)
		if err != nil {
			t.Fatal(err)
		}
		log = string(text)
	}
	for _, pattern := range []string{
		`device found index=0 .*board=p150a .*dram_bytes=\d+`, `device found index=3 `, fmt.Sprintf(`process connected pid=%d `, a.cmd.Process.Pid),
		fmt.Sprintf(`process exited pid=%d `, a.cmd.Process.Pid), fmt.Sprintf(`buffers still allocated pid=%d .*bytes=%d`, a.cmd.Process.Pid, 3*gib+23*mib), // with circular buffers and kernels
	} {
		t.Run(pattern, func(t *testing.T) {
			if !regexp.MustCompile(pattern).MatchString(log) {
				t.Errorf("not in the log:\n%s", log)
			}
		})
	}
}

// TestMemoryMonitorTest: allocations that come and go, on boards that are made up and say so.
func TestMemoryMonitorTest(t *testing.T) {
	hermetic.Long(t)
	u := newPrototype(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(u.names, "memory_monitor_test"), "-t", "-r", "200")
	cmd.Env = append(environment(t), "TTMON_SOCKET="+u.daemon.api) // it watches the other boards, which are not to be shown
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	rises, falls, simulated := false, false, false
	for lines := bufio.NewScanner(out); lines.Scan() && !(rises && falls && simulated); {
		rises = rises || strings.Contains(lines.Text(), "dram_change=+")
		falls = falls || strings.Contains(lines.Text(), "dram_change=-")
		simulated = simulated || strings.Contains(lines.Text(), "simulated host")
	}
	cancel()
	_ = cmd.Wait()
	if !rises || !falls || !simulated {
		t.Errorf("rises %v, falls %v, says that it is simulated %v", rises, falls, simulated)
	}
}
