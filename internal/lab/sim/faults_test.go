package sim_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/lab/sim"
)

// reader starts a process that reads a file of the host.
func reader(t *testing.T, h *sim.Host, path string) *exec.Cmd {
	t.Helper()
	cmd := h.Command(context.Background(), "cat", path)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// untilStuck waits until a read is held up, sends the reader SIGKILL, and sees
// that it stays all the same: state D.
func untilStuck(t *testing.T, h *sim.Host, cmd *exec.Cmd) {
	t.Helper()
	until(t, "the read to be held up", func() bool { return strings.Contains(ctl(t, h, "state"), `"waiting": 1`) })
	cmd.Process.Kill()
	until(t, "the reader to be stuck", func() bool { return procState(cmd.Process.Pid) == 'D' })
}

func procState(pid int) byte {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	return string(b)[strings.LastIndexByte(string(b), ')')+2]
}

func wantErr(t *testing.T, h *sim.Host, path string, want error) {
	t.Helper()
	if text, err := read(h, path); !errors.Is(err, want) {
		t.Errorf("reading %s: %q, %v; want %v", path, text, err, want)
	}
}

func TestBlockedReadIgnoresSIGKILL(t *testing.T) {
	t.Parallel()
	h := start(t, sim.Options{Boards: "n150,p150a"})
	ctl(t, h, "block", "0", "tt_aiclk")
	cmd := reader(t, h, class("0", "tt_aiclk"))
	untilStuck(t, h, cmd)
	mustRead(t, h, class("0", "tt_axiclk")) // its neighbours answer
	mustRead(t, h, class("1", "tt_aiclk"))
	ctl(t, h, "release", "0", "tt_aiclk")
	if err := cmd.Wait(); err == nil || cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("the released reader ended with %v, want the SIGKILL it was sent", err)
	}
	if _, err := h.Ctl("release", "0"); err == nil {
		t.Error("releasing what is not blocked succeeded")
	}
}

func TestBlockWholeDeviceForATime(t *testing.T) {
	t.Parallel()
	h := start(t, sim.Options{Boards: "n150"})
	ctl(t, h, "block", "0", "everything", "for=50ms")
	for _, path := range []string{class("0", "tt_heartbeat"), class("0", "pcie_perf_counters/slv_rd_data_word_sent0"), "/proc/driver/tenstorrent/0/pids"} {
		mustRead(t, h, path) // comes back when the time is over
	}
}

func TestCloseFreesBlockedReaders(t *testing.T) {
	t.Parallel()
	h := start(t, sim.Options{Boards: "n150"})
	ctl(t, h, "block", "0")
	cmd := reader(t, h, hwmon(t, h, "0")+"/temp1_input")
	untilStuck(t, h, cmd)
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	cmd.Wait()
}

func TestResetWindow(t *testing.T) {
	t.Parallel()
	h := start(t, sim.Options{Boards: "p150a", Load: 0.5})
	ctl(t, h, "counters", "0", "4000000000")
	kept := openFD(t, h, class("0", "tt_heartbeat"))
	before := number(t, mustRead(t, h, class("0", "tt_heartbeat")))

	ctl(t, h, "block", "0", "telemetry") // so that the reset cannot be over before we look
	ctl(t, h, "reset", "0", "block=10ms", "window=forever")
	cmd := reader(t, h, class("0", "tt_aiclk"))
	untilStuck(t, h, cmd)
	ctl(t, h, "release", "0")
	cmd.Wait()
	until(t, "the window", func() bool { return strings.Contains(ctl(t, h, "list"), "reset-window") })

	if _, err := pread(kept); err != unix.ENODATA {
		t.Errorf("a kept descriptor gives %v in the window, want ENODATA", err)
	}
	wantErr(t, h, hwmon(t, h, "0")+"/temp1_input", syscall.ENODATA)
	if got := mustRead(t, h, hwmon(t, h, "0")+"/temp1_label"); got != "asic_temp\n" {
		t.Errorf("label in the window: %q", got)
	}
	if got := mustRead(t, h, class("0", "pcie_perf_counters/mst_rd_data_word_received0")); got != "4294967295\n" {
		t.Errorf("counter in the window: %q, want all ones: it is not fenced", got)
	}
	if _, err := h.Ctl("reset", "0"); err == nil {
		t.Error("a second reset in the window succeeded")
	}
	ctl(t, h, "post-reset", "0")
	text, err := pread(kept)
	if err != nil {
		t.Fatal(err)
	}
	if after := number(t, text); after >= before {
		t.Errorf("heartbeat went from %d to %d over a reset; it must restart", before, after)
	}
	if n := number(t, mustRead(t, h, class("0", "pcie_perf_counters/slv_rd_data_word_sent0"))); n >= 4000000000 {
		t.Errorf("counter is %d after a reset; it must restart", n)
	}
}

