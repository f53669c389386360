// Package tuitest makes up hosts for the tests of the terminal screens: any
// number of devices whose values move, and one of each kind of trouble. What
// it returns depends on its arguments alone. Only tests import it.
package tuitest

import (
	"fmt"
	"math"
	"time"

	"github.com/ttmon/ttmon/internal/model"
)

// Start is the time of the first snapshot.
var Start = time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)

const (
	mib = 1 << 20
	gib = 1 << 30
)

// Host is a made-up host with n devices, second s after Start. From four
// devices on it has some trouble. 32 devices are a Galaxy of four trays.
func Host(n, s int) *model.Snapshot { return host(n, s, n >= 4) }

func host(n, s int, ill bool) *model.Snapshot {
	now := Start.Add(time.Duration(s) * time.Second)
	snap := &model.Snapshot{
		Time: now, Source: model.Direct,
		Host: model.Host{
			Name: "lab-3", Kernel: "6.8.0", DriverLoaded: true, DriverVersion: model.Value("2.10.1"),
			CPU: model.Value(12 + 10*wave(3, s)), Load: model.Value(3.4), MemoryUsed: model.Value[uint64](61 * gib), MemoryTotal: model.Value[uint64](252 * gib),
		},
	}
	for i := range n {
		snap.Devices = append(snap.Devices, device(n, i, s, now))
	}
	if ill && n > 0 {
		trouble(snap, n, now)
	}
	snap.Processes = processes(snap, s, now)
	share(snap)
	return snap
}

// Well is a host with n devices of which none is in trouble.
func Well(n, s int) *model.Snapshot { return host(n, s, false) }

// Ill is a host with n devices of which some are in trouble: the last one is
// hung, and from eight on one resets.
func Ill(n, s int) *model.Snapshot { return host(n, s, true) }

// wave moves between 0 and 1, differently for each device.
func wave(i, s int) float64 { return 0.5 + 0.5*math.Sin(float64(s)/20+float64(i)) }

type boardFacts struct {
	name     string
	arch     model.Arch
	chips    int
	dram     uint64
	l1       uint64
	power    float64
	clock    float64
	fan      bool
	gen      int
	shutdown float64
}

var boards = []boardFacts{
	{"n300", model.Wormhole, 2, 24 * gib, 2 * 64 * 1464 * 1024, 160, 1000, false, 4, 95},
	{"p150a", model.Blackhole, 1, 32 * gib, 140 * 1464 * 1024, 300, 1350, true, 5, 110},
	{"n150", model.Wormhole, 1, 12 * gib, 72 * 1464 * 1024, 160, 1000, false, 4, 95},
	{"p150a", model.Blackhole, 1, 32 * gib, 140 * 1464 * 1024, 300, 1350, true, 5, 110},
}

var galaxy = boardFacts{"tt-galaxy-wh", model.Wormhole, 1, 12 * gib, 80 * 1464 * 1024, 80, 1000, false, 4, 95}

