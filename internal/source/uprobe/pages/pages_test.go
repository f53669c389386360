package pages

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/model"
)

var now = time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)

// of makes a page of a program.
func of(id uint32, start, end uint64) []byte {
	b := make([]byte, PageBytes)
	for i, w := range []uint32{uint32(start >> 32), uint32(start), id, 0, uint32(end >> 32), uint32(end), id} {
		binary.LittleEndian.PutUint32(b[4*i:], w)
	}
	return b
}

func marked(b []byte, marker uint32) []byte {
	binary.LittleEndian.PutUint32(b[12:], marker)
	return b
}

// add counts pages of chip 0.
func add(p *Process, ticks float64, list ...[]byte) {
	b := Batch{Time: now.UnixNano(), Ticks: ticks}
	for _, x := range list {
		b.Pages = append(b.Pages, x...)
	}
	p.Add(&b)
}

func TestAccount(t *testing.T) {
	const hi = 5 << 32
	for _, c := range []struct {
		name  string
		ticks float64
		pages [][]byte
		want  Chip
	}{
		{
			"two programs and a pause", 1,
			[][]byte{of(1, hi, hi+700), of(2, hi+1000, hi+1100)},
			Chip{Programs: 2, Busy: 800, Gap: 300, LongestGap: 300, Longest: 700, LastEnd: hi + 1100},
		},
		{
			"intervals that overlap count once", 1,
			[][]byte{of(1, 1000, 2000), of(2, 1500, 2500), of(3, 1200, 1300)},
			Chip{Programs: 3, Busy: 1500, Longest: 1000, LastEnd: 2500},
		},
		{
			"a long pause is no gap", 1,
			[][]byte{of(1, 0, 1000), of(2, 200_000_000, 200_000_001)},
			Chip{Programs: 2, Busy: 1001, LongestGap: 199_999_000, Longest: 1000, LastEnd: 200_000_001},
		},
		{"it ends before it begins", 1, [][]byte{of(1, 1000, 900)}, Chip{Refused: 1}},
		{"no id", 1, [][]byte{of(0, 1000, 1100)}, Chip{Unprofiled: 1}},
		{"the chip's clock", 1, [][]byte{marked(of(7, 1000, 0), markSync)}, Chip{}},
		{"the dispatcher was held up", 1, [][]byte{marked(of(40, 1000, 0), markStall)}, Chip{Stalled: 40}},
		{"a clock that cannot be", 1e9, [][]byte{of(1, 0, 1000)}, Chip{Unreadable: true}},
		{"no clock", math.NaN(), [][]byte{of(1, 0, 1000)}, Chip{Unreadable: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := NewProcess()
			add(p, c.ticks, c.pages...)
			got := *p.Chips[0]
			c.want.Ticks, c.want.Since, c.want.LastRecord, c.want.On, c.want.Lossless = got.Ticks, got.Since, got.LastRecord, true, true
			got.Ops, got.programs, got.last, got.longest, got.ended, got.Gaps = nil, nil, nil, nil, nil, nil
			got.offset, got.aligned, got.now, got.kept = 0, false, 0, 0
			if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", c.want) {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
			if (got.LastRecord != 0) != (got.Programs > 0) {
				t.Errorf("last record at %d after %d programs", got.LastRecord, got.Programs)
			}
		})
	}
}

// TestClockChanges: what was counted with another clock is rescaled.
func TestClockChanges(t *testing.T) {
	p := NewProcess()
	add(p, 1, of(1, 0, 1000))
	p.Open(0, now.UnixNano())
	add(p, 2, of(1, 0, 1000))
	w := p.Chips[0].Claim(model.ProcessID{PID: 1}, 5, p, now)
	if w.Busy != 1500 || w.Longest != 1000 || len(w.Ops) != 1 || w.Ops[0].Time != 1500 || w.Ops[0].Calls != 2 {
		t.Errorf("%+v", w)
	}
}

