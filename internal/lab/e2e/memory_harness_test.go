package e2e

import (
	"context"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ttmon/ttmon/internal/field/wire"
	"github.com/ttmon/ttmon/internal/lab/e2e/ttnn"
	"github.com/ttmon/ttmon/internal/lab/sim"
	"github.com/ttmon/ttmon/internal/lab/sim/cluster"
	"github.com/ttmon/ttmon/internal/model"
)

// poolsOf are the pools that tt-metal accounts for, by the names that
// workloads call them.
var poolsOf = map[string]model.Pool{
	"dram": model.DRAM, "l1": model.L1, "l1_small": model.L1Small, "trace": model.Trace, "cb": model.CB,
}

// bytesBy is a number of bytes per pool.
type bytesBy map[string]uint64

func (b bytesBy) plus(c bytesBy) bytesBy {
	sum := maps.Clone(b)
	if sum == nil {
		sum = bytesBy{}
	}
	for pool, v := range c {
		sum[pool] += v
	}
	return sum
}

// books is what must be in the snapshot: for every chip, what each process
// holds there.
type books map[uint64]map[int]bytesBy

// chipsIn lists the simulated chips of a host.
func chipsIn(t *testing.T, h *sim.Host) []cluster.Chip {
	t.Helper()
	c, err := cluster.Load(h.Root() + cluster.Dir)
	if err != nil {
		t.Fatal(err)
	}
	return c.Chips()
}

// placed checks that every chip that a process holds something on is where the
// host has it.
func (b books) placed(s *model.Snapshot, chips []cluster.Chip) error {
	for _, ch := range chips {
		if b[ch.ID] == nil {
			continue
		}
		d := s.Device(ch.Device)
		if d == nil || ch.Slot >= len(d.Chips) {
			return fmt.Errorf("device %d has no chip %d", ch.Device, ch.Slot)
		}
		if id := d.Chips[ch.Slot].ID; id.V != ch.ID {
			return fmt.Errorf("device %d chip %q is %d (%s), want %d; chips that no device here has: %d", ch.Device, ch.Name, id.V, id.Reason(), ch.ID, len(s.Unmatched))
		}
	}
	return nil
}

// check compares a snapshot with the truth: used bytes of every chip and
// device, and the bytes of every process on every chip. Pools that the books
// say nothing about must be known, and that is all. It returns the first
// difference.
func (b books) check(s *model.Snapshot) error {
	for i := range s.Devices {
		d := &s.Devices[i]
		sum := bytesBy{}
		for j := range d.Chips {
			ch := &d.Chips[j]
			used := bytesBy{}
			for _, held := range b[ch.ID.V] {
				used = used.plus(held)
			}
			sum = sum.plus(used)
			if err := equal(fmt.Sprintf("device %d chip %q", d.Index, ch.Name), used, func(p model.Pool) model.Bytes { return ch.Memory.Pools[p].Used }); err != nil {
				return err
			}
			if ch.Memory.Tracking != model.TrackOK {
				return fmt.Errorf("device %d chip %q: tracking %s: %v", d.Index, ch.Name, ch.Memory.Tracking, ch.Memory.Doubts)
			}
		}
		if err := equal(fmt.Sprintf("device %d", d.Index), sum, func(p model.Pool) model.Bytes { return d.Memory.Pools[p].Used }); err != nil {
			return err
		}
	}
	return b.checkProcesses(s)
}

func (b books) checkProcesses(s *model.Snapshot) error {
	for id, processes := range b {
		for pid, held := range processes {
			use := chipUse(s, pid, id)
			if use == nil {
				return fmt.Errorf("process %d is not on chip %d", pid, id)
			}
			if err := equal(fmt.Sprintf("process %d on chip %d", pid, id), held, func(p model.Pool) model.Bytes { return use.Memory[p] }); err != nil {
				return err
			}
		}
	}
	for i := range s.Processes {
		p := &s.Processes[i]
		for _, u := range p.Devices {
			sum := bytesBy{}
			for _, c := range u.Chips {
				if b[c.ChipID][p.PID] == nil {
					return fmt.Errorf("process %d holds something on chip %d, where it should not be", p.PID, c.ChipID)
				}
				sum = sum.plus(b[c.ChipID][p.PID])
			}
			if u.Source != "shm" {
				continue
			}
			if err := equal(fmt.Sprintf("process %d on device %d", p.PID, u.Device), sum, func(p model.Pool) model.Bytes { return u.Memory[p] }); err != nil {
				return err
			}
		}
	}
	return nil
}

