package proc

import (
	"bytes"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/model"
)

// fdInfo is what /proc/<pid>/fdinfo/<fd> says about an open device. The drm-
// keys are the kernel's convention for accelerators; tt-kmd (2.10) offers
// none, and then it is empty.
type fdInfo struct {
	Flags    uint32 // of open(2); 0 also where the line is malformed
	Driver   string // drm-driver
	ClientID string // drm-client-id: the same for all duplicates of a descriptor
	BusID    string // drm-pdev: the PCI device that it is about; empty: not said
	Regions  []fdRegion
	Engines  []Engine

	capacities []Engine // of any engines, also of those without a time
}

// Engine is how long a kind of engine of a device has worked for a process, or for one
// of its descriptors.
type Engine struct {
	Name     string
	Time     time.Duration // drm-engine-
	Capacity int           // drm-engine-capacity-: how many there are of it; 0: one
}

// fdRegion is memory of one kind held through a descriptor.
type fdRegion struct {
	Name string
	// Bytes is what lies in the region now (drm-resident-, or drm-memory- as it
	// was called before), or else all that was allocated (drm-total-).
	Bytes uint64
	from  int // which of the keys, by preference
}

// hasDRMKeys reports whether the driver follows the convention at all.
func (i *fdInfo) hasDRMKeys() bool { return i.Driver != "" || len(i.Regions) > 0 || len(i.Engines) > 0 }

// readFDInfo reads the fdinfo of a descriptor of a process. Needs the right to
// trace the process.
func (r *Reader) readFDInfo(p *Process, fd int) (fdInfo, error) {
	n, err := p.dir.Read("fdinfo/"+strconv.Itoa(fd), r.buf)
	if err != nil {
		return fdInfo{}, fmt.Errorf("reading descriptor %d: %w", fd, err)
	}
	return parseFDInfo(r.buf[:n]), nil
}

// regionKeys are the keys of a region's size, the best one last.
var regionKeys = []string{"total-", "memory-", "resident-"}

func parseFDInfo(b []byte) (i fdInfo) {
	for line := range bytes.Lines(b) {
		key, value, ok := bytes.Cut(line, []byte{':'})
		if !ok {
			continue
		}
		if string(key) == "flags" {
			i.Flags = parseFlags(value)
			continue
		}
		text := string(bytes.TrimSpace(value))
		name, ok := strings.CutPrefix(string(key), "drm-")
		if !ok {
			continue
		}
		switch {
		case name == "driver":
			i.Driver = text
		case name == "client-id":
			i.ClientID = text
		case name == "pdev":
			i.BusID = text
		case strings.HasPrefix(name, "total-cycles-"):
			// An engine's, and not a size.
		case strings.HasPrefix(name, "engine-"):
			i.addEngine(strings.TrimPrefix(name, "engine-"), text)
		default:
			for rank, prefix := range regionKeys {
				if region, ok := strings.CutPrefix(name, prefix); ok {
					i.addRegion(region, text, rank)
				}
			}
		}
	}
	for k := range i.Engines {
		i.Engines[k].Capacity = engineNamed(&i.capacities, i.Engines[k].Name).Capacity
	}
	return i
}

// addEngine adds a time in ns, or a capacity, which has no unit.
func (i *fdInfo) addEngine(name, text string) {
	digits, unit, _ := strings.Cut(text, " ")
	v, ok := parseUint([]byte(digits))
	if !ok || v > math.MaxInt64 {
		return
	}
	if kind, ok := strings.CutPrefix(name, "capacity-"); ok && unit == "" {
		e := engineNamed(&i.capacities, kind)
		e.Capacity = int(v)
	} else if name != "" && unit == "ns" {
		engineNamed(&i.Engines, name).Time = time.Duration(v)
	}
}

// engineNamed is the engine of a name in a list, where it is added if need be.
func engineNamed(list *[]Engine, name string) *Engine {
	k := slices.IndexFunc(*list, func(e Engine) bool { return e.Name == name })
	if k < 0 {
		k, *list = len(*list), append(*list, Engine{Name: name})
	}
	return &(*list)[k]
}

