// Package sample holds snapshots made by hand: hosts with no, one, four and
// thirty-two devices, and one with every trouble. It is for tests of the
// packages that read snapshots; no program links it.
package sample

import (
	"fmt"
	"time"

	"github.com/ttmon/ttmon/internal/model"
)

// Time is when every sample was taken.
var Time = time.Date(2026, 11, 15, 12, 0, 3, 250e6, time.UTC)

// Sizes.
const (
	KiB = 1 << 10
	MiB = 1 << 20
	GiB = 1 << 30
)

func host() model.Host {
	return model.Host{Name: "lab-3", Kernel: "6.8.0-45-generic", DriverLoaded: true, DriverVersion: model.Value("2.10.1")}
}

// NoDriver is a host whose boards have no driver.
func NoDriver() *model.Snapshot {
	return &model.Snapshot{Time: Time, Source: model.Direct, Host: model.Host{
		Name: "lab-3", Kernel: "6.8.0-45-generic",
		DriverVersion: model.Missing[string](model.Absent, "the tenstorrent module is not loaded"),
		Unbound:       []string{"0000:01:00.0"},
	}}
}

// None is a host with the driver and no board.
func None() *model.Snapshot {
	return &model.Snapshot{Time: Time, Source: model.Direct, Host: host()}
}

// One is a host with one busy p150a.
func One() *model.Snapshot {
	s := None()
	d := P150a(0, 0x01)
	d.Lock = model.ChipLock{Held: model.Value(true), PID: model.Value(182034)}
	Allocate(&d, 10_952_166_604, 38*MiB)
	s.Devices = []model.Device{d}
	s.Processes = []model.Process{Serve(182034, Use(&d, 10_952_166_604, 38*MiB))}
	return s
}

// Four is an n300, two p150a and an n150: the chips of the n300 hold
// different amounts.
func Four() *model.Snapshot {
	s := None()
	n300 := N300(0, 0x01)
	fill(&n300.Chips[0].Memory, 8_697_308_774, 30*MiB)
	fill(&n300.Chips[1].Memory, 2_254_857_830, 8*MiB)
	fill(&n300.Memory, 10_952_166_604, 38*MiB)
	one, two, three := P150a(1, 0x41), P150a(2, 0x42), N150(3, 0x81)
	Allocate(&one, 0, 0)
	Allocate(&two, 512*MiB, 0)
	Allocate(&three, 0, 0)
	Doubt(&two, model.Unsure)
	s.Devices = []model.Device{n300, one, two, three}
	job := Serve(182034, Use(&n300, 10_952_166_604, 38*MiB))
	job.SlurmJob, job.SlurmStep, job.SlurmFrom = "4711", "0", model.JobOfCgroup
	pod := Serve(190011, Use(&two, 512*MiB, 0))
	DoubtUse(&pod, model.Unsure)
	pod.Release = model.Value("0.81.1")
	pod.Doubts = []model.Doubt{
		{Kind: model.OtherThreads, Release: "0.81.1"}, {Kind: model.GraphCapture, Release: "0.81.1"},
	}
	pod.User, pod.UID = model.Value("anna"), model.Value(1000)
	pod.Cmdline = model.Value("python3 train.py --name 日本語 --epochs 3")
	pod.StartTime = Time.Add(-3*time.Minute - 7*time.Second)
	pod.Container = model.Container{Runtime: "containerd", ID: "8c1f0a7be2d94c55", Pod: "6f7d8e9a-1b2c-4d3e-8f90-a1b2c3d4e5f6", Namespace: "ml"}
	s.Processes = []model.Process{job, pod}
	return s
}

