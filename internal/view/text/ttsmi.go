package text

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ttmon/ttmon/internal/board"
	"github.com/ttmon/ttmon/internal/model"
)

// HostInfo is what the official tool says about the machine in its snapshot,
// in its own words. What is not known is "N/A".
type HostInfo struct {
	Distro  string // "Ubuntu 24.04 LTS"
	Machine string // "x86_64"
	Memory  string // "503.50 GB"
}

const na = "N/A"

// AppendTTSMI appends the snapshot as the official tt-smi 6 prints it: the same
// keys in the same order, the same strings. What only the firmware knows is null
// or "N/A" unless ttmond has read it; never the 0 that the official tool writes for unknown.
func AppendTTSMI(dst []byte, s *model.Snapshot, h HostInfo, o Options) []byte {
	var root object
	root.add("time", s.Time.In(o.zone()).Format("2006-01-02T15:04:05.000000"))
	if s.Simulated {
		root.add("simulated", true)
	}
	driver := na
	if v, ok := s.Host.DriverVersion.Get(); ok {
		driver = "TT-KMD " + v
	}
	root.add("host_info", object{
		{"OS", "Linux"},
		{"Distro", cmp.Or(h.Distro, na)},
		{"Kernel", s.Host.Kernel},
		{"Hostname", s.Host.Name},
		{"Platform", cmp.Or(h.Machine, na)},
		{"Python", na},
		{"Memory", cmp.Or(h.Memory, na)},
		{"Driver", driver},
	})
	root.add("host_sw_vers", object{{"tt_smi", strings.TrimSpace("ttmon " + o.Version)}, {"pyluwen", na}, {"tt_umd", na}})
	var devices []any
	for _, c := range ttChips(s) {
		devices = append(devices, object{
			{"smbus_telem", c.smbus()},
			{"board_info", c.board()},
			{"telemetry", c.telemetry()},
			{"firmwares", c.firmwares()},
			{"limits", c.limits()},
			{"gddr_telemetry", c.gddr()},
		})
	}
	root.add("device_info", devices)
	root.add("processes", ttProcesses(s))
	return append(appendPython(dst, root, 0), '\n')
}

// ttChip is an entry of device_info: the chip behind an endpoint, or a remote
// one, of which the driver says nothing.
type ttChip struct {
	*model.Device
	remote bool
}

// ttChips lists the chips in the order of the official tool: local ones first.
func ttChips(s *model.Snapshot) []ttChip {
	var list []ttChip
	for _, remote := range []bool{false, true} {
		for i := range s.Devices {
			d := &s.Devices[i]
			for j := range d.Chips {
				if d.Chips[j].Remote == remote {
					list = append(list, ttChip{d, remote})
				}
			}
			if len(d.Chips) == 0 && !remote {
				list = append(list, ttChip{d, false})
			}
		}
	}
	return list
}

// boardType is the official tool's name for a board.
func (c ttChip) boardType() string {
	name, ok := c.Board.Get()
	if !ok {
		return na
	}
	if b, ok := board.ByCard(name); ok {
		name = b.Official
	}
	switch {
	case c.Arch != model.Wormhole:
		return name
	case c.remote:
		return name + " R"
	default:
		return name + " L"
	}
}

func (c ttChip) boardID() string {
	if id, ok := c.Serial.Get(); ok {
		return strings.ToLower(id)
	}
	return na
}

func (c ttChip) board() object {
	bus, speed, width := c.BusID, any(na), na
	if c.remote {
		bus = na
	} else {
		if g, ok := c.PCIe.Gen.Get(); ok {
			speed = g
		}
		if w, ok := c.PCIe.Width.Get(); ok {
			width = strconv.Itoa(w)
		}
	}
	return object{
		{"bus_id", bus},
		{"board_type", c.boardType()},
		{"board_id", c.boardID()},
		{"coords", na},
		{"dram_status", c.dramStatus()},
		{"dram_speed", c.dramSpeed()},
		{"pcie_speed", speed},
		{"pcie_width", width},
	}
}

