package sample

import (
	"time"

	"github.com/ttmon/ttmon/internal/model"
)

// Hang makes a device's firmware stop: nothing of it can be read.
func Hang(d *model.Device) {
	d.State, d.StateReason = model.StateHung, model.StateReason{Cause: model.HeartbeatStopped}
	d.ReadAt = Time.Add(-41 * time.Second)
	blank(d, model.Hung, "the firmware does not answer")
	d.HeartbeatAge = model.Value(41.0)
}

// Lose takes a device off the bus.
func Lose(d *model.Device) {
	d.State = model.StateLost
	d.ReadAt = Time.Add(-5 * time.Minute)
	blank(d, model.Lost, "")
	d.HeartbeatAge = model.Missing[float64](model.Lost, "")
	d.PCIe = model.PCIe{}
}

// Reset puts a device into its reset window.
func Reset(d *model.Device) {
	d.State = model.StateResetting
	blank(d, model.Resetting, "")
	d.HeartbeatAge = model.Missing[float64](model.Resetting, "")
}

// blank empties everything that is read from the chip.
func blank(d *model.Device, s model.Status, why string) {
	gone := model.Missing[float64](s, why)
	for _, r := range []*model.Reading[float64]{
		&d.Temperature, &d.Power, &d.Voltage, &d.Current, &d.AICLK, &d.AXICLK, &d.ARCCLK, &d.HeartbeatRate, &d.Activity.Ratio,
	} {
		*r = gone
	}
	if d.Fan.Known() {
		d.Fan = gone
	}
	d.Heartbeat = model.As[uint32](gone)
	d.PCIe.ToDeviceRate, d.PCIe.FromDeviceRate = gone, gone
}

// Troubles is a host where everything is wrong that can be.
func Troubles() *model.Snapshot {
	s := None()
	s.Simulated = true
	s.Host.Unbound = []string{"0000:c1:00.0"}

	hung := P150a(0, 0x01)
	Hang(&hung)
	hung.PCIe.Width, hung.PCIe.Degraded = model.Value(8), model.Value(true)
	deny(&hung)

	lost := P150a(1, 0x02)
	Lose(&lost)

	resetting := N300(2, 0x41)
	Reset(&resetting)
	resetting.HiddenFDs = 2

	hot := P150a(3, 0x42)
	hot.Temperature, hot.ThermalTrips = model.Value(91.2), model.Value(uint32(2))
	hot.PCIe.ToDeviceRate = model.Missing[float64](model.Pending, "needs a second sample")
	hot.PCIe.FromDeviceRate = hot.PCIe.ToDeviceRate
	Allocate(&hot, 6*GiB, 12*MiB)
	hot.Memory.Stale, hot.Chips[0].Memory.Stale = model.ExactBytes(128*MiB), model.ExactBytes(128*MiB)

	old := N150(4, 0x81)
	old.Board, old.Serial = model.Missing[string](model.Absent, "this firmware publishes no board id"), model.Missing[string](model.Absent, "")
	blank(&old, model.Absent, "this firmware publishes no telemetry")
	old.Power = model.Missing[float64](model.Implausible, "the chip said 4294 W")
	old.Memory.Tracking, old.Chips[0].Memory.Tracking = model.TrackUnknown, model.TrackUnknown
	old.Memory.Pools[model.DRAM].Used = model.NoBytes(model.Unsupported)
	old.Memory.Doubts = []model.Doubt{{Kind: model.LayoutUnknown, Region: "/dev/shm/tt_device_9956278472_memory", Version: 5, Chip: old.Chips[0].ID.V}}
	old.PCIe.Gen, old.PCIe.Degraded, old.Firmware.Bundle = model.Value(1), model.Value(true), model.Value("19.8.1.0")

	partial := N150(5, 0x82)
	Allocate(&partial, 2*GiB, 0)
	Doubt(&partial, model.AtLeast)
	partial.Memory.Tracking = model.TrackPartial
	partial.Memory.Doubts = []model.Doubt{{Kind: model.NotAttached, PID: 190013}}
	s.Devices = []model.Device{hung, lost, resetting, hot, old, partial}

	denied := Serve(190011, model.DeviceUse{Device: 0, OpenFDs: model.Missing[int](model.Denied, ""), Tracking: model.TrackDenied})
	denied.User, denied.UID, denied.RSS = model.Value("1000"), model.Value(1000), model.Missing[uint64](model.Denied, "")
	denied.CPU = model.Missing[float64](model.Pending, "needs a second sample")
	for p := range denied.Devices[0].Memory {
		denied.Devices[0].Memory[p] = model.NoBytes(model.Denied)
	}
	hostile := Serve(190012, Use(&hot, 6*GiB, 12*MiB))
	hostile.Name, hostile.Cmdline = model.Value("evil\x1b[2J"), model.Value("\x1b[31mpython3\n\u202egnp.exe \xff --日本語 👩‍👩‍👧")
	silent := Serve(190013, model.DeviceUse{Device: 5, OpenFDs: model.Value(1), Tracking: model.TrackAbsent, Doubts: []model.Doubt{{Kind: model.NotAttached, PID: 190013}}})
	exited := model.Process{PID: 190001, State: model.Exited, Devices: []model.DeviceUse{{Device: 5, OpenFDs: model.Value(1)}}}
	inheritor := Serve(190014, model.DeviceUse{
		Device: 5, OpenFDs: model.Value(1), Inherited: true, Tracking: model.TrackAbsent,
		Doubts: []model.Doubt{{Kind: model.InheritedFromExited, PID: 190001}, {Kind: model.NotTTMetal, PID: 190014}},
	})
	inheritor.Name, inheritor.Cmdline = model.Value("sleep"), model.Value("sleep infinity")
	mock := Serve(190015, model.DeviceUse{
		Device: model.NoDevice, Tracking: model.TrackOK, Source: model.FromShm,
		Memory: model.PoolBytes{model.DRAM: model.ExactBytes(GiB)},
		Chips:  []model.ChipUse{{ChipID: 77, Memory: model.PoolBytes{model.DRAM: model.ExactBytes(GiB)}}},
	})
	hidden := model.Process{State: model.Hidden, Devices: []model.DeviceUse{{Device: 2, OpenFDs: model.Value(2)}}}
	s.Processes = []model.Process{hidden, exited, denied, hostile, silent, inheritor, mock}

	s.StaleSlots = []model.StaleSlot{{
		Region: "/dev/shm/tt_device_274877906947_memory", ChipID: hot.Chips[0].ID.V, Device: 3, PID: 4242, Name: "python",
		Bytes: model.PoolBytes{model.DRAM: model.ExactBytes(128 * MiB)}, Updated: Time.Add(-3 * time.Hour), Mapped: true,
	}}
	stray := chip(77, "", false)
	stray.Region = "/dev/shm/tt_device_77_memory"
	stray.Memory.Tracking = model.TrackOK
	stray.Memory.Pools[model.DRAM].Used = model.ExactBytes(GiB)
	s.Unmatched = []model.Chip{stray}
	return s
}

func deny(d *model.Device) {
	d.Memory.Doubts = []model.Doubt{{Kind: model.RegionDenied, UID: 1000, Region: "/dev/shm/tt_device_274877906944_memory", Chip: d.Chips[0].ID.V}}
	d.Chips[0].Memory.Doubts = d.Memory.Doubts
	d.Memory.Tracking = model.TrackDenied
	d.Chips[0].Memory.Tracking = model.TrackDenied
	for p := range d.Memory.Pools {
		d.Memory.Pools[p].Used = model.NoBytes(model.Denied)
	}
	d.Memory.Stale = model.NoBytes(model.Denied)
}
