package metric

import (
	"slices"

	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
)

// onChip is what only the chips' firmware knows, and ttmond reads where it is
// told to.
func onChip() []Device {
	of := func(get func(*model.Telemetry) Value) getDevice {
		return func(_ *model.Snapshot, d *model.Device) Value {
			if d.Telemetry.State == model.TelemetryOff {
				return Value{Why: words.Telemetry(&d.Telemetry)}
			}
			return get(&d.Telemetry)
		}
	}
	return slices.Concat(in(Telemetry, []Device{
		{
			Name: "firmware.state", Title: "State", Help: "how reading the chip's own table goes, and why not",
			Get: of(func(t *model.Telemetry) Value {
				if text := words.Telemetry(t); text != "" {
					return str(string(t.State) + ": " + text)
				}
				return str(string(t.State))
			}),
		},
		{
			Name: "power.draw.board", Title: "Board Power", Limit: "power.limit.board", Kind: Gauge, Unit: "W", Help: "power that the board draws", JSON: "telemetry.board_power_w", Prom: gauge("board_power_watts"),
			Get: of(func(t *model.Telemetry) Value { return num(t.BoardPower) }),
		},
		{
			Name: "power.draw.memory", Title: "GDDR I/O Power", Kind: Gauge, Unit: "W", Help: "power of the GDDR's I/O", JSON: "telemetry.memory_power_w", Prom: gauge("memory_io_power_watts"),
			Get: of(func(t *model.Telemetry) Value { return num(t.MemoryPower) }),
		},
		{
			Name: "temperature.board", Title: "Board Temperature", Kind: Gauge, Unit: "C", Decimals: 1, Help: "temperature of the board", JSON: "telemetry.board_temperature_c", Prom: gauge("board_temperature_celsius"),
			Get: of(func(t *model.Telemetry) Value { return num(t.BoardTemperature) }),
		},
		{
			Name: "temperature.regulator", Title: "Regulator Temperature", Kind: Gauge, Unit: "C", Decimals: 1, Help: "temperature of the core's voltage regulator", JSON: "telemetry.regulator_temperature_c", Prom: gauge("regulator_temperature_celsius"),
			Get: of(func(t *model.Telemetry) Value { return num(t.RegulatorTemperature) }),
		},
		{
			Name: "fan.duty", Title: "Fan Duty", Kind: Gauge, Unit: "%", Help: "duty of the fan", JSON: "telemetry.fan_duty_percent", Prom: gauge("fan_duty_ratio").with("", 0.01),
			Get: of(func(t *model.Telemetry) Value { return num(t.FanDuty) }),
		},
	}), in(Telemetry, clockControl(of)), in(GDDR, gddr(of)), in(Ethernet, links(of)), remoteChips())
}

// remoteChips is what is known of chips behind Ethernet. Reports have it chip by
// chip.
func remoteChips() []Device {
	return []Device{
		{
			Name: "temperature.remote", Kind: Gauge, Unit: "C", Decimals: 1, Help: "temperature of the hottest chip behind Ethernet, such as R of an n300, as tt-telemetry reads it", Prom: gauge("remote_temperature_celsius"),
			Get: ofRemote(func(c *model.Chip) model.Reading[float64] { return c.Temperature }, func(a, b float64) float64 { return max(a, b) }),
		},
		{
			Name: "power.draw.remote", Kind: Gauge, Unit: "W", Decimals: 1, Help: "power of the chips behind Ethernet, such as R of an n300, as tt-telemetry reads it", Prom: gauge("remote_power_watts"),
			Get: ofRemote(func(c *model.Chip) model.Reading[float64] { return c.Power }, func(a, b float64) float64 { return a + b }),
		},
	}
}

// ofRemote joins a value of all remote chips of a device; one that is missing
// makes it missing.
func ofRemote(get func(*model.Chip) model.Reading[float64], join func(a, b float64) float64) getDevice {
	return func(_ *model.Snapshot, d *model.Device) Value {
		sum := model.Missing[float64](model.Absent, "the device has no chip behind Ethernet")
		for i := range d.Chips {
			c := &d.Chips[i]
			if !c.Remote {
				continue
			}
			v := get(c)
			switch {
			case !v.Known() && v.Why == "":
				return missing(model.Missing[float64](model.Absent, words.RemoteUnread))
			case !v.Known():
				return missing(v)
			case sum.Known():
				sum.V = join(sum.V, v.V)
			default:
				sum = v
			}
		}
		return num(sum)
	}
}