// equal compares figures with the truth.
func equal(where string, want bytesBy, got func(model.Pool) model.Bytes) error {
	for _, name := range slices.Sorted(maps.Keys(poolsOf)) {
		r := got(poolsOf[name])
		v, _, known := r.Best()
		if w, ok := want[name]; !known || ok && v != w {
			return fmt.Errorf("%s: %d bytes of %s (%s), want %d", where, v, name, r.Status(), w)
		}
		if _, ok := want[name]; !ok && len(want) == 0 && v != 0 {
			return fmt.Errorf("%s: %d bytes of %s, and no process holds any", where, v, name)
		}
	}
	return nil
}

// chipUse is what a process has of a chip; nil if it is not there.
func chipUse(s *model.Snapshot, pid int, id uint64) *model.ChipUse {
	for i := range s.Processes {
		if s.Processes[i].PID != pid {
			continue
		}
		for _, u := range s.Processes[i].Devices {
			for j := range u.Chips {
				if u.Chips[j].ChipID == id {
					return &u.Chips[j]
				}
			}
		}
	}
	return nil
}

// snapshot is what ttmon smi --json says about memory. Whether a chip answered
// in time is not asked here: on a machine that is busy with ttnn a simulated
// one may be late, and exit code 15 then says so.
func snapshot(t *testing.T, h *sim.Host, args ...string) *model.Snapshot {
	t.Helper()
	r := runIn(t, h, append([]string{"smi", "--json"}, args...)...)
	if r.code != 0 && r.code != exitTrouble {
		t.Fatalf("ttmon smi --json %v: exit code %d; it said %q", args, r.code, r.err)
	}
	s, err := wire.Decode([]byte(r.out))
	if err != nil {
		t.Fatalf("reading the snapshot: %v\n%s%s", err, r.out, r.err)
	}
	return s
}

// processOf is a process of the snapshot; the test ends if it is not there.
func processOf(t *testing.T, s *model.Snapshot, pid int) *model.Process {
	t.Helper()
	for i := range s.Processes {
		if s.Processes[i].PID == pid {
			return &s.Processes[i]
		}
	}
	t.Fatalf("process %d is not in the snapshot", pid)
	return nil
}

// ghostsIn lists what dead processes left: "name:bytes of all pools".
func ghostsIn(s *model.Snapshot) []string {
	var list []string
	for _, g := range s.StaleSlots {
		total, _, _ := g.Bytes.Total().Best()
		list = append(list, fmt.Sprintf("%s:%d", g.Name, total))
	}
	slices.Sort(list)
	return list
}

func wantGhosts(t *testing.T, s *model.Snapshot, want ...string) {
	t.Helper()
	slices.Sort(want)
	if got := ghostsIn(s); !slices.Equal(got, want) {
		t.Errorf("ghosts %q, want %q", got, want)
	}
}

// inHost makes commands that run in a host; with nodes they also have all its
// devices open.
func inHost(h *sim.Host, nodes bool) func(string, ...string) *exec.Cmd {
	return func(name string, args ...string) *exec.Cmd {
		if nodes {
			args = append([]string{"open", "--", name}, args...)
			name = filepath.Join(bin, "ttmon-sim")
		}
		return h.Command(context.Background(), name, args...) // it ends when its input does
	}
}

// play starts a real ttnn program in the host.
func play(t *testing.T, h *sim.Host, release string, nodes bool) *ttnn.Job {
	t.Helper()
	return ttnn.Play(t, ttnn.Options{Release: release, Dir: t.TempDir(), Descriptor: sim.MockDescriptor, Command: inHost(h, nodes)})
}