func device(n, i, s int, now time.Time) model.Device {
	b := boards[i%len(boards)]
	if n == 1 {
		b = boards[1]
	}
	if n >= 32 {
		b = galaxy
	}
	w := wave(i, s)
	d := model.Device{
		Index: i, Path: fmt.Sprintf("/dev/tenstorrent/%d", i), BusID: fmt.Sprintf("0000:%02x:00.0", i+1), Arch: b.arch,
		Board: model.Value(b.name), Serial: model.Value(fmt.Sprintf("01000111117%05X", i)), ASICID: model.Value(fmt.Sprintf("9D4A0000000%05X", i)),
		NUMANode: model.Value(i / 16), State: model.StateOK, ReadAt: now,
		Temperature: model.Value(45 + 20*w), TemperatureLimit: model.Value(75.0), ShutdownTemperature: model.NominalValue(b.shutdown),
		Power: model.Value(math.Round(b.power * (0.1 + 0.4*w))), PowerLimit: model.Value(b.power),
		Voltage: model.Value(0.80), VoltageLimit: model.Value(0.95), Current: model.Value(math.Round(b.power * (0.1 + 0.4*w) / 0.8)), CurrentLimit: model.Value(240.0),
		AICLK: model.Value(b.clock), AICLKMax: model.Value(b.clock), AXICLK: model.Value(900.0), ARCCLK: model.Value(540.0),
		Fan:       model.Missing[float64](model.Absent, "the driver offers no fan on wormhole"),
		Heartbeat: model.Value(uint32(1000 + 10*s)), HeartbeatAge: model.Value(0.0), HeartbeatRate: model.Value(10.0), ThermalTrips: model.Value(uint32(0)),
		Activity: model.Activity{Ratio: model.Value(w), Basis: "power above idle"},
		PCIe: model.PCIe{
			Gen: model.Value(b.gen), GenMax: model.Value(b.gen), Width: model.Value(16), WidthMax: model.Value(16), Degraded: model.Value(false),
			ToDeviceRate: model.Value(w * 1.2 * gib), FromDeviceRate: model.Value(w * 310 * mib),
			ToDeviceTotal: model.Value(uint64(s) * gib), FromDeviceTotal: model.Value(uint64(s) * 300 * mib),
		},
		Firmware: model.Firmware{Bundle: model.Value("19.4.0.0"), ARC: model.Value("2.29.0.0"), ETH: model.Value("7.0.0")},
		Cores:    model.NominalValue(64),
	}
	if b.fan {
		d.Fan = model.Value(1800 + math.Round(400*w))
	}
	if n >= 32 {
		d.Tray, d.Slot = i/8+1, i%8+1
	}
	for c := range b.chips {
		chip := model.Chip{ID: model.Value(uint64(9956278468 + 16*i + c)), Remote: c > 0}
		if b.chips > 1 {
			chip.Name = []string{"L", "R"}[c]
		}
		chip.Memory.Tracking = model.TrackOK
		chip.Memory.CB = model.CBCached
		chip.Memory.Pools[model.DRAM].Total = model.Value(b.dram / uint64(b.chips))
		chip.Memory.Pools[model.L1].Total = model.Value(b.l1 / uint64(b.chips))
		for p := range chip.Memory.Pools {
			chip.Memory.Pools[p].Used = model.ExactBytes(0)
		}
		d.Chips = append(d.Chips, chip)
	}
	return d
}

// trouble gives the last devices one kind each.
func trouble(s *model.Snapshot, n int, now time.Time) {
	hung := &s.Devices[min(n-1, 10)]
	gone := func(d *model.Device, st model.Status) {
		miss := model.Missing[float64](st, "")
		for _, r := range []*model.Reading[float64]{
			&d.Temperature, &d.Power, &d.Voltage, &d.Current, &d.AICLK, &d.AXICLK, &d.ARCCLK, &d.Fan, &d.HeartbeatRate, &d.Activity.Ratio,
			&d.PCIe.ToDeviceRate, &d.PCIe.FromDeviceRate,
		} {
			*r = miss
		}
	}
	hung.State, hung.StateReason = model.StateHung, model.StateReason{Cause: model.HeartbeatStopped}
	hung.HeartbeatAge = model.Value(41.0)
	gone(hung, model.Hung)
	hung.PCIe.Width, hung.PCIe.Degraded = model.Value(8), model.Value(true)
	if n >= 8 {
		r := &s.Devices[5]
		r.State = model.StateResetting
		gone(r, model.Resetting)
	}
	s.StaleSlots = []model.StaleSlot{{
		Region: "/dev/shm/tt_device_1_memory", ChipID: 9956278468, Device: min(2, n-1), PID: 4242, Name: "python",
		Bytes: model.PoolBytes{model.DRAM: model.ExactBytes(128 * mib)}, Updated: now.Add(-3 * time.Hour),
	}}
}