func gddr(of ofTelemetry) []Device {
	return []Device{
		{
			Name: "temperature.memory", Title: "GDDR Temperature", Kind: Gauge, Unit: "C", Help: "temperature of the hottest GDDR module", JSON: "telemetry.memory_temperature_c", Prom: gauge("memory_temperature_celsius"),
			Get: of(func(t *model.Telemetry) Value { return num(t.MemoryTemperature) }),
		},
		{
			Name: "gddr.speed", Title: "Speed", Kind: Gauge, Unit: "Mbit/s", Help: "speed of the GDDR, per pin", JSON: "telemetry.memory_speed_mbps", Prom: gauge("memory_speed_bits_per_second").with("", 1e6),
			Get: of(func(t *model.Telemetry) Value { return num(t.MemorySpeed) }),
		},
		{
			Name: "gddr.errors.corrected", Title: "Corrected Errors", Kind: Counter, Help: "corrected errors of the GDDR's interface since the chip's reset; counters stay at 255 a module and direction", JSON: "telemetry.memory_corrected_errors", Prom: counter("memory_corrected_errors_total", ""),
			Get: of(func(t *model.Telemetry) Value {
				v := num(t.Corrected)
				v.Bound = t.CorrectedBound
				return v
			}),
		},
		{
			Name: "gddr.errors.corrected.rate", Title: "Corrected Errors per Hour", Kind: Gauge, Rate: true, Unit: "1/h", Decimals: 1, Help: "corrected errors an hour, between two samples", JSON: "telemetry.memory_corrected_errors_per_h",
			Get: of(func(t *model.Telemetry) Value { return num(t.CorrectedRate) }),
		},
		{
			Name: "gddr.errors.uncorrected", Title: "Modules with Uncorrected Errors", Kind: Gauge, Help: "GDDR modules that had an uncorrected error since the chip's reset", JSON: "telemetry.memory_uncorrected_modules", Prom: gauge("memory_uncorrected_modules"),
			Get: of(func(t *model.Telemetry) Value { return num(t.Uncorrected) }),
		},
		{
			Name: "gddr.untrained", Title: "Modules Not Trained", Kind: Gauge, Help: "GDDR modules that are not trained, or whose self-test failed", Prom: gauge("memory_untrained_modules"),
			Get: of(func(t *model.Telemetry) Value { return untrained(t) }),
		},
	}
}

func untrained(t *model.Telemetry) Value {
	n := 0
	for i := range t.Modules {
		m := &t.Modules[i]
		if !m.Trained.Known() {
			return yes(m.Trained)
		}
		if !m.Trained.V || m.Failed.V {
			n++
		}
	}
	if len(t.Modules) == 0 {
		return Value{Why: "the firmware tells nothing of the GDDR"}
	}
	return count(n)
}

type ofTelemetry = func(func(*model.Telemetry) Value) getDevice

func clockControl(of ofTelemetry) []Device {
	return []Device{
		{
			Name: "clocks.reason", Title: "Clock Reason", Help: "why the AI clock is what it is, as the firmware says",
			Get: of(func(t *model.Telemetry) Value {
				if !t.Clock.Reason.Known() {
					return missing(t.Clock.Reason)
				}
				return str(words.ClockReason(&t.Clock))
			}),
		},
		{
			Name: "clocks.throttled", Title: "Held Below Demand", Kind: Bool, Help: "whether the firmware holds the AI clock below what work asks for", Prom: gauge("throttled"),
			Get: of(func(t *model.Telemetry) Value {
				if !t.Clock.Reason.Known() {
					return missing(t.Clock.Reason)
				}
				_, is := t.Clock.Throttled()
				return yes(model.Value(is))
			}),
		},
		{
			Name: "clocks.host.cap", Title: "Clock Cap by Software, 0 for None", Kind: Gauge, Unit: "MHz", Help: "limit of the AI clock that software has set; 0: none", JSON: "telemetry.clock.host_cap_mhz",
			Get: of(func(t *model.Telemetry) Value { return num(t.Clock.HostCap) }),
		},
		{
			Name: "throttle.starts", Title: "Throttled Kernels", Kind: Counter, Help: "times that the firmware began to slow kernels down since the chip's reset", JSON: "telemetry.throttle_starts", Prom: counter("throttle_starts_total", ""),
			Get: of(func(t *model.Telemetry) Value { return num(t.ThrottleStarts) }),
		},
		{
			Name: "throttle.ratio", Title: "Throttled Share", As: Ratio, Kind: Gauge, Decimals: 2, Help: "share of the firmware's last refresh in which it slowed kernels down", JSON: "telemetry.throttle_ratio", Prom: gauge("throttle_ratio"),
			Get: of(func(t *model.Telemetry) Value { return num(t.ThrottleShare) }),
		},
		{
			Name: "dispatch.busy", Title: "Dispatch Busy", Kind: Gauge, Rate: true, Unit: "%", Per: 0.01, Decimals: 1, Help: "share of time in which tt-metal's dispatch cores had a program running (firmware = full)", JSON: "telemetry.dispatch.busy_ratio", Prom: gauge("dispatch_busy_ratio"),
			Get: of(func(t *model.Telemetry) Value { return num(t.Dispatch.Busy) }),
		},
	}
}

