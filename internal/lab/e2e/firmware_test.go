package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/lab/sim"
	"github.com/ttmon/ttmon/internal/model"
)

// TestFirmwareOff: without being told to, ttmond opens neither a device node nor
// a PCI resource file, nor a configuration space. The simulated host notes every
// open of one.
func TestFirmwareOff(t *testing.T) {
	hermetic.Long(t)
	t.Parallel()
	h := start(t, sim.Options{Boards: "n300,p150a"})
	d := startDaemon(t, h)
	root := func(args ...string) result { return runIn(t, h, args...) }
	beats := uint32(0)
	s := d.until("ttmond has read the devices", root, func(s *model.Snapshot) bool { return device(t, s, 0).Heartbeat.Known() })
	beats = device(t, s, 0).Heartbeat.V
	d.until("ten seconds have passed", root, func(s *model.Snapshot) bool { return device(t, s, 0).Heartbeat.V >= beats+20 })
	for _, args := range [][]string{{"smi"}, {"smi", "-q"}, {"topo"}, {"doctor"}} {
		runIn(t, h, append(args, "--daemon", d.api)...)
		runIn(t, h, append(args, "--direct")...)
	}
	if audit := ctl(t, h, "audit"); strings.Contains(audit, "open ") {
		t.Errorf("ttmond opened:\n%s", audit)
	}
}

// TestFirmwareOffTrace: the same as the kernel sees it. Every process of ttmond is
// traced, from its start.
func TestFirmwareOffTrace(t *testing.T) {
	hermetic.Long(t)
	t.Parallel()
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Fatal("strace is not installed; make test installs it")
	}
	h := start(t, sim.Options{Boards: "n300,p150a"})
	log := filepath.Join(t.TempDir(), "trace")
	d := startDaemonBy(t, h, []string{strace, "-D", "-f", "-qq", "-o", log, "-e", "trace=open,openat,openat2", filepath.Join(bin, "ttmond")}, "--no-uprobe")
	root := func(args ...string) result { return runIn(t, h, args...) }
	s := d.until("ttmond has read the devices", root, func(s *model.Snapshot) bool { return device(t, s, 0).Heartbeat.Known() })
	beats := device(t, s, 0).Heartbeat.V
	d.until("ten samples were taken", root, func(s *model.Snapshot) bool { return device(t, s, 0).Heartbeat.V >= beats+10 })
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	sysfs := 0
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, "tt_heartbeat") {
			sysfs++
		}
		_, path, _ := strings.Cut(line, `"`)
		path, _, _ = strings.Cut(path, `"`)
		base := filepath.Base(path)
		if strings.Contains(path, "/dev/tenstorrent/") || strings.HasPrefix(base, "resource") || base == "config" {
			t.Errorf("opened: %s", line)
		}
	}
	if sysfs == 0 {
		t.Error("the trace does not show the driver's files: this test cannot fail")
	}
}

// TestFirmwareBlackhole: a Blackhole's table by its node, opened with O_APPEND and
// without anything else; a load that does not return costs that chip's values.
func TestFirmwareBlackhole(t *testing.T) {
	hermetic.Long(t)
	t.Parallel()
	h := start(t, sim.Options{Boards: "p150a,p150a"})
	d := startDaemon(t, h, "--firmware", "table")
	root := func(args ...string) result { return runIn(t, h, args...) }
	ok := func(s *model.Snapshot, i int) bool { return device(t, s, i).Telemetry.State == model.TelemetryOK }
	s := d.until("both tables were read", root, func(s *model.Snapshot) bool { return ok(s, 0) && ok(s, 1) })
	one := device(t, s, 1)
	if tel := &one.Telemetry; tel.Way != model.ByNode || !tel.BoardPower.Known() || !tel.MemoryTemperature.Known() || !tel.Clock.Reason.Known() || one.Cores.Nominal {
		t.Errorf("way %q, board power %+v, GDDR %+v, clock %+v, cores %+v", tel.Way, tel.BoardPower, tel.MemoryTemperature, tel.Clock.Reason, one.Cores)
	}
	for line := range strings.Lines(ctl(t, h, "audit")) {
		if !strings.Contains(line, "open O_RDONLY|O_APPEND") || !strings.Contains(line, "ttmond-reader") {
			t.Errorf("opened: %s", line)
		}
	}

	ctl(t, h, "block", "0", "window")
	stalled := d.until("the read is given up", root, func(s *model.Snapshot) bool { return device(t, s, 0).Telemetry.State == model.TelemetryStalled })
	wantState(t, device(t, stalled, 0), model.StateOK)
	at := device(t, stalled, 1).Telemetry.ReadAt
	after := d.until("the other chip is still read", root, func(s *model.Snapshot) bool { return device(t, s, 1).Telemetry.ReadAt.After(at) })
	if device(t, after, 0).Telemetry.State != model.TelemetryStalled {
		t.Errorf("device 0 is %s", device(t, after, 0).Telemetry.State)
	}
	for _, p := range after.Processes {
		for _, u := range p.Devices {
			if u.Device != model.NoDevice {
				t.Errorf("a user of the device: %+v", p)
			}
		}
	}
	ctl(t, h, "release", "0", "window")
	ctl(t, h, "reset", "0", "block=100ms", "window=2s")
	d.until("a reset makes it readable again", root, func(s *model.Snapshot) bool { return ok(s, 0) })
}

