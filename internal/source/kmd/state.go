package kmd

import (
	"fmt"
	"time"

	"github.com/ttmon/ttmon/internal/model"
)

// Firmware that has not beaten its heart for this long is taken for hung.
// Blackhole beats ten times a second, Wormhole about once.
const heartbeatLimit = 3 * time.Second

// A dead chip costs a PCIe time-out for each read and fills the kernel's
// error log. After this many sweeps of nothing but ones it is left alone for
// restTime at a time, and then asked only for its heartbeat and clock.
const (
	onesLimit = 2
	restTime  = 5 * time.Second
)

// vitals is what the vital files of a device gave in one sweep.
type vitals struct {
	known, noData, lost int
	ones                int // all ones, or left alone because of them
	freshOnes           int // of these, read just now
}

func (v *vitals) add(c content, ones, read bool) {
	switch {
	case ones || !read && c.why == whyOnes:
		v.ones++
		if read {
			v.freshOnes++
		}
	case c.status == model.Known:
		v.known++
	case c.status == model.Resetting:
		v.noData++
	case c.status == model.Lost:
		v.lost++
	}
}

// health is what is remembered of a device's troubles.
type health struct {
	sweepsOfOnes int
	restUntil    time.Time
}

// resting tells whether file i of a dead chip is left alone now. When a rest
// is over only its pulse is felt; the other files wait until that is there.
func (h *health) resting(i int, now time.Time) bool {
	if h.sweepsOfOnes < onesLimit || i == pidsFile || isStatic(i) {
		return false
	}
	return now.Before(h.restUntil) || i >= len(attrs) || attrs[i].role != pulse
}

// judge decides the state from the vital signs and the heartbeat. stuck is
// the file whose read has not returned.
func (d *device) judge(v vitals, stuck string, now time.Time) {
	m := &d.model
	d.beat.add(m.Heartbeat, d.started)
	m.HeartbeatAge, m.HeartbeatRate = d.beat.age, d.beat.rate
	before := m.State
	m.State, m.StateReason = d.verdict(v, stuck, now)
	switch {
	case m.State == model.StateOK && before != model.StateOK && before != "":
		d.statics = time.Time{} // a reset may have brought other firmware
	case stuck != "" || m.State == model.StateResetting:
		d.statics = time.Time{} // they could not be read; the reason may be another next time
	}
	if m.State != model.StateResetting {
		d.explainNoData()
	}
	if v.known > 0 && m.Fan.Status == model.Hung && m.Fan.Why == whyOnes {
		// Ones of a chip that is alive are the firmware's word for "none".
		m.Fan = model.Missing[float64](model.Absent, "the firmware knows no fan")
	}
}

func (d *device) verdict(v vitals, stuck string, now time.Time) (model.State, string) {
	switch {
	case stuck != "":
		return model.StateHung, fmt.Sprintf("reading %s has not returned for %.1f s: a reset is under way, or the chip hangs",
			stuck, now.Sub(d.started).Seconds())
	case v.ones > 0 && v.known == 0:
		if v.freshOnes > 0 {
			d.health.sweepsOfOnes++
			d.health.restUntil = now.Add(restTime)
		}
		return model.StateHung, "the chip answers with all ones: it is off the bus or without power"
	case v.noData > 0 && v.known == 0:
		return model.StateResetting, "in its reset window, waiting for the post-reset step"
	case v.lost > 0 && v.known == 0:
		return model.StateLost, "the driver says the device is gone"
	}
	d.health.sweepsOfOnes = 0
	if age, ok := d.model.HeartbeatAge.Get(); ok && age >= heartbeatLimit.Seconds() {
		return model.StateHung, fmt.Sprintf("the firmware's heartbeat stopped %.0f s ago", age)
	}
	return model.StateOK, ""
}

// explainNoData rewords single values that fail with ENODATA while the rest
// reads well: the firmware was changed and no longer has the tag.
func (d *device) explainNoData() {
	for i := range attrs {
		if d.queued[i] < 0 {
			continue
		}
		if c := d.content(i); c.status == model.Resetting {
			attrs[i].put(&d.model, content{status: model.Absent, why: "the firmware no longer publishes the " + attrs[i].what})
		}
	}
}

// heartbeat follows the firmware's counter.
type heartbeat struct {
	value     uint32
	moved     time.Time // when value was first seen; zero before the first reading
	restarted bool      // the last reading was of a counter begun anew
	ref       uint32    // a reading some time ago, to tell the rate from
	refAt     time.Time
	age, rate model.Reading[float64]
}

// Any change is a beat: the counter wraps, and starts anew after a reset.
func (h *heartbeat) add(r model.Reading[uint32], at time.Time) {
	h.restarted = false
	v, ok := r.Get()
	if !ok {
		h.age, h.rate = model.As[float64](r), model.As[float64](r)
		h.moved, h.refAt = time.Time{}, time.Time{}
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
		h.value, h.moved = v, at
	}
	h.age = model.Value(at.Sub(h.moved).Seconds())
	if elapsed := at.Sub(h.refAt); elapsed >= 900*time.Millisecond {
		h.rate = model.Value(float64(v-h.ref) / elapsed.Seconds())
		h.ref, h.refAt = v, at
	}
}