// links counts Ethernet links.
func links(of ofTelemetry) []Device {
	number := func(which func(*model.EthernetPort) bool) getDevice {
		return of(func(t *model.Telemetry) Value {
			n := 0
			for i := range t.Ports {
				p := &t.Ports[i]
				if !p.Up.Known() {
					return yes(p.Up)
				}
				if which(p) {
					n++
				}
			}
			if len(t.Ports) == 0 {
				return Value{Why: "the firmware tells nothing of Ethernet"}
			}
			return count(n)
		})
	}
	return slices.Concat(linkCounters(of), []Device{
		{
			Name: "ethernet.links.up", Title: "Links Up", Kind: Gauge, Help: "Ethernet links of the device's own chip that are up", Prom: gauge("ethernet_links_up"),
			Get: number(func(p *model.EthernetPort) bool { return p.Up.V }),
		},
		{
			Name: "ethernet.links.expected", Title: "Links Expected", Kind: Gauge, Help: "Ethernet links that UMD has found at any time", Prom: gauge("ethernet_links_expected"),
			Get: number((*model.EthernetPort).Expected),
		},
		{
			Name: "ethernet.links.down", Title: "Links Down", Kind: Gauge, Help: "expected Ethernet links that are down", Prom: gauge("ethernet_links_down"),
			Get: number((*model.EthernetPort).Down),
		},
		{
			Name: "ethernet.links.lost", Title: "Links Lost in the Last Reset", Kind: Gauge, Help: "Ethernet links that were up before the chip's last reset and are down since", Prom: gauge("ethernet_links_lost_in_reset"),
			Get: number((*model.EthernetPort).LostInReset),
		},
	})
}

// linkCounters are sums over the Ethernet channels of the device's own chip.
func linkCounters(of ofTelemetry) []Device {
	const noPorts = "the firmware tells nothing of Ethernet"
	return []Device{
		{
			Name: "ethernet.retrains", Title: "Link Retrains", Kind: Counter, Help: "times that Ethernet links of the device's own chip have trained again since its reset (firmware = full, or tt-telemetry)", Prom: counter("ethernet_retrains_total", ""),
			Get: of(func(t *model.Telemetry) Value {
				return overPorts(t, noPorts, func(p *model.EthernetPort) Value { return num(p.Retrains) })
			}),
		},
		{
			Name: "ethernet.codewords.corrected", Title: "Corrected Codewords", Kind: Counter, Help: "codewords that the Ethernet links of the device's own chip received and corrected since its reset; normal in small numbers", Prom: counter("ethernet_codewords_total", `kind="corrected"`),
			Get: of(func(t *model.Telemetry) Value {
				return overPorts(t, noPorts, func(p *model.EthernetPort) Value { return codewords(p, p.Corrected) })
			}),
		},
		{
			Name: "ethernet.codewords.uncorrected", Title: "Uncorrected Codewords", Kind: Counter, Help: "codewords that the Ethernet links of the device's own chip received and could not correct since its reset", Prom: counter("ethernet_codewords_total", `kind="uncorrected"`),
			Get: of(func(t *model.Telemetry) Value {
				return overPorts(t, noPorts, func(p *model.EthernetPort) Value { return codewords(p, p.Uncorrected) })
			}),
		},
		{
			Name: "ethernet.throughput.sent", Title: "Links Send", Kind: Gauge, Rate: true, Unit: "MiB/s", Per: mib, Decimals: 1, Help: "what tt-metal's fabric sends over the Ethernet links of the device's own chip, as tt-telemetry reads it", Prom: gauge("ethernet_sent_bytes_per_second"),
			Get: of(func(t *model.Telemetry) Value {
				return overPorts(t, noPorts, func(p *model.EthernetPort) Value { return traffic(p.Sent) })
			}),
		},
		{
			Name: "ethernet.throughput.received", Title: "Links Receive", Kind: Gauge, Rate: true, Unit: "MiB/s", Per: mib, Decimals: 1, Help: "what tt-metal's fabric receives over the Ethernet links of the device's own chip, as tt-telemetry reads it", Prom: gauge("ethernet_received_bytes_per_second"),
			Get: of(func(t *model.Telemetry) Value {
				return overPorts(t, noPorts, func(p *model.EthernetPort) Value { return traffic(p.Received) })
			}),
		},
	}
}

// traffic is what a port carries.
func traffic(r model.Reading[float64]) Value {
	v := num(r)
	if !v.Known() && v.Why == "" {
		v.Why = "ttmon-server can take it from tt-telemetry"
	}
	return v
}

// codewords is a counter of a port's codewords.
func codewords(p *model.EthernetPort, n model.Reading[uint64]) Value {
	v := num(n)
	v.Bound = p.CodewordBound
	return v
}

// overPorts is the sum over the ports that have a link, a lower bound where it is
// not known of all of them.
func overPorts(t *model.Telemetry, noPorts string, get func(*model.EthernetPort) Value) Value {
	sum, known, bound := 0.0, false, model.Exact
	why := Value{Why: noPorts}
	for i := range t.Ports {
		p := &t.Ports[i]
		v := get(p)
		switch {
		case v.Known():
			sum, known, bound = sum+v.Num, true, max(bound, v.Bound)
		case p.Up.V || p.Expected():
			bound, why = max(bound, model.AtLeast), v
		default:
			why = v
		}
	}
	if !known {
		return why
	}
	return Value{Status: model.Known, Num: sum, Bound: bound}
}
