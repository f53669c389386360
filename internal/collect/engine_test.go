package collect

import (
	"math"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/hostfs/proc"
	"github.com/ttmon/ttmon/internal/model"
)

// TestEngines: how busy a process keeps a device by the driver's account, in doubt, and
// only where the programs that ran are not seen.
func TestEngines(t *testing.T) {
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		first, second []proc.Engine
		after         time.Duration
		busy          float64
		missing       bool
	}{
		"half":                   {[]proc.Engine{{Name: "compute", Time: 100 * ms}}, []proc.Engine{{Name: "compute", Time: 600 * ms}}, time.Second, 0.5, false},
		"of two":                 {[]proc.Engine{{Name: "compute", Capacity: 2}}, []proc.Engine{{Name: "compute", Time: 600 * ms, Capacity: 2}}, time.Second, 0.3, false},
		"the busiest":            {[]proc.Engine{{Name: "a"}, {Name: "b"}}, []proc.Engine{{Name: "a", Time: 100 * ms}, {Name: "b", Time: 700 * ms}}, time.Second, 0.7, false},
		"one that is new":        {[]proc.Engine{}, []proc.Engine{{Name: "a", Time: 100 * ms}}, time.Second, 0.1, false},
		"set back":               {[]proc.Engine{{Name: "a", Time: 100 * ms}}, []proc.Engine{{Name: "a"}}, time.Second, 0, false},
		"more than time":         {[]proc.Engine{{Name: "a"}}, []proc.Engine{{Name: "a", Time: 2 * time.Second}}, time.Second, 1, false},
		"too soon for a second":  {[]proc.Engine{{Name: "a"}}, []proc.Engine{{Name: "a", Time: ms}}, minWindow / 2, 0, true},
		"the driver has stopped": {[]proc.Engine{{Name: "a"}}, nil, time.Second, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			w, now := work{}, workStart
			var s *model.Snapshot
			for i, list := range [][]proc.Engine{c.first, c.second} {
				now = now.Add(time.Duration(i) * c.after)
				s = engineSnapshot(&w, now, list)
			}
			if s.Devices[0].Work.ProgramSum.Known() || s.Devices[0].Work.BusyTime.Known() {
				t.Errorf("totals of programs that are not seen: %+v", s.Devices[0].Work)
			}
			for what, got := range map[string]model.Work{"process": s.Processes[0].Work.Busiest().Work, "device": s.Devices[0].Work} {
				if c.missing {
					if got.Busy.Known() {
						t.Errorf("%s: %+v", what, got)
					}
				} else if math.Abs(got.Busy.V-c.busy) > 1e-9 || got.Bound != model.Unsure || got.Cause != model.WorkEngine || got.Programs.Known() {
					t.Errorf("%s: %+v, want %v", what, got, c.busy)
				}
			}
		})
	}
}

// engineSnapshot is of a host with one chip that a process uses.
func engineSnapshot(w *work, now time.Time, list []proc.Engine) *model.Snapshot {
	p := model.Process{PID: 7, StartTicks: 70, State: model.Running, Devices: []model.DeviceUse{{Device: 0, OpenFDs: model.Value(1)}}}
	p.Work.Chips = []model.ChipWork{{Device: 0, Source: model.FromUprobe, Work: model.NoWork(model.WorkProfilerOff)}}
	s := &model.Snapshot{
		Time: now, Processes: []model.Process{p},
		Devices: []model.Device{{Index: 0, BusID: "0000:01:00.0", Arch: model.Blackhole, State: model.StateOK, Chips: make([]model.Chip, 1)}},
	}
	times := engineTimes{at: now}
	if list != nil {
		times.of = map[proc.EngineUser][]proc.Engine{{Process: p.ID(), Device: 0}: list}
	}
	j := workJoin{
		work: w, snap: s, engines: times, place: func(uint64) (chipAt, bool) { return chipAt{}, false },
		may: func(*model.Process, *model.Device) bool { return true }, idle: func(int) bool { return false }, iommu: func(*model.Device) bool { return true },
	}
	j.run()
	return s
}