func (c ttChip) telemetry() object {
	// Both are the firmware's own beat, slowed down to about two a second.
	beat := uint32(6)
	if c.Arch == model.Wormhole {
		beat = 5
	}
	heartbeat := na
	if v, ok := c.Heartbeat.Get(); ok && !c.remote {
		heartbeat = strconv.FormatUint(uint64(v/beat), 10)
	}
	return object{
		{"voltage", c.number("%4.2f", c.Voltage)},
		{"current", c.number("%5.1f", c.Current)},
		{"power", c.number("%5.1f", c.Power)},
		{"board_power", c.number("%5.1f", c.Telemetry.BoardPower)},
		{"aiclk", c.number("%4.0f", c.AICLK)},
		{"asic_temperature", c.number("%4.1f", c.Temperature)},
		{"fan_speed", c.number("%.0f", c.Fan)},
		{"heartbeat", heartbeat},
	}
}

// number formats a live value of a local chip. A nominal figure is not one.
func (c ttChip) number(format string, r model.Reading[float64]) string {
	if v, ok := r.Get(); ok && !c.remote && !r.Nominal {
		return fmt.Sprintf(format, v)
	}
	return na
}

func (c ttChip) version(r model.Reading[string]) string {
	if v, ok := r.Get(); ok && !c.remote {
		return v
	}
	return na
}

func (c ttChip) firmwares() object {
	f := &c.Firmware
	return object{
		{"fw_bundle_version", c.version(f.Bundle)},
		{"tt_flash_version", c.version(f.TTFlash)},
		{"cm_fw", c.version(f.ARC)},
		{"cm_fw_date", na},
		{"eth_fw", c.version(f.ETH)},
		{"dm_bl_fw", c.version(f.M3Bootloader)},
		{"dm_app_fw", c.version(f.M3App)},
		{"gddr_fw", c.version(c.Telemetry.MemoryFW)},
	}
}

// limits: on Blackhole thm_limit is where the chip shuts down and
// therm_trip_l1_limit where it throttles; on Wormhole it is the other way round.
func (c ttChip) limits() object {
	trip, limit := c.TemperatureLimit, c.ShutdownTemperature
	if c.Arch == model.Wormhole {
		trip, limit = limit, trip
	}
	return object{
		{"vdd_min", na},
		{"vdd_max", c.number("%4.2f", c.VoltageLimit)},
		{"tdp_limit", c.number("%3.0f", c.PowerLimit)},
		{"tdc_limit", c.number("%3.0f", c.CurrentLimit)},
		{"asic_fmax", c.number("%4.0f", c.AICLKMax)},
		{"therm_trip_l1_limit", c.number("%2.0f", trip)},
		{"thm_limit", c.number("%2.0f", limit)},
		{"board_power_limit", c.number("%3.0f", c.BoardPowerLimit)},
		{"bus_peak_limit", 0},
		{"fan_rpm_limit", 0}, // always 0 in the official tool too
	}
}

// dramStatus is whether all memory of the chip works; nil: not known.
func (c ttChip) dramStatus() any {
	var status any
	for i := range c.Telemetry.Modules {
		if c.remote || !c.enabled(i) {
			continue
		}
		m := &c.Telemetry.Modules[i]
		if !m.Trained.Known() {
			return nil
		}
		works := m.Trained.V && !m.Failed.V
		if status = works; !works {
			return false
		}
	}
	return status
}

// enabled reports whether a module is there; where that is not known, they all are.
func (c ttChip) enabled(i int) bool {
	mask, ok := c.Telemetry.Enabled.Memory.Get()
	return !ok || mask&(1<<c.Telemetry.Modules[i].Index) != 0
}