// TestClockAlternates: a process that says another clock with each batch changes
// nothing that was counted.
func TestClockAlternates(t *testing.T) {
	p := NewProcess()
	add(p, 1, of(1, 0, 7))
	for range 100 {
		add(p, 0.02)
		add(p, 1)
	}
	if w := p.Chips[0].Claim(model.ProcessID{PID: 1}, 5, p, now); w.Busy != 7 || w.Longest != 7 || w.Ops[0].Time != 7 {
		t.Errorf("%+v", w)
	}
}

// TestNamesUnanswered: pointers that lead to no name make room for others, and are
// not asked for again.
func TestNamesUnanswered(t *testing.T) {
	p := NewProcess()
	for i := range uint64(maxWaiting) {
		p.Add(&Batch{Ticks: 1, Pages: of(1, i, i+1), Sources: []uint64{4096 + i}})
	}
	for range maxAttempts + 1 {
		p.Wanted(maxWaiting)
	}
	p.Add(&Batch{Ticks: 1, Pages: of(1, 1000, 1001), Sources: []uint64{4096}})
	if got := p.Wanted(8); len(got) != 0 {
		t.Errorf("asked again for %v", got)
	}
	p.Add(&Batch{Ticks: 1, Pages: of(1, 2000, 2001), Sources: []uint64{8192}})
	if got := p.Wanted(8); len(got) != 1 || got[0] != 8192 {
		t.Errorf("wanted %v", got)
	}
	p.Name(4096, "late.cpp")
	if op := p.Chips[0].Ops["late.cpp"]; op == nil || op.Calls != 2 {
		t.Errorf("an answer that came late: %+v", op)
	}
}

// TestNames: programs are named by pointers, of ids from that of the first page
// on; what came before its name was known counts for it.
func TestNames(t *testing.T) {
	p := NewProcess()
	pages := append(append(of(10, 0, 5), of(12, 10, 17)...), of(10, 20, 25)...)
	p.Add(&Batch{Ticks: 1, Pages: pages, Sources: []uint64{4096, 0, 8192}})
	p.Add(&Batch{Ticks: 1, Pages: append(of(12, 30, 37), of(10, 40, 45)...), Sources: []uint64{8192}}) // 10 is not in it
	if got := p.Wanted(8); len(got) != 2 || got[0] != 4096 || got[1] != 8192 {
		t.Fatalf("wanted %v", got)
	}
	p.Name(4096, "/x/ttnn/operations/matmul/device/kernels/a.cpp")
	p.Name(8192, "/x/reader.cpp")
	p.Name(5, "/never/asked.cpp")
	c := p.Chips[0]
	if len(c.Ops) != 2 || c.Ops["matmul"].Calls != 3 || c.Ops["matmul"].Time != 15 || c.Ops["reader.cpp"].Time != 14 || len(p.Wanted(8)) != 0 {
		t.Errorf("%+v %+v", c.Ops["matmul"], c.Ops["reader.cpp"])
	}
	if w := c.Claim(model.ProcessID{}, 0, p, now); w.LastName != "matmul" || w.LongestName != "reader.cpp" {
		t.Errorf("last %q, longest %q", w.LastName, w.LongestName)
	}
}

func TestNameInPath(t *testing.T) {
	for path, want := range map[string]string{
		"/a/ttnn/operations/eltwise/binary_ng/device/kernels/x.cpp": "eltwise/binary_ng",
		"/a/operations/pool/kernels/x.cpp":                          "pool",
		"tests/my_kernel.cpp":                                       "my_kernel.cpp",
		"/a/operations/x.cpp":                                       "x.cpp",
		"":                                                          "",
	} {
		t.Run(path, func(t *testing.T) {
			if got := nameInPath(path); got != want {
				t.Errorf("%q: %q, want %q", path, got, want)
			}
		})
	}
}

