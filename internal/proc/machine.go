package proc

import (
	"strconv"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/model"
)

// machine remembers the CPU times of the whole host, and what was read last.
type machine struct {
	busy, total uint64
	at          time.Time
	host        model.Host // no more than what Machine fills in
}

// machineEvery is how often the files about the whole host are read: the kernel
// counts every interrupt of every processor for one of them.
const machineEvery = 1900 * time.Millisecond

// Machine tells how busy the host itself is: its processors over the last
// seconds, its load and its memory.
func (r *Reader) Machine(h *model.Host, now time.Time) {
	last := &r.machine.host
	if passed := now.Sub(r.machine.at); passed < 0 || passed >= machineEvery || !last.CPU.Known() && passed > 0 {
		r.readMachine(last)
		r.machine.at = now
	}
	h.CPU, h.Load, h.MemoryUsed, h.MemoryTotal = last.CPU, last.Load, last.MemoryUsed, last.MemoryTotal
}

func (r *Reader) readMachine(h *model.Host) {
	h.CPU = r.machine.cpu(r.small("/proc/stat"))
	h.Load = parsed(r, "/proc/loadavg", loadAverage)
	text, err := r.small("/proc/meminfo")
	if err != nil {
		h.MemoryUsed, h.MemoryTotal = model.Missing[uint64](hostfs.Status(err), ""), model.Missing[uint64](hostfs.Status(err), "")
		return
	}
	h.MemoryUsed, h.MemoryTotal = memory(text)
}

// small reads a file of the kernel that fits into the buffer, as far as it does.
func (r *Reader) small(path string) (string, error) {
	b, err := r.root.Read(path, 4<<10)
	return string(b), err
}

func parsed(r *Reader, path string, parse func(string) (float64, bool)) model.Reading[float64] {
	text, err := r.small(path)
	if err != nil {
		return model.Missing[float64](hostfs.Status(err), "")
	}
	v, ok := parse(text)
	if !ok {
		return model.Missing[float64](model.Unsupported, "")
	}
	return model.Value(v)
}

// loadAverage reads "0.31 1.38 2.46 1/123 4567".
func loadAverage(text string) (float64, bool) {
	first, _, _ := strings.Cut(text, " ")
	v, err := strconv.ParseFloat(first, 64)
	return v, err == nil && v >= 0 && v < 1e9
}

// cpu is the share of all cores that was busy since the last call. The first
// line of /proc/stat has user, nice, system, idle, iowait, irq, softirq and steal;
// the two of guests are in user and nice already.
func (m *machine) cpu(text string, err error) model.Reading[float64] {
	if err != nil {
		return model.Missing[float64](hostfs.Status(err), "")
	}
	line, _, _ := strings.Cut(text, "\n")
	fields := strings.Fields(line)
	if len(fields) < 5 || fields[0] != "cpu" {
		return model.Missing[float64](model.Unsupported, "")
	}
	var now struct{ busy, total uint64 }
	for i, f := range fields[1:min(len(fields), 9)] {
		n, err := strconv.ParseUint(f, 10, 64)
		if err != nil {
			return model.Missing[float64](model.Unsupported, "")
		}
		now.total += n
		if i != 3 && i != 4 { // idle, iowait
			now.busy += n
		}
	}
	before := *m
	m.busy, m.total = now.busy, now.total
	if before.total == 0 || now.total <= before.total || now.busy < before.busy {
		return model.Missing[float64](model.Pending, "needs two samples")
	}
	return model.Value(min(100*float64(now.busy-before.busy)/float64(now.total-before.total), 100))
}

// memory is what is taken and what there is. Caches that can be given up are
// not taken.
func memory(text string) (used, total model.Reading[uint64]) {
	read := func(key string) (uint64, bool) {
		_, rest, ok := strings.Cut(text, key+":")
		f := strings.Fields(rest)
		if !ok || len(f) < 2 || f[1] != "kB" {
			return 0, false
		}
		n, err := strconv.ParseUint(f[0], 10, 54)
		return n << 10, err == nil
	}
	all, ok1 := read("MemTotal")
	free, ok2 := read("MemAvailable")
	if !ok1 || !ok2 || free > all {
		return model.Missing[uint64](model.Unsupported, ""), model.Missing[uint64](model.Unsupported, "")
	}
	return model.Value(all - free), model.Value(all)
}
