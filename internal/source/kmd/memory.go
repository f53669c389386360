package kmd

import (
	"strconv"

	"github.com/ttmon/ttmon/internal/model"
)

// Memory is the driver's own accounting of device memory. No release has any
// yet; proposals put files of these names below the class device.
type Memory struct {
	DRAMUsed model.Reading[uint64]
	ByPID    map[int]uint64 // DRAM bytes; nil if the driver does not report them
}

// readMemory reads memory_stats/dram_used and processes/<pid>/dram_allocated.
func (d *device) readMemory() Memory {
	if !d.goneAt.IsZero() || !d.hasMemory || d.model.State != model.StateOK { // these reads have no deadline
		return Memory{}
	}
	var m Memory
	if s, err := d.root.ReadString(d.dirs[inClass] + "/memory_stats/dram_used"); err == nil {
		if n, ok := number(s); ok {
			m.DRAMUsed = model.Value(n)
		} else {
			m.DRAMUsed = model.Missing[uint64](model.Implausible, "the driver printed "+strconv.Quote(clip(s)))
		}
	}
	names, err := d.root.Names(d.dirs[inClass] + "/processes")
	if err != nil {
		return m
	}
	m.ByPID = map[int]uint64{}
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		s, err := d.root.ReadString(d.dirs[inClass] + "/processes/" + name + "/dram_allocated")
		if n, ok := number(s); err == nil && ok {
			m.ByPID[pid] = n
		}
	}
	return m
}
