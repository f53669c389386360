package kmd

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ttmon/ttmon/internal/model"
)

func read(r *Reader) Sweep { return r.Read(time.Now().Add(time.Minute)) }

// TestReadWormhole reads what the real driver printed and compares all of it.
func TestReadWormhole(t *testing.T) {
	tr := newTree(t)
	tr.add("wh", 0, 3, "0000:41:00.0")
	r := New(tr.root())
	defer r.Close()
	s := read(r)
	if !s.Loaded || s.Driver.V != "2.10.0" || s.Version != (Version{2, 10, 0}) {
		t.Errorf("driver: %+v", s)
	}
	pend := model.Missing[float64](model.Pending, "needs two samples")
	rate := model.Missing[float64](model.Pending, "a rate needs two samples")
	total := model.Missing[uint64](model.Pending, "totals count from the first sample on")
	none := model.Missing[int](model.Absent, "the kernel shows no link speed of the slot")
	noneWidth := model.Missing[int](model.Absent, "the kernel shows no link width of the slot")
	want := model.Device{
		Index: 0, Path: "/dev/tenstorrent/0", BusID: "0000:41:00.0", Arch: model.Wormhole,
		Board: model.Value("n150"), Serial: model.Value("0100018611905001"), ASICID: model.Value("AABBCCDD11223344"),
		NUMANode: model.Value(0), CPUAffinity: model.Value("0-15"),
		PCIID:       model.PCIID{Vendor: 0x1e52, Device: 0x401e, SubVendor: 0x1e52, SubDevice: 0x18, Revision: 1},
		State:       model.StateOK,
		StateReason: model.StateReason{Cause: model.HeartbeatUnseen},
		Temperature: model.Value(45.5), TemperatureLimit: model.Value(75.0),
		Power: model.Value(42.0), PowerLimit: model.Value(300.0),
		Voltage: model.Value(0.85), VoltageLimit: model.Value(0.95),
		Current: model.Value(37.0), CurrentLimit: model.Value(160.0),
		AICLK: model.Value(500.0), AXICLK: model.Value(900.0), ARCCLK: model.Value(540.0),
		Fan:       model.Missing[float64](model.Absent, "the driver offers no fan speed on wormhole"),
		Heartbeat: model.Value(uint32(12345)), HeartbeatAge: pend, HeartbeatRate: pend,
		ThermalTrips: model.Missing[uint32](model.Absent, "the driver offers no count of thermal trips on wormhole"),
		PCIe: model.PCIe{
			Gen: model.Value(4), GenMax: model.Value(4), Width: model.Value(16), WidthMax: model.Value(16),
			SlotGenMax: none, SlotWidthMax: noneWidth, Degraded: model.Value(false),
			ToDeviceRate: rate, FromDeviceRate: rate, ToDeviceTotal: total, FromDeviceTotal: total,
		},
		Firmware: model.Firmware{
			Bundle: model.Value("18.11.0.0"), ARC: model.Value("2.35.0.0"), ETH: model.Value("6.14.3"),
			M3App: model.Value("5.11.0.0"), M3Bootloader: model.Value("129.2.0.0"), TTFlash: model.Value("3.2.0.0"),
		},
	}
	if diff := cmp.Diff(want, s.Found[0].Device, cmpopts.IgnoreFields(model.Device{}, "ReadAt")); diff != "" {
		t.Errorf("device (-want +got):\n%s", diff)
	}
	if o := s.Found[0].Openers; !o.Known() || len(o.V) != 0 {
		t.Errorf("openers: %+v, want a known, empty list", o)
	}
}

func TestReadBlackhole(t *testing.T) {
	tr := newTree(t)
	tr.add("bh", 7, 0, "0000:01:00.0")
	tr.write("/proc/driver/tenstorrent/7/pids", "191\n191\n0\n12")
	r := New(tr.root())
	defer r.Close()
	f := read(r).Found[0]
	d := f.Device
	if d.Arch != model.Blackhole || d.Fan.V != 3200 || d.ThermalTrips != model.Value(uint32(0)) || d.Board.V != "p150a" {
		t.Errorf("got %+v", d)
	}
	if d.Firmware.ETH.Reason() != "absent: the driver offers no Ethernet firmware version on blackhole" {
		t.Errorf("ETH firmware: %q", d.Firmware.ETH.Reason())
	}
	if diff := cmp.Diff([]int{191, 191, 0, 12}, f.Openers.V); diff != "" {
		t.Errorf("openers (-want +got):\n%s", diff)
	}
}

