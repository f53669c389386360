// Package watch turns snapshots into entries of the event log: what happened
// between one and the next, with the figures of that moment.
package watch

import (
	"fmt"
	"slices"

	"github.com/ttmon/ttmon/internal/field/event"
	"github.com/ttmon/ttmon/internal/field/metric"
	"github.com/ttmon/ttmon/internal/model"
)

// maxEvents bounds the events of one snapshot: a storm of processes must not
// fill the log.
const maxEvents = 100

// maxEventDevices bounds the devices whose figures are kept with one event.
const maxEventDevices = 8

// Watcher compares each snapshot with the one before. The zero Watcher has seen
// none.
type Watcher struct{ detector event.Detector }

// Next returns what happened since the last snapshot.
func (w *Watcher) Next(s *model.Snapshot) (list []model.Event) {
	happened := w.detector.Next(s)
	for i := range happened {
		if i == maxEvents {
			return append(list, model.Event{
				Time: s.Time, Kind: model.EventTTMond, Level: model.Warning,
				Text: fmt.Sprintf("%d more events of the same second are left out", len(happened)-maxEvents),
			})
		}
		e := happened[i]
		e.Values, e.Bounds = Values(s, e.Devices)
		list = append(list, e)
	}
	return list
}

// Values are the known figures of some devices, and the bounds of those that
// are not exact.
func Values(s *model.Snapshot, devices []string) (all map[string]map[string]float64, bounds map[string]map[string]string) {
	if len(devices) == 0 {
		return nil, nil
	}
	all, bounds = map[string]map[string]float64{}, map[string]map[string]string{}
	for _, id := range devices[:min(len(devices), maxEventDevices)] {
		i := slices.IndexFunc(s.Devices, func(d model.Device) bool { return d.BusID == id })
		if i < 0 {
			continue
		}
		one, doubtful := deviceValues(s, &s.Devices[i])
		all[id] = one
		if len(doubtful) > 0 {
			bounds[id] = doubtful
		}
	}
	return all, bounds
}

// deviceValues are those of one device.
func deviceValues(s *model.Snapshot, d *model.Device) (known map[string]float64, bounds map[string]string) {
	known, bounds = map[string]float64{}, map[string]string{}
	for _, f := range metric.Tagged(metric.InEvents) {
		v := f.Get(s, d)
		if !v.Known() {
			continue
		}
		known[f.Name] = v.Num
		if v.Bound != model.Exact {
			bounds[f.Name] = v.Bound.String()
		}
	}
	return known, bounds
}
