package metaltrace

import (
	"fmt"
	"strconv"
	"strings"
)

// parseDeviceLog reads profile_log_device.csv. Its first line has the clock:
//
//	ARCH: wormhole_b0, CHIP_FREQ[MHz]: 1000, Max Compute Cores: 64
//	PCIe slot, core_x, core_y, RISC processor type, timer_id, time[cycles since reset], data, run host ID, …, zone name, type, source line, …
func parseDeviceLog(in *lines, first string) (*Trace, error) {
	mhz, err := frequency(first)
	if err != nil {
		return nil, in.bad("%v", err)
	}
	second, _ := in.next()
	columns, err := fields(second)
	if err != nil {
		return nil, in.bad("%v", err)
	}
	t, err := newTable(in, columns, "PCIe slot", "core_x", "core_y", "RISC processor type", "time[cycles since reset]", "run host ID", "zone name", "type")
	if err != nil {
		return nil, err
	}
	z := zones{out: &Trace{Kind: DeviceLog}, mhz: mhz, open: map[zone][]int64{}}
	for {
		ok, err := t.read()
		if err != nil {
			return nil, err
		}
		if !ok {
			return z.end(), nil
		}
		kind := t.text("type")
		if kind != "ZONE_START" && kind != "ZONE_END" {
			continue // data and events have no length
		}
		cycles, err := t.int("time[cycles since reset]")
		if err != nil {
			return nil, err
		}
		if cycles < 0 {
			return nil, in.bad("a time of %d cycles", cycles)
		}
		at := zone{t.text("PCIe slot"), t.text("core_x"), t.text("core_y"), t.text("RISC processor type"), t.text("zone name")}
		if kind == "ZONE_START" {
			z.open[at] = append(z.open[at], cycles)
			continue
		}
		z.close(at, cycles, "run host ID", t.text("run host ID"), "source", t.text("source file")+":"+t.text("source line"))
		if len(z.out.Slices) > maxSlices {
			return nil, in.bad("more than %d zones: profile a shorter run, or name the op report instead", maxSlices)
		}
	}
}

// zone is a zone of one core's processor.
type zone struct{ slot, x, y, risc, name string }

// zones joins the beginnings and ends of zones.
type zones struct {
	out  *Trace
	mhz  float64
	open map[zone][]int64 // when those began that have not ended
}

// close ends the zone that began last at a place. An end without a beginning is
// dropped.
func (z *zones) close(at zone, cycles int64, args ...string) {
	n := len(z.open[at])
	if n == 0 || cycles < z.open[at][n-1] {
		z.out.Dropped++
		return
	}
	from := z.open[at][n-1]
	z.open[at] = z.open[at][:n-1]
	z.out.Slices = append(z.out.Slices, Slice{
		Clock: "chip " + at.slot, Group: "device profiler, chip " + at.slot, Track: fmt.Sprintf("core %s,%s %s", at.x, at.y, at.risc), Name: at.name,
		From: nanoseconds(from, z.mhz), To: nanoseconds(cycles, z.mhz), Args: args,
	})
}

// end is the trace; zones that never ended are dropped.
func (z *zones) end() *Trace {
	for _, left := range z.open {
		z.out.Dropped += len(left)
	}
	return z.out
}

// nanoseconds is how long cycles take. A float64 holds that exactly for a hundred
// days.
func nanoseconds(cycles int64, mhz float64) int64 {
	return int64(float64(cycles) * 1000 / mhz)
}

// frequency reads the clock of the chip.
func frequency(line string) (float64, error) {
	for part := range strings.SplitSeq(line, ",") {
		name, value, ok := strings.Cut(part, ":")
		if !ok || !strings.HasPrefix(strings.TrimSpace(name), "CHIP_FREQ") {
			continue
		}
		mhz, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if err != nil || mhz <= 0 || mhz > 100_000 {
			return 0, fmt.Errorf("CHIP_FREQ is %.40q, and no frequency", value)
		}
		return mhz, nil
	}
	return 0, fmt.Errorf("the first line has no CHIP_FREQ[MHz]")
}

// parseOps reads an op report. Rows of ops have the time of the host, and of
// the device how long the op ran; signposts are marks of the program.
func parseOps(in *lines, columns []string) (*Trace, error) {
	t, err := newTable(in, columns, "OP CODE", "OP TYPE", "HOST START TS", "HOST END TS", "DEVICE ID")
	if err != nil {
		return nil, err
	}
	out := &Trace{Kind: OpReport}
	for {
		ok, err := t.read()
		if err != nil || !ok {
			return out, err
		}
		if t.text("HOST START TS") == "" {
			out.Dropped++ // an op of a replayed trace: the host did nothing for it
			continue
		}
		from, err := t.int("HOST START TS")
		if err != nil {
			return nil, err
		}
		to := from
		if t.text("HOST END TS") != "" {
			if to, err = t.int("HOST END TS"); err != nil {
				return nil, err
			}
		}
		if to < from {
			return nil, in.bad("HOST END TS is before HOST START TS")
		}
		s := Slice{Clock: "host", Group: "op report", Track: "ops, host", Name: t.text("OP CODE"), From: from, To: to}
		if t.text("OP TYPE") == "signpost" {
			s.Track = "signposts"
		}
		for _, name := range []string{"GLOBAL CALL COUNT", "DEVICE ID", "CORE COUNT", "MATH FIDELITY", "DEVICE FW DURATION [ns]", "DEVICE KERNEL DURATION [ns]", "OP TO OP LATENCY [ns]"} {
			if v := t.text(name); v != "" {
				s.Args = append(s.Args, name, v)
			}
		}
		if out.Slices = append(out.Slices, s); len(out.Slices) > maxSlices {
			return nil, in.bad("more than %d ops", maxSlices)
		}
	}
}

// parseTracy reads what tracy-csvexport -u writes: a line for each zone.
func parseTracy(in *lines, columns []string) (*Trace, error) {
	t, err := newTable(in, columns, "name", "ns_since_start", "exec_time_ns")
	if err != nil {
		return nil, err
	}
	out := &Trace{Kind: Tracy}
	for {
		ok, err := t.read()
		if err != nil || !ok {
			return out, err
		}
		from, err := t.int("ns_since_start")
		if err != nil {
			return nil, err
		}
		length, err := t.int("exec_time_ns")
		if err != nil {
			return nil, err
		}
		if length < 0 || from < 0 || from > 1<<61 || length > 1<<61 {
			return nil, in.bad("a zone of %d ns at %d", length, from)
		}
		s := Slice{Clock: "host", Group: "Tracy", Track: "thread " + t.text("thread"), Name: t.text("name"), From: from, To: from + length}
		if v := t.text("zone_text"); v != "" {
			s.Args = append(s.Args, "text", v)
		}
		if v := t.text("src_file"); v != "" {
			s.Args = append(s.Args, "source", v+":"+t.text("src_line"))
		}
		if out.Slices = append(out.Slices, s); len(out.Slices) > maxSlices {
			return nil, in.bad("more than %d zones", maxSlices)
		}
	}
}
