package truth

import (
	"fmt"

	"github.com/ttmon/ttmon/internal/lab/e2e/ttnn"
	"github.com/ttmon/ttmon/internal/lab/sim"
	"github.com/ttmon/ttmon/internal/lab/sim/metal"
	"github.com/ttmon/ttmon/internal/model"
)

// placeScenarios ask which chip is which, of boards where the driver does not
// tell.
func placeScenarios() []scenario {
	return []scenario{
		{"p300: every chip its own bytes", fast, everyChip("2xp300c", false)},
		{"Wormhole Galaxy: every chip its own bytes", 0, everyChip("galaxy-wormhole", false)},
		{"Wormhole Galaxy with UMD's descriptor", 0, everyChip("galaxy-wormhole", true)},
		{"Blackhole Galaxy: every chip its own bytes", 0, everyChip("galaxy-blackhole", false)},
		{"p300: a chip that may be either, then a clean exit", fast, eitherThenExit},
		{"p300: a chip that may be either, then a kill", fast, eitherThenKill},
		{"Wormhole Galaxy: a mesh half opened, seen by ttmond", alone, halfOpened},
		{"n300 in reset", fast, inReset("n300")},
		{"p300 in reset", 0, inReset("p300c")},
		{"a chip that no device here has: a mock run", fast, mockRun},
	}
}

// everyChip: one process holds another number of bytes on each.
func everyChip(boards string, dump bool) func(*stage) {
	return func(s *stage) {
		s.with(sim.Options{Boards: boards, UMDDump: dump})
		p := s.metal(metal.Options{})
		s.spread(p, func(int) bool { return true })
		snap := s.snapshot()
		for i, ch := range s.chips {
			chip := &snap.Device(ch.Device).Chips[ch.Slot]
			used, doubts := chip.Memory.Pools[model.DRAM].Used, s.beside(snap, ch.Device)
			if v, _ := judge(uint64(1000+i), used, doubts); v != right || i < 4 {
				s.figure(fmt.Sprintf("device %d chip %d dram", ch.Device, ch.Slot), uint64(1000+i), used, doubts)
			}
		}
	}
}

// spread lets a process open devices and hold 1000 and more bytes on each of
// their chips.
func (s *stage) spread(p *metal.Process, wanted func(device int) bool) {
	s.Helper()
	for i, ch := range s.chips {
		if ch.Slot == 0 && wanted(ch.Device) {
			s.sendCommands(p, fmt.Sprintf("device /dev/tenstorrent/%d", ch.Device))
		}
		if wanted(ch.Device) {
			s.sendCommands(p, fmt.Sprintf("open %d %d", ch.ID, ch.Number), fmt.Sprintf("alloc %d dram %d", ch.ID, 1000+i))
		}
	}
}

// either makes a chip of a p300 that cannot be placed: two processes give it
// different numbers.
func (s *stage) either() (a, b *metal.Process) {
	s.on("p300c")
	nodes := []string{"device /dev/tenstorrent/0", "device /dev/tenstorrent/1"}
	a = s.metal(metal.Options{}, append(nodes, "open @ 0", "alloc @ dram 5M")...)
	b = s.metal(metal.Options{}, append(nodes, "open @ 1", "alloc @ dram 3M")...)
	snap := s.snapshot()
	s.device(snap, 0, ttnn.Held{"dram": 8 * mib}, model.DRAM)
	s.device(snap, 1, nil, model.DRAM)
	return a, b
}

func eitherThenExit(s *stage) {
	a, b := s.either()
	_, _ = a.End(), b.End()
	s.afterBoth()
}

func eitherThenKill(s *stage) {
	a, b := s.either()
	s.slay(a)
	s.slay(b)
	s.afterBoth()
}

// afterBoth: no process has the devices open, so that they hold nothing; and the
// chip is still one of theirs.
func (s *stage) afterBoth() {
	s.Helper()
	snap := s.snapshot()
	s.device(snap, 0, nil, model.DRAM)
	s.device(snap, 1, nil, model.DRAM)
	for _, c := range snap.Unmatched {
		s.fact("the chip is one of", "[0 1]", fmt.Sprint(c.Candidates))
	}
}

