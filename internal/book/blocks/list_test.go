package blocks

import (
	"encoding/json"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/model"
	"pgregory.net/rapid"
)

// bank is the brute-force model: who owns each unit of a small bank.
type bank struct {
	owner []uint64 // address of the block + 1, by unit; 0: free
	asked map[uint64]uint64
}

func (b *bank) free(at, n int) bool {
	for i := at; i < at+n; i++ {
		if b.owner[i] != 0 {
			return false
		}
	}
	return true
}

func (b *bank) space() (s Space) {
	run := uint64(0)
	for i := range len(b.owner) + 1 {
		if i < len(b.owner) && b.owner[i] == 0 {
			run++
			continue
		}
		if run > 0 {
			s.Free += run * unit
			s.Largest = max(s.Largest, run*unit)
			s.Holes++
		}
		run = 0
	}
	return s
}

const (
	unit  = 64
	units = 600 // enough for several runs of the index
	base  = 0x4000
)

func TestListAgainstBruteForce(t *testing.T) {
	hermetic.Long(t)
	rapid.Check(t, func(t *rapid.T) {
		geometry := Geometry{Pool: model.DRAM, Banks: 8, Base: base, Capacity: units * unit, Align: unit, Smallest: unit}
		l := NewList(geometry, FromStart)
		want := bank{owner: make([]uint64, units), asked: map[uint64]uint64{}}
		var used, peak uint64
		t.Repeat(map[string]func(*rapid.T){
			"alloc": func(t *rapid.T) {
				at, n := rapid.IntRange(0, units-1).Draw(t, "at"), rapid.IntRange(1, 5).Draw(t, "units")
				if at+n > units || !want.free(at, n) {
					return
				}
				addr := base + uint64(at*unit)
				asked := rapid.Uint64Range(0, 1000).Draw(t, "asked")
				l.Alloc(Block{Addr: addr, Size: uint64(n * unit), Asked: asked})
				for i := at; i < at+n; i++ {
					want.owner[i] = addr + 1
				}
				want.asked[addr] = asked
				used += uint64(n * unit)
				peak = max(peak, used)
			},
			"free": func(t *rapid.T) {
				at := rapid.IntRange(0, units-1).Draw(t, "at")
				if want.owner[at] == 0 {
					return
				}
				addr := want.owner[at] - 1
				b, ok := l.Free(addr)
				if !ok {
					t.Fatalf("no block at %#x", addr)
				}
				for i := range want.owner {
					if want.owner[i] == addr+1 {
						want.owner[i] = 0
						used -= unit
						b.Size -= unit
					}
				}
				if b.Size != 0 || b.Asked != want.asked[addr] {
					t.Fatalf("freed %+v, asked %d", b, want.asked[addr])
				}
				delete(want.asked, addr)
			},
			"clear": func(t *rapid.T) {
				if rapid.IntRange(0, 30).Draw(t, "rarely") != 0 {
					return
				}
				l.Clear()
				want, used = bank{owner: make([]uint64, units), asked: map[uint64]uint64{}}, 0
			},
			"": func(t *rapid.T) {
				check(t, l, &want, used, peak)
			},
		})
	})
}

func check(t *rapid.T, l *List, want *bank, used, peak uint64) {
	var usage Usage
	usage.BankBytes, usage.Blocks = used, uint64(len(want.asked))
	for addr, asked := range want.asked {
		usage.Asked += asked
		if asked != 0 {
			continue
		}
		usage.AskedUnknown++
		for _, owner := range want.owner {
			if owner == addr+1 {
				usage.UnknownBytes += unit
			}
		}
	}
	if got := l.Usage(); got != usage {
		t.Fatalf("usage %+v, want %+v", got, usage)
	}
	if l.Peak.BankBytes != peak {
		t.Fatalf("peak %d, want %d", l.Peak.BankBytes, peak)
	}
	space, known := l.Space()
	if wantSpace := want.space(); !known || space != wantSpace {
		t.Fatalf("space %+v %v, want %+v", space, known, wantSpace)
	}
	if !l.Exact() {
		t.Fatal("not exact")
	}
	for at := range want.owner {
		addr := base + uint64(at*unit)
		_, taken := l.live.overlapping(addr, addr+unit)
		if taken != (want.owner[at] != 0) {
			t.Fatalf("unit %d: taken is %v", at, taken)
		}
	}
	for _, run := range l.live.runs {
		if len(run) == 0 || len(run) > runLength {
			t.Fatalf("a run of %d blocks", len(run))
		}
	}
	// Whatever is known survives being handed on.
	data, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	var again List
	if err := json.Unmarshal(data, &again); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(dump(l), dump(&again)); diff != "" {
		t.Fatal(diff)
	}
	if diff := cmp.Diff(dump(l), dump(l.Clone())); diff != "" {
		t.Fatal(diff)
	}
}