// TestFirmwareTable: a Wormhole's table as root, by its PCI file and without
// opening the node; no process is shown as a user of the device.
func TestFirmwareTable(t *testing.T) {
	hermetic.Long(t)
	t.Parallel()
	h := start(t, sim.Options{Boards: "n300,n150", UMDDump: true})
	d := startDaemon(t, h, "--firmware", "table")
	root := func(args ...string) result { return runIn(t, h, args...) }
	read := func(s *model.Snapshot) bool {
		return device(t, s, 0).Telemetry.State == model.TelemetryOK && device(t, s, 1).Telemetry.State == model.TelemetryOK
	}
	s := d.until("both tables were read", root, read)
	one := device(t, s, 1)
	if !one.Telemetry.BoardPower.Known() || one.Cores.Nominal || one.BoardPowerLimit.Nominal || one.Memory.Pools[model.DRAM].Total.Nominal {
		t.Errorf("board power %+v, cores %+v, limit %+v, DRAM %+v", one.Telemetry.BoardPower, one.Cores, one.BoardPowerLimit, one.Memory.Pools[model.DRAM].Total)
	}
	if len(s.Processes) > 0 && len(s.Processes[0].Devices) > 0 && s.Processes[0].Devices[0].Device != model.NoDevice {
		t.Errorf("a user of the device: %+v", s.Processes[0])
	}
	if audit := ctl(t, h, "audit"); !strings.Contains(audit, "open resource4") || strings.Contains(audit, "O_") {
		t.Errorf("opened:\n%s", audit)
	}

	ctl(t, h, "cut", "0", "8")
	down := d.until("the link is down", root, func(s *model.Snapshot) bool { return len(device(t, s, 0).DownPorts()) == 1 })
	if p := device(t, down, 0).DownPorts()[0]; p.Channel != 8 || p.Peer.Name != "R" {
		t.Errorf("down: %+v", p)
	}
	if r := runIn(t, h, "smi", "--daemon", d.api); !strings.Contains(r.out, "weak link") || !strings.Contains(r.out, "0L ↔ 0R channel 8 down (1 of 2 up)") {
		t.Errorf("smi does not say it:\n%s", r.out)
	}
	ctl(t, h, "log", "0", "SMC: link 8 lost")
	d.until("the firmware's line", root, func(s *model.Snapshot) bool {
		return len(s.Log) == 1 && s.Log[0].From == model.LogSMC && s.Log[0].Text == "link 8 lost" && s.Log[0].BusID == device(t, s, 0).BusID
	})
	ctl(t, h, "join", "0", "8")
	d.until("the link is up again", root, func(s *model.Snapshot) bool { return len(device(t, s, 0).DownPorts()) == 0 && read(s) })

	// A load that does not return costs one chip its values, and nothing else.
	ctl(t, h, "block", "0", "resource4")
	stalled := d.until("the read is given up", root, func(s *model.Snapshot) bool { return device(t, s, 0).Telemetry.State == model.TelemetryStalled })
	wantState(t, device(t, stalled, 0), model.StateOK)
	at := device(t, stalled, 1).Telemetry.ReadAt
	after := d.until("the other chip is read on", root, func(s *model.Snapshot) bool { return device(t, s, 1).Telemetry.ReadAt.After(at) })
	if device(t, after, 0).Telemetry.State != model.TelemetryStalled {
		t.Errorf("device 0 is %s", device(t, after, 0).Telemetry.State)
	}
	ctl(t, h, "release", "0", "resource4")
	ctl(t, h, "reset", "0", "block=100ms", "window=2s")
	d.until("a reset makes it readable again", root, func(s *model.Snapshot) bool { return device(t, s, 0).Telemetry.State == model.TelemetryOK })
}
