package failure

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

const (
	base = 4096
	unit = 1024 // of blocks in TestFixesFit
)

// record is a request for need bytes of each bank of a pool with these blocks,
// given as offsets and sizes; the second one is a second younger than the first,
// and so on.
func record(pool model.Pool, capacity, need uint64, list ...[2]uint64) *Record {
	l := blocks.NewList(blocks.Geometry{Pool: pool, Banks: 8, Base: base, Capacity: capacity, Align: 64, Smallest: 64}, blocks.FromStart)
	for i, b := range list {
		l.Alloc(blocks.Block{Addr: base + b[0], Size: b[1], Born: int64(i+1) * 1e9})
	}
	return &Record{
		Schema: Schema, Kind: NoRoom, Count: 1, Pool: pool.String(), Time: time.Unix(100, 0).UTC(), State: l, Chips: []Chip{{ID: 7}},
		Request: Request{BankBytes: need, Bytes: need * 8, Page: 2048}, Stack: nil, Sites: []Site{}, Siblings: []Sibling{}, Others: []Other{}, Doubts: []DoubtKind{},
		Process: Process{PID: 42, Release: "ttnn 0.81.1"},
	}
}

func TestVerdict(t *testing.T) {
	for _, tt := range []struct {
		name    string
		record  *Record
		cause   Cause
		missing uint64
		fixes   []string
	}{
		{"full", record(model.DRAM, 1024, 512, [2]uint64{0, 832}), Full, 512 - 192, []string{"free_fewest 832"}},
		{"fragmented", record(model.DRAM, 1024, 384, [2]uint64{0, 64}, [2]uint64{320, 128}, [2]uint64{704, 320}), Fragmented, 384 - 256, []string{"free_fewest 128", "free_youngest 320"}},
		{"a block that could lie elsewhere", record(model.DRAM, 2048, 384, [2]uint64{128, 192}, [2]uint64{448, 384}, [2]uint64{1088, 960}), Fragmented, 384 - 256, []string{"free_fewest 192", "free_youngest 960", "move 192"}},
		{"too large", record(model.DRAM, 1024, 2048), TooLarge, 1024, nil},
		{"L1_SMALL that was not asked for", record(model.L1Small, 0, 128), RegionTooSmall, 128, []string{"l1_small_size 32768"}},
		{"L1_SMALL that is too small", record(model.L1Small, 256, 128, [2]uint64{64, 192}), Full, 64, []string{"free_fewest 192"}},
		{"a trace region that is too small", record(model.Trace, 256, 512), TooLarge, 256, []string{"trace_region_size 4096"}},
		{"a hole that another allocator has", record(model.DRAM, 1024, 512), Reserved, 0, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.record.Judge()
			v := &tt.record.Verdict
			var fixes []string
			for i := range v.Fixes {
				fixes = append(fixes, v.Fixes[i].Key())
			}
			if v.Cause != tt.cause || v.Missing != tt.missing || !slices.Equal(fixes, tt.fixes) {
				t.Errorf("%s, %d missing, fixes %q", v.Cause, v.Missing, fixes)
			}
		})
	}
}

// TestOtherPools: what another layout or pool would have done.
func TestOtherPools(t *testing.T) {
	yes := true
	r := record(model.L1, 1<<20, 1<<19, [2]uint64{1 << 18, 1 << 19}, [2]uint64{3 << 18, 1 << 18})
	r.Request.Sharded, r.Request.Shards, r.Request.Bytes = &yes, 2, 1<<20
	r.AddSibling(blocks.NewList(blocks.Geometry{Pool: model.DRAM, Banks: 8, Capacity: 1 << 30, Align: 64}, blocks.FromStart))
	r.AddSibling(blocks.NewList(blocks.Geometry{Pool: model.L1Small, Banks: 8, Capacity: 1 << 18, Align: 64}, blocks.FromStart))
	r.Judge()
	got := map[FixKind]uint64{}
	for _, f := range r.Verdict.Fixes {
		got[f.Kind] = f.Bytes
	}
	want := map[FixKind]uint64{FreeFewest: 1 << 19, Interleaved: 1 << 17, InDRAM: 1 << 17}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
}