// dump is a list without the shape of its index.
func dump(l *List) any {
	var all []Block
	for b := range l.All() {
		all = append(all, b)
	}
	return []any{l.Geometry, l.Origin, l.Cut, l.Contradictions, l.FreedUnseen, l.Peak, l.Usage(), all}
}

func TestContradictions(t *testing.T) {
	l := NewList(Geometry{Pool: model.L1, Banks: 2, Capacity: 1000}, FromStart)
	l.Alloc(Block{Addr: 0, Size: 100, Asked: 150})
	l.Alloc(Block{Addr: 100, Size: 100, Asked: 150})
	l.Alloc(Block{Addr: 200, Size: 100, Asked: 150})
	l.Alloc(Block{Addr: 150, Size: 100, Asked: 20}) // over the second and the third
	if l.Exact() || l.Contradictions != 2 {
		t.Errorf("%d contradictions, exact %v", l.Contradictions, l.Exact())
	}
	if got, want := l.Usage(), (Usage{Blocks: 2, BankBytes: 200, Asked: 170}); got != want {
		t.Errorf("usage %+v, want %+v", got, want)
	}
	if _, known := l.Space(); known {
		t.Error("the space of a list that contradicts itself is told")
	}
	if _, ok := l.Free(77); ok || l.Contradictions != 3 {
		t.Errorf("a free of nothing: %v, %d contradictions", ok, l.Contradictions)
	}
	l.Alloc(Block{Addr: ^uint64(0) - 5, Size: 100})
	l.Alloc(Block{Addr: 900})
	if l.Contradictions != 5 || l.Usage().Blocks != 2 {
		t.Errorf("impossible blocks: %d contradictions, usage %+v", l.Contradictions, l.Usage())
	}
	l.Clear()
	if !l.Exact() || l.Usage() != (Usage{}) {
		t.Error("a clear makes a list known again")
	}
}

func TestLateList(t *testing.T) {
	l := NewList(Geometry{Pool: model.DRAM}, Late)
	l.Alloc(Block{Addr: 4096, Size: 64})
	if _, ok := l.Free(0); ok {
		t.Error("freed what was not known")
	}
	if l.FreedUnseen != 1 || l.Contradictions != 0 || l.Exact() {
		t.Errorf("%+v", l)
	}
	if _, known := l.Occupied(); known {
		t.Error("occupied bytes without a number of banks")
	}
	if _, known := l.Fits(Request{Bytes: 1}); known {
		t.Error("an answer about a list that is known in part")
	}
}

func TestBlocksAreSmall(t *testing.T) {
	const n = 200_000
	for name, addr := range map[string]func(i int) uint64{
		"ascending": func(i int) uint64 { return uint64(i) * 64 },
		// A stride that has no factor in common with n visits all addresses.
		"scattered": func(i int) uint64 { return uint64(i) * 77_773 % n * 64 },
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			l := NewList(Geometry{}, FromStart)
			for i := range n {
				l.Alloc(Block{Addr: addr(i), Size: 64, Asked: 64})
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			if each := float64(after.HeapAlloc-before.HeapAlloc) / n; each > 64 {
				t.Errorf("%.1f bytes for a block", each)
			} else {
				t.Logf("%.1f bytes for a block", each)
			}
			if l.Usage().Blocks != n || l.Contradictions != 0 {
				t.Errorf("%+v", l.Usage())
			}
		})
	}
}

// BenchmarkList is what a live block takes of memory, in scattered order. Aim: 64 bytes.
func BenchmarkList(b *testing.B) {
	const n = 500_000
	var bytes float64
	for b.Loop() {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		l := NewList(Geometry{}, FromStart)
		for i := range n {
			l.Alloc(Block{Addr: uint64(i) * 77_773 % n * 64, Size: 64, Asked: 64})
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		bytes = float64(after.HeapAlloc-before.HeapAlloc) / n
		runtime.KeepAlive(l)
	}
	b.ReportMetric(bytes, "B/block")
}
