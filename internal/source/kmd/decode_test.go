package kmd

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/model"
)

func TestTemperature(t *testing.T) {
	for text, want := range map[string]model.Reading[float64]{
		"45500":      model.Value(45.5),
		"0":          model.Value(0.0),
		"65531500":   model.Value(-4.5), // the driver does not extend the sign
		"65535999":   model.Missing[float64](model.Hung, whyOnes),
		"4095937":    model.Missing[float64](model.Hung, whyOnes),                                             // Wormhole up to driver 2.8
		"65600000":   model.Missing[float64](model.Implausible, "65600000 m°C is what a failed sensor gives"), // more than 16 bits of degrees hold
		"32768000":   model.Missing[float64](model.Implausible, "32768000 m°C is what a failed sensor gives"),
		"4294967295": model.Missing[float64](model.Implausible, "4294967295 m°C is what a failed sensor gives"),
		"":           model.Missing[float64](model.Implausible, `the driver printed "" where a temperature belongs`),
		"45.5":       model.Missing[float64](model.Implausible, `the driver printed "45.5" where a temperature belongs`),
	} {
		t.Run(text, func(t *testing.T) {
			if got := temperature(text).reading; got != want {
				t.Errorf("temperature(%q) = %+v, want %+v", text, got, want)
			}
		})
	}
}

func TestDecode(t *testing.T) {
	for _, c := range []struct {
		name string
		got  string
		want string
	}{
		{"clock", measured(megahertz)("1350").reading.Reason(), ""},
		{"impossible clock", measured(megahertz)("6553600").reading.Reason(), "implausible: 6553600 MHz is beyond what any board does"},
		{"more than 32 bits", measured(watts)("65535000000").reading.Reason(), "implausible: 65535 W is beyond what any board does"},
		{"limit of 0", limit(watts)("0").reading.Reason(), "absent: the firmware gives no limit"},
		{"version", dotted(4, onesVersion)("19.4.0.0").reading.Reason(), ""},
		{"no version", dotted(4, onesVersion)("0.0.0.0").reading.Reason(), "absent: the firmware gives 0.0.0.0"},
		{"short version", dotted(4, onesVersion)("1.2").reading.Reason(), `implausible: the driver printed "1.2" where a version of 4 parts belongs`},
		{"dead ETH", dotted(3, onesETH)("255.15.4095").reading.Reason(), "hung: " + whyOnes},
		{"id", hexID("0100018611905001").reading.Reason(), ""},
		{"no id", hexID("0000000000000000").reading.Reason(), "absent: the firmware gives 0"},
		{"bad id", hexID("010001861190500G").reading.Reason(), `implausible: the driver printed "010001861190500G" where 16 hex digits belong`},
		{"long", count(strings.Repeat("9", 60)).reading.Reason(), `implausible: the driver printed "999999999999999999999999…" where a 32-bit number belongs`},
		{"link", linkGen("Unknown").reading.Reason(), `implausible: the kernel printed "Unknown" for the link speed`},
		{"dead width", linkWidth("63").reading.Reason(), "hung: " + whyOnes},
		{"no node", numaNode("-1").reading.Reason(), "absent: the kernel knows no NUMA node for it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.got != c.want {
				t.Errorf("%s: got %q, want %q", c.name, c.got, c.want)
			}
		})
	}
	for text, want := range map[string]int{"2.5 GT/s PCIe": 1, "5.0 GT/s PCIe": 2, "5 GT/s": 2, "8.0 GT/s PCIe": 3, "16.0 GT/s PCIe": 4, "32.0 GT/s PCIe": 5} {
		t.Run(text, func(t *testing.T) {
			if got := linkGen(text).reading; got != model.Value(want) {
				t.Errorf("linkGen(%q) = %+v, want %d", text, got, want)
			}
		})
	}
}

// TestOnes: what the driver prints for a chip off the bus, in either width.
func TestOnes(t *testing.T) {
	for _, c := range []struct {
		of   string
		q    quantity
		wide string
		half string
	}{
		{"clock", megahertz, "4294967295", "65535"},
		{"power", watts, "4293967296", "1110490560"},
		{"current", amperes, "4294966296", "65535000"},
		{"voltage", volts, "4294967295", "65535"},
		{"temperature limit", degrees, "4294966296", "65535000"},
		{"fan", rpm, "4294967295", "65535"},
	} {
		t.Run(c.of, func(t *testing.T) {
			for _, text := range []string{c.wide, c.half} {
				if d := measured(c.q)(text); !d.ones || d.reading.Status != model.Hung {
					t.Errorf("%s %s: %+v", c.of, text, d)
				}
			}
		})
	}
}

