package selftest

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/ttmon/ttmon/internal/cli/selftest/report"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
)

// The layout of tt-metal's accounting regions, as far as slots go: the same in
// every version. It is written down here a second time on purpose.
const (
	regionSize  = 8576
	slotsAt     = 856
	slotSize    = 120
	slotCount   = 64
	slotDRAM    = 8
	slotL1      = 16
	slotL1Small = 24
	slotTrace   = 32
)

// slot is what one process accounts for on one chip.
type slot struct {
	chip  uint64
	pid   int
	bytes map[model.Pool]uint64
}

// readSlots decodes the regions below /dev/shm; unread counts those that this
// user may not read.
func (t *test) readSlots() (list []slot, unread int) {
	files, _ := filepath.Glob(t.root.Path("/dev/shm/tt_device_*_memory"))
	for _, file := range files {
		id, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), "tt_device_"), "_memory"), 10, 64)
		if err != nil {
			continue
		}
		b, err := os.ReadFile(file)
		if err != nil || len(b) < regionSize {
			unread++
			continue
		}
		list = append(list, decodeSlots(b, id)...)
	}
	return list, unread
}

func decodeSlots(b []byte, chip uint64) (list []slot) {
	for n := range slotCount {
		s := b[slotsAt+n*slotSize:][:slotSize]
		pid := int(int32(binary.LittleEndian.Uint32(s)))
		if pid <= 0 {
			continue
		}
		list = append(list, slot{chip: chip, pid: pid, bytes: map[model.Pool]uint64{
			model.DRAM: binary.LittleEndian.Uint64(s[slotDRAM:]), model.L1: binary.LittleEndian.Uint64(s[slotL1:]),
			model.L1Small: binary.LittleEndian.Uint64(s[slotL1Small:]), model.Trace: binary.LittleEndian.Uint64(s[slotTrace:]),
		}})
	}
	return list
}

// regions compares what processes account for in shared memory with what ttmon
// shows for them. Where ttmon has it from there, too, only a contradiction says
// something: the same file is no second witness. Allocations go on meanwhile: a figure is right if it lies
// between two readings of the region.
func (t *test) regions(ctx context.Context, r *report.Report) {
	before, unread := t.readSlots()
	s := t.snapshot(ctx)
	after, _ := t.readSlots()
	if unread > 0 {
		r.Add(report.Row{
			Part: report.Regions, What: "accounting regions", Verdict: report.Unknown,
			Note: fmt.Sprintf("%d belong to another user: run as root to compare them", unread),
		})
	}
	for _, x := range before {
		p, u := use(s, x.pid, x.chip)
		if p == nil || !t.maps(x.pid, x.chip) {
			continue // left by a process that is gone, or of another pid namespace
		}
		for _, pool := range []model.Pool{model.DRAM, model.L1, model.L1Small, model.Trace} {
			if out, ok := compareSlot(x, again(after, x), pool, u, chipMemory(u, x.chip)); ok {
				r.Add(out)
			}
		}
	}
}

// again is the same slot, read later.
func again(list []slot, x slot) slot {
	for _, y := range list {
		if y.chip == x.chip && y.pid == x.pid {
			return y
		}
	}
	return x
}

// use is a process's use of the device that has a chip.
func use(s *model.Snapshot, pid int, chip uint64) (*model.Process, *model.DeviceUse) {
	for i := range s.Processes {
		p := &s.Processes[i]
		if p.PID != pid || p.State != model.Running {
			continue
		}
		for j := range p.Devices {
			for _, c := range p.Devices[j].Chips {
				if c.ChipID == chip {
					return p, &p.Devices[j]
				}
			}
		}
	}
	return nil, nil
}

func chipMemory(u *model.DeviceUse, chip uint64) *model.PoolBytes {
	for i := range u.Chips {
		if u.Chips[i].ChipID == chip {
			return &u.Chips[i].Memory
		}
	}
	return new(model.PoolBytes)
}

// maps reports whether a process has the region of a chip mapped: only then the
// slot with its number is its own.
func (t *test) maps(pid int, chip uint64) bool {
	b, err := os.ReadFile(t.root.Path(fmt.Sprintf("/proc/%d/maps", pid)))
	return err == nil && bytes.Contains(b, fmt.Appendf(nil, "tt_device_%d_memory", chip))
}

// compareSlot compares one pool; ok is false where there is nothing to compare.
func compareSlot(first, second slot, pool model.Pool, u *model.DeviceUse, shown *model.PoolBytes) (out report.Row, ok bool) {
	a, b := first.bytes[pool], second.bytes[pool]
	figure := shown[pool]
	n, bound, known := figure.Best()
	if !known && a == 0 && b == 0 {
		return out, false
	}
	out = row(report.Regions, fmt.Sprintf("%s of process %d", words.PoolName(pool), first.pid), u.Device, report.Right, "")
	out.Ours, out.Witness, out.By = words.Figure(figure), words.Bytes(b), "its region, decoded again"
	low, high := min(a, b), max(a, b)
	switch within := known && n >= low && n <= high; {
	case !known:
		out.Verdict, out.Note = report.Unknown, "ttmon does not believe the region: "+string(figure.Status())
	case u.Source == model.FromShm && (within || bound != model.Exact):
		out.Verdict, out.Note = report.Unknown, "ttmon's figure is from this region itself, which any program could have written: ttmond with uprobes, or ttmon run, is a second witness"
	case within && bound == model.Exact:
	case within:
		out.Verdict, out.Note = report.Bounded, "marked by ttmon"
	case u.Source != model.FromShm && n > high:
		// A better source sees threads and blocks that the region leaves out.
		out.Verdict, out.Note = report.Bounded, fmt.Sprintf("ttmon's figure comes from %s; the region accounts for one thread only on some releases", u.Source)
	case bound != model.Exact:
		out.Verdict, out.Note = report.Bounded, "marked by ttmon"
	default:
		out.Verdict = report.Wrong
		out.Note = fmt.Sprintf("the region contradicts what is known from %s", u.Source)
	}
	return out, true
}