// dramSpeed is the speed of the memory in Gbit/s: "16G".
func (c ttChip) dramSpeed() string {
	if v, ok := c.Telemetry.MemorySpeed.Get(); ok && !c.remote {
		return strconv.FormatFloat(v/1000, 'f', -1, 64) + "G"
	}
	return na
}

// gddr is what ttmond has read of the firmware's table; the driver offers nothing
// of it. The table does not say that a self-test passed, only that one failed.
func (c ttChip) gddr() object {
	n := 6
	if c.Arch == model.Blackhole {
		n = 8
	}
	t := &c.Telemetry
	mask, known := t.Enabled.Memory.Get()
	known = known && !c.remote
	var channels []any
	for i := range n {
		ch := object{{"channel", i}, {"harvested", nil}, {"enabled", nil}}
		if known {
			on := mask&(1<<i) != 0
			ch = object{{"channel", i}, {"harvested", !on}, {"enabled", on}}
		}
		var m model.MemoryModule
		if at := slices.IndexFunc(t.Modules, func(m model.MemoryModule) bool { return m.Index == i }); at >= 0 && !c.remote {
			m = t.Modules[at]
		}
		ch.add("training", passed(m.Trained))
		ch.add("bist", na)
		ch.add("temp_top", valueOrNA(m.Top))
		ch.add("temp_bottom", valueOrNA(m.Bottom))
		ch.add("corr_rd", valueOrNA(m.CorrectedReads))
		ch.add("corr_wr", valueOrNA(m.CorrectedWrites))
		ch.add("uncorr_rd", flag(m.UncorrectedReads))
		ch.add("uncorr_wr", flag(m.UncorrectedWrite))
		channels = append(channels, ch)
	}
	enabled := na
	if known {
		enabled = fmt.Sprintf("%#x", mask)
	}
	return object{{"speed", c.dramSpeed()}, {"max_temp", c.number("%.0f", t.MemoryTemperature)}, {"enabled_mask", enabled}, {"channels", channels}}
}

func valueOrNA[T any](r model.Reading[T]) string {
	if v, ok := r.Get(); ok {
		return fmt.Sprint(v)
	}
	return na
}

func passed(r model.Reading[bool]) string {
	switch v, ok := r.Get(); {
	case !ok:
		return na
	case v:
		return "pass"
	}
	return "fail"
}

// flag is 1 where there was an error: the firmware has no count of them.
func flag(r model.Reading[bool]) string {
	return valueOrNA(model.Map(r, func(b bool) int {
		if b {
			return 1
		}
		return 0
	}))
}

// ttProcesses lists who has a device open, by device and pid.
func ttProcesses(s *model.Snapshot) []any {
	type entry struct {
		device int
		p      *model.Process
	}
	var list []entry
	for i := range s.Processes {
		for _, u := range s.Processes[i].Devices {
			if u.Device != model.NoDevice {
				list = append(list, entry{u.Device, &s.Processes[i]})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.device, b.device), cmp.Compare(a.p.PID, b.p.PID))
	})
	var out []any
	for _, e := range list {
		user, cmdline := "?", "?"
		if v, ok := e.p.User.Get(); ok {
			user = v
		}
		if v, ok := e.p.Cmdline.Get(); ok && v != "" {
			cmdline = v
		} else if v, ok := e.p.Name.Get(); ok {
			cmdline = v
		}
		out = append(out, object{{"pid", e.p.PID}, {"user", user}, {"device", e.device}, {"cmdline", sanitize(cmdline)}})
	}
	return out
}

// sanitize writes a command line as the official tool does: what is not
// printable ASCII becomes \xNN, byte by byte, and line ends blanks.
func sanitize(s string) string {
	var b strings.Builder
	for i := range len(s) {
		switch ch := s[i]; {
		case ch == 0 || ch == '\n':
			b.WriteByte(' ')
		case ch >= ' ' && ch <= '~':
			b.WriteByte(ch)
		default:
			fmt.Fprintf(&b, `\x%02x`, ch)
		}
	}
	return strings.TrimSpace(b.String())
}
