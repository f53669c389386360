package sample

import (
	"time"

	"github.com/ttmon/ttmon/internal/model"
)

// Serve is a process of root that has been up for 2 h 14 min.
func Serve(pid int, uses ...model.DeviceUse) model.Process {
	return model.Process{
		PID: pid, StartTicks: 4_711_000, StartTime: Time.Add(-2*time.Hour - 14*time.Minute), PPID: 1, State: model.Running,
		UID: model.Value(0), User: model.Value("root"), Name: model.Value("python3"),
		Cmdline: model.Value("python3 serve.py --model llama-70b"),
		CPU:     model.Value(98.2), RSS: model.Value(uint64(15_139_793_305)), Threads: model.Value(64),
		SystemdUnit: "serve.service", Release: model.Value("0.71.2"), Type: model.Value(model.TypeTTNN),
		Devices: uses,
	}
}

// Use is what a process holds on a device, all of it on the first chip.
func Use(d *model.Device, dram, l1 uint64) model.DeviceUse {
	held := model.PoolBytes{
		model.DRAM: model.ExactBytes(dram), model.L1: model.ExactBytes(l1), model.L1Small: model.ExactBytes(0),
		model.Trace: model.ExactBytes(0), model.CB: model.ExactBytes(l1 / 32),
	}
	return model.DeviceUse{
		Device: d.Index, OpenFDs: model.Value(2), Tracking: model.TrackOK, Memory: held, Source: model.FromShm,
		Chips: []model.ChipUse{{ChipID: d.Chips[0].ID.V, Memory: held}},
	}
}