func TestResetByOlderDriverIsNotFenced(t *testing.T) {
	t.Parallel()
	h := start(t, sim.Options{Boards: "p150a", Driver: "2.8.0"})
	ctl(t, h, "reset", "0", "block=1ms", "window=forever")
	if got := mustRead(t, h, class("0", "tt_aiclk")); got != "4294967295\n" {
		t.Errorf("reading during a reset by 2.8: %q, want all ones", got)
	}
}

func TestFailedResetLeavesAllOnes(t *testing.T) {
	t.Parallel()
	h := start(t, sim.Options{Boards: "n150"})
	ctl(t, h, "reset", "0", "block=1ms", "window=1ms", "fail")
	until(t, "the reset to fail", func() bool { return strings.Contains(ctl(t, h, "list"), "dead") })
	if got := mustRead(t, h, class("0", "tt_aiclk")); got != "4294967295\n" {
		t.Errorf("after a failed reset: %q", got)
	}
}

// TestDeadChip checks every sentinel that the real driver gave.
func TestDeadChip(t *testing.T) {
	t.Parallel()
	h := start(t, sim.Options{Boards: "n150,p150a"})
	ctl(t, h, "dead", "all")
	got := make(map[string]string)
	for _, dev := range []string{"0", "1"} {
		for _, dir := range []string{class(dev, ""), hwmon(t, h, dev) + "/", class(dev, "pcie_perf_counters/")} {
			entries, err := os.ReadDir(h.Root() + dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				if n := e.Name(); strings.HasPrefix(n, "tt_") || strings.HasSuffix(n, "_input") || strings.HasSuffix(n, "_max") || strings.Contains(n, "_data_word_") {
					text := strings.TrimSuffix(mustRead(t, h, dir+n), "\n")
					if old, ok := got[n]; ok && old != text {
						t.Errorf("%s is %q on one architecture and %q on the other", n, old, text)
					}
					got[n] = text
				}
			}
		}
	}
	want := map[string]string{
		"tt_serial": "FFFFFFFFFFFFFFFF", "tt_asic_id": "FFFFFFFFFFFFFFFF", "tt_eth_fw_ver": "255.15.4095", "tt_card_type": "unknown",
		"temp1_input": "65535999", "temp1_max": "4294966296", "curr1_input": "4294966296", "curr1_max": "4294966296",
		"power1_input": "4293967296", "power1_max": "4293967296", "in0_input": "4294967295", "in0_max": "65535", "fan1_input": "4294967295",
	}
	for n := range got {
		if _, ok := want[n]; ok {
			continue
		}
		want[n] = "4294967295"
		if strings.HasSuffix(n, "_ver") {
			want[n] = "255.255.255.255"
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("sentinels (-driver +simulated):\n%s", diff)
	}
	ctl(t, h, "alive", "all")
	if text := mustRead(t, h, class("0", "tt_card_type")); text != "n150\n" {
		t.Errorf("alive again: %q", text)
	}
}

func TestHungFirmware(t *testing.T) {
	t.Parallel()
	h := start(t, sim.Options{Boards: "p150a", Load: 1})
	beat := func() uint64 { return number(t, mustRead(t, h, class("0", "tt_heartbeat"))) }
	first := beat()
	until(t, "the heart to beat", func() bool { return beat() != first })
	ctl(t, h, "hang", "0")
	stopped, temp := beat(), mustRead(t, h, hwmon(t, h, "0")+"/temp1_input")
	counter := func() uint64 {
		return number(t, mustRead(t, h, class("0", "pcie_perf_counters/slv_rd_data_word_sent0")))
	}
	c := counter()
	ctl(t, h, "advance", "1m")
	if got := beat(); got != stopped {
		t.Errorf("heartbeat of hung firmware went from %d to %d", stopped, got)
	}
	if got := mustRead(t, h, hwmon(t, h, "0")+"/temp1_input"); got != temp {
		t.Errorf("temperature of hung firmware went from %q to %q", temp, got)
	}
	if counter() == c {
		t.Error("PCIe counters stand still; they are hardware and must count on")
	}
	ctl(t, h, "unhang", "0")
	until(t, "the heart to beat again", func() bool { return beat() != stopped })
}

func TestUnplugAndReplug(t *testing.T) {
	t.Parallel()
	h := start(t, sim.Options{Boards: "n150,p150a", Procs: []string{"name=holder,devices=1"}})
	attr, mon := openFD(t, h, class("1", "tt_aiclk")), openFD(t, h, hwmon(t, h, "1")+"/temp1_input")
	serial := mustRead(t, h, class("1", "tt_serial"))
	oldMon := hwmon(t, h, "1")
	ctl(t, h, "unplug", "1")
	for _, fd := range []int{attr, mon} {
		if _, err := pread(fd); err != unix.ENODEV {
			t.Errorf("a kept descriptor of a pulled device gives %v, want ENODEV", err)
		}
	}
	for _, path := range []string{
		class("1", "tt_aiclk"), oldMon + "/name", "/sys/bus/pci/devices/0000:42:00.0/vendor",
		"/sys/bus/pci/drivers/tenstorrent/0000:42:00.0/vendor", "/proc/driver/tenstorrent/1/pids", "/dev/tenstorrent/1",
	} {
		wantErr(t, h, path, fs.ErrNotExist)
	}
	mustRead(t, h, class("0", "tt_aiclk"))
	ctl(t, h, "plug", "0000:42:00.0", "index=5", "hwmon=9")
	if got := mustRead(t, h, class("5", "tt_serial")); got != serial {
		t.Errorf("serial changed from %q to %q by replugging", serial, got)
	}
	if got := hwmon(t, h, "5"); !strings.HasSuffix(got, "/hwmon9") {
		t.Errorf("hwmon after replugging: %s", got)
	}
	mustRead(t, h, "/sys/class/hwmon/hwmon9/temp1_input")
	if got := mustRead(t, h, "/proc/driver/tenstorrent/5/pids"); got != "" {
		t.Errorf("the new binding knows openers of the old one: %q", got)
	}
	if _, err := pread(attr); err != unix.ENODEV {
		t.Errorf("the kept descriptor gives %v after replugging, want ENODEV for ever", err)
	}
	if got := mustRead(t, h, "/sys/module/tenstorrent/refcnt"); got != "1\n" {
		t.Errorf("refcnt %q, want 1: the holder's dead descriptor still pins the module", got)
	}
}

func TestTelemetryComesLate(t *testing.T) {
	t.Parallel()
	h := start(t, sim.Options{Boards: "n150"})
	ctl(t, h, "unplug", "0")
	ctl(t, h, "plug", "0000:41:00.0", "late=forever")
	checkNames(t, h, class("0", ""), "dev device pcie_perf_counters power subsystem uevent")
	wantErr(t, h, class("0", "device/hwmon"), fs.ErrNotExist)
	ctl(t, h, "unplug", "0")
	ctl(t, h, "plug", "0000:41:00.0", "late=20ms")
	until(t, "the telemetry", func() bool { _, err := read(h, class("0", "tt_serial")); return err == nil })
	hwmon(t, h, "0")
}

func TestOpenWaitsForAReset(t *testing.T) {
	t.Parallel()
	h := start(t, sim.Options{Boards: "n150"})
	ctl(t, h, "reset", "0", "block=1h")
	cmd := reader(t, h, "/dev/tenstorrent/0")
	untilStuck(t, h, cmd)
	ctl(t, h, "unplug", "0") // ends whatever holds up
	cmd.Wait()
}

func TestLastUnplugRemovesDevDirectory(t *testing.T) {
	t.Parallel()
	h := start(t, sim.Options{Boards: "n150"})
	ctl(t, h, "unplug", "0")
	if _, err := os.Stat(h.Root() + "/dev/tenstorrent"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("/dev/tenstorrent without a device: %v", err)
	}
	ctl(t, h, "plug", "0000:41:00.0")
	if _, err := os.Stat(h.Root() + "/dev/tenstorrent/0"); err != nil {
		t.Error(err)
	}
}

func TestValuesByHand(t *testing.T) {
	t.Parallel()
	h := start(t, sim.Options{Boards: "n150", Frozen: true})
	temp := hwmon(t, h, "0") + "/temp1_input"
	natural := mustRead(t, h, temp)
	ctl(t, h, "set", "0", "temp1_input", "65531500")
	if got := mustRead(t, h, temp); got != "65531500\n" {
		t.Errorf("set text reads %q", got)
	}
	ctl(t, h, "clear", "0", "temp1_input")
	ctl(t, h, "word", "0", "11", "0xFFFB8000") // -4.5 °C
	if got := mustRead(t, h, temp); got != "65531500\n" {
		t.Errorf("-4.5 °C reads %q", got)
	}
	ctl(t, h, "word", "0", "11", "clear")
	if got := mustRead(t, h, temp); got != natural {
		t.Errorf("frozen value went from %q to %q", natural, got)
	}
	ctl(t, h, "fail", "0", "tt_aiclk", "EINVAL")
	wantErr(t, h, class("0", "tt_aiclk"), syscall.EINVAL)
	ctl(t, h, "clear", "0")
	mustRead(t, h, class("0", "tt_aiclk"))
	ctl(t, h, "omit", "0", "14")
	wantErr(t, h, class("0", "tt_aiclk"), syscall.ENODATA)
	ctl(t, h, "drop", "0", "tt_heartbeat")
	wantErr(t, h, class("0", "tt_heartbeat"), fs.ErrNotExist)
	ctl(t, h, "link", "0", "gen=3", "width=8")
	if got := mustRead(t, h, class("0", "device/current_link_speed")) + mustRead(t, h, class("0", "device/current_link_width")); got != "8.0 GT/s PCIe\n8\n" {
		t.Errorf("degraded link reads %q", got)
	}
}

func TestCountersWrap(t *testing.T) {
	t.Parallel()
	h := start(t, sim.Options{Boards: "p150a", Frozen: true})
	file := class("0", "pcie_perf_counters/slv_rd_data_word_sent0")
	ctl(t, h, "traffic", "0", "to=32000000", "from=0")
	ctl(t, h, "counters", "0", "4294967290")
	if got := mustRead(t, h, file); got != "4294967290\n" {
		t.Fatalf("set counter reads %q", got)
	}
	ctl(t, h, "advance", "10s")
	// 320 MB in words of 32 bytes, of which the chip's reads over NOC 0 are 0.64 × 0.6.
	const want uint64 = 4294967290 + 10e6*0.64*0.6 - 1<<32
	if got := number(t, mustRead(t, h, file)); got < want-1 || got > want {
		t.Errorf("after the wrap: %d, want %d", got, want)
	}
	if got := mustRead(t, h, class("0", "pcie_perf_counters/slv_posted_wr_data_word_received0")); got != "4294967290\n" {
		t.Errorf("counter without traffic moved to %q", got)
	}
}

func number(t *testing.T, text string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(strings.TrimSuffix(text, "\n"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