// TestEmptyL1: an L1 that is too small only because L1_SMALL has a part of it.
func TestEmptyL1(t *testing.T) {
	r := record(model.L1, 1<<20, 1<<20+4096)
	r.AddSibling(blocks.NewList(blocks.Geometry{Pool: model.L1Small, Banks: 8, Capacity: 1 << 18, Align: 64}, blocks.FromStart))
	r.Judge()
	if f := r.Verdict.Fixes; r.Verdict.Cause != TooLarge || len(f) != 1 || f[0].Key() != "l1_small_size 0" {
		t.Errorf("%+v", r.Verdict)
	}
}

func TestUnknownState(t *testing.T) {
	r := record(model.DRAM, 1024, 512, [2]uint64{0, 832})
	r.State.Origin = blocks.Late
	r.Judge()
	if r.Verdict.Cause != Unknown || len(r.Verdict.Fixes) != 0 || !slices.Contains(r.Doubts, StateUnknown) {
		t.Errorf("%+v, doubts %v", r.Verdict, r.Doubts)
	}
}

func TestClash(t *testing.T) {
	r := record(model.L1, 1<<20, 0, [2]uint64{1024, 512}, [2]uint64{2048, 512}, [2]uint64{8192, 512})
	r.Kind, r.Clash = Clash, &Collision{Reach: base + 2100, Lowest: base + 1024, Overlap: 1076, Base: base}
	r.Judge()
	if v := r.Verdict; v.Cause != Overlap || v.Missing != 1076 || len(v.Fixes) != 1 || len(v.Fixes[0].Blocks) != 2 {
		t.Errorf("%+v", v)
	}
}

// TestClashBeyondL1: circular buffers that end behind L1 do not fit without buffers
// either.
func TestClashBeyondL1(t *testing.T) {
	for _, small := range []uint64{0, 8192} {
		r := record(model.L1, 1<<20-small, 0, [2]uint64{1024, 512})
		r.AddSibling(blocks.NewList(blocks.Geometry{Pool: model.L1Small, Banks: 8, Base: base + 1<<20 - small, Capacity: small, Align: 64}, blocks.FromStart))
		r.Kind, r.Clash = Clash, &Collision{Reach: base + 1<<20 + 100, Lowest: base + 1024, Overlap: 1<<20 - 924, Base: base}
		r.Judge()
		if v := r.Verdict; v.Cause != TooLarge || v.Missing != 100 || len(v.Fixes) > 0 {
			t.Errorf("L1_SMALL of %d: %+v", small, v)
		}
	}
}

// TestDoubtsUnderStacks: what a record from a ledger does not know has its own reason: of
// blocks that were not kept, that; and under --stacks nothing says to use it.
func TestDoubtsUnderStacks(t *testing.T) {
	held := ledgerfile.FailedList{List: ledgerfile.List{Capacity: 1 << 20, Alignment: 32, Banks: 8}, Blocks: []ledgerfile.FailedBlock{{Address: 1024, Bytes: 2048}}}
	for name, c := range map[string]struct {
		flags  ledgerfile.Flags
		missed uint32
		want   []DoubtKind
	}{
		"no lines":                    {0, 0, []DoubtKind{NoLines, ChipUnknown}},
		"none, though recorded":       {ledgerfile.StacksOn, 0, []DoubtKind{LinesMissing, ChipUnknown}},
		"none, though functions were": {ledgerfile.NativeOn, 0, []DoubtKind{LinesMissing, ChipUnknown}},
		"blocks that were not kept":   {ledgerfile.StacksOn, 1, []DoubtKind{BlocksMissing, LinesMissing, ChipUnknown}},
	} {
		t.Run(name, func(t *testing.T) {
			list := held
			if c.missed > 0 {
				list.Blocks = nil
			}
			l := &ledgerfile.Ledger{Flags: c.flags}
			r, ok := FromLedger(l, &ledgerfile.Failure{Kind: ledgerfile.NoRoom, Bytes: 2 << 20, Lists: []ledgerfile.FailedList{list}, Missed: c.missed}, Process{})
			if !ok || !slices.Equal(r.Doubts, c.want) {
				t.Errorf("%v, want %v", r.Doubts, c.want)
			}
		})
	}
}

