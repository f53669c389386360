package prom

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/ttmon/ttmon/internal/field/wire/sample"
	"github.com/ttmon/ttmon/internal/lab/golden"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/node/stream"
)

var all = Options{Version: "1.2.3", Revision: "abc", GoVersion: "go1.26", Processes: 64, MaxWorkloads: 64, Estimates: true}

var self = &stream.Self{
	Sources: []stream.Source{{Name: "driver", Duration: 3 * time.Millisecond, OK: true, LastOK: time.Unix(1_800_000_000, 0)}, {Name: "shm", Duration: time.Second}},
	Limits:  []stream.Limit{{Name: "watchers", Max: 1024, Used: 3, Dropped: 7}},
	Clients: []stream.Client{{Kind: "watch", Count: 3}},
}

func page(f Format, s *model.Snapshot) []byte {
	w := NewWalker(all)
	w.Observe(s)
	p := Page{Format: f}
	w.Walk(s, self, p.Add)
	return p.Bytes()
}

// The whole page, read by a person.
func TestPage(t *testing.T) {
	golden.Check(t, "testdata/one.prom", page(Text, sample.One()))
	golden.Check(t, "testdata/troubles.prom", page(Text, sample.Troubles()))
	golden.Check(t, "testdata/one.openmetrics", page(OpenMetrics, sample.One()))
}

// A family's samples stand together, and no series is there twice.
func TestFamiliesStandTogether(t *testing.T) {
	for _, s := range []*model.Snapshot{sample.One(), sample.Four(), sample.Galaxy(), sample.Troubles(), sample.NoDriver()} {
		done, series := map[string]bool{}, map[string]bool{}
		last := ""
		w := NewWalker(all)
		w.Observe(s)
		w.Walk(s, self, func(f *Family, labels Labels, v float64) {
			if f.Name != last {
				if done[f.Name] {
					t.Errorf("%s is torn apart", f.Name)
				}
				done[f.Name], last = true, f.Name
			}
			if key := f.Name + string(labels.AppendText(nil)); series[key] {
				t.Errorf("%s{%s} is there twice", f.Name, labels)
			} else {
				series[key] = true
			}
		})
	}
}

// What does not answer has no sample, and what it is does not change.
func TestHungDeviceKeepsItsSeriesNames(t *testing.T) {
	w := NewWalker(all)
	well := sample.One()
	w.Observe(well)
	before := collect(w, well)
	ill := sample.One()
	ill.Time = well.Time.Add(time.Second)
	sample.Hang(&ill.Devices[0])
	ill.Devices[0].ASICID = model.Missing[string](model.Hung, "")
	w.Observe(ill)
	after := collect(w, ill)
	for key := range after {
		if _, ok := before[key]; !ok {
			t.Errorf("a hung device has a new series %s", key)
		}
	}
	for key := range after {
		if strings.HasPrefix(key, "tenstorrent_asic_temperature_celsius") {
			t.Errorf("%s is not known", key)
		}
	}
	state := `tenstorrent_device_state{` + string(w.devices[ill.Devices[0].BusID].labels.AppendText(nil)) + `,state="hung"}`
	if before[state] != 0 || after[state] != 1 {
		t.Errorf("state %v, then %v", before[state], after[state])
	}
}

func collect(w *Walker, s *model.Snapshot) map[string]float64 {
	m := map[string]float64{}
	w.Walk(s, self, func(f *Family, labels Labels, v float64) { m[f.Name+"{"+string(labels.AppendText(nil))+"}"] = v })
	return m
}

func TestCounters(t *testing.T) {
	w := NewWalker(all)
	at := sample.One().Time
	for i, step := range []func(s *model.Snapshot){
		func(s *model.Snapshot) { s.Devices[0].Power = model.Value(100.0) },
		func(s *model.Snapshot) { s.Devices[0].Power = model.Value(200.0) },
		func(s *model.Snapshot) { sample.Reset(&s.Devices[0]) },
		func(s *model.Snapshot) { s.Devices[0].Power = model.Value(50.0) },
		func(s *model.Snapshot) { s.Devices = nil },
		func(s *model.Snapshot) { s.Devices = nil },
		func(s *model.Snapshot) { s.Devices[0].Power = model.Value(50.0) },
	} {
		s := sample.One()
		s.Time = at.Add(time.Duration(i) * time.Second)
		step(s)
		w.Observe(s)
	}
	x := w.devices[sample.One().Devices[0].BusID]
	if x.joules != 150 || x.resets != 1 || x.losses != 1 {
		t.Errorf("%v J, %v resets, %v losses; want 150, 1, 1", x.joules, x.resets, x.losses)
	}
}

func TestBoundsAndWorkloads(t *testing.T) {
	s := sample.Four()
	s.Processes[0].Container, s.Processes[0].SystemdUnit, s.Processes[0].SlurmJob = model.Container{}, "", "42"
	sample.DoubtUse(&s.Processes[0], model.AtLeast)
	w := NewWalker(all)
	w.Observe(s)
	m := collect(w, s)
	d := string(w.devices[s.Device(s.Processes[0].Devices[0].Device).BusID].labels.AppendText(nil))
	if m[`tenstorrent_workload_memory_used_bound{`+d+`,slurm_job="42",pool="dram"}`] != float64(model.AtLeast) {
		t.Error("the workload's doubt is lost")
	}
	if m[`tenstorrent_workload_memory_used_bytes{`+d+`,slurm_job="42",pool="dram"}`] == 0 {
		t.Error("the workload has no memory")
	}
	narrow := all
	narrow.MaxWorkloads, narrow.Processes = 1, 1
	w = NewWalker(narrow)
	w.Observe(s)
	m = collect(w, s)
	if m[`tenstorrent_limit_dropped_total{limit="workloads"}`] == 0 {
		t.Error("what is left out is not counted")
	}
}

