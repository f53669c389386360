package kmd

import (
	"time"

	"github.com/ttmon/ttmon/internal/model"
)

// The counters of the PCIe tile: one per kind of traffic and per network on
// chip. The suffix 0 or 1 is that network, not the half of a 64-bit number;
// the traffic is the sum of both. "Master" is the host reaching into the
// chip, "slave" the chip reaching into the host.
var counterFiles = [...]struct {
	file     string
	toDevice bool
}{
	{"mst_posted_wr_data_word_sent0", true},
	{"mst_posted_wr_data_word_sent1", true},
	{"mst_nonposted_wr_data_word_sent0", true},
	{"mst_nonposted_wr_data_word_sent1", true},
	{"slv_rd_data_word_sent0", true},
	{"slv_rd_data_word_sent1", true},
	{"mst_rd_data_word_received0", false},
	{"mst_rd_data_word_received1", false},
	{"slv_posted_wr_data_word_received0", false},
	{"slv_posted_wr_data_word_received1", false},
	{"slv_nonposted_wr_data_word_received0", false},
	{"slv_nonposted_wr_data_word_received1", false},
}

const (
	counterDir   = "pcie_perf_counters"
	wordBytes    = 32 // the unit of a counter, by the driver's documentation
	countersFrom = "2.0.0"

	// slack is what may be transferred between the reads of two counters.
	slack = 1 << 20
)

// traffic turns samples of the counters into rates and totals.
type traffic struct {
	last    [len(counterFiles)]uint32
	at      time.Time // of last; zero if there is none to compare with
	total   [2]uint64 // bytes from and to the device since the first sample
	counted bool
	// shown are total and at when rates were last shown: a rate is over the time
	// between two readings of the host, however often it was sampled in between.
	// Zero where samples were missed since.
	shownTotal [2]uint64
	shownAt    time.Time
	rates      [2]model.Reading[float64] // as last set
}

// sample is one reading of all the counters.
type sample struct {
	words  [len(counterFiles)]uint32
	at     time.Time
	status model.Status // Known if all counters were read
	why    string
	ones   bool // the counters are all ones, or not read because of that
}

// add adds a sample and sets the rates and totals of the link. The link itself
// must be known already: it bounds the possible traffic.
func (t *traffic) add(s sample, p *model.PCIe) {
	if s.status != model.Known {
		t.at, t.shownAt = time.Time{}, time.Time{}
		t.setRates(p, model.Missing[float64](s.status, s.why), model.Missing[float64](s.status, s.why))
		return
	}
	elapsed := s.at.Sub(t.at)
	switch {
	case t.at.IsZero():
		t.shownAt = time.Time{}
		t.setRates(p, pending, pending)
	case elapsed <= 0:
		return
	default:
		t.advance(s, elapsed, p)
	}
	t.last, t.at = s.words, s.at
}

var pending = model.Missing[float64](model.Pending, "a rate needs two samples")

func (t *traffic) advance(s sample, elapsed time.Duration, p *model.PCIe) {
	most := linkBytesPerSecond(p) * elapsed.Seconds()
	if most >= wordBytes<<32 {
		why := "sampled " + elapsed.Round(100*time.Millisecond).String() + " apart: the counters may have wrapped more than once"
		r := model.Missing[float64](model.Pending, why)
		t.shownAt = time.Time{}
		t.setRates(p, r, r)
		return
	}
	var moved [2]uint64
	for i, c := range counterFiles {
		// Unsigned subtraction is right across a wrap.
		words := s.words[i] - t.last[i]
		moved[direction(c.toDevice)] += uint64(words) * wordBytes
	}
	// A counter that was cleared looks like a wrap, too, but one that exceeds the
	// link's bandwidth.
	if float64(max(moved[0], moved[1])) > most+slack {
		r := model.Missing[float64](model.Pending, "the counters restarted")
		t.shownAt = time.Time{}
		t.setRates(p, r, r)
		return
	}
	if t.shownAt.IsZero() {
		t.shownAt, t.shownTotal = t.at, t.total
	}
	t.counted = true
	for i, n := range moved {
		t.total[i] += n
	}
	period := s.at.Sub(t.shownAt)
	if period < minPeriod && t.rates[0].Known() {
		t.setRates(p, t.rates[direction(true)], t.rates[direction(false)])
		return
	}
	rate := func(toDevice bool) model.Reading[float64] {
		i := direction(toDevice)
		return model.Value(float64(t.total[i]-t.shownTotal[i]) / period.Seconds())
	}
	t.setRates(p, rate(true), rate(false))
}

// minPeriod is the shortest that a rate says something about. Who looks sooner after
// another gets the same rate again.
const minPeriod = 100 * time.Millisecond

// markShown starts the period of the next rates, unless the last has only just begun.
func (t *traffic) markShown() {
	if t.at.Sub(t.shownAt) >= minPeriod {
		t.shownAt, t.shownTotal = t.at, t.total
	}
}

func direction(toDevice bool) int {
	if toDevice {
		return 1
	}
	return 0
}

// setRates stores rates, and the totals if there have ever been any.
func (t *traffic) setRates(p *model.PCIe, to, from model.Reading[float64]) {
	t.rates[direction(true)], t.rates[direction(false)] = to, from
	p.ToDeviceRate, p.FromDeviceRate = to, from
	if t.counted {
		p.ToDeviceTotal = model.Value(t.total[direction(true)])
		p.FromDeviceTotal = model.Value(t.total[direction(false)])
		return
	}
	status, why := to.Status, to.Why
	if status == model.Pending {
		why = "totals count from the first sample on"
	}
	p.ToDeviceTotal = model.Missing[uint64](status, why)
	p.FromDeviceTotal = model.Missing[uint64](status, why)
}

// linkBytesPerSecond is the most a link can carry one way, as PCIe encodes it.
// An unknown link counts as the fastest that any board has.
func linkBytesPerSecond(p *model.PCIe) float64 {
	perLane := [...]float64{1: 250e6, 2: 500e6, 3: 985e6, 4: 1969e6, 5: 3938e6, 6: 7563e6}
	gen, width := 5, 16
	// The maximum, not the current link: it may have been retrained between
	// the samples.
	if v, ok := p.GenMax.Get(); ok && v < len(perLane) {
		gen = v
	}
	if v, ok := p.WidthMax.Get(); ok {
		width = v
	}
	return perLane[gen] * float64(width)
}