// TestRecords: both layouts of 0.71 to 0.75 are told apart.
func TestRecords(t *testing.T) {
	make64 := func(words ...uint64) []byte {
		b := make([]byte, PageBytes)
		for i, w := range words {
			binary.LittleEndian.PutUint64(b[8*i:], w)
		}
		return b
	}
	clock := math.Float64bits(1)
	p := NewProcess()
	p.AddRecord(make64(9, 1000, 1700, clock, 3, 0x7f0000001000, 0x7f0000001040), now.UnixNano(), 0)     // old: chip 3, a vector
	p.AddRecord(make64(9, 2000, 2700, clock, 2), now.UnixNano(), 0)                                     // old: chip 2, no sources
	p.AddRecord(make64(9|1<<32, 3000, 3700, clock, 0x7f0000002000, 4), now.UnixNano(), 0)               // now: chip 1
	p.AddRecord(make64(9|1<<32, 4000, 4700, math.Float64bits(0), 0x7f0000002000, 4), now.UnixNano(), 2) // no clock
	p.AddRecord(make64(9|5000<<32, 4000, 4700, clock, 0x7f0000002000, 4), now.UnixNano(), 2)            // no such chip
	for chip, want := range map[uint32]float64{3: 700, 2: 700, 1: 700} {
		t.Run(fmt.Sprint(chip), func(t *testing.T) {
			if c := p.Chips[chip]; c == nil || c.Busy != want || c.Programs != 1 || c.Lossless {
				t.Errorf("chip %d: %+v", chip, c)
			}
		})
	}
	if got := p.Wanted(8); len(p.Chips) != 3 || p.Lost != 2 || len(got) != 1 || got[0] != 0x7f0000002000 {
		t.Errorf("%d chips, %d lost, wanted %x", len(p.Chips), p.Lost, got)
	}
}

// TestLate: events and pages come by two ways. What is opened or closed counts
// by its time, and not by when it is known.
func TestLate(t *testing.T) {
	p := NewProcess()
	batch := Batch{Time: 200, Ticks: 1, Pages: of(1, 1000, 2000)}
	p.Add(&batch)
	p.Open(0, 100)
	if c := p.Chips[0]; c.LastEnd != 2000 || !c.On {
		t.Errorf("opened before its pages: %+v", c)
	}
	p.Close(0, 300)
	p.Add(&batch)
	if p.Chips[0].On {
		t.Error("closed after its pages")
	}
	p.Open(0, 400)
	if c := p.Chips[0]; c.LastEnd != 0 || !c.On {
		t.Errorf("opened again: %+v", c)
	}
}

func TestDevices(t *testing.T) {
	p := NewProcess()
	p.Divide(3)
	if p.SubDevices != 0 {
		t.Error("they are not loaded")
	}
	p.Load()
	p.Queue(0)
	p.Queue(5)
	if p.SubDevices != 3 || p.Queues != 2 {
		t.Errorf("%+v", p)
	}
}

// TestRestore: a successor continues the figures.
func TestRestore(t *testing.T) {
	p := NewProcess()
	p.Add(&Batch{Ticks: 1, Time: 9, Pages: of(1, 0, 1000), Sources: []uint64{4096}})
	p.Wanted(1)
	p.Name(4096, "a.cpp")
	p.Divide(3)
	b, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var q Process
	if err := json.Unmarshal(b, &q); err != nil {
		t.Fatal(err)
	}
	q.Restore()
	q.Add(&Batch{Ticks: 1, Time: 10, Pages: of(1, 2000, 2500)})
	if q.Load(); q.SubDevices != 3 {
		t.Errorf("%d sub-devices", q.SubDevices)
	}
	if c := q.Chips[0]; c.Busy != 1500 || c.Gap != 1000 || c.Ops["a.cpp"].Time != 1000 || c.Programs != 2 {
		t.Errorf("%+v", c)
	}
}