// halfOpened: ttmond looks while a program has opened a half of its devices.
func halfOpened(s *stage) {
	s.on("galaxy-wormhole")
	d := s.daemon()
	p := s.metal(metal.Options{})
	for i := range 8 {
		s.sendCommands(p, fmt.Sprintf("device /dev/tenstorrent/%d", i))
	}
	eighth := s.chips[8]
	s.sendCommands(p, fmt.Sprintf("open %d 0", eighth.ID), fmt.Sprintf("alloc %d dram 1008", eighth.ID))
	s.until("ttmond has seen it", func() bool { return len(s.daemonSnapshot(d).Processes) == 1 })
	for i := 8; i < 32; i++ {
		s.sendCommands(p, fmt.Sprintf("device /dev/tenstorrent/%d", i))
	}
	for i, ch := range s.chips {
		if ch.Slot == 0 && i != 8 {
			s.sendCommands(p, fmt.Sprintf("open %d %d", ch.ID, ch.Number), fmt.Sprintf("alloc %d dram %d", ch.ID, 1000+i))
		}
	}
	s.sendCommands(p, fmt.Sprintf("close %d", eighth.ID), fmt.Sprintf("open %d %d", eighth.ID, eighth.Number), fmt.Sprintf("alloc %d dram 1008", eighth.ID))
	var snap *model.Snapshot
	s.until("ttmond knows all chips", func() bool {
		snap = s.daemonSnapshot(d)
		return snap.Device(31).Memory.Pools[model.DRAM].Used.Positive()
	})
	snap = s.daemonSnapshot(d)
	for i, ch := range s.chips {
		used, doubts := snap.Device(ch.Device).Chips[ch.Slot].Memory.Pools[model.DRAM].Used, s.beside(snap, ch.Device)
		if v, _ := judge(uint64(1000+i), used, doubts); v != right || i == 0 || i == 8 {
			s.figure(fmt.Sprintf("device %d dram", ch.Device), uint64(1000+i), used, doubts)
		}
	}
}

// inReset: the driver tells nothing of a board in reset; its chips are still
// its own.
func inReset(boards string) func(*stage) {
	return func(s *stage) {
		s.on(boards)
		p := s.metal(metal.Options{})
		s.spread(p, func(int) bool { return true })
		sum := map[int]uint64{}
		for i, ch := range s.chips {
			sum[ch.Device] += uint64(1000 + i)
		}
		s.device(s.snapshot(), 0, ttnn.Held{"dram": sum[0]}, model.DRAM)
		s.ctl("reset", "0", "window=forever", "block=0s")
		snap := s.snapshot()
		s.fact("device 0 is", string(model.StateResetting), string(snap.Device(0).State))
		for i := range snap.Devices {
			s.device(snap, i, ttnn.Held{"dram": sum[i]}, model.DRAM)
		}
	}
}

// mockRun: a chip that this host does not have.
func mockRun(s *stage) {
	s.on("n150")
	p := s.metal(metal.Options{}, "open 4476187513037", "alloc 4476187513037 dram 3G")
	snap := s.snapshot()
	s.device(snap, 0, nil, model.DRAM)
	s.fact("chips that no device here has", "1", fmt.Sprint(len(snap.Unmatched)))
	if len(snap.Unmatched) == 1 {
		s.figure("its chip dram", 3<<30, snap.Unmatched[0].Memory.Pools[model.DRAM].Used, append(snap.Unmatched[0].Memory.Doubts, s.doubtsOf(snap, p.PID)...))
	}
}

// doubtsOf are all doubts about a process.
func (s *stage) doubtsOf(snap *model.Snapshot, pid int) (list []model.Doubt) {
	for i := range snap.Processes {
		for _, u := range snap.Processes[i].Devices {
			if snap.Processes[i].PID == pid {
				list = append(list, u.Doubts...)
			}
		}
	}
	return list
}
