package collect

import (
	"math"
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/model"
)

// dispatchCheck holds what the programs on a chip reported against the account of
// tt-metal's dispatch cores, which ttmond reads from the chip (firmware = full).
// Both say how long programs ran; neither knows of the other.
type dispatchCheck struct {
	readAt time.Time // of the firmware's last sample
	at     time.Time // of the snapshot that first had it
	busy   uint64    // ns, that programs had reported by then
	apart  int       // samples in a row in which the two contradicted each other
}

const (
	// dispatchApart is how far two shares of the same time may be apart: they are
	// taken up to a snapshot's interval after each other.
	dispatchApart = 0.15
	// dispatchSamples is how many samples in a row have to contradict each other:
	// work that begins or ends between two readings makes one of them differ.
	dispatchSamples = 3
)

// checkDispatch marks the figure of a device's own chip where the dispatch cores
// contradict it. Which of the two is wrong cannot be told, so neither is shown
// as if it were certain.
func (j *workJoin) checkDispatch(d *model.Device) {
	own := slices.IndexFunc(d.Chips, func(c model.Chip) bool { return !c.Remote })
	t := &d.Telemetry
	share, told := t.Dispatch.Busy.Get()
	if own < 0 || t.State != model.TelemetryOK || !told || !d.Chips[own].Work.Busy.Known() {
		delete(j.dispatch, d.BusID)
		return
	}
	w := &d.Chips[own].Work
	c := j.dispatch[d.BusID]
	if c == nil {
		c = new(dispatchCheck)
		j.dispatch[d.BusID] = c
	}
	if !t.ReadAt.Equal(c.readAt) {
		c.next(t.ReadAt, j.snap.Time, share, w)
	}
	if c.apart >= dispatchSamples {
		w.Bound, w.Cause = model.Unsure, model.WorkDispatch
	}
}

// next compares a new sample of the dispatch cores with what programs reported
// since the one before.
func (c *dispatchCheck) next(readAt, now time.Time, share float64, w *model.Work) {
	before := *c
	c.readAt, c.at, c.busy = readAt, now, w.BusyTime.V
	span := now.Sub(before.at)
	if before.at.IsZero() || span < minWindow || w.BusyTime.V < before.busy {
		return
	}
	reported := math.Min(1, float64(w.BusyTime.V-before.busy)/float64(span))
	if reported > share+dispatchApart || w.Bound == model.Exact && reported < share-dispatchApart {
		c.apart++
		return
	}
	c.apart = 0
}