func TestVersion(t *testing.T) {
	order := []string{"1.27.1", "1.34", "2.0.0", "2.9.0-rc1", "2.9.1", "2.10.0", "2.10.1-pre", "10.0"}
	for i := 1; i < len(order); i++ {
		a, okA := ParseVersion(order[i-1])
		b, okB := ParseVersion(order[i])
		if !okA || !okB || !a.Less(b) || b.Less(a) {
			t.Errorf("%s is not before %s", order[i-1], order[i])
		}
	}
	for _, bad := range []string{"", "2", "2.x.0", "1.2.3.4", "-1.2", "2.99999999999"} {
		t.Run(bad, func(t *testing.T) {
			if v, ok := ParseVersion(bad); ok {
				t.Errorf("ParseVersion(%q) = %v, want none", bad, v)
			}
		})
	}
}

// link is a Gen4 x16 link: 31.5 GB/s, so a counter wraps after 4.4 s at the least.
func gen4() model.PCIe {
	return model.PCIe{GenMax: model.Value(4), WidthMax: model.Value(16)}
}

func words(at time.Time, n ...uint32) sample {
	s := sample{at: at, status: model.Known}
	copy(s.words[:], n)
	return s
}

func TestTraffic(t *testing.T) {
	t0 := time.Unix(1000, 0)
	at := func(s float64) time.Time { return t0.Add(time.Duration(s * float64(time.Second))) }
	type step struct {
		sample   sample
		to, from any // float64, or a reason
		total    any // to the device: uint64, or a reason
	}
	pend, restart := "pending: a rate needs two samples", "pending: the counters restarted"
	first := "pending: totals count from the first sample on"
	for _, c := range []struct {
		name  string
		steps []step
	}{
		{"both networks, 32 bytes a word", []step{
			{words(at(0), 0, 0, 0, 0, 0, 0, 0, 0), pend, pend, first},
			// A million words on NOC0, one word on NOC1: 32000032 bytes.
			{words(at(1), 1_000_000, 1, 0, 0, 0, 0, 500, 0), 32_000_032.0, 16_000.0, uint64(32_000_032)},
			{words(at(3), 1_000_000, 1, 10, 0, 0, 0, 500, 0), 160.0, 0.0, uint64(32_000_352)},
		}},
		{"a wrap", []step{
			{words(at(0), 4294967290), pend, pend, first},
			{words(at(1), 5), 11 * 32.0, 0.0, uint64(11 * 32)},
		}},
		{"a restart is no wrap", []step{
			{words(at(0), 2_000_000_000, 0, 0, 0, 0, 0, 7), pend, pend, first},
			{words(at(1), 10), restart, restart, first},
			{words(at(2), 20), 320.0, 0.0, uint64(320)},
		}},
		{"a restart that only the sum gives away", []step{
			{words(at(0), 4_000_000_000, 4_000_000_000, 4_000_000_000, 4_000_000_000), pend, pend, first},
			{words(at(1), 0), restart, restart, first},
		}},
		{"off the bus and back", []step{
			{words(at(0), 100), pend, pend, first},
			{words(at(1), 200), 3200.0, 0.0, uint64(3200)},
			{sample{at: at(2), status: model.Hung, why: whyOnes}, "hung: " + whyOnes, "hung: " + whyOnes, uint64(3200)},
			{words(at(3), 50), pend, pend, uint64(3200)},
			{words(at(4), 60), 320.0, 0.0, uint64(3520)},
		}},
		{"sampled too seldom", []step{
			{words(at(0), 0), pend, pend, first},
			{words(at(10), 100), "pending: sampled 10s apart: the counters may have wrapped more than once", "pending: sampled 10s apart: the counters may have wrapped more than once", first},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var tr traffic
			p := gen4()
			for i, s := range c.steps {
				tr.add(s.sample, &p)
				check(t, i, "rate to the device", p.ToDeviceRate, s.to)
				check(t, i, "rate from the device", p.FromDeviceRate, s.from)
				check(t, i, "total to the device", p.ToDeviceTotal, s.total)
				tr.markShown()
			}
		})
	}
}

// TestRateOfTwoLooks: a client that looks a moment after another gets the other's rate:
// over that moment alone it would say nothing.
func TestRateOfTwoLooks(t *testing.T) {
	var tr traffic
	p := gen4()
	begin := time.Unix(1000, 0)
	look := func(after time.Duration, words uint32) float64 {
		s := sample{at: begin.Add(after), status: model.Known}
		s.words[0] = words
		tr.add(s, &p)
		tr.markShown()
		return (p.ToDeviceRate.V + p.FromDeviceRate.V) / float64(wordBytes)
	}
	look(0, 0)
	got := []float64{look(time.Second, 1000), look(1010*time.Millisecond, 1100), look(2*time.Second, 1100), look(3*time.Second, 1100)}
	if want := []float64{1000, 1000, 100, 0}; !slices.Equal(got, want) {
		t.Errorf("%v words/s, want %v", got, want)
	}
}