func processes(s *model.Snapshot, sec int, now time.Time) []model.Process {
	n := len(s.Devices)
	if n == 0 {
		return nil
	}
	run := func(pid, ppid int, user, name, cmd string, age time.Duration, cpu float64, rss uint64) model.Process {
		return model.Process{
			PID: pid, PPID: ppid, StartTicks: uint64(pid) * 7, StartTime: now.Add(-age), State: model.Running,
			UID: model.Value(1000), User: model.Value(user), Name: model.Value(name), Cmdline: model.Value(cmd),
			CPU: model.Value(cpu), RSS: model.Value(rss), Threads: model.Value(14), Release: model.Value("0.62.1"),
		}
	}
	serve := run(182034, 900, "root", "python3", "python3 serve.py --model llama-70b --max-batch 32 --port 8000", 2*time.Hour+14*time.Minute+time.Duration(sec)*time.Second, 98+float64(sec%5), 14*gib)
	serve.SlurmJob, serve.SystemdUnit = "4711", "slurmstepd.scope"
	bench := run(183377, 182034, "alice", "python3", "python3 bench.py", 41*time.Minute+time.Duration(sec)*time.Second, 12.4, 2*gib)
	bench.Container = model.Container{Runtime: "docker", ID: "3f1c9b0a77de4c53a1b2c3d4e5f60718293a4b5c6d7e8f901234567890abcdef"}
	list := []model.Process{serve, bench}
	// One of a release that is counted whole, one of a release that is not.
	use(&list[0], s, 0, (n+1)/2, 6*gib+uint64(wave(0, sec)*2*gib), 30*mib, model.Exact)
	use(&list[1], s, n/2, n, 2*gib, 8*mib, model.Unsure)
	list[1].Release = model.Value("0.81.1")
	list[1].Doubts = []model.Doubt{{Kind: model.OtherThreads, Release: "0.81.1"}, {Kind: model.GraphCapture, Release: "0.81.1"}}
	if n >= 4 {
		denied := run(190011, 1, "bob", "python3", "python3 train.py", 3*time.Minute, 55, 800*mib)
		denied.Devices = []model.DeviceUse{{Device: n - 1, OpenFDs: model.Value(1), Tracking: model.TrackDenied}}
		for p := range denied.Devices[0].Memory {
			denied.Devices[0].Memory[p] = model.NoBytes(model.Denied)
		}
		list = append(list, denied)
	}
	return list
}

// use lets a process hold memory on the devices from..to.
func use(p *model.Process, s *model.Snapshot, from, to int, dram, l1 uint64, bound model.Bound) {
	for i := from; i < to; i++ {
		d := &s.Devices[i]
		u := model.DeviceUse{Device: i, OpenFDs: model.Value(2), Tracking: model.TrackOK, Source: model.FromShm}
		for c := range d.Chips {
			var b model.PoolBytes
			for q, n := range [model.NumPools]uint64{
				model.DRAM: dram / uint64(c+1), model.L1: l1 / uint64(c+1), model.L1Small: 2 * mib,
				model.Trace: 64 * mib, model.CB: 1363148, model.Kernel: 410 << 10,
			} {
				b[q] = model.BoundBytes(n, bound)
			}
			u.Chips = append(u.Chips, model.ChipUse{ChipID: d.Chips[c].ID.V, Memory: b})
			for q := range b {
				u.Memory[q] = b[q]
				if c > 0 {
					u.Memory[q] = model.AddUp(u.Chips[0].Memory[q], b[q])
				}
			}
		}
		p.Devices = append(p.Devices, u)
	}
}

// share adds what processes hold up to the devices' figures.
func share(s *model.Snapshot) {
	for i := range s.Processes {
		for _, u := range s.Processes[i].Devices {
			d := &s.Devices[u.Device]
			if u.Tracking == model.TrackDenied {
				d.Chips[0].Memory.Tracking = model.TrackDenied
				continue
			}
			for c := range u.Chips {
				for q, held := range u.Chips[c].Memory {
					pool := &d.Chips[c].Memory.Pools[q]
					pool.Used = model.AddUp(pool.Used, held)
				}
			}
		}
	}
	for i := range s.Devices {
		d := &s.Devices[i]
		d.Memory.Tracking = model.TrackOK
		d.Memory.CB = model.CBCached
		for c := range d.Chips {
			m := &d.Chips[c].Memory
			if m.Tracking == model.TrackDenied {
				d.Memory.Tracking = model.TrackDenied
				for p := range m.Pools {
					m.Pools[p].Used = model.NoBytes(model.Denied)
				}
			}
			for p := range m.Pools {
				sum(&d.Memory.Pools[p].Total, m.Pools[p].Total)
			}
		}
		for p := range d.Memory.Pools {
			var used model.Sum
			for c := range d.Chips {
				used.Add(d.Chips[c].Memory.Pools[p].Used)
			}
			d.Memory.Pools[p].Used = used.Bytes()
		}
	}
	for _, g := range s.StaleSlots {
		s.Devices[g.Device].Memory.Stale = g.Bytes[model.DRAM]
		s.Devices[g.Device].Chips[0].Memory.Stale = g.Bytes[model.DRAM]
	}
}

func sum(to *model.Reading[uint64], r model.Reading[uint64]) {
	switch {
	case !r.Known():
		*to = r
	case !to.Known():
		*to = r
	default:
		to.V += r.V
	}
}
