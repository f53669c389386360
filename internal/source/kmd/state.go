package kmd

import (
	"time"

	"github.com/ttmon/ttmon/internal/model"
)

// Firmware whose heartbeat has not changed for this long counts as hung.
// Blackhole counts ten times a second, Wormhole about once.
const heartbeatLimit = 3 * time.Second

// Reads of a chip that is off the bus cost a PCIe timeout each, fill the kernel's
// error log, and have rebooted hosts. After this many sweeps of nothing but ones
// it is not read for restTime at a time; then, if its configuration space
// answers, only its heartbeat and clock are.
const (
	onesLimit = 2
	restTime  = 5 * time.Second
)

// hangAfter is how long a read must take to count as hung instead of slow. On a
// busy machine a healthy chip may take most of a second.
const hangAfter = time.Second

// updateStuck records a sweep in which the read of a file has not returned, or
// one in which all have. A read is late, and its chip not hung, while it was
// seen stuck by one sweep only and the chip answered just before: other reads
// of this sweep, or all of the last one.
func (d *device) updateStuck(stuck string, now time.Time) {
	if stuck == "" {
		d.stuck, d.late = 0, false
		return
	}
	d.stuck++
	d.late = (d.stuck == 1 || now.Sub(d.started) < hangAfter) && (d.model.State == model.StateOK || d.answered())
}

// answered reports whether a read of the firmware's files has returned a value
// in this sweep.
func (d *device) answered() bool {
	for i := range attrs {
		if attrs[i].fromFirmware() && attrs[i].role != static && d.queued[i] >= 0 {
			if _, err := d.batch.Result(d.queued[i]); err == nil {
				return true
			}
		}
	}
	return false
}

// vitals counts the results of the vital files of a device in one sweep.
type vitals struct {
	files                       int // checked
	known, noData, lost, absent int
	ones                        int // all ones, or not read because of them
	elsewhere                   int // the same, in files that need no firmware: counters, link
	freshOnes                   int // of both, read just now
}

func (v *vitals) add(c content, got outcome, read bool) {
	v.files++
	switch {
	case got == ones:
		v.ones++
		if read {
			v.freshOnes++
		}
	case got == valid:
		v.known++
	case c.status == model.Resetting:
		v.noData++
	case c.status == model.Lost:
		v.lost++
	case c.status == model.Absent:
		v.absent++
	}
}

// onesElsewhere counts a file that needs no firmware and is all ones; read: it
// was read just now, not skipped.
func (v *vitals) onesElsewhere(read bool) {
	v.elsewhere++
	if read {
		v.freshOnes++
	}
}

// health is the history of a device's failures.
type health struct {
	sweepsOfOnes int
	restUntil    time.Time
}

// rests reports whether file i is not read now, since its chip is, or may be, off
// the bus. Files of the PCI core are: they show when it is back.
func (d *device) rests(i int, now time.Time) bool {
	if !reachesChip(i) {
		return false
	}
	if d.model.State == model.StateResetting && i >= firstCounter {
		return true // the driver refuses reads of telemetry meanwhile, but not these
	}
	if d.ones[widthAt] {
		return true
	}
	if d.health.sweepsOfOnes < onesLimit {
		return false
	}
	sign := i == firstCounter || i < len(attrs) && attrs[i].role == lifeSign
	return !sign || now.Before(d.health.restUntil) || !d.model.PCIe.Width.Known()
}

// restReason is what is said of files that are not read.
func (d *device) restReason() content {
	if d.model.State == model.StateResetting {
		return content{status: model.Resetting}
	}
	return content{status: model.Hung, why: whyOnes, ones: true}
}

// addOnes records a sweep of nothing but ones; fresh: some were read just now.
func (h *health) addOnes(fresh bool, now time.Time) {
	if fresh {
		h.sweepsOfOnes++
		h.restUntil = now.Add(restTime)
	}
}

const noFan = "the firmware knows no fan"

// setState sets the state from the vital signs and the heartbeat. stuck is the
// file whose read has not returned.
func (d *device) setState(v vitals, stuck string, now time.Time) {
	m := &d.model
	d.beat.add(m.Heartbeat, d.started)
	m.HeartbeatAge, m.HeartbeatRate = d.beat.age, d.beat.rate
	before := m.State
	m.State, m.StateReason = d.decideState(v, stuck, now)
	d.dropFrozen()
	switch {
	case m.State == model.StateOK && before != model.StateOK && before != "":
		d.statics = time.Time{} // a reset may have brought other firmware
	case stuck != "" || m.State == model.StateResetting:
		d.statics = time.Time{} // they could not be read; the reason may change
	}
	if m.State != model.StateResetting {
		d.explainNoData()
	}
	if v.known > 0 && d.ones[fanAt] {
		// Ones of a chip that is alive are how the firmware says "none".
		m.Fan = model.Missing[float64](model.Absent, noFan)
	}
}

