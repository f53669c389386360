package firmware

import (
	"maps"
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/board/telemetry"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/source/chipread"
)

// chip is what is known of one chip's table. The source's lock guards it.
type chip struct {
	state model.TelemetryState
	cause model.TelemetryCause
	since time.Time
	how   model.TelemetryWay
	due   time.Time

	reader Reader // nil: none runs

	known  *telemetry.Index // nil: to be read
	words  telemetry.Words
	readAt time.Time
	full   chipread.Response // the last one that had more than the table
	rates  rates

	ones       int       // samples in a row that were all ones
	backOff    time.Time // not to be read before
	noResource bool      // the PCI file may not be mapped
	silent     bool      // a tile did not answer: none is asked until a reset

	emptySince time.Time // since when no process was seen to have the chip open
	heartbeat  uint32
	wasReset   bool // since its last sample
}

// observe notes what a snapshot says of the chip, whether or not it is read.
func (c *chip) observe(f *facts) {
	if f.Holders.Any || f.Holders.Unknown || c.emptySince.IsZero() {
		c.emptySince = f.now
	}
	beat, ok := f.Device.Heartbeat.Get()
	if f.Device.State == model.StateResetting || f.Device.State == model.StateLost || ok && beat < c.heartbeat {
		c.forget(f.now)
	}
	if ok {
		c.heartbeat = beat
	}
}

// forget drops what a reset of the chip has made untrue.
func (c *chip) forget(now time.Time) {
	c.known, c.words, c.rates, c.full = nil, nil, rates{}, chipread.Response{}
	c.ones, c.backOff, c.silent, c.heartbeat = 0, time.Time{}, false, 0
	c.wasReset = true
	if c.state == model.TelemetryOK || c.state == model.TelemetryStalled && c.reader == nil {
		c.set(model.TelemetryPending, "", now)
	}
}

func (c *chip) set(state model.TelemetryState, cause model.TelemetryCause, now time.Time) {
	if c.state != state || c.cause != cause {
		c.state, c.cause, c.since = state, cause, now
	}
}

// apply updates the chip with a reader's answer.
func (c *chip) apply(r *chipread.Request, a *chipread.Response, now time.Time) {
	if a.Cause != model.ReadAllOnes {
		c.ones = 0
	}
	switch a.Cause {
	case "":
		c.applyWords(r, a, now)
		c.set(model.TelemetryOK, "", now)
		return
	case model.ReadAllOnes:
		if c.ones++; c.ones >= 2 {
			c.backOff, c.ones = now.Add(backOff), 0
		}
	case model.ReadDenied:
		if r.Way == model.ByResource && !c.noResource {
			c.noResource, c.due = true, now // by the node then, if that is harmless
			return
		}
	}
	c.known = nil
	c.set(model.TelemetryFailed, a.Cause, now)
}

func (c *chip) applyWords(r *chipread.Request, a *chipread.Response, now time.Time) {
	same := c.known != nil && c.known.Table == a.Index.Table && c.known.Data == a.Index.Data && slices.Equal(c.known.Entries, a.Index.Entries)
	words := maps.Clone(a.Words)
	if same {
		words = maps.Clone(c.words)
		maps.Copy(words, a.Words)
	}
	c.known, c.words, c.readAt, c.how = &a.Index, words, now, r.Way
	c.silent = c.silent || a.NoDispatch == chipread.CoreSilent
	c.full = *a
	var t model.Telemetry
	telemetry.Decode(r.Arch, words, &t)
	c.rates.next(&t, a, now)
}

// fresh reports whether the last sample still holds.
func (c *chip) fresh(now time.Time, every time.Duration) bool {
	return c.words != nil && now.Sub(c.readAt) < 4*every
}
