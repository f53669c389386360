package kmd

import (
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/model"
)

// bare takes away what the driver makes only for firmware that answered when
// it bound the chip.
func (b *card) bare() {
	for i := range attrs {
		if attrs[i].in == inClass {
			b.remove(b.class + "/" + attrs[i].file)
		}
	}
	b.remove(b.hwmon)
}

// onesLink writes what the kernel makes of a configuration space of all ones.
func (b *card) onesLink() {
	for file, text := range map[string]string{
		"current_link_speed": "Unknown", "current_link_width": "63", "max_link_speed": "64.0 GT/s PCIe", "max_link_width": "63",
	} {
		b.write(b.pci+"/"+file, text)
	}
}

func (b *card) counters(text string) {
	for _, c := range counterFiles {
		b.write(b.class+"/"+counterDir+"/"+c.file, text)
	}
}

// TestNoVitalSigns: a chip of which nothing can be read is not ok.
func TestNoVitalSigns(t *testing.T) {
	for _, c := range []struct {
		name  string
		make  func(b *card)
		state model.State
		cause model.Cause
	}{
		{"telemetry never came", (*card).bare, model.StateUnknown, model.NoTelemetry},
		{"dead when the driver bound it", func(b *card) { b.bare(); b.counters("4294967295"); b.onesLink() }, model.StateHung, model.AllOnes},
		{"dead, with a driver without counters", func(b *card) { b.bare(); b.remove(b.class + "/" + counterDir); b.onesLink() }, model.StateHung, model.AllOnes},
		{"nonsense in every file", func(b *card) {
			for i := range attrs {
				if a := &attrs[i]; a.fromFirmware() && a.in == inClass {
					b.write(b.class+"/"+a.file, "N/A")
				}
			}
			b.remove(b.hwmon)
		}, model.StateUnknown, model.NoVitalSigns},
	} {
		t.Run(c.name, func(t *testing.T) {
			tr := newTree(t)
			b := tr.add("bh", 0, 0, "0000:01:00.0")
			c.make(b)
			r := New(tr.root())
			defer r.Close()
			for round := range 4 {
				if d := read(r).Found[0].Device; d.State != c.state || d.StateReason.Cause != c.cause {
					t.Errorf("round %d: %s, %+v; want %s, %s", round, d.State, d.StateReason, c.state, c.cause)
				}
			}
			dev := r.devices["0000:01:00.0"]
			later := time.Now().Add(2 * restTime)
			if rests := dev.rests(firstCounter, later); rests != (c.state == model.StateHung) {
				t.Errorf("left alone: %v", rests)
			}
		})
	}
}

// TestDeadLink: the fastest link that the kernel knows is not the chip's.
func TestDeadLink(t *testing.T) {
	tr := newTree(t)
	b := tr.add("bh", 0, 0, "0000:01:00.0")
	b.onesLink()
	r := New(tr.root())
	defer r.Close()
	p := read(r).Found[0].Device.PCIe
	for name, reading := range map[string]model.Reading[int]{"gen": p.Gen, "gen max": p.GenMax, "width": p.Width, "width max": p.WidthMax} {
		t.Run(name, func(t *testing.T) {
			if reading.Reason() != "hung: "+whyOnes {
				t.Errorf("%s: %d, %q", name, reading.V, reading.Reason())
			}
		})
	}
	if p.Degraded.Known() {
		t.Errorf("degraded: %+v", p.Degraded)
	}
}

// TestStoppedFirmware: values that firmware left behind when it stopped are
// not shown as live; the PCIe tile counts on without it.
func TestStoppedFirmware(t *testing.T) {
	tr := newTree(t)
	tr.add("bh", 0, 0, "0000:01:00.0")
	r := New(tr.root())
	defer r.Close()
	if d := read(r).Found[0].Device; d.State != model.StateOK || d.StateReason.Cause != model.HeartbeatUnseen {
		t.Errorf("first sample: %s, %+v", d.State, d.StateReason)
	}
	if d := read(r).Found[0].Device; d.State != model.StateOK || d.StateReason.Cause != model.HeartbeatUnseen {
		t.Errorf("second sample without a beat between: %s, %+v", d.State, d.StateReason)
	}
	tr.write(r.devices["0000:01:00.0"].dirs[inClass]+"/tt_heartbeat", "12346")
	if d := read(r).Found[0].Device; d.State != model.StateOK || d.StateReason.Cause != "" || !d.Temperature.Known() {
		t.Errorf("after a beat: %s, %+v, temperature %s", d.State, d.StateReason, d.Temperature.Reason())
	}
	r.devices["0000:01:00.0"].beat.moved = time.Now().Add(-time.Minute)
	d := read(r).Found[0].Device
	if d.State != model.StateHung || d.StateReason.Cause != model.HeartbeatStopped {
		t.Fatalf("after a minute: %s, %+v", d.State, d.StateReason)
	}
	for name, reading := range map[string]model.Reading[float64]{
		"temperature": d.Temperature, "power": d.Power, "voltage": d.Voltage, "current": d.Current, "AI clock": d.AICLK, "fan": d.Fan,
	} {
		t.Run(name, func(t *testing.T) {
			if reading.Status != model.Stale {
				t.Errorf("%s of firmware that stopped: %v %q", name, reading.V, reading.Reason())
			}
		})
	}
	if !d.Heartbeat.Known() || !d.PowerLimit.Known() || !d.PCIe.ToDeviceRate.Known() || !d.Serial.Known() {
		t.Errorf("lost with it: heartbeat %q, limit %q, rate %q", d.Heartbeat.Reason(), d.PowerLimit.Reason(), d.PCIe.ToDeviceRate.Reason())
	}
	tr.write(r.devices["0000:01:00.0"].dirs[inClass]+"/tt_heartbeat", "99999")
	if d := read(r).Found[0].Device; d.State != model.StateOK || !d.Temperature.Known() {
		t.Errorf("beating again: %s, temperature %s", d.State, d.Temperature.Reason())
	}
}

