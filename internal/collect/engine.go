package collect

import (
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/hostfs/proc"
	"github.com/ttmon/ttmon/internal/model"
)

// engineTimes is how long the engines of devices have worked for processes, as fdinfo
// says it. No driver of Tenstorrent does today.
type engineTimes struct {
	at time.Time
	of map[proc.EngineUser][]proc.Engine
}

// engineSample is what a figure was made from, and the figure.
type engineSample struct {
	at    time.Time
	list  []proc.Engine
	shown model.Work
}

// addEngines says how busy processes keep devices by the driver's account, where nothing
// better is known: the programs that ran. Of a device with several chips it is not known
// which of them worked.
func (j *workJoin) addEngines() {
	before := j.work.engines
	j.work.engines = make(map[proc.EngineUser]*engineSample, len(j.engines.of))
	for i := range j.snap.Processes {
		p := &j.snap.Processes[i]
		for _, u := range p.Devices {
			user := proc.EngineUser{Process: p.ID(), Device: u.Device}
			list, ok := j.engines.of[user]
			if !ok {
				continue
			}
			now := measureEngines(before[user], j.engines.at, list)
			j.work.engines[user] = now
			if !slices.ContainsFunc(p.Work.Chips, func(c model.ChipWork) bool { return c.Device == u.Device && c.Work.Busy.Known() }) {
				p.Work.Chips = append(p.Work.Chips, model.ChipWork{Device: u.Device, Source: model.FromFDInfo, Work: now.shown})
			}
		}
		for k := range p.Work.Chips {
			c := &p.Work.Chips[k]
			if d := slices.IndexFunc(j.snap.Devices, func(d model.Device) bool { return d.Index == c.Device }); c.Source == model.FromFDInfo && d >= 0 && len(j.snap.Devices[d].Chips) == 1 {
				j.on[chipAt{d, 0}] = append(j.on[chipAt{d, 0}], c)
			}
		}
	}
}

// measureEngines makes a figure of the busiest kind of engine since the sample before.
func measureEngines(before *engineSample, at time.Time, list []proc.Engine) *engineSample {
	if before == nil {
		return &engineSample{at, list, model.NoWork(model.WorkFirstSample)}
	}
	window := at.Sub(before.at)
	if window < minWindow {
		return before
	}
	share := 0.0
	for _, e := range list {
		// An engine that is not in the list before began to work since; one that is may
		// be set back for a moment.
		since := e.Time
		if k := slices.IndexFunc(before.list, func(b proc.Engine) bool { return b.Name == e.Name }); k >= 0 {
			since -= before.list[k].Time
		}
		share = max(share, since.Seconds()/window.Seconds()/float64(max(1, e.Capacity)))
	}
	w := model.NoWork(model.WorkEngine) // no programs are counted
	w.Busy, w.Bound, w.Window = model.Value(min(1, share)), model.Unsure, window.Seconds()
	return &engineSample{at, list, w}
}
