package kmd

import (
	"strconv"

	"github.com/ttmon/ttmon/internal/model"
)

// Memory is the driver's own accounting of device memory. No release has any
// yet; proposals put files of these names below the class device.
type Memory struct {
	// Used is what is allocated in all, by any process; missing without a reason where
	// the driver does not report it.
	Used [model.NumPools]model.Reading[uint64]
	// ByPID is what single processes have; nil if the driver does not report it.
	ByPID map[int]model.PoolBytes
}

// memoryPools are the pools that the driver's files could be about, by their names there.
var memoryPools = []struct {
	pool model.Pool
	name string
}{{model.DRAM, "dram"}, {model.L1, "l1"}}

// memoryDirs are where proposals have the totals, processDir where they have those of
// processes.
var memoryDirs = []string{"memory_stats", "memory"}

const processDir = "processes"

// offersMemory reports whether the driver accounts for memory, or for processes.
func (d *device) offersMemory() bool {
	for _, dir := range append(memoryDirs, processDir) {
		if d.root.Exists(d.dirs[inClass] + "/" + dir) {
			return true
		}
	}
	return false
}

// readMemory reads memory_stats/dram_used, memory/l1_used, processes/<pid>/dram_allocated
// and their like.
func (d *device) readMemory() (m Memory) {
	if !d.goneAt.IsZero() || !d.hasMemory || d.model.State != model.StateOK { // these reads have no deadline
		return Memory{}
	}
	for _, p := range memoryPools {
		for _, dir := range memoryDirs {
			if used := d.readBytes(dir + "/" + p.name + "_used"); used != (model.Reading[uint64]{}) {
				m.Used[p.pool] = used
				break
			}
		}
	}
	names, err := d.root.Names(d.dirs[inClass] + "/" + processDir)
	if err != nil {
		return m
	}
	m.ByPID = map[int]model.PoolBytes{}
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		for _, p := range memoryPools {
			if n := d.readBytes(processDir + "/" + name + "/" + p.name + "_allocated"); n.Known() {
				bytes := m.ByPID[pid]
				bytes[p.pool] = model.ExactBytes(n.V)
				m.ByPID[pid] = bytes
			}
		}
	}
	return m
}

// readBytes reads a number of bytes; the zero Reading where there is no such file.
func (d *device) readBytes(path string) (r model.Reading[uint64]) {
	s, err := d.root.ReadString(d.dirs[inClass] + "/" + path)
	if err != nil {
		return r
	}
	n, ok := number(s)
	if !ok {
		return model.Missing[uint64](model.Implausible, "the driver printed "+strconv.Quote(clip(s)))
	}
	return model.Value(n)
}