// TestFixesFit: whatever a fix says, an allocator that does it finds room.
func TestFixesFit(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	kinds := map[FixKind]int{}
	for range 6000 {
		m := newMemory(64, random)
		var held []int
		for range 5 + random.IntN(60) {
			if len(held) > 0 && random.IntN(3) == 0 {
				i := random.IntN(len(held))
				m.free(held[i])
				held = slices.Delete(held, i, i+1)
			} else if at, ok := m.allocate(1 + random.IntN(12)); ok {
				held = append(held, at)
			}
		}
		need := 1 + random.IntN(40)
		if _, ok := m.clone().allocate(need); ok {
			continue
		}
		r := record(model.DRAM, 64*unit, uint64(need)*unit)
		for at, n := range m.blocks {
			r.State.Alloc(blocks.Block{Addr: base + uint64(at)*unit, Size: uint64(n) * unit, Born: random.Int64N(1000)})
		}
		r.Judge()
		for _, f := range r.Verdict.Fixes {
			kinds[f.Kind]++
			tried := m.clone()
			if f.Kind == Move {
				if _, ok := tried.allocate(int(f.Bytes / unit)); !ok {
					t.Fatal("the block does not fit anywhere else")
				}
			}
			for _, b := range f.Blocks {
				tried.free(int(b.Addr-base) / unit)
			}
			if _, ok := tried.allocate(need); !ok {
				t.Fatalf("%s: %d units do not fit into %v", f.Key(), need, tried.blocks)
			}
		}
	}
	for _, k := range []FixKind{FreeFewest, FreeYoungest, Move} {
		if kinds[k] < 50 {
			t.Errorf("%s was tried %d times only", k, kinds[k])
		}
	}
}

// memory is an allocator that takes any hole that fits.
type memory struct {
	size   int
	blocks map[int]int
	random *rand.Rand
}

func newMemory(size int, random *rand.Rand) *memory {
	return &memory{size: size, blocks: map[int]int{}, random: random}
}

func (m *memory) clone() *memory {
	c := newMemory(m.size, m.random)
	for at, n := range m.blocks {
		c.blocks[at] = n
	}
	return c
}

func (m *memory) free(at int) { delete(m.blocks, at) }

func (m *memory) allocate(n int) (int, bool) {
	best, found := -1, 0
	for at := 0; at < m.size; {
		if size := m.blocks[at]; size > 0 {
			at += size
			continue
		}
		end := at
		for end < m.size && m.blocks[end] == 0 {
			end++
		}
		if end-at >= n {
			if found++; m.random.IntN(found) == 0 {
				best = end - n
			}
		}
		at = end
	}
	if best < 0 {
		return 0, false
	}
	m.blocks[best] = n
	return best, true
}

func TestJSON(t *testing.T) {
	r := record(model.L1, 1<<20, 1<<19, [2]uint64{1 << 18, 1 << 19}, [2]uint64{3 << 18, 1 << 18})
	r.AddSibling(blocks.NewList(blocks.Geometry{Pool: model.DRAM, Banks: 8, Capacity: 1 << 30, Align: 64}, blocks.FromStart))
	r.Judge()
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	second, err := json.Marshal(again)
	if err != nil || string(second) != string(text) {
		t.Errorf("%v\n%s\nbecame\n%s", err, text, second)
	}
	if _, err := Decode([]byte(`{"schema":"ttmon.failure/2"}`)); err == nil {
		t.Error("another schema is read")
	}
}

func FuzzDecode(f *testing.F) {
	r := record(model.L1, 1<<20, 1<<19, [2]uint64{1 << 18, 1 << 19})
	r.Judge()
	text, _ := json.Marshal(r)
	f.Add(text)
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := Decode(b)
		if err != nil {
			return
		}
		r.Judge()
	})
}

