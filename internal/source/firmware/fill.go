package firmware

import (
	"github.com/ttmon/ttmon/internal/board/telemetry"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/source/chipread"
)

// Fill adds what is known of a chip's table to its device. What the driver said
// stands; what the catalogue would have said is measured now.
func (s *Source) Fill(d *model.Device) {
	if s.opts.Mode == Off {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.chips[d.BusID]
	if c == nil {
		d.Telemetry = model.Telemetry{State: model.TelemetryPending}
		telemetry.Missing(&d.Telemetry, model.Pending, "the first sample has not been read yet")
		return
	}
	t := &d.Telemetry
	now := s.opts.Now()
	if c.fresh(now, s.opts.Every) {
		telemetry.Decode(d.Arch, c.words, t)
		telemetry.Apply(d, c.words)
		c.addFull(d.Arch, t)
		t.CorrectedRate = c.rates.correctedRate
		t.Way, t.ReadAt = c.how, c.readAt
	} else {
		telemetry.Missing(t, missing(c.state), "the firmware's table was not read")
		t.ReadAt = c.readAt
	}
	t.State, t.Cause, t.Since = c.state, c.cause, c.since
}

// missing is how a reading of a chip is missing that is in a state.
func missing(state model.TelemetryState) model.Status {
	switch state {
	case model.TelemetryPending:
		return model.Pending
	case model.TelemetryStalled:
		return model.Hung
	}
	return model.Stale
}

// addFull adds what dispatch and Ethernet cores accounted for.
func (c *chip) addFull(arch model.Arch, t *model.Telemetry) {
	t.Dispatch = dispatch(&c.full, &c.rates)
	for _, l := range c.full.Links {
		for i := range t.Ports {
			if p := &t.Ports[i]; p.Channel == l.Channel {
				p.Retrains, p.Corrected, p.Uncorrected = model.Value(l.Retrains), model.Value(l.Corrected), model.Value(l.Uncorrected)
				if arch == model.Blackhole {
					p.CodewordBound = model.AtLeast // copied when a program asks, which takes a message
				}
			}
		}
	}
}

// noDispatch says why the dispatch cores' account is missing.
var noDispatch = map[chipread.DispatchCause]string{
	"":                      "it is read with firmware = \"full\", while a program of tt-metal has the chip open",
	chipread.NoBuffer:       "the firmware reserves no buffer for it; 19.12 (Blackhole) and 19.13 (Wormhole) do",
	chipread.NoProgram:      "no program accounts for its work",
	chipread.SlowDispatch:   "the program uses slow dispatch, which has no account",
	chipread.ControlInvalid: "what the program wrote is not plausible",
	chipread.CoreSilent:     "a dispatch core did not answer; it is not asked again until the chip is reset",
	chipread.CoreInvalid:    "the dispatch core's account is not one that ttmon knows",
}

func dispatch(a *chipread.Response, r *rates) model.Dispatch {
	if a.Dispatch == nil {
		why := noDispatch[a.NoDispatch]
		return model.Dispatch{
			Busy: model.Missing[float64](model.Absent, why), Programs: model.Missing[uint32](model.Absent, why), Workers: model.Missing[int](model.Absent, why),
		}
	}
	d := model.Dispatch{Busy: r.busy, Programs: model.Value(a.Dispatch.Programs), Workers: model.Missing[int](model.Absent, "programs before tt-metal 0.81 do not say")}
	if a.Dispatch.Workers > 0 {
		d.Workers = model.Value(a.Dispatch.Workers)
	}
	return d
}