func TestNegotiate(t *testing.T) {
	for accept, want := range map[string]Format{
		"": Text, "text/plain": Text, "*/*": Text,
		"application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5": OpenMetrics,
		"application/openmetrics-text;version=2.0.0":                                Text,
	} {
		t.Run(accept, func(t *testing.T) {
			if got := Negotiate(accept); got != want {
				t.Errorf("%q: %v", accept, got)
			}
		})
	}
}

// Whatever a label holds, the page stays a page.
func FuzzLabel(f *testing.F) {
	for _, s := range []string{"", `a"b`, "a\nb", `\`, "\xff\xfe", "ü"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		b := Pairs("a", "1", "x", s).AppendText(nil)
		if !utf8.Valid(b) || bytes.ContainsRune(b, '\n') {
			t.Errorf("%q became %q", s, b)
		}
		text, ok := strings.CutPrefix(string(b), `a="1",x="`)
		if s == "" {
			return
		}
		text = strings.TrimSuffix(text, `"`)
		back := strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, "\n").Replace(text)
		if !ok || back != strings.ToValidUTF8(s, "\ufffd") && utf8.ValidString(s) {
			t.Errorf("%q became %q", s, b)
		}
	})
}

func BenchmarkGalaxy(b *testing.B) {
	s := sample.Galaxy()
	w := NewWalker(all)
	w.Observe(s)
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		w.Walk(s, self, func(*Family, Labels, float64) { n++ })
		b.ReportMetric(float64(n), "samples")
	}
}

// The chips of a board with several have series of their own, which add up to
// the device's. A board with one has none.
func TestChips(t *testing.T) {
	chip := func(name string, dram model.Bytes) (c model.Chip) {
		c.Name = name
		c.Memory.Tracking = model.TrackOK
		c.Memory.Pools[model.DRAM] = model.PoolUse{Used: dram, Total: model.Value[uint64](100)}
		return c
	}
	device := func(index int, bus string, chips ...model.Chip) (d model.Device) {
		var used model.Sum
		d.Index, d.BusID, d.State, d.Chips = index, bus, model.StateOK, chips
		d.Memory.Tracking = model.TrackOK
		for _, c := range chips {
			used.Add(c.Memory.Pools[model.DRAM].Used)
		}
		d.Memory.Pools[model.DRAM].Used = used.Bytes()
		return d
	}
	s := &model.Snapshot{Devices: []model.Device{
		device(0, "0000:01:00.0", chip("L", model.ExactBytes(30)), chip("R", model.BoundBytes(12, model.AtLeast))),
		device(1, "0000:02:00.0", chip("", model.ExactBytes(7))),
	}}
	text := string(page(Text, s))
	for _, line := range []string{
		`tenstorrent_chip_memory_used_bytes{device="0",pci="0000:01:00.0",chip="L",pool="dram"} 30`,
		`tenstorrent_chip_memory_used_bytes{device="0",pci="0000:01:00.0",chip="R",pool="dram"} 12`,
		`tenstorrent_chip_memory_used_bound{device="0",pci="0000:01:00.0",chip="L",pool="dram"} 0`,
		`tenstorrent_chip_memory_used_bound{device="0",pci="0000:01:00.0",chip="R",pool="dram"} 1`,
		`tenstorrent_chip_memory_size_bytes{device="0",pci="0000:01:00.0",chip="R",pool="dram"} 100`,
		`tenstorrent_memory_used_bytes{device="0",pci="0000:01:00.0",pool="dram"} 42`,
		`tenstorrent_memory_used_bytes{device="1",pci="0000:02:00.0",pool="dram"} 7`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("there is no %s", line)
		}
	}
	if n := strings.Count(text, "\ntenstorrent_chip_memory_used_bytes{"); n != 2 {
		t.Errorf("%d series of chips, want two:\n%s", n, text)
	}
}

// The longest gap of a process is there where no program can have run in it.
func TestLongestGap(t *testing.T) {
	for _, tt := range []struct {
		name  string
		gap   float64
		cause model.GapCause
		want  bool
	}{
		{"certain", 0.25, "", true},
		{"certain, and not listed", 0.25, model.GapsNotKept, true},
		{"a program may have run unreported", 0.25, model.GapsLossy, false},
		{"no gap yet", 0, "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := sample.One()
			s.Processes = s.Processes[:1]
			s.Processes[0].Work.Chips = []model.ChipWork{{Device: s.Devices[0].Index, ChipID: 7, LongestGap: tt.gap, GapsCause: tt.cause}}
			text := string(page(Text, s))
			if got := strings.Contains(text, "\ntenstorrent_process_longest_gap_seconds{") && strings.Contains(text, " 0.25\n"); got != tt.want {
				t.Errorf("there: %v, want %v", got, tt.want)
			}
		})
	}
}