// TestSubDevice: the allocator of a sub-device takes no interleaved buffers and has
// no DRAM, so that neither is said to have helped.
func TestSubDevice(t *testing.T) {
	of := func(dram uint64) *Record {
		r := record(model.L1, 1<<20, 600<<10, [2]uint64{512 << 10, 2048})
		yes := true
		r.Request.Sharded, r.Request.Shards, r.Request.Bytes = &yes, 1, 600<<10
		r.AddSibling(blocks.NewList(blocks.Geometry{Pool: model.DRAM, Banks: 8, Base: base, Capacity: dram, Align: 64, Smallest: 64}, blocks.FromStart))
		r.Judge()
		return r
	}
	for _, tt := range []struct {
		name string
		dram uint64
		sub  bool
		want []FixKind
	}{
		{"of the device", 1 << 30, false, []FixKind{FreeFewest, Interleaved, InDRAM}},
		{"of a sub-device", ^uint64(base) + 1, true, []FixKind{FreeFewest}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := of(tt.dram)
			var got []FixKind
			for _, f := range r.Verdict.Fixes {
				got = append(got, f.Kind)
			}
			if r.OfSubDevice() != tt.sub || !slices.Equal(got, tt.want) {
				t.Errorf("of a sub-device: %v, fixes %v, want %v", r.OfSubDevice(), got, tt.want)
			}
		})
	}
}

// TestTraceRegion: a region that does holds what is there and the trace that was
// refused in each of its banks, by the rules of the release.
func TestTraceRegion(t *testing.T) {
	const page = 1024
	held := func(n int) (list [][2]uint64) {
		for i := range n {
			list = append(list, [2]uint64{uint64(i) * page, page})
		}
		return list
	}
	for _, tt := range []struct {
		name           string
		release        string
		bank           uint64 // each has of the region
		region, needed uint64
		held           [][2]uint64
		fixes          []string
	}{
		{"the first trace", "ttnn 0.81.1", 8192, 512, 1024, nil, []string{"trace_region_size 1024"}},
		{"no region, divided", "ttnn 0.81.1", 0, 0, 1024, nil, []string{"trace_region_size 1024"}},
		{"no region, whole", "ttnn 0.71.2", 0, 0, 1024, nil, []string{"trace_region_size 1024"}},
		{"a few pages more", "ttnn 0.81.1", 8192, 2048, 3072, held(2), []string{"trace_region_size 3072"}},
		{"more pages than a bank has", "ttnn 0.81.1", 8192, 8200, 9216, held(8), []string{"trace_region_size 65537"}},
		{"each bank has all of it", "ttnn 0.71.2", 8200, 8200, 9216, held(8), []string{"trace_region_size 9216"}},
		{"the same either way, divided", "ttnn 0.81.1", 8192, 8192, 9216, held(8), []string{"trace_region_size 65537"}},
		{"the same either way, whole", "ttnn 0.71.2", 8192, 8192, 9216, held(8), []string{"trace_region_size 9216"}},
		{"the same either way, not known", "", 8192, 8192, 9216, held(8), nil},
		{"large pages", "ttnn 0.81.1", 131072, 1 << 20, 1<<20 + 8192, nil, []string{"trace_region_size 1056768"}},
		{"of another rule", "ttnn 0.81.1", 4096, 8192, 9216, nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := record(model.Trace, tt.bank, 0)
			for _, b := range tt.held {
				r.State.Alloc(blocks.Block{Addr: base + b[0], Size: b[1], Asked: b[1]})
			}
			r.Kind, r.Request, r.Process.Release = Trace, Request{}, tt.release
			r.Region = &Region{Size: tt.region, Needed: tt.needed}
			r.Judge()
			var fixes []string
			for i := range r.Verdict.Fixes {
				fixes = append(fixes, r.Verdict.Fixes[i].Key())
			}
			if v := &r.Verdict; v.Cause != RegionTooSmall || v.Missing != tt.needed-tt.region || !slices.Equal(fixes, tt.fixes) {
				t.Errorf("%s, %d missing, fixes %q", v.Cause, v.Missing, fixes)
			}
		})
	}
}

// TestTraceUnknown: of a region that was not seen only what tt-metal says is known.
func TestTraceUnknown(t *testing.T) {
	r := record(model.Trace, 0, 0)
	r.Kind, r.Chips, r.Region = Trace, nil, &Region{Size: 1, Needed: 1 << 20}
	r.State = blocks.NewList(blocks.Geometry{Pool: model.Trace}, blocks.Late)
	r.Judge()
	if len(r.Verdict.Fixes) > 0 || r.Verdict.Cause != RegionTooSmall || !slices.Contains(r.Doubts, StateUnknown) || !slices.Contains(r.Doubts, ChipUnknown) {
		t.Errorf("%+v, %v", r.Verdict, r.Doubts)
	}
}