// TestOldDrivers: what a release does not offer is missing, with the release
// that does.
func TestOldDrivers(t *testing.T) {
	tr := newTree(t)
	tr.write("/sys/module/tenstorrent/version", "1.34")
	b := tr.add("bh", 0, 0, "0000:01:00.0")
	for _, f := range []string{"tt_heartbeat", "tt_asic_id", "tt_therm_trip_count", "pcie_perf_counters"} {
		b.remove(b.class + "/" + f)
	}
	b.remove("/proc/driver/tenstorrent")
	b.remove(b.hwmon + "/temp1_max")
	r := New(tr.root())
	defer r.Close()
	f := read(r).Found[0]
	for got, want := range map[string]string{
		f.Device.Heartbeat.Reason():         "absent: driver 1.34 offers no heartbeat on blackhole, 2.7.0 does",
		f.Device.HeartbeatAge.Reason():      "absent: driver 1.34 offers no heartbeat on blackhole, 2.7.0 does",
		f.Device.ASICID.Reason():            "absent: driver 1.34 offers no ASIC id on blackhole, 2.1.0 does",
		f.Device.TemperatureLimit.Reason():  "absent: driver 1.34 offers no temperature limit on blackhole, 2.9.0 does",
		f.Device.PCIe.ToDeviceRate.Reason(): "absent: driver 1.34 offers no PCIe counters, 2.0.0 does",
		f.Openers.Why:                       "driver 1.34 keeps no list of openers, 2.5.0 does",
	} {
		t.Run(want, func(t *testing.T) {
			if got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
	if f.Device.State != model.StateOK {
		t.Errorf("state %s: %+v", f.Device.State, f.Device.StateReason)
	}
}

// TestWithoutTelemetry is a chip whose firmware publishes nothing.
func TestWithoutTelemetry(t *testing.T) {
	tr := newTree(t)
	b := tr.add("wh", 0, 0, "0000:01:00.0")
	for i := range attrs {
		switch attrs[i].in {
		case inClass:
			b.remove(b.class + "/" + attrs[i].file)
		case inHwmon:
			b.remove(b.hwmon + "/" + attrs[i].file)
		}
	}
	r := New(tr.root())
	defer r.Close()
	d := read(r).Found[0].Device
	if d.State != model.StateUnknown || d.StateReason.Cause != model.NoTelemetry || d.Temperature.Reason() != "absent: the firmware gives the driver no temperature" ||
		d.Serial.Reason() != "absent: the firmware publishes no serial number" {
		t.Errorf("state %s, temperature %q, serial %q", d.State, d.Temperature.Reason(), d.Serial.Reason())
	}
	// Wormhole's files come up to two minutes late.
	b.write(b.class+"/tt_aiclk", "500")
	r.devices["0000:01:00.0"].absentAt = time.Time{}
	if d := read(r).Found[0].Device; d.AICLK != model.Value(500.0) {
		t.Errorf("a file that came late: %+v", d.AICLK)
	}
}

// TestMissingFilesAreLookedFor: often while they may still come, and now and
// then for ever.
func TestMissingFilesAreLookedFor(t *testing.T) {
	begun := time.Now()
	for _, tt := range []struct {
		name      string
		met, last time.Duration // after begun, and the try before
		want      bool
	}{
		{"first read", 0, 0, true},
		{"just tried", time.Second, time.Second, false},
		{"a new device", time.Minute, retryAbsent, true},
		{"settled", settling, retryAbsent, false},
		{"settled, long ago", settling, retryNeverThere, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			now := begun.Add(tt.met)
			d := &device{firstReadAt: begun, absentAt: now.Add(-tt.last)}
			if tt.met == 0 {
				d = &device{}
			}
			if got := d.retry(now); got != tt.want {
				t.Errorf("%v after it was met, %v after the last look: %v", tt.met, tt.last, got)
			}
		})
	}
	d := &device{firstReadAt: begun}
	if d.closeFiles(); !d.firstReadAt.IsZero() {
		t.Error("a device that moved is not read as a new one")
	}
}

// TestDeadChip: all ones are recognised in every kind of file, and the chip
// is then left alone, but for a look now and then.
func TestDeadChip(t *testing.T) {
	tr := newTree(t)
	b := tr.add("bh", 0, 0, "0000:01:00.0")
	r := New(tr.root())
	defer r.Close()
	read(r)
	for file, text := range map[string]string{
		"tt_heartbeat": "4294967295", "tt_aiclk": "4294967295", "tt_axiclk": "4294967295", "tt_arcclk": "4294967295",
		"tt_therm_trip_count": "4294967295", "tt_serial": "FFFFFFFFFFFFFFFF", "tt_asic_id": "FFFFFFFFFFFFFFFF",
		"tt_fw_bundle_ver": "255.255.255.255", "tt_m3app_fw_ver": "255.255.255.255", "tt_card_type": "unknown",
	} {
		b.write(b.class+"/"+file, text)
	}
	for file, text := range map[string]string{
		"temp1_input": "65535999", "temp1_max": "4294966296", "curr1_input": "4294966296", "curr1_max": "4294966296",
		"power1_input": "4293967296", "power1_max": "4293967296", "in0_input": "4294967295", "in0_max": "65535",
		"fan1_input": "4294967295",
	} {
		b.write(b.hwmon+"/"+file, text)
	}
	for _, c := range counterFiles {
		b.write(b.class+"/"+counterDir+"/"+c.file, "4294967295")
	}
	d := r.devices["0000:01:00.0"]
	d.statics = time.Time{}
	for range 3 {
		got := read(r).Found[0].Device
		if got.State != model.StateHung || got.StateReason.Cause != model.AllOnes {
			t.Fatalf("state %s: %+v", got.State, got.StateReason)
		}
		for name, reason := range map[string]string{
			"heartbeat": got.Heartbeat.Reason(), "clock": got.AICLK.Reason(), "temperature": got.Temperature.Reason(),
			"power": got.Power.Reason(), "voltage": got.Voltage.Reason(), "current": got.Current.Reason(),
			"fan": got.Fan.Reason(), "rate": got.PCIe.ToDeviceRate.Reason(), "limit": got.PowerLimit.Reason(),
			"voltage limit": got.VoltageLimit.Reason(), "bundle": got.Firmware.Bundle.Reason(),
		} {
			t.Run(name, func(t *testing.T) {
				if reason != "hung: "+whyOnes {
					t.Errorf("%s: %q", name, reason)
				}
			})
		}
	}
	sensor := slices.IndexFunc(attrs[:], func(a attr) bool { return a.file == "temp1_input" })
	if !d.rests(sensor, time.Now()) {
		t.Error("a dead chip is still asked for everything")
	}
	// Its configuration space answers: now and then there is a look for a sign of life.
	if later := time.Now().Add(2 * restTime); d.rests(firstCounter, later) || !d.rests(sensor, later) {
		t.Error("a chip on the bus is not asked for a sign of life, or for more than that")
	}
	// It does not: nothing reaches the chip any more, also not what is read once a minute.
	b.onesLink()
	read(r)
	d.statics, d.health.restUntil = time.Time{}, time.Time{}
	read(r)
	for i, n := range d.queued {
		if n >= 0 && reachesChip(i) {
			_, name := d.path(i)
			t.Errorf("%s of a chip off the bus is read", name)
		}
	}
	b.write(b.pci+"/current_link_width", "16")
	b.write(b.pci+"/current_link_speed", "16.0 GT/s PCIe")
	read(r)
	// It comes back.
	tr.add2(b, "bh")
	d.health.restUntil = time.Time{}
	read(r)
	if got := read(r).Found[0].Device; got.State != model.StateOK || !got.Temperature.Known() {
		t.Errorf("after its return: state %s, temperature %s", got.State, got.Temperature.Reason())
	}
}

// add2 writes the golden values of a board again.
func (tr *tree) add2(b *card, golden string) {
	for path, text := range goldenFiles(tr.t, golden) {
		path = strings.Replace(path, "/sys/class/tenstorrent/tenstorrent!0", b.class, 1)
		path = strings.Replace(path, "/sys/class/hwmon/hwmon0", b.hwmon, 1)
		if !strings.HasPrefix(path, "/sys/module/") && !strings.HasPrefix(path, "/proc/") {
			tr.write(path, text)
		}
	}
}

// TestHotPlug: a board is known by its PCI address; its index, its hwmon
// number and its very files may change under us.
func TestHotPlug(t *testing.T) {
	tr := newTree(t)
	b := tr.add("bh", 0, 3, "0000:01:00.0")
	tr.add("wh", 1, 4, "0000:02:00.0")
	r := New(tr.root())
	defer r.Close()
	read(r)
	b.remove(b.pci)
	b.remove("/sys/class/tenstorrent/tenstorrent!0")
	s := read(r)
	if d := s.Found[0].Device; d.State != model.StateLost || d.Temperature.Status != model.Lost || d.Serial.V != "0000040211905001" {
		t.Errorf("pulled out: state %s, temperature %q, serial %q", d.State, d.Temperature.Reason(), d.Serial.V)
	} else if r := d.StateReason; r.Cause != model.OffBus || r.Since.IsZero() {
		t.Errorf("pulled out: %+v", r)
	}
	if d := s.Found[1].Device; d.State != model.StateOK {
		t.Errorf("the other board: state %s", d.State)
	}
	tr.add("bh", 5, 9, "0000:01:00.0")
	s = read(r)
	if len(s.Found) != 2 || s.Found[1].Device.Index != 5 || s.Found[1].Device.State != model.StateOK || !s.Found[1].Device.Temperature.Known() {
		t.Errorf("back as number 5: %+v", s.Found[1].Device)
	}
}

// TestHotPlugOfADeadChip: what was remembered of a dead chip is not held against
// the board that takes its place.
func TestHotPlugOfADeadChip(t *testing.T) {
	tr := newTree(t)
	b := tr.add("bh", 0, 3, "0000:01:00.0")
	r := New(tr.root())
	defer r.Close()
	read(r)
	r.devices["0000:01:00.0"].health = health{sweepsOfOnes: onesLimit, restUntil: time.Now().Add(time.Hour)}
	b.remove(b.pci)
	b.remove("/sys/class/tenstorrent/tenstorrent!0")
	read(r)
	tr.add("bh", 0, 3, "0000:01:00.0")
	if d := read(r).Found[0].Device; d.State != model.StateOK || !d.Temperature.Known() {
		t.Errorf("the new board: state %s, temperature %q", d.State, d.Temperature.Reason())
	}
}

// TestClassCannotBeRead: that we cannot look at the moment does not make a
// device lost.
func TestClassCannotBeRead(t *testing.T) {
	const class = "/sys/class/tenstorrent"
	tr := newTree(t)
	tr.add("bh", 0, 3, "0000:01:00.0")
	r := New(tr.root())
	defer r.Close()
	read(r)
	path := tr.root().Path(class)
	if err := os.Rename(path, path+".away"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("tenstorrent", path); err != nil { // to itself: ELOOP
		t.Fatal(err)
	}
	if d := read(r).Found[0].Device; d.State != model.StateOK || !d.Temperature.Known() {
		t.Errorf("state %s: %+v, temperature %q", d.State, d.StateReason, d.Temperature.Reason())
	}
}

// TestOrder: devices are in the order of their kernel index, not of the
// directory or of the text ("10" before "2").
func TestOrder(t *testing.T) {
	tr := newTree(t)
	for i, bdf := range []string{10: "0000:02:00.0", 2: "0000:0a:00.0", 1: "0000:0b:00.0"} {
		if bdf != "" {
			tr.add("wh", i, 20-i, bdf)
		}
	}
	tr.write("/sys/class/tenstorrent/README", "not a device")
	r := New(tr.root())
	defer r.Close()
	var got []int
	for _, f := range read(r).Found {
		got = append(got, f.Device.Index)
	}
	if diff := cmp.Diff([]int{1, 2, 10}, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

func TestNoDriver(t *testing.T) {
	tr := &tree{t, t.TempDir()}
	tr.write("/proc/bus/pci/devices",
		"4100\t1e52401e\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t\n"+
			"4200\t1e52b140\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\ttenstorrent\n"+
			"0010\t80861234\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t")
	r := New(tr.root())
	defer r.Close()
	s := read(r)
	if s.Loaded || s.Driver.Reason() != "absent: the driver is not loaded" || len(s.Found) != 0 {
		t.Errorf("got %+v", s)
	}
	if len(s.Unbound) != 0 {
		t.Errorf("functions that are not on the bus: %v", s.Unbound)
	}
}

// TestUnbound: boards that wait for a driver are named with their domain, and
// the list is as new as what the driver has.
func TestUnbound(t *testing.T) {
	for name, table := range map[string]string{
		"with the kernel's table": "4100\t1e52401e\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t\n",
		"without":                 "",
	} {
		t.Run(name, func(t *testing.T) {
			tr := newTree(t)
			if table != "" {
				tr.write("/proc/bus/pci/devices", table)
			}
			for bdf, vendor := range map[string]string{"0001:41:00.0": "0x1e52", "0000:42:00.0": "0x1e52", "0000:41:00.0": "0x8086"} {
				tr.write("/sys/bus/pci/devices/"+bdf+"/vendor", vendor)
			}
			tr.write("/sys/bus/pci/devices/0000:42:00.0/driver/bind", "")
			r := New(tr.root())
			defer r.Close()
			if diff := cmp.Diff([]string{"0001:41:00.0"}, read(r).Unbound); diff != "" {
				t.Errorf("unbound functions (-want +got):\n%s", diff)
			}
			// The driver takes it.
			tr.write("/sys/bus/pci/devices/0001:41:00.0/driver/bind", "")
			tr.add("bh", 0, 0, "0001:41:00.0")
			if got := read(r).Unbound; len(got) > 0 {
				t.Errorf("%v is bound by now", got)
			}
		})
	}
}

// TestLink: a narrower or slower link is told by numbers ("8" is less than
// "16"), against what both ends can do.
func TestLink(t *testing.T) {
	for _, c := range []struct {
		name, speed, width, slotSpeed, slotWidth string
		want                                     bool
	}{
		{"full", "16.0 GT/s PCIe", "16", "", "", false},
		{"narrow", "16.0 GT/s PCIe", "8", "", "", true},
		{"slow", "2.5 GT/s PCIe", "16", "", "", true},
		{"narrow slot", "16.0 GT/s PCIe", "8", "32.0 GT/s PCIe", "8", false},
		{"slow slot", "8.0 GT/s PCIe", "16", "8.0 GT/s PCIe", "16", false},
		{"slow in a good slot", "8.0 GT/s PCIe", "16", "32.0 GT/s PCIe", "16", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			tr := newTree(t)
			b := tr.add("wh", 0, 0, "0000:01:00.0")
			b.write(b.pci+"/current_link_speed", c.speed)
			b.write(b.pci+"/current_link_width", c.width)
			if c.slotSpeed != "" {
				b.write("/sys/devices/pci0000:40/max_link_speed", c.slotSpeed)
				b.write("/sys/devices/pci0000:40/max_link_width", c.slotWidth)
			}
			r := New(tr.root())
			defer r.Close()
			if got := read(r).Found[0].Device.PCIe.Degraded; got != model.Value(c.want) {
				t.Errorf("degraded: %+v, want %v", got, c.want)
			}
		})
	}
}

// TestDriverMemory reads the files that proposals for the driver name.
func TestDriverMemory(t *testing.T) {
	tr := newTree(t)
	b := tr.add("bh", 0, 0, "0000:01:00.0")
	b.write(b.class+"/memory_stats/dram_used", "4096")
	b.write(b.class+"/memory/dram_used", "1") // another proposal's name for the same
	b.write(b.class+"/memory/l1_used", "lots")
	b.write(b.class+"/processes/17/dram_allocated", "1024")
	b.write(b.class+"/processes/17/l1_allocated", "512")
	b.write(b.class+"/processes/18/dram_allocated", "nonsense")
	r := New(tr.root())
	defer r.Close()
	want := Memory{ByPID: map[int]model.PoolBytes{17: {model.DRAM: model.ExactBytes(1024), model.L1: model.ExactBytes(512)}}}
	want.Used[model.DRAM], want.Used[model.L1] = model.Value(uint64(4096)), model.Missing[uint64](model.Implausible, `the driver printed "lots"`)
	if got := read(r).Found[0].Memory; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestProcessesFile reads the list of processes that proposals have as one file, where
// the driver keeps no list of its own.
func TestProcessesFile(t *testing.T) {
	for name, c := range map[string]struct {
		file string
		want []int
	}{
		"pids":       {"17\n18\n", []int{17, 18}},
		"with names": {"17 python3 model.py\n\n18 cpp app\n", []int{17, 18}},
		"none":       {"", []int{}},
		"nonsense":   {"PID NAME\n17 python3\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			tr := newTree(t)
			b := tr.add("bh", 0, 0, "0000:01:00.0")
			if err := os.RemoveAll(tr.dir + "/proc/driver/tenstorrent/0"); err != nil {
				t.Fatal(err)
			}
			b.write(b.class+"/processes", c.file)
			r := New(tr.root())
			defer r.Close()
			f := read(r).Found[0]
			pids, known := f.Openers.Get()
			if known != (c.want != nil) || f.Once != known || !slices.Equal(pids, c.want) {
				t.Errorf("%+v, once %v; want %v", f.Openers, f.Once, c.want)
			}
		})
	}
}

// TestHwmonMovesAfterTheFirstRound: the files of the first round are not kept
// open, so nothing but their absence says that hwmon has moved.
func TestHwmonMovesAfterTheFirstRound(t *testing.T) {
	tr := newTree(t)
	b := tr.add("bh", 0, 3, "0000:01:00.0")
	r := New(tr.root())
	defer r.Close()
	read(r)
	if err := os.Rename(tr.dir+b.hwmon, tr.dir+b.pci+"/hwmon/hwmon42"); err != nil {
		t.Fatal(err)
	}
	r.devices["0000:01:00.0"].absentAt = time.Time{} // as two seconds later
	if d := read(r).Found[0].Device; d.Temperature != model.Value(45.5) {
		t.Errorf("temperature: %+v", d.Temperature)
	}
}

// TestLongListOfOpeners: a list that does not fit is not shown in part.
func TestLongListOfOpeners(t *testing.T) {
	tr := newTree(t)
	tr.add("bh", 0, 0, "0000:01:00.0")
	r := New(tr.root())
	defer r.Close()
	for lines, known := range map[int]bool{1000: true, 5000: false} {
		t.Run(fmt.Sprint(lines, " openers"), func(t *testing.T) {
			tr.write("/proc/driver/tenstorrent/0/pids", strings.TrimSuffix(strings.Repeat("1234567\n", lines), "\n"))
			if got := read(r).Found[0].Openers; got.Known() != known || known && len(got.V) != lines {
				t.Errorf("%d openers: %d of them, %s", lines, len(got.V), got.Reason())
			}
		})
	}
}

// TestModuleInUse: where the driver keeps no lists, the module's count is asked.
func TestModuleInUse(t *testing.T) {
	for _, c := range []struct {
		name, refcnt string
		list         bool
		want         model.Reading[int]
	}{
		{"with lists", "3", true, model.Missing[int](model.Absent, "the driver lists its openers")},
		{"without", "3", false, model.Value(3)},
		{"nonsense", "many", false, model.Missing[int](model.Implausible, `the kernel printed "many" for the module's use count`)},
	} {
		t.Run(c.name, func(t *testing.T) {
			tr := newTree(t)
			tr.add("wh", 0, 0, "0000:01:00.0")
			tr.write("/sys/module/tenstorrent/refcnt", c.refcnt)
			if !c.list {
				tr.remove("/proc/driver/tenstorrent")
			}
			r := New(tr.root())
			if got := read(r).OpenFDs; got != c.want {
				t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
			}
			r.Close()
		})
	}
}