func (d *device) decideState(v vitals, stuck string, now time.Time) (model.State, model.StateReason) {
	because := func(s model.State, c model.Cause) (model.State, model.StateReason) {
		return s, model.StateReason{Cause: c}
	}
	slow := model.StateReason{Cause: model.ReadSlow, File: stuck, Since: d.started}
	switch {
	case stuck != "" && !d.late: // one that is late says nothing; the other files do
		return model.StateHung, model.StateReason{Cause: model.ReadBlocked, File: stuck, Since: d.started}
	case v.ones > 0 && v.known == 0:
		d.health.addOnes(v.freshOnes > 0, now)
		return because(model.StateHung, model.AllOnes)
	case v.noData > 0 && v.known == 0:
		return because(model.StateResetting, model.ResetWindow)
	case v.lost > 0 && v.known == 0:
		return because(model.StateLost, model.ReportedGone)
	}
	if v.known == 0 && v.elsewhere > 0 {
		d.health.addOnes(v.freshOnes > 0, now)
		return because(model.StateHung, model.AllOnes)
	}
	d.health.sweepsOfOnes = 0
	switch age := d.model.HeartbeatAge; {
	case v.known == 0 && stuck != "": // d.late has it that the chip was well
		return model.StateOK, slow
	case v.known == 0 && v.absent == v.files:
		return because(model.StateUnknown, model.NoTelemetry)
	case v.known == 0:
		return because(model.StateUnknown, model.NoVitalSigns)
	case age.Known() && age.V >= heartbeatLimit.Seconds():
		return because(model.StateHung, model.HeartbeatStopped)
	case stuck != "" && !age.Known() && d.model.StateReason.Cause == model.HeartbeatStopped:
		return d.model.State, d.model.StateReason // nothing has shown that it beats again
	case stuck != "":
		return model.StateOK, slow
	case d.beat.moved.IsZero():
		return because(model.StateOK, model.NoHeartbeat)
	case !d.beat.seen:
		return because(model.StateOK, model.HeartbeatUnseen)
	}
	return model.StateOK, model.StateReason{}
}

// dropFrozen drops the values of firmware that stopped: they can still be read,
// but are as old as its last heartbeat. The PCIe tile counts without the
// firmware.
func (d *device) dropFrozen() {
	if d.model.StateReason.Cause != model.HeartbeatStopped {
		return
	}
	for i := range attrs {
		if a := &attrs[i]; a.role != static && a.in != inPCI && a.file != heartbeatFile && d.queued[i] >= 0 {
			if c := d.content(i); c.status == model.Known {
				a.store(&d.model, content{status: model.Stale, why: "last value before the firmware stopped"})
			}
		}
	}
}

// explainNoData rewords single values that fail with ENODATA while the rest
// reads well: the firmware was changed and no longer has the tag.
func (d *device) explainNoData() {
	for i := range attrs {
		if d.queued[i] < 0 {
			continue
		}
		if c := d.content(i); c.status == model.Resetting {
			why := "the firmware no longer publishes the " + attrs[i].what
			if i == fanAt { // since 2.11 the driver gives it for the firmware's "none"
				why = noFan
			}
			attrs[i].store(&d.model, content{status: model.Absent, why: why})
		}
	}
}

// heartbeat tracks the firmware's counter.
type heartbeat struct {
	value     uint32
	moved     time.Time // when value was first seen; zero before the first reading
	seen      bool      // it was seen to move
	restarted bool      // the counter had restarted at the last reading
	ref       uint32    // an earlier reading, for the rate
	refAt     time.Time
	age, rate model.Reading[float64]
}

// Any change is a beat: the counter wraps, and restarts after a reset.
func (h *heartbeat) add(r model.Reading[uint32], at time.Time) {
	h.restarted = false
	v, ok := r.Get()
	if !ok {
		h.age, h.rate = model.As[float64](r), model.As[float64](r)
		h.refAt = time.Time{}
		if r.Status != model.Hung && r.Status != model.Pending { // a read that did not return in time says nothing
			h.moved, h.seen = time.Time{}, false
		}
		return
	}
	if h.moved.IsZero() {
		h.value, h.moved, h.ref, h.refAt = v, at, v, at
		h.age = model.Missing[float64](model.Pending, "needs two samples")
		h.rate = h.age
		return
	}
	if v != h.value {
		// Between two samples it gains a few hundred at most, wrap or not.
		if gain := v - h.value; gain > 1<<31 {
			h.restarted = true
			h.ref, h.refAt = v, at
		}
		h.value, h.moved, h.seen = v, at, true
	}
	h.age = model.Value(at.Sub(h.moved).Seconds())
	if h.refAt.IsZero() {
		h.ref, h.refAt = v, at
		h.rate = model.Missing[float64](model.Pending, "needs two samples")
		return
	}
	if elapsed := at.Sub(h.refAt); elapsed >= 900*time.Millisecond {
		h.rate = model.Value(float64(v-h.ref) / elapsed.Seconds())
		h.ref, h.refAt = v, at
	}
}