// Galaxy is a Wormhole Galaxy: 32 devices in four trays, most of them busy,
// one hung.
func Galaxy() *model.Snapshot {
	s := None()
	p := Serve(182034)
	trays := []int{0xc0, 0x80, 0x00, 0x40}
	for i := range 32 {
		d := wormhole(i, trays[i/8]+1+i%8, "galaxy-wormhole", 80)
		d.Tray, d.Slot = i/8+1, i%8+1
		d.Temperature, d.Power = model.Value(44+float64(i*7%13)), model.Value(48+float64(i*5%23))
		d.PowerLimit = model.Missing[float64](model.Absent, "this firmware publishes no power limit")
		if i < 16 {
			use := uint64(4+i%3) * GiB
			Allocate(&d, use, uint64(i)*MiB)
			p.Devices = append(p.Devices, Use(&d, use, uint64(i)*MiB))
		} else {
			Allocate(&d, 0, 0)
		}
		if i == 10 {
			Hang(&d)
		}
		s.Devices = append(s.Devices, d)
	}
	s.Processes = []model.Process{p}
	return s
}

// P150a is a healthy Blackhole board with its own limits and a fan.
func P150a(index, bus int) model.Device {
	d := device(index, bus, model.Blackhole, "p150a", 0x0040)
	d.ShutdownTemperature = model.NominalValue(110.0)
	d.TemperatureLimit = model.Value(90.0)
	d.PowerLimit, d.BoardPowerLimit = model.Value(150.0), model.NominalValue(300.0)
	d.AICLK, d.AICLKMax = model.Value(1350.0), model.NominalValue(1350.0)
	d.Fan = model.Value(1850.0)
	d.ThermalTrips = model.Value(uint32(0))
	d.Cores = model.NominalValue(120)
	d.Firmware = model.Firmware{Bundle: model.Value("19.4.0.0"), M3App: model.Value("0.23.0.0")}
	d.Firmware.ARC = model.Missing[string](model.Absent, "the driver does not offer it on blackhole")
	d.Firmware.ETH, d.Firmware.M3Bootloader, d.Firmware.TTFlash = d.Firmware.ARC, d.Firmware.ARC, d.Firmware.ARC
	d.PCIe = pcie(5)
	d.Chips = []model.Chip{chip(uint64(0x40_0000_0000)+uint64(index), "", false)}
	capacity(&d, 34_225_520_640, 120*1536*KiB)
	return d
}

// N150 is a healthy Wormhole board with one chip.
func N150(index, bus int) model.Device { return wormhole(index, bus, "n150", 72) }

// N300 is a healthy Wormhole board with two chips.
func N300(index, bus int) model.Device {
	d := wormhole(index, bus, "n300", 64)
	d.Chips = []model.Chip{chip(9956278468, "L", false), chip(26836435012, "R", true)}
	capacity(&d, 12*GiB, 64*1464*KiB)
	return d
}

func wormhole(index, bus int, board string, cores int) model.Device {
	d := device(index, bus, model.Wormhole, board, 0x0018)
	d.TemperatureLimit = model.Value(75.0)
	d.PowerLimit, d.BoardPowerLimit = model.Value(160.0), model.NominalValue(300.0)
	d.AICLK, d.AICLKMax = model.Value(1000.0), model.NominalValue(1000.0)
	d.Fan = model.Missing[float64](model.Absent, "the driver offers no fan on wormhole")
	d.ShutdownTemperature = model.Missing[float64](model.Absent, "the driver does not publish it")
	d.ThermalTrips = model.Missing[uint32](model.Absent, "the driver does not count them on wormhole")
	d.Cores = model.NominalValue(cores)
	d.Firmware = model.Firmware{
		Bundle: model.Value("18.11.0.0"), ARC: model.Value("2.35.0.0"), ETH: model.Value("6.14.3"),
		M3App: model.Value("5.11.0.0"), M3Bootloader: model.Value("129.2.0.0"), TTFlash: model.Value("3.2.0.0"),
	}
	d.PCIe = pcie(4)
	d.Chips = []model.Chip{chip(9956278468+uint64(index), "", false)}
	capacity(&d, 12*GiB, uint64(cores)*1464*KiB)
	return d
}

