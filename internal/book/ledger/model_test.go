package ledger

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ttmon/ttmon/internal/model"
)

// naive is the same book-keeping, written as plainly as it can be said.
type naive struct {
	live map[naiveKey]Event
	seq  map[naiveKey]int
	n    int
}

type naiveKey struct {
	pid, kind int
	dev       int32
	id        uint64
}

func (m *naive) apply(pid int, e Event) {
	m.n++
	isL1 := canBeL1(e.ID) && (e.Pool == l1 || e.Pool == l1Small)
	key := naiveKey{pid, 0, e.Device, e.ID}
	switch e.Op {
	case Alloc:
		if isL1 {
			key.kind = 1
		}
	case CBAlloc, CBFree:
		key.kind, e.Pool = 2, uint8(model.CB)
	case KernelLoad, KernelUnload:
		key.kind, e.Pool = 3, uint8(model.Kernel)
	}
	switch e.Op {
	case Alloc, CBAlloc, KernelLoad:
		if e.Size > 0 && e.Device >= 0 {
			m.live[key], m.seq[key] = e, m.n
		}
	case CBFree, KernelUnload:
		delete(m.live, key)
	case Free:
		if k, ok := m.youngest(key); ok {
			delete(m.live, k)
		} else if e.Device == 0 {
			m.freeElsewhere(key)
		}
	}
}

func (m *naive) youngest(key naiveKey) (naiveKey, bool) {
	other := key
	other.kind = 1
	_, a := m.live[key]
	_, b := m.live[other]
	if b && (!a || m.seq[other] > m.seq[key]) {
		return other, true
	}
	return key, a
}

func (m *naive) freeElsewhere(key naiveKey) {
	devices := map[int32]bool{}
	for k := range m.live {
		if k.pid == key.pid && k.id == key.id && k.kind < 2 {
			devices[k.dev] = true
		}
	}
	if len(devices) != 1 {
		return
	}
	for dev := range devices {
		key.dev = dev
		k, _ := m.youngest(key)
		delete(m.live, k)
	}
}

// Whatever processes report, the ledger and the naive model hold the same.
func TestAgainstNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := New(Options{})
		m := &naive{live: map[naiveKey]Event{}, seq: map[naiveKey]int{}}
		procs := map[int]*Process{}
		now := t0
		ids := rapid.SampledFrom([]uint64{1, 2, 64, 0x10000, 0x100000, 0x100020, 0x200000})
		for step := range rapid.IntRange(1, 200).Draw(t, "steps") {
			now = now.Add(tick) // so that ages tell order
			pid := rapid.IntRange(1, 3).Draw(t, "pid")
			if procs[pid] == nil {
				procs[pid] = l.Open(Info{ProcessID: model.ProcessID{PID: pid}}, now)
			}
			switch rapid.IntRange(0, 30).Draw(t, "what") {
			case 0:
				l.End(procs[pid], "exited", now, nil)
				delete(procs, pid)
				for k := range m.live {
					if k.pid == pid {
						delete(m.live, k)
					}
				}
			case 1:
				l = handOver(t, l)
				for pid := range procs {
					procs[pid] = l.Open(Info{ProcessID: model.ProcessID{PID: pid}}, now)
				}
			default:
				e := Event{
					Op: Op(rapid.IntRange(1, 6).Draw(t, "op")), ID: ids.Draw(t, "id"),
					Device: int32(rapid.IntRange(-1, 3).Draw(t, "dev")),
					Size:   uint64(rapid.IntRange(0, 100).Draw(t, "size")),
					Pool:   rapid.SampledFrom([]uint8{dram, l1, l1Small, trace, uint8(Host)}).Draw(t, "pool"),
				}
				l.Apply(procs[pid], []Event{e}, now)
				m.apply(pid, e)
			}
			compare(t, step, l, m)
		}
		l.Wait()
	})
}

func handOver(t *rapid.T, l *Ledger) *Ledger {
	next, err := restored(l)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(l.Processes(), next.Processes()); diff != "" {
		t.Fatalf("processes changed in the handover (-old +new):\n%s", diff)
	}
	if diff := cmp.Diff(l.Devices(), next.Devices()); diff != "" {
		t.Fatalf("devices changed in the handover (-old +new):\n%s", diff)
	}
	return next
}

func compare(t *rapid.T, step int, l *Ledger, m *naive) {
	want := map[naiveKey]uint64{}
	sums := map[int32][NumPools]uint64{}
	for k, e := range m.live {
		pool := e.Pool
		switch e.Op {
		case CBAlloc:
			pool = uint8(model.CB)
		case KernelLoad:
			pool = uint8(model.Kernel)
		}
		want[k] = e.Size<<8 | uint64(pool)
		s := sums[k.dev]
		s[pool] += e.Size
		sums[k.dev] = s
	}
	got := map[naiveKey]uint64{}
	for _, h := range l.Processes() {
		l.Walk(h.ProcessID, func(b Buffer) bool {
			k := naiveKey{pid: h.PID, dev: b.Device, id: b.ID}
			switch {
			case b.Kind == KindCB:
				k.kind = 2
			case b.Kind == KindKernel:
				k.kind = 3
			case canBeL1(b.ID) && (b.Pool == model.L1 || b.Pool == model.L1Small):
				k.kind = 1
			}
			got[k] = b.Size<<8 | uint64(b.Pool)
			return true
		})
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(naiveKey{})); diff != "" {
		t.Fatalf("after step %d, buffers (-naive +ledger):\n%s", step, diff)
	}
	for _, u := range l.Devices() {
		if u.Bytes != sums[u.Device] {
			t.Fatalf("after step %d, device %d holds %v, want %v", step, u.Device, u.Bytes, sums[u.Device])
		}
	}
	if s := l.Stats(); s.Buffers != len(want) {
		t.Fatalf("after step %d, %d buffers counted, want %d", step, s.Buffers, len(want))
	}
}
