package vendor

import (
	"math"
	"slices"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/board/telemetry"
)

// Metrics of the exporter.
const (
	asicTemperature  = "tt_asic_temperature_celsius"
	corePower        = "tt_tdp_w"
	boardTemperature = "tt_board_temperature_celsius"
	fanPercent       = "tt_fan_speed_percent"
	memorySpeed      = "tt_dram_speed_mbps"
	memoryTrained    = "tt_dram_trained"
	memoryTop        = "tt_dram_temperature_top_celsius"
	memoryBottom     = "tt_dram_temperature_bottom_celsius"
	correctedReads   = "tt_dram_corrected_edc_read_errors"
	correctedWrites  = "tt_dram_corrected_edc_write_errors"
	linkUp           = "tt_ethernet_link_up"
	linkRetrains     = "tt_ethernet_retrain_count"
	linkCorrected    = "tt_ethernet_corrected_codeword_count"
	linkUncorrected  = "tt_ethernet_uncorrected_codeword_count"
	fabricSent       = "tt_fabric_tx_bandwidth_megabytes_per_second"
	fabricReceived   = "tt_fabric_rx_bandwidth_megabytes_per_second"
	fabricSentTotal  = "tt_fabric_tx_bytes_total"
	fabricRecvTotal  = "tt_fabric_rx_bytes_total"
)

// notExported is why a value is missing that the exporter does not have.
const notExported = "tt-telemetry does not export it"

// fill adds an answer to a snapshot's devices, which the caller owns. What ttmond
// measured itself stands.
func (s *sample) fill(snap *model.Snapshot) {
	at, why := s.places(snap)
	for i := range snap.Devices {
		d := &snap.Devices[i]
		if why != "" {
			noRemote(d, model.Absent, why)
			continue
		}
		own := s.chips[at[i]]
		s.fillOwn(d, own)
		own.fillPorts(&d.Telemetry)
		for k := range d.Chips {
			if c := &d.Chips[k]; c.Remote {
				s.chips[place{at[i].tray, at[i].chip + 1}].fillRemote(c)
			}
		}
	}
}

// noRemote says why nothing is known of the chips behind a device.
func noRemote(d *model.Device, status model.Status, why string) {
	for k := range d.Chips {
		if c := &d.Chips[k]; c.Remote {
			c.Temperature, c.Power = model.Missing[float64](status, why), model.Missing[float64](status, why)
		}
	}
}

// fillRemote adds what the exporter has of a chip behind Ethernet. It writes 0 for
// what it could not read.
func (c *chip) fillRemote(to *model.Chip) {
	if c == nil {
		to.Temperature, to.Power = model.Missing[float64](model.Absent, notExported), model.Missing[float64](model.Absent, notExported)
		return
	}
	to.Temperature, to.Power = positive(c.values, asicTemperature), positive(c.values, corePower)
	to.SensorsFrom = model.ByExporter
}

// fillOwn adds what the firmware's table would have said, where ttmond does not
// read it.
func (s *sample) fillOwn(d *model.Device, c *chip) {
	t := &d.Telemetry
	if t.State != model.TelemetryOff {
		return
	}
	ports := t.Ports
	telemetry.Missing(t, model.Absent, notExported)
	t.State, t.Way, t.ReadAt, t.Since, t.Ports = model.TelemetryOK, model.ByExporter, s.at, s.at, ports
	t.BoardTemperature = positive(c.values, boardTemperature)
	t.MemorySpeed = positive(c.values, memorySpeed)
	if v, ok := c.values[fanPercent]; ok {
		t.FanDuty = model.Value(v)
	}
	for _, n := range sorted(c.modules) {
		t.Modules = append(t.Modules, module(n, c.modules[n]))
	}
	sum, known := uint64(0), false
	for i := range t.Modules {
		m := &t.Modules[i]
		if m.Top.Known() && (!t.MemoryTemperature.Known() || m.Top.V > t.MemoryTemperature.V) {
			t.MemoryTemperature = m.Top
		}
		if m.Bottom.Known() && (!t.MemoryTemperature.Known() || m.Bottom.V > t.MemoryTemperature.V) {
			t.MemoryTemperature = m.Bottom
		}
		known = known || m.CorrectedReads.Known() || m.CorrectedWrites.Known()
		sum += uint64(m.CorrectedReads.V) + uint64(m.CorrectedWrites.V)
		if m.CorrectedBound != model.Exact {
			t.CorrectedBound = m.CorrectedBound
		}
	}
	if known {
		t.Corrected = model.Value(sum)
	}
}

