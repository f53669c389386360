package text

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/ttmon/ttmon/internal/field/metric"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
)

// nvtopObject is a JSON object being written, a line per field as nvtop does it.
type nvtopObject struct {
	dst    []byte
	indent string
	fields int
}

// field writes a field; nil is null.
func (o *nvtopObject) field(key string, value *string) {
	o.key(key)
	if value == nil {
		o.dst = append(o.dst, "null"...)
		return
	}
	o.dst = quote(o.dst, *value)
}

func (o *nvtopObject) key(key string) {
	if o.fields++; o.fields > 1 {
		o.dst = append(o.dst, ',')
	}
	o.dst = append(append(append(o.dst, '\n'), o.indent...), ' ')
	o.dst = append(quote(o.dst, key), ": "...)
}

// quote writes a string that holds no control characters.
func quote(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for i := range len(s) {
		if s[i] == '"' || s[i] == '\\' {
			dst = append(dst, '\\')
		}
		dst = append(dst, s[i])
	}
	return append(dst, '"')
}

// AppendNvtop writes a snapshot in the shape of "nvtop -s", for scripts that
// were written for it and call ttmon as tt-nvtop: an array of devices, with the
// fields of nvtop 3.3 in its order. Values are text with their unit, as nvtop
// writes them; what it would show and is not measured is null.
func AppendNvtop(dst []byte, s *model.Snapshot) []byte {
	dst = append(dst, '[')
	for i := range s.Devices {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = nvtopDevice(dst, s, &s.Devices[i])
	}
	if len(s.Devices) > 0 {
		dst = append(dst, '\n')
	}
	return append(dst, "]\n"...)
}

func nvtopDevice(dst []byte, s *model.Snapshot, d *model.Device) []byte {
	dram := d.Memory.Pools[model.DRAM]
	o := nvtopObject{dst: append(dst, "\n {"...), indent: " "}
	o.field("device_name", ptr(nvtopName(d)))
	o.field("gpu_clock", text(d.AICLK, func(v float64) string { return whole(v) + "MHz" }))
	o.field("mem_clock", nil)
	o.field("temp", text(d.Temperature, func(v float64) string { return whole(v) + "C" }))
	o.field("fan_speed", text(d.Fan, func(v float64) string { return whole(v) + "RPM" }))
	o.field("power_draw", text(d.Power, func(v float64) string { return whole(v) + "W" }))
	o.field("gpu_util", busyShare(&d.Work))
	o.field("encode", nil)
	o.field("decode", nil)
	o.field("mem_util", share(dram.Used, dram.Total))
	o.field("mem_total", text(dram.Total, decimal))
	o.field("mem_used", amount(dram.Used))
	o.field("mem_free", text(dram.Free, decimal))
	o.key("processes")
	o.dst = append(o.dst, '[')
	n := 0
	for i := range s.Processes {
		p := &s.Processes[i]
		for j := range p.Devices {
			if p.Devices[j].Device != d.Index {
				continue
			}
			if n++; n > 1 {
				o.dst = append(o.dst, ',')
			}
			o.dst = nvtopProcess(o.dst, p, &p.Devices[j], dram.Total)
		}
	}
	return append(o.dst, "]\n }"...)
}

func nvtopProcess(dst []byte, p *model.Process, u *model.DeviceUse, total model.Reading[uint64]) []byte {
	used := u.Memory[model.DRAM]
	o := nvtopObject{dst: append(dst, "\n   {"...), indent: "   "}
	o.field("pid", ptr(strconv.Itoa(p.PID)))
	o.field("cmdline", ptr(words.Command(p)))
	o.field("kind", ptr("compute"))
	o.field("user", ptr(words.Foreign(p.User)))
	o.field("gpu_usage", usage(p, u.Device))
	o.field("gpu_mem_bytes_alloc", amount(used))
	o.field("gpu_mem_usage", share(used, total))
	o.field("encode", nil)
	o.field("decode", nil)
	return append(o.dst, "\n   }"...)
}

// usage is how much of the time the programs of a process ran on a device.
func usage(p *model.Process, device int) *string {
	c := metric.BusiestChip(p, device)
	if c == nil {
		return nil
	}
	return busyShare(&c.Work)
}

// busyShare is how busy a chip is, where all of it was measured. nvtop has no
// mark for a bound or an estimate; ttmon smi --json has both.
func busyShare(w *model.Work) *string {
	if w.Bound != model.Exact {
		return nil
	}
	return text(w.Busy, ratio)
}

func ratio(v float64) string { return whole(100*v) + "%" }

// share is a percentage of a total, where both are known.
func share(used model.Bytes, total model.Reading[uint64]) *string {
	n, _, known := used.Best()
	if !known || !total.Known() || total.V == 0 {
		return nil
	}
	return ptr(ratio(float64(n) / float64(total.V)))
}

// amount is the best number of a memory figure. nvtop has no place for how
// sure it is: ttmon smi --json does.
func amount(b model.Bytes) *string {
	n, _, known := b.Best()
	if !known {
		return nil
	}
	return ptr(decimal(n))
}

func nvtopName(d *model.Device) string {
	arch := string(d.Arch)
	if arch != "" {
		arch = strings.ToUpper(arch[:1]) + arch[1:]
	}
	if d.Board.Known() {
		return fmt.Sprintf("%s %s", arch, words.Escape(d.Board.V))
	}
	return arch
}

// text writes a known reading and leaves a missing one null.
func text[T any](r model.Reading[T], say func(T) string) *string {
	if v, ok := r.Get(); ok {
		return ptr(say(v))
	}
	return nil
}

func ptr(s string) *string { return &s }

func whole(v float64) string { return strconv.FormatFloat(math.Round(v), 'f', 0, 64) }

func decimal(v uint64) string { return strconv.FormatUint(v, 10) }
