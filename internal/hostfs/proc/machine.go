package proc

import (
	"strconv"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/model"
)

// machine holds the last CPU times of the whole host, and the last result.
type machine struct {
	busy, total uint64
	at          time.Time
	host        model.Host // only what Machine sets
}

// machineEvery is how often the files about the whole host are read: the kernel
// counts every interrupt of every processor for one of them.
const machineEvery = 1900 * time.Millisecond

// Machine sets how busy the host itself is: its CPUs over the last seconds, its
// load and its memory.
func (r *Reader) Machine(h *model.Host, now time.Time) {
	last := &r.machine.host
	if passed := now.Sub(r.machine.at); passed < 0 || passed >= machineEvery || !last.CPU.Known() && passed > 0 {
		r.readMachine(last)
		r.machine.at = now
	}
	h.CPU, h.Load, h.MemoryUsed, h.MemoryTotal = last.CPU, last.Load, last.MemoryUsed, last.MemoryTotal
}

func (r *Reader) readMachine(h *model.Host) {
	h.CPU = r.machine.updateCPU(r.readSmall("/proc/stat"))
	h.Load = readFloat(r, "/proc/loadavg", parseLoadAverage)
	text, err := r.readSmall("/proc/meminfo")
	if err != nil {
		h.MemoryUsed, h.MemoryTotal = model.Missing[uint64](hostfs.Status(err), ""), model.Missing[uint64](hostfs.Status(err), "")
		return
	}
	h.MemoryUsed, h.MemoryTotal = parseMeminfo(text)
}

// readSmall reads the first 4 KiB of a file of the kernel.
func (r *Reader) readSmall(path string) (string, error) {
	b, err := r.root.Read(path, 4<<10)
	return string(b), err
}

func readFloat(r *Reader, path string, parse func(string) (float64, bool)) model.Reading[float64] {
	text, err := r.readSmall(path)
	if err != nil {
		return model.Missing[float64](hostfs.Status(err), "")
	}
	v, ok := parse(text)
	if !ok {
		return model.Missing[float64](model.Unsupported, "")
	}
	return model.Value(v)
}

// parseLoadAverage parses "0.31 1.38 2.46 1/123 4567".
func parseLoadAverage(text string) (float64, bool) {
	first, _, _ := strings.Cut(text, " ")
	v, err := strconv.ParseFloat(first, 64)
	return v, err == nil && v >= 0 && v < 1e9
}

// updateCPU returns the share of all cores that was busy since the last call.
// The first line of /proc/stat has user, nice, system, idle, iowait, irq,
// softirq and steal; the two of guests are in user and nice already.
func (m *machine) updateCPU(text string, err error) model.Reading[float64] {
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

// parseMeminfo returns the used and the total memory. Reclaimable caches do not
// count as used.
func parseMeminfo(text string) (used, total model.Reading[uint64]) {
	read := func(key string) (uint64, bool) {
		_, rest, ok := strings.Cut(text, key+":")
		line, _, _ := strings.Cut(rest, "\n")
		f := strings.Fields(line)
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