// TestGaps: the longest pauses are kept, with the operation before each, whose
// name may come later; they are dated by the record that came soonest.
func TestGaps(t *testing.T) {
	p := NewProcess()
	second := int64(time.Second)
	at := func(s int64) int64 { return now.UnixNano() + s*second }
	ticks := func(s float64) uint64 { return uint64(s * 2e9) } // a clock of 2 GHz
	send := func(came int64, id uint32, start, end float64) {
		p.Add(&Batch{Time: came, Ticks: 2, Pages: of(id, ticks(start), ticks(end)), Sources: []uint64{uint64(id) * 4096}})
	}
	send(at(0), 1, 99, 100)    // comes at once
	send(at(9), 2, 105, 106)   // 3 s late
	send(at(9), 1, 106.5, 107) // as late
	for range 10 {             // and more than are kept
		last := p.Chips[0].LastEnd
		p.Add(&Batch{Time: at(9), Ticks: 2, Pages: of(1, last+20, last+30)})
	}
	p.Wanted(8)
	p.Name(4096, "a.cpp")
	p.Name(8192, "b.cpp")
	w := p.Chips[0].Claim(model.ProcessID{}, 1, p, now)
	if len(w.Gaps) != model.MaxGaps || !w.GapsKept {
		t.Fatalf("%d gaps, kept %v", len(w.Gaps), w.GapsKept)
	}
	for i, want := range []struct {
		length time.Duration
		end    int64
		after  string
	}{{5 * time.Second, at(5), "a.cpp"}, {500 * time.Millisecond, at(6) + second/2, "b.cpp"}} {
		t.Run(want.after, func(t *testing.T) {
			g := w.Gaps[i]
			if d := g.End.UnixNano() - want.end; g.Length != want.length || g.After != want.after || d < 0 || d > second/1000 {
				t.Errorf("gap %d: %+v, want %+v", i, g, want)
			}
		})
	}
	if g := w.Gaps[2]; g.Length != 10 {
		t.Errorf("gap 2: %+v", g)
	}
	p.Chips[0].Gaps = nil // as from a ttmond that kept none
	if p.Chips[0].Claim(model.ProcessID{}, 1, p, now).GapsKept {
		t.Error("the longest is missing, and nothing is said")
	}
}

// FuzzPages: whatever a process puts into its pages, its account stays small and
// says nothing that cannot be.
func FuzzPages(f *testing.F) {
	f.Add(append(of(1, 0, 5), of(2, 5, 3)...), uint32(0), 1.0, uint64(4096))
	f.Add(marked(of(7, 1<<63, 9), markStall), uint32(300), 0.5, uint64(0))
	f.Fuzz(func(t *testing.T, pages []byte, chip uint32, ticks float64, source uint64) {
		p := NewProcess()
		for i := range uint64(8) {
			p.Add(&Batch{Time: int64(i), Chip: chip, Ticks: ticks, Pages: pages, Sources: []uint64{source + i, source * i}})
			p.AddRecord(pages, int64(i), i)
			for _, x := range p.Wanted(4) {
				p.Name(x, string(pages))
			}
		}
		if len(p.Chips) > maxChip || p.Size() > 8*(len(pages)/PageBytes+64)*8+maxRecent {
			t.Errorf("%d chips, size %d", len(p.Chips), p.Size())
		}
		for _, c := range p.Chips {
			if w := c.Claim(model.ProcessID{}, 1, p, now); w.Busy < 0 || w.Gap < 0 || w.Longest < 0 || w.Stalled < 0 || len(w.Ops) > maxOps+maxPrograms+1 || len(w.Gaps) > model.MaxGaps || !w.GapsKept {
				t.Errorf("%+v", w)
			}
		}
	})
}

// TestLimits: a process that names its programs at random does not fill the
// account.
func TestLimits(t *testing.T) {
	p := NewProcess()
	for i := range uint64(20_000) {
		p.Add(&Batch{Ticks: 1, Time: int64(i), Chip: uint32(i % 2000), Pages: of(uint32(i%65535)+1, i, i+1), Sources: []uint64{1 << 20 * (i + 1)}})
		for _, x := range p.Wanted(8) {
			p.Name(x, fmt.Sprintf("%d.cpp", i))
		}
	}
	for _, c := range p.Chips {
		if len(c.Ops) > maxOps+1 || len(c.programs) > maxPrograms {
			t.Fatalf("%d operations, %d pointers", len(c.Ops), len(c.programs))
		}
	}
	if len(p.Chips) > maxChip || len(p.names) > maxNames || len(p.asked) > maxWaiting {
		t.Errorf("%d chips, %d names, %d waiting", len(p.Chips), len(p.names), len(p.asked))
	}
	var sum uint64
	for _, c := range p.Chips {
		for _, op := range c.ops() {
			sum += op.Calls
		}
	}
	var programs uint64
	for _, c := range p.Chips {
		programs += c.Programs
	}
	if sum != programs || programs == 0 {
		t.Errorf("%d calls of %d programs", sum, programs)
	}
}
