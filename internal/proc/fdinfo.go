package proc

import (
	"bytes"
	"fmt"
	"math/bits"
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
func (i *fdInfo) hasDRMKeys() bool { return i.Driver != "" || len(i.Regions) > 0 }

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
		default:
			for rank, prefix := range regionKeys {
				if region, ok := strings.CutPrefix(name, prefix); ok {
					i.addRegion(region, text, rank)
				}
			}
		}
	}
	return i
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

// probeEvery is how often a driver without these keys is probed again.
const probeEvery = 30 * time.Second

// addMemory adds the memory that fdinfo reports for a process's descriptors.
// While the driver reports none, hardly anything is read.
func (r *Reader) addMemory(p *model.Process, busIDs map[int]string, now time.Time) {
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
	}
}
