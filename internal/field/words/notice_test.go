package words_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
)

var now = time.Date(2026, 11, 15, 12, 0, 3, 0, time.UTC)

func healthy(index int) model.Device {
	return model.Device{
		Index: index, Arch: model.Blackhole, Board: model.Value("p150a"), State: model.StateOK, ReadAt: now,
		Temperature: model.Value(38.0), TemperatureLimit: model.Value(90.0), ThermalTrips: model.Value(uint32(0)),
		PCIe: model.PCIe{Gen: model.Value(5), GenMax: model.Value(5), Width: model.Value(16), WidthMax: model.Value(16), Degraded: model.Value(false)},
	}
}

func TestNoticesOfOneDevice(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*model.Snapshot, *model.Device)
		want   string
	}{
		{"healthy", func(*model.Snapshot, *model.Device) {}, ""},
		{"hung with its heartbeat", func(_ *model.Snapshot, d *model.Device) {
			d.State, d.HeartbeatAge = model.StateHung, model.Value(41.2)
		}, "device 0: hung → tt-smi -r /dev/tenstorrent/0"},
		{"hung for a reason", func(_ *model.Snapshot, d *model.Device) {
			d.State, d.StateReason, d.HeartbeatAge = model.StateHung, model.StateReason{Cause: model.HeartbeatStopped}, model.Value(41.2)
		}, "device 0: hung for 41 s: firmware heartbeat stopped → tt-smi -r /dev/tenstorrent/0"},
		{"lost", func(_ *model.Snapshot, d *model.Device) {
			d.State, d.ReadAt = model.StateLost, now.Add(-5*time.Minute)
		}, "device 0: lost → check power and seating, reboot; see dmesg"},
		{"resetting, never read", func(_ *model.Snapshot, d *model.Device) {
			d.State, d.ReadAt = model.StateResetting, time.Time{}
		}, "device 0: resetting → wait; if it lasts: tt-smi -r /dev/tenstorrent/0"},
		{"narrow link", func(_ *model.Snapshot, d *model.Device) {
			d.PCIe.Width, d.PCIe.Degraded = model.Value(8), model.Value(true)
		}, "device 0: slow link: Gen5 x8 instead of Gen5 x16 → reseat the board, check the slot"},
		{"the slot is the narrower end", func(_ *model.Snapshot, d *model.Device) {
			d.PCIe.SlotGenMax, d.PCIe.SlotWidthMax = model.Value(4), model.Value(16)
			d.PCIe.Gen, d.PCIe.Degraded = model.Value(3), model.Value(true)
		}, "device 0: slow link: Gen3 x16 instead of Gen4 x16 → reseat the board, check the slot"},
		{"idle Gen1 of Wormhole 19.8 is no fault", func(_ *model.Snapshot, d *model.Device) {
			d.Arch, d.Firmware.Bundle = model.Wormhole, model.Value("19.8.0.0")
			d.PCIe.Gen, d.PCIe.Degraded = model.Value(1), model.Value(true)
		}, ""},
		{"Gen1 of Wormhole 19.9 is one", func(_ *model.Snapshot, d *model.Device) {
			d.Arch, d.Firmware.Bundle = model.Wormhole, model.Value("19.9.0.0")
			d.PCIe.Gen, d.PCIe.Degraded = model.Value(1), model.Value(true)
		}, "device 0: slow link: Gen1 x16 instead of Gen5 x16 → reseat the board, check the slot"},
		{"narrow and Gen1 on 19.8 is one too", func(_ *model.Snapshot, d *model.Device) {
			d.Arch, d.Firmware.Bundle = model.Wormhole, model.Value("19.8.0.0")
			d.PCIe.Gen, d.PCIe.Width, d.PCIe.Degraded = model.Value(1), model.Value(4), model.Value(true)
		}, "device 0: slow link: Gen1 x4 instead of Gen5 x16 → reseat the board, check the slot"},
		{
			"hot", func(_ *model.Snapshot, d *model.Device) { d.Temperature = model.Value(91.0) },
			"device 0: hot: 91 °C (limit 90) → check fans and airflow",
		},
		{
			"tripped", func(_ *model.Snapshot, d *model.Device) { d.ThermalTrips = model.Value(uint32(2)) },
			"device 0: shut down for heat 2 times since power-on",
		},
		{
			"denied", func(_ *model.Snapshot, d *model.Device) { d.Memory.Tracking = model.TrackDenied },
			"device 0: memory of other users is hidden; start ttmond, or run as root",
		},
		{
			"denied to ttmond", func(s *model.Snapshot, d *model.Device) {
				s.Source, d.Memory.Tracking = model.Daemon, model.TrackDenied
			}, "device 0: memory of other users is hidden; ttmond needs root's CAP_SYS_PTRACE for that",
		},
		{"a doubt says it better than the tracking", func(s *model.Snapshot, d *model.Device) {
			d.Memory.Tracking = model.TrackPartial
			d.Memory.Doubts = []model.Doubt{{Kind: model.NotAttached, PID: 4242}}
			s.Processes = []model.Process{{PID: 4242, State: model.Running, Name: model.Value("raw\x1b"), Devices: []model.DeviceUse{{}}}}
		}, `device 0: process 4242 raw\x1b: uses tt-metal but accounts nowhere, not in the figures`},
		{"the same of five processes is said once", func(s *model.Snapshot, d *model.Device) {
			d.Memory.Tracking = model.TrackPartial
			for pid := range 5 {
				d.Memory.Doubts = append(d.Memory.Doubts, model.Doubt{Kind: model.ProcessDenied, PID: 10 + pid, UID: 1000})
			}
		}, "device 0: processes 10, 11, 12 and 2 more: uid 1000's, and cannot be read: not in the figures; start ttmond, or run as root"},
		{"a doubt of a process's figures", func(s *model.Snapshot, d *model.Device) {
			d.Memory.Tracking = model.TrackOK
			s.Processes = []model.Process{{PID: 7, State: model.Running, Name: model.Value("py"), Devices: []model.DeviceUse{{
				Doubts: []model.Doubt{{Kind: model.EventsLost, Count: 3}},
			}}}}
		}, "device 0: process 7 py: 3 events of its allocator were lost"},
		{"a kind of a newer ttmond", func(_ *model.Snapshot, d *model.Device) {
			d.Doubts = []model.Doubt{{Kind: "moonlight", Detail: "the moon shone\n"}}
		}, `device 0: the moon shone\n`},
		{"what changes no figure is not said", func(_ *model.Snapshot, d *model.Device) {
			d.Memory.Tracking = model.TrackOK
			d.Memory.Doubts = []model.Doubt{{Kind: model.NotTTMetal, PID: 7}, {Kind: model.ChipInferred, Basis: model.ByTray}}
		}, ""},
		{"who is left out", func(s *model.Snapshot, d *model.Device) {
			d.Memory.Tracking = model.TrackPartial
			for pid := range 5 {
				s.Processes = append(s.Processes, model.Process{PID: pid, State: model.Running, Name: model.Value("raw"), Devices: []model.DeviceUse{{}}})
			}
			s.Processes[4].Devices[0].Memory[model.DRAM] = model.ExactBytes(0)
		}, "device 0: processes 0 raw, 1 raw, 2 raw, 3 raw: not in the figures"},
		{
			"hidden", func(_ *model.Snapshot, d *model.Device) { d.HiddenFDs = 2 },
			"device 0: open 2 times in processes that cannot be seen from here; run ttmon on the host",
		},
		{"stale", func(s *model.Snapshot, _ *model.Device) {
			s.StaleSlots = []model.StaleSlot{{
				PID: 4242, Name: "python", Updated: now.Add(-3 * time.Hour),
				Bytes: model.PoolBytes{model.DRAM: model.ExactBytes(128 * mib)},
			}}
		}, "device 0: 128 MiB of DRAM left by a dead process (4242 python, last wrote 3 h ago): ttmon mem --stale"},
		{"stale of several", func(s *model.Snapshot, _ *model.Device) {
			s.StaleSlots = []model.StaleSlot{
				{PID: 1, Updated: now.Add(-9 * time.Hour), Bytes: model.PoolBytes{model.DRAM: model.ExactBytes(gib), model.L1: model.ExactBytes(mib)}},
				{PID: 2, Name: "py\n", Updated: now.Add(-3 * time.Hour), Bytes: model.PoolBytes{model.DRAM: model.ExactBytes(gib)}},
			}
		}, `device 0: 2.0 GiB of DRAM and 1.0 MiB of L1 left by 2 dead processes (the last: 2 py\n, last wrote 3 h ago): ttmon mem --stale`},
		{"one dead process on two chips", func(s *model.Snapshot, _ *model.Device) {
			s.StaleSlots = []model.StaleSlot{
				{PID: 7, Name: "py", ChipID: 1, Bytes: model.PoolBytes{model.DRAM: model.ExactBytes(gib)}},
				{PID: 7, Name: "py", ChipID: 2, Bytes: model.PoolBytes{model.DRAM: model.ExactBytes(gib)}},
			}
		}, "device 0: 2.0 GiB of DRAM left by a dead process (7 py): ttmon mem --stale"},
		{"exited opener and inheritor", func(s *model.Snapshot, _ *model.Device) {
			s.Processes = []model.Process{
				{PID: 10, State: model.Exited, Devices: []model.DeviceUse{{}}},
				{PID: 11, State: model.Running, Name: model.Value("sh"), Devices: []model.DeviceUse{{Inherited: true}}},
			}
			s.Devices[0].Memory.Tracking = model.TrackOK
		}, "device 0: opened by 10, which has exited; held open by 11 sh, which inherited it"},
		{"in use and untracked", func(s *model.Snapshot, _ *model.Device) {
			s.Processes = []model.Process{{PID: 10, State: model.Running, Devices: []model.DeviceUse{{}}}}
		}, "device 0: memory is unknown: no program accounts for it"},
		{"unbound", func(s *model.Snapshot, _ *model.Device) {
			s.Host.DriverLoaded, s.Host.Unbound = true, []string{"0000:41:00.0"}
		}, "no driver: 0000:41:00.0: 1 board that the driver has not bound → dmesg | grep tenstorrent"},
		{"unmatched chip", func(s *model.Snapshot, _ *model.Device) {
			s.Unmatched = []model.Chip{{ID: model.Value(uint64(99)), Memory: model.Memory{
				Tracking: model.TrackOK,
				Pools:    [model.NumPools]model.PoolUse{model.DRAM: {Used: model.ExactBytes(gib)}},
			}}}
		}, "chip 99 is none of this host's devices (a mock or simulator run): 1.0 GiB of DRAM"},
		{"a chip that is one of several", func(s *model.Snapshot, d *model.Device) {
			d.Memory.Tracking = model.TrackOK
			d.Memory.Doubts = []model.Doubt{{Kind: model.ChipAmbiguous, Chip: 99, Devices: []int{0, 1}}}
			s.Unmatched = []model.Chip{{ID: model.Value(uint64(99)), Candidates: []int{0, 1}, Memory: model.Memory{
				Pools: [model.NumPools]model.PoolUse{model.DRAM: {Used: model.BoundBytes(gib, model.AtLeast)}},
			}}}
		}, "chip 99 is one of devices 0, 1, and it is not known which: ≥ 1.0 GiB of DRAM"},
		{"two chips and their dead, of two devices", func(s *model.Snapshot, _ *model.Device) {
			for _, id := range []uint64{98, 99} {
				s.Unmatched = append(s.Unmatched, model.Chip{ID: model.Value(id), Candidates: []int{0, 1}, Memory: model.Memory{
					Pools: [model.NumPools]model.PoolUse{model.DRAM: {Used: model.ExactBytes(gib)}},
				}})
				s.StaleSlots = append(s.StaleSlots, model.StaleSlot{PID: 7, ChipID: id, Device: model.NoDevice, Bytes: model.PoolBytes{model.DRAM: model.ExactBytes(gib)}})
			}
		}, "chips 98, 99 are among devices 0, 1, and it is not known which is which: 2.0 GiB of DRAM\n" +
			"2.0 GiB of DRAM left by a dead process (7): ttmon mem --stale (among devices 0, 1)"},
		{"not removable", func(s *model.Snapshot, _ *model.Device) {
			s.StaleSlots = []model.StaleSlot{{PID: 7, Mapped: true, Bytes: model.PoolBytes{model.DRAM: model.BoundBytes(gib, model.Unsure)}}}
		}, "device 0: ~1.0 GiB of DRAM left by a dead process (7), until those that use the chip have ended"},
		{"one sample", func(_ *model.Snapshot, d *model.Device) {
			d.StateReason.Cause = model.HeartbeatUnseen
		}, "device 0: ok as far as one sample tells: whether the firmware is alive shows in a second one (smi --sample 1500, smi -l 1, top, ttmond)"},
		{"one sample of a device that is not ok", func(_ *model.Snapshot, d *model.Device) {
			d.StateReason.Cause = model.HeartbeatUnseen
			d.PCIe.Width, d.PCIe.Degraded = model.Value(8), model.Value(true)
		}, "device 0: slow link: Gen5 x8 instead of Gen5 x16 → reseat the board, check the slot\n" +
			"device 0: alive as far as one sample tells: whether the firmware is alive shows in a second one (smi --sample 1500, smi -l 1, top, ttmond)"},
		{"simulated", func(s *model.Snapshot, _ *model.Device) { s.Simulated = true }, words.Simulated},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &model.Snapshot{Time: now, Devices: []model.Device{healthy(0)}}
			c.change(s, &s.Devices[0])
			var got []string
			for _, n := range words.Notices(s) {
				got = append(got, n.String())
			}
			if diff := cmp.Diff(c.want, strings.Join(got, "\n")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The same trouble of many devices is one sentence, and the worst comes first.
func TestNoticesMergeAndSort(t *testing.T) {
	s := &model.Snapshot{Time: now}
	for i := range 32 {
		d := healthy(i)
		d.Memory.Tracking = model.TrackDenied
		d.Firmware.Bundle = model.Value("19.4.0.0")
		if i == 7 {
			d.State, d.StateReason = model.StateHung, model.StateReason{Cause: model.ReadBlocked, File: "tt_aiclk"}
			d.Firmware.Bundle = model.Value("19.7.0.0")
		}
		s.Devices = append(s.Devices, d)
	}
	var got []string
	for _, n := range words.Notices(s) {
		got = append(got, n.String())
	}
	want := []string{
		"device 7: hung: reading tt_aiclk has not returned: a reset is under way, or the chip hangs → tt-smi -r /dev/tenstorrent/7",
		"devices 0-31: memory of other users is hidden; start ttmond, or run as root",
		"the p150a devices run different firmware: 19.4.0.0 on 0-6, 8-31; 19.7.0.0 on 7",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// One dead process on 32 chips is one line, and so is what holds for every
// program of a release.
func TestNoticesAreNoWall(t *testing.T) {
	s := &model.Snapshot{Time: now}
	for i := range 32 {
		d := healthy(i)
		d.Memory.Tracking = model.TrackOK
		s.Devices = append(s.Devices, d)
		at := 31 - i // the map they come from has no order
		s.StaleSlots = append(s.StaleSlots, model.StaleSlot{
			Device: at, PID: 4242, Name: "python", Updated: now.Add(-2 * time.Minute),
			Bytes: model.PoolBytes{model.DRAM: model.ExactBytes(128 * mib)},
		})
		s.Processes = append(s.Processes, model.Process{
			PID: 100 + i, State: model.Running, Name: model.Value("py"), Devices: []model.DeviceUse{{Device: i}},
			Doubts: []model.Doubt{{Kind: model.OtherThreads, Release: "0.81.1"}, {Kind: model.GraphCapture, Release: "0.81.1"}},
		})
	}
	var got []string
	for _, n := range words.Notices(s) {
		got = append(got, n.String())
	}
	want := []string{
		"devices 0-31: 4.0 GiB of DRAM left by a dead process (4242 python, last wrote 2 min ago): ttmon mem --stale",
		"~: tt-metal's own statistics (release 0.81.1) count one thread of a program and miscount around graph captures; exact figures need ttmond with uprobes, or ttmon run",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestRanges(t *testing.T) {
	for _, c := range []struct {
		in   []int
		want string
	}{
		{nil, ""}, {[]int{3}, "3"}, {[]int{0, 1}, "0, 1"}, {[]int{2, 0, 1, 8, 8}, "0-2, 8"},
	} {
		t.Run(c.want, func(t *testing.T) {
			if got := words.Ranges(c.in); got != c.want {
				t.Errorf("Ranges(%v) = %q, want %q", c.in, got, c.want)
			}
		})
	}
}

// A process with figures of some pools leaves out no user.
func TestUseReasonsOfSomePools(t *testing.T) {
	p := &model.Process{PID: 7}
	u := &model.DeviceUse{Tracking: model.TrackPartial, Memory: model.PoolBytes{model.DRAM: model.ExactBytes(1)}}
	if got, want := words.UseReasons(p, u, model.Direct), []string{"not every pool of its memory is known"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	u.Doubts = []model.Doubt{{Kind: model.ChipUnknown, PID: 7}}
	if got := words.UseReasons(p, u, model.Direct); len(got) != 1 || strings.Contains(got[0], "not every pool") {
		t.Errorf("%q, want what the doubt says", got)
	}
}

// The simulator's mark fits a small terminal, also after a "# ".
func TestSimulatedFits(t *testing.T) {
	if n := words.Width(words.Simulated); n > 78 {
		t.Errorf("%d columns wide", n)
	}
}