func (i *fdInfo) addRegion(name, text string, rank int) {
	size, ok := parseSize(text)
	if !ok || name == "" {
		return
	}
	for k := range i.Regions {
		if r := &i.Regions[k]; r.Name == name {
			if rank >= r.from {
				r.Bytes, r.from = size, rank
			}
			return
		}
	}
	i.Regions = append(i.Regions, fdRegion{name, size, rank})
}

// parseSize reads "<number> [KiB|MiB]"; without a unit it is bytes.
func parseSize(text string) (uint64, bool) {
	digits, unit, _ := strings.Cut(text, " ")
	v, ok := parseUint([]byte(digits))
	factor := uint64(1)
	switch unit {
	case "":
	case "KiB":
		factor = 1 << 10
	case "MiB":
		factor = 1 << 20
	case "GiB": // not in the convention, but what else could it mean
		factor = 1 << 30
	default:
		return 0, false
	}
	high, low := bits.Mul64(v, factor)
	return low, ok && high == 0
}

// poolOf returns the pool of device memory that a region belongs to. Regions of
// the host's memory (gtt, system) belong to none.
func poolOf(region string) (model.Pool, bool) {
	name := strings.ToLower(region)
	numbered := strings.TrimRight(name, "0123456789")
	for _, p := range model.Pools() {
		if name == p.String() || numbered == p.String() {
			return p, true
		}
	}
	switch numbered {
	case "vram", "gddr", "local":
		return model.DRAM, true
	case "sram":
		return model.L1, true
	default:
		return 0, false
	}
}

// memoryOf adds up the device memory of several descriptors of one device.
// Those with the same client id are duplicates and count once, and so do
// those without an id.
func memoryOf(infos []fdInfo) (m model.PoolBytes, known bool) {
	var sums [model.NumPools]model.Sum
	seen := map[string]bool{}
	for _, i := range infos {
		if seen[i.ClientID] {
			continue
		}
		for _, region := range i.Regions {
			if pool, ok := poolOf(region.Name); ok {
				sums[pool].Add(model.ExactBytes(region.Bytes))
				known, seen[i.ClientID] = true, true
			}
		}
	}
	for pool := range sums {
		m[pool] = sums[pool].Bytes()
	}
	return m, known
}

// enginesOf adds up how long engines worked for several descriptors of one device, which
// count as in memoryOf.
func enginesOf(infos []fdInfo) (list []Engine) {
	seen := map[string]bool{}
	for _, i := range infos {
		if seen[i.ClientID] {
			continue
		}
		seen[i.ClientID] = len(i.Engines) > 0
		for _, e := range i.Engines {
			sum := engineNamed(&list, e.Name)
			sum.Time, sum.Capacity = sum.Time+e.Time, e.Capacity
		}
	}
	return list
}

// EngineUser is a process and the device whose engines work for it.
type EngineUser struct {
	Process model.ProcessID
	Device  int // kernel index
}

// probeEvery is how often a driver without these keys is probed again.
const probeEvery = 30 * time.Second

// addFDInfo adds what fdinfo reports for a process's descriptors: memory, and how long
// engines worked for it. While the driver reports nothing, hardly anything is read.
func (r *Reader) addFDInfo(p *model.Process, busIDs map[int]string, now time.Time, engines map[EngineUser][]Engine) {
	t := r.descriptors.byPID[p.PID]
	if t == nil || len(t.holds) == 0 || now.Before(r.probeAt) {
		return
	}
	process, err := r.Process(p.PID)
	if err != nil {
		return
	}
	for k := range p.Devices {
		use := &p.Devices[k]
		var infos []fdInfo
		for _, fd := range t.ofDevice(use.Device) {
			i, err := r.readFDInfo(process, fd)
			if err != nil {
				continue
			}
			if !i.hasDRMKeys() {
				r.probeAt = now.Add(probeEvery)
				return
			}
			if bus := busIDs[use.Device]; i.BusID == "" || bus == "" || strings.EqualFold(i.BusID, bus) {
				infos = append(infos, i)
			}
		}
		if m, known := memoryOf(infos); known {
			use.Memory, use.Source, use.Tracking = m, model.FromFDInfo, model.TrackOK
		}
		if list := enginesOf(infos); list != nil {
			engines[EngineUser{p.ID(), use.Device}] = list
		}
	}
}