// stuckAt is where the firmware's counters of one byte stay.
const stuckAt = 255

func module(n int, v map[string]float64) model.MemoryModule {
	missing := model.Missing[bool](model.Absent, notExported)
	m := model.MemoryModule{
		Index: n, Top: positive(v, memoryTop), Bottom: positive(v, memoryBottom), Trained: missing, Failed: missing,
		CorrectedReads: count[uint32](v, correctedReads), CorrectedWrites: count[uint32](v, correctedWrites),
		UncorrectedReads: missing, UncorrectedWrite: missing,
	}
	if trained, ok := v[memoryTrained]; ok {
		m.Trained = model.Value(trained != 0)
	}
	if m.CorrectedReads.V >= stuckAt || m.CorrectedWrites.V >= stuckAt {
		m.CorrectedBound = model.AtLeast
	}
	return m
}

// fillPorts adds the exporter's counters to the ports that have none.
func (c *chip) fillPorts(t *model.Telemetry) {
	t.Ports = slices.Clone(t.Ports)
	for _, n := range sorted(c.channels) {
		v := c.channels[n]
		i := slices.IndexFunc(t.Ports, func(p model.EthernetPort) bool { return p.Channel == n })
		if i < 0 {
			t.Ports = append(t.Ports, model.EthernetPort{
				Channel: n, Alive: model.Missing[bool](model.Absent, notExported), Up: model.Missing[bool](model.Absent, notExported),
			})
			i = len(t.Ports) - 1
		}
		p := &t.Ports[i]
		if up, ok := v[linkUp]; ok && !p.Up.Known() {
			p.Up = model.Value(up != 0)
		}
		orCount(&p.Retrains, v, linkRetrains)
		orCount(&p.Corrected, v, linkCorrected)
		orCount(&p.Uncorrected, v, linkUncorrected)
		p.Sent, p.Received = traffic(v, fabricSent), traffic(v, fabricReceived)
	}
	slices.SortStableFunc(t.Ports, func(a, b model.EthernetPort) int { return a.Channel - b.Channel })
}

// traffic is what a link carries. The exporter publishes 0 for programs that do not
// count it: 0 is believed only of a link that has carried something.
func traffic(v map[string]float64, name string) model.Reading[float64] {
	const megabyte = 1e6
	x, ok := v[name]
	switch {
	case !ok:
		return model.Missing[float64](model.Absent, notExported)
	case !(x >= 0) || math.IsInf(x, 0):
		return model.Missing[float64](model.Implausible, "tt-telemetry publishes a rate that cannot be")
	case x == 0 && v[fabricSentTotal]+v[fabricRecvTotal] == 0:
		return model.Missing[float64](model.Absent, "tt-metal counts it only with TT_METAL_FABRIC_TELEMETRY=1")
	}
	return model.Value(x * megabyte)
}

// positive is a value that is 0 where the exporter could not read it.
func positive(v map[string]float64, name string) model.Reading[float64] {
	if x, ok := v[name]; ok && x > 0 {
		return model.Value(x)
	}
	return model.Missing[float64](model.Absent, notExported)
}

func count[T uint32 | uint64](v map[string]float64, name string) model.Reading[T] {
	x, ok := v[name]
	if !ok || x < 0 || x > float64(^T(0)>>1) || x != math.Trunc(x) {
		return model.Missing[T](model.Absent, notExported)
	}
	return model.Value(T(x))
}

func orCount[T uint32 | uint64](to *model.Reading[T], v map[string]float64, name string) {
	if !to.Known() {
		*to = count[T](v, name)
	}
}

func sorted[T any](m map[int]T) []int {
	keys := make([]int, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