// TestSlowReadOfAHungChip: a read that is only late says nothing. What was wrong
// with the chip before is wrong still, by what the other files say, or by the
// last that was known.
func TestSlowReadOfAHungChip(t *testing.T) {
	now := time.Now()
	stopped := model.StateReason{Cause: model.HeartbeatStopped}
	for _, c := range []struct {
		name   string
		v      vitals
		age    model.Reading[float64]
		before model.State
		reason model.StateReason
		state  model.State
		cause  model.Cause
	}{
		{"well until now", vitals{files: 3, known: 2}, model.Value(0.1), model.StateOK, model.StateReason{}, model.StateOK, model.ReadSlow},
		{"well, and nothing was read", vitals{files: 3}, model.Missing[float64](model.Pending, whyLate), model.StateOK, model.StateReason{}, model.StateOK, model.ReadSlow},
		{"its heart stopped", vitals{files: 3, known: 2}, model.Value(60.0), model.StateHung, stopped, model.StateHung, model.HeartbeatStopped},
		{"its heart had stopped, and is not read", vitals{files: 3, known: 2}, model.Missing[float64](model.Pending, whyLate), model.StateHung, stopped, model.StateHung, model.HeartbeatStopped},
		{"its heart beats again", vitals{files: 3, known: 2}, model.Value(0.1), model.StateHung, stopped, model.StateOK, model.ReadSlow},
		{"all ones", vitals{files: 3, ones: 2}, model.Missing[float64](model.Hung, whyOnes), model.StateHung, model.StateReason{Cause: model.AllOnes}, model.StateHung, model.AllOnes},
		{"in a reset", vitals{files: 3, noData: 2}, model.Missing[float64](model.Resetting, ""), model.StateResetting, model.StateReason{Cause: model.ResetWindow}, model.StateResetting, model.ResetWindow},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := &device{late: true, started: now.Add(-time.Second), beat: heartbeat{moved: now, seen: true}}
			d.model.State, d.model.StateReason, d.model.HeartbeatAge = c.before, c.reason, c.age
			if state, reason := d.decideState(c.v, "tt_arcclk", now); state != c.state || reason.Cause != c.cause {
				t.Errorf("%s, %+v; want %s, %s", state, reason, c.state, c.cause)
			}
		})
	}
}

// TestIdentityStays: a chip in trouble is still the chip that it was.
func TestIdentityStays(t *testing.T) {
	for name, c := range map[string]content{
		"reset": {status: model.Resetting}, "hung": {status: model.Hung, why: whyStuck},
		"all ones": {status: model.Known, text: onesHex}, "lost": {status: model.Lost},
	} {
		t.Run(name, func(t *testing.T) {
			d := model.Device{Serial: model.Value("0100018611905001")}
			for i := range attrs {
				if attrs[i].file == "tt_serial" {
					attrs[i].store(&d, c)
				}
			}
			if d.Serial != model.Value("0100018611905001") {
				t.Errorf("%s: %+v", name, d.Serial)
			}
		})
	}
}

// TestHeartbeatPeriods: firmware from 19.15 on refreshes its table every 10 to
// 1000 ms. None of these periods counts as hung firmware, whatever the time
// between two samples; firmware that does hang is noticed.
func TestHeartbeatPeriods(t *testing.T) {
	begun := time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)
	for _, period := range []time.Duration{10 * time.Millisecond, 100 * time.Millisecond, time.Second} {
		t.Run(period.String(), func(t *testing.T) {
			for _, every := range []time.Duration{100 * time.Millisecond, 700 * time.Millisecond, time.Second, 2900 * time.Millisecond, 10 * time.Second} {
				var h heartbeat
				at := begun
				for range 100 {
					h.add(model.Value(uint32(at.Sub(begun)/period)), at)
					if h.age.Known() && h.age.V >= heartbeatLimit.Seconds() {
						t.Fatalf("a beat every %v, read every %v: %v s old", period, every, h.age.V)
					}
					at = at.Add(every)
				}
				last := h.value
				for until := at.Add(2 * heartbeatLimit); at.Before(until); at = at.Add(every) {
					h.add(model.Value(last), at)
				}
				h.add(model.Value(last), at)
				if !h.age.Known() || h.age.V < heartbeatLimit.Seconds() {
					t.Errorf("a beat every %v, read every %v: firmware that hangs was not noticed, age %+v", period, every, h.age)
				}
			}
		})
	}
}