// TestRateOverSamples: a rate is over the time between two readings that were
// shown, whatever was sampled in between.
func TestRateOverSamples(t *testing.T) {
	start := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	sampled := func(seconds int, words uint32) (s sample) {
		s = sample{at: start.Add(time.Duration(seconds) * time.Second), status: model.Known}
		s.words[0] = words
		return s
	}
	var tr traffic
	p := gen4()
	tr.add(sampled(0, 0), &p)
	tr.markShown()
	for second, words := range []uint32{1000, 1000, 1000, 1000, 11000} {
		tr.add(sampled(second+1, words), &p)
	}
	if got, want := p.ToDeviceRate.V+p.FromDeviceRate.V, 11000*float64(wordBytes)/5; got != want {
		t.Errorf("%v bytes/s over five seconds, want %v", got, want)
	}
}

func check[T any](t *testing.T, step int, what string, got model.Reading[T], want any) {
	t.Helper()
	if reason, ok := want.(string); ok {
		if got.Reason() != reason {
			t.Errorf("step %d, %s: got %v %q, want the reason %q", step, what, got.V, got.Reason(), reason)
		}
		return
	}
	if !got.Known() || any(got.V) != want {
		t.Errorf("step %d, %s: got %v %q, want %v", step, what, got.V, got.Reason(), want)
	}
}

func TestHeartbeat(t *testing.T) {
	t0 := time.Unix(1000, 0)
	var h heartbeat
	add := func(v uint32, s float64) { h.add(model.Value(v), t0.Add(time.Duration(s*float64(time.Second)))) }
	add(100, 0)
	if h.age.Status != model.Pending {
		t.Errorf("one sample: age %+v", h.age)
	}
	add(110, 1)
	check(t, 1, "age", h.age, 0.0)
	check(t, 1, "rate", h.rate, 10.0)
	add(110, 3)
	add(110, 5)
	check(t, 3, "age of a stopped one", h.age, 4.0)
	add(3, 6)
	if !h.restarted {
		t.Error("a restarted counter was not noticed")
	}
	check(t, 4, "age after a restart", h.age, 0.0)
	h = heartbeat{}
	add(7, 0)
	add(7, 4)
	h.add(model.Missing[uint32](model.Hung, "the read has not returned"), t0.Add(5*time.Second))
	add(7, 6)
	check(t, 6, "age after a read that did not return", h.age, 6.0)
	add(8, 7)
	check(t, 7, "age of one that moves again", h.age, 0.0)
	check(t, 8, "rate of one that moves again", h.rate, 1.0)
	h.add(model.Missing[uint32](model.Resetting, "a reset is under way"), t0.Add(8*time.Second))
	add(8, 9)
	if h.age.Known() {
		t.Errorf("after a reset the heartbeat is %v s old", h.age.V)
	}
	h = heartbeat{}
	add(math.MaxUint32-2, 0)
	add(7, 1)
	if h.restarted {
		t.Error("a wrap counted as a restart")
	}
	check(t, 5, "rate across a wrap", h.rate, 10.0)
}

// FuzzDecode feeds anything to every decoder: a reading is known and
// plausible, or says why not.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{"45500", "65535999", "4294967295", "FFFFFFFFFFFFFFFF", "1.2.3.4", "16.0 GT/s PCIe", "16", "", "-1", "0x1e52", "unknown", "0-15,32-47"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for i := range attrs {
			var d model.Device
			attrs[i].store(&d, content{text: s, status: model.Known})
			for _, r := range []model.Reading[float64]{d.Temperature, d.AICLK, d.Power, d.Current, d.Voltage, d.Fan} {
				if r.Known() && (math.IsNaN(r.V) || r.V < -100 || r.V > 1e10) {
					t.Errorf("%s made %v of %q", attrs[i].file, r.V, s)
				}
			}
			if d.Temperature.Known() && d.Temperature.V > 200 || d.AICLK.Known() && d.AICLK.V > maxClockMHz {
				t.Errorf("%s made an impossible value of %q", attrs[i].file, s)
			}
		}
		ParseVersion(s)
		parseUnbound(s)
	})
}

func FuzzOpeners(f *testing.F) {
	f.Add([]byte("150\n149\n"))
	f.Add([]byte("0\n0\n-1\n"))
	f.Add(bytes.Repeat([]byte("4194304\n"), pidsBytes/8))
	f.Fuzz(func(t *testing.T, b []byte) {
		pids, err := parseOpeners(b)
		for _, pid := range pids {
			if pid < 0 || err != nil {
				t.Errorf("pid %d, error %v", pid, err)
			}
		}
	})
}