func device(index, bus int, arch model.Arch, board string, sub uint16) model.Device {
	pci := uint16(0x401e)
	if arch == model.Blackhole {
		pci = 0xb140
	}
	return model.Device{
		Index: index, Path: fmt.Sprintf("/dev/tenstorrent/%d", index), BusID: fmt.Sprintf("0000:%02x:00.0", bus),
		Arch: arch, Board: model.Value(board),
		Serial: model.Value(fmt.Sprintf("01000186119050%02X", index)), ASICID: model.Value(fmt.Sprintf("AABBCCDD112233%02X", index)),
		NUMANode: model.Value(0), CPUAffinity: model.Value("0-31"),
		PCIID: model.PCIID{Vendor: 0x1e52, Device: pci, SubVendor: 0x1e52, SubDevice: sub},
		State: model.StateOK, ReadAt: Time,
		Temperature: model.Value(52.4), Power: model.Value(61.0),
		Voltage: model.Value(0.85), VoltageLimit: model.Value(0.95),
		Current: model.Value(37.0), CurrentLimit: model.Value(160.0),
		AXICLK: model.Value(900.0), ARCCLK: model.Value(540.0),
		Heartbeat: model.Value(uint32(12345)), HeartbeatAge: model.Value(0.1), HeartbeatRate: model.Value(10.0),
		Activity: model.Activity{Ratio: model.Value(0.58), Basis: "power above idle (16 W) up to the limit"},
	}
}

func pcie(gen int) model.PCIe {
	return model.PCIe{
		Gen: model.Value(gen), GenMax: model.Value(gen), Width: model.Value(16), WidthMax: model.Value(16), Degraded: model.Value(false),
		ToDeviceRate: model.Value(1_288_490_188.8), FromDeviceRate: model.Value(325_058_560.0),
		ToDeviceTotal: model.Value(uint64(53_687_091_200)), FromDeviceTotal: model.Value(uint64(9_663_676_416)),
	}
}

func chip(id uint64, name string, remote bool) model.Chip {
	return model.Chip{ID: model.Value(id), Name: name, Remote: remote}
}

// capacity sets the physical sizes; nothing is known to be used yet.
func capacity(d *model.Device, dram, l1 uint64) {
	for i := range d.Chips {
		d.Chips[i].Memory.Tracking = model.TrackAbsent
		d.Chips[i].Memory.Pools[model.DRAM].Total = model.NominalValue(dram)
		d.Chips[i].Memory.Pools[model.L1].Total = model.NominalValue(l1)
	}
	n := uint64(len(d.Chips))
	d.Memory.Tracking = model.TrackAbsent
	d.Memory.Pools[model.DRAM].Total = model.NominalValue(n * dram)
	d.Memory.Pools[model.L1].Total = model.NominalValue(n * l1)
}

// Allocate gives a device of one chip figures for its memory.
func Allocate(d *model.Device, dram, l1 uint64) {
	fill(&d.Memory, dram, l1)
	fill(&d.Chips[0].Memory, dram, l1)
	d.Chips[0].Region = fmt.Sprintf("/dev/shm/tt_device_%d_memory", d.Chips[0].ID.V)
}

func fill(m *model.Memory, dram, l1 uint64) {
	m.Tracking = model.TrackOK
	m.CB = model.CBCached
	m.Stale = model.ExactBytes(0)
	for p, v := range map[model.Pool]uint64{model.DRAM: dram, model.L1: l1, model.L1Small: 0, model.Trace: 0, model.CB: l1 / 32} {
		m.Pools[p].Used = model.ExactBytes(v)
	}
}

// Doubt makes the figures of a device no better than a bound.
func Doubt(d *model.Device, b model.Bound) {
	for p := range d.Memory.Pools {
		d.Memory.Pools[p].Used = d.Memory.Pools[p].Used.Doubted(b)
		for c := range d.Chips {
			d.Chips[c].Memory.Pools[p].Used = d.Chips[c].Memory.Pools[p].Used.Doubted(b)
		}
	}
}

// DoubtUse makes the figures of a process no better than a bound.
func DoubtUse(p *model.Process, b model.Bound) {
	for i := range p.Devices {
		u := &p.Devices[i]
		for pool := range u.Memory {
			u.Memory[pool] = u.Memory[pool].Doubted(b)
			for c := range u.Chips {
				u.Chips[c].Memory[pool] = u.Chips[c].Memory[pool].Doubted(b)
			}
		}
	}
}
