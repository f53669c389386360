package uprobe

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/ttmon/ttmon/internal/base/budget"
	"github.com/ttmon/ttmon/internal/book/claim"
	"github.com/ttmon/ttmon/internal/lab/e2e/ttnn"
	"github.com/ttmon/ttmon/internal/model"
)

// workReleases are those whose profiler is fed: the newest, the oldest that has
// one and the first with batches, and with RELEASES_OF_TTNN those that it names.
func workReleases() []string {
	list := []string{ttnn.Newest, ttnn.AllThreads, middle}
	for _, r := range strings.Fields(os.Getenv("RELEASES_OF_TTNN")) {
		if !slices.Contains(list, r) {
			list = append(list, r)
		}
	}
	return list
}

// fed is a job without libttmon whose chips report what the test makes up.
type fed struct {
	*ttnn.Job
	s    *Source
	feed *ttnn.Feed
}

func startFed(t *testing.T, s *Source, release string, chips int, ticks float64) *fed {
	t.Helper()
	feed, err := ttnn.NewFeed(t.TempDir(), chips, ticks)
	if err != nil {
		t.Skip(err)
	}
	descriptor, open := "blackhole_P150", ttnn.Step{"do": "open", "device": 0}
	if chips == 2 {
		descriptor, open = "wormhole_N300_pci_bdf", ttnn.Step{"do": "open", "mesh": []int{1, 2}}
	}
	path, err := ttnn.Descriptor(descriptor)
	if err != nil {
		t.Fatal(err)
	}
	f := &fed{Job: start(t, s, ttnn.Options{Release: release, Descriptor: path, Env: feed.Env()}), s: s, feed: feed}
	do(t, f.Job, open)
	if isOld(release) {
		do(t, f.Job, ttnn.Step{"do": "feed"})
	}
	return f
}

// isOld: each record is delivered alone, and nothing names its operation.
func isOld(release string) bool { return release < "0.76" }

// work waits until so many programs of each chip are known, by all that was fed.
func (f *fed) work(t *testing.T, programs ...uint64) []claim.Work {
	t.Helper()
	for _, c := range f.feed.Chips {
		if err := c.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	var got []claim.Work
	eventually(t, "all programs are known", func() bool {
		got = f.claimed()
		if len(got) != len(programs) {
			return false
		}
		for i := range got {
			if got[i].Programs+got[i].Lost < programs[i] {
				return false
			}
		}
		return true
	})
	return got
}

// claimed is what is known of the job's chips, in the order of their numbers.
func (f *fed) claimed() (got []claim.Work) {
	for _, w := range f.s.Claims().Work {
		if w.Process.PID == f.PID {
			got = append(got, w)
		}
	}
	return got
}

// TestFedFromOutside: what chips report to a program that knows nothing of us
// is what is known, to the tick, with pages among it that are no programs.
func TestFedFromOutside(t *testing.T) {
	s := watch(t, Options{})
	for _, release := range workReleases() {
		t.Run(release, func(t *testing.T) {
			f := startFed(t, s, release, 1, 1)
			for _, x := range []ttnn.Step{
				{"do": "alloc", "name": "a", "pool": "dram", "bytes": 65536},
				{"do": "add", "name": "b", "of": []string{"a", "a"}},
				{"do": "relu", "name": "c", "of": []string{"a"}},
			} {
				do(t, f.Job, x)
			}
			chip := f.feed.Chips[0]
			const rounds = 5000
			for i := range rounds {
				chip.Program(1, 300, 700)
				if i%100 == 0 {
					chip.Sync()
				}
				if i%1000 == 0 {
					chip.Record(0, 5, 6) // a program without an id
				}
				chip.Program(2, 100, 50)
			}
			got := f.work(t, 2*rounds)[0]
			if got.Lost != 0 || got.Programs != 2*rounds || got.Busy != 750*rounds || got.Longest != 700 || got.Gap != 400*rounds-300 || got.LongestGap != 300 || got.Unreadable || !got.Reports {
				t.Errorf("%+v", got)
			}
			if got.Lossless != (release >= "0.80") {
				t.Errorf("lossless: %v", got.Lossless)
			}
			if isOld(release) {
				return // the feed's records have no sources
			}
			if got.Unprofiled != rounds/1000 || got.Queues != 1 || got.SubDevices != 0 {
				t.Errorf("%+v", got)
			}
			chip.Program(1, 300, 700) // names are read with the next pages
			named := release >= "0.76"
			eventually(t, "operations have names", func() bool {
				ops := f.claimed()[0].Ops
				return !named || hasOp(ops, "eltwise/binary_ng", 700*rounds) && hasOp(ops, "eltwise/unary", 50*rounds)
			})
			do(t, f.Job, ttnn.Step{"do": "divide", "parts": 2})
			do(t, f.Job, ttnn.Step{"do": "close"})
			eventually(t, "the chip no longer reports", func() bool { w := f.claimed()[0]; return !w.Reports && w.SubDevices == 2 })
		})
	}
}

func hasOp(ops []claim.Op, name string, least time.Duration) bool {
	return slices.ContainsFunc(ops, func(o claim.Op) bool { return o.Name == name && o.Time >= least })
}

// TestTwoFedFromOutside: each chip has its own account and clock.
func TestTwoFedFromOutside(t *testing.T) {
	f := startFed(t, watch(t, Options{}), ttnn.Newest, 2, 1.35)
	for range 5000 {
		f.feed.Chips[0].Program(1, 0, 1350)
	}
	for range 700 {
		f.feed.Chips[1].Program(1, 1350, 2700)
	}
	got := f.work(t, 5000, 700)
	if got[0].Busy != 5*time.Millisecond || got[0].Gap != 0 || got[1].Busy != 1400*time.Microsecond || got[1].Gap != 699*time.Microsecond || got[0].Chip == got[1].Chip || got[0].Chip == 0 {
		t.Errorf("%+v", got)
	}
}

// TestForgedFromOutside: a program that feeds its own profiler with nonsense
// says nothing that cannot be, and stays alive.
func TestForgedFromOutside(t *testing.T) {
	f := startFed(t, watch(t, Options{}), ttnn.Newest, 1, 1)
	chip := f.feed.Chips[0]
	chip.Record(1, 1000, 2000)
	chip.Record(2, 5000, 4000)         // ends before it begins
	chip.Record(3, 0, 1500)            // over the first
	chip.Record(0xffff, 1000, 1<<63-1) // longer than the world
	chip.Record(0x123456, 1000, 2000)  // an id of more than 16 bits
	if got := f.work(t, 4)[0]; got.Programs != 4 || got.Busy < 0 {
		t.Errorf("%+v", got)
	}
	do(t, f.Job, ttnn.Step{"do": "ping"})
}

// TestBurstFromOutside: programs as fast as they are taken: what is lost is
// counted, and the rest is known.
func TestBurstFromOutside(t *testing.T) {
	if testing.Short() {
		t.Skip("a burst takes a while")
	}
	f := startFed(t, watch(t, Options{Limit: 1e7}), ttnn.Newest, 1, 1)
	const n = 1_000_000
	for i := range uint32(n) {
		f.feed.Chips[0].Program(1+i%60000, 30, 70)
	}
	got := f.work(t, n)[0]
	t.Logf("%d programs, %d lost", got.Programs, got.Lost)
	if got.Programs+got.Lost != n || got.Busy != 70*time.Duration(got.Programs) {
		t.Errorf("%+v", got)
	}
}

// workOf is what is known of a fake program's chip; nil: nothing.
func workOf(s *Source, pid int) *claim.Work {
	set := s.Claims()
	for i := range set.Work {
		if set.Work[i].Process.PID == pid {
			return &set.Work[i]
		}
	}
	return nil
}

// TestReported: a chip that was opened under a number reports under it. Counts
// that cannot be are lost, and nothing is read beyond them.
func TestReported(t *testing.T) {
	s := watch(t, Options{})
	program, library := fake(t)
	w := startFake(t, exec.Command(program, library))
	eventually(t, "the library is watched", func() bool { _, ok := s.Find(w.pid); return ok })
	w.do("make %d 5", 1<<20)
	w.do("report 3 0 100")
	eventually(t, "they are known", func() bool { x := workOf(s, w.pid); return x != nil && x.Programs == 300 })
	if x := workOf(s, w.pid); x.Chip != 5 || x.Busy != 300*70 || x.Gap != 299*30 || x.Lost != 0 || !x.Lossless {
		t.Errorf("%+v", x)
	}
	w.do("report 1 0 4000000000") // as many as there is memory behind them
	eventually(t, "the rest is lost", func() bool { return workOf(s, w.pid).Lost >= 4000000000-4096 })
	w.do("report 1 9 5") // a chip that it has not opened
	w.do("report 1 100000 5")
	w.do("report 1 0 1")
	eventually(t, "what comes after is known", func() bool { return workOf(s, w.pid).Programs >= 301 })
	if n := len(s.Claims().Work); n != 1 {
		t.Errorf("%d chips", n)
	}
}

// TestReportsTooOften: the probes of pages are taken out of a process that hits
// them too often, and its allocator is still watched.
func TestReportsTooOften(t *testing.T) {
	s := watch(t, Options{Limit: 5000})
	program, library := fake(t)
	fast, slow := startFake(t, exec.Command(program, library)), startFake(t, exec.Command(program, library))
	for _, w := range []*workload{fast, slow} {
		eventually(t, "the library is watched", func() bool { _, ok := s.Find(w.pid); return ok })
		w.do("make %d 5", 1<<20)
	}
	eventually(t, "the slow one is known", func() bool { slow.do("report 1 0 1"); return workOf(s, slow.pid) != nil })
	why := func(pid int) model.WorkCause {
		for _, l := range s.Claims().Listens {
			if l.Process.PID == pid {
				return l.Why
			}
		}
		return "not known"
	}
	eventually(t, "it is too fast", func() bool { fast.do("report 100000 0 1"); return why(fast.pid) == model.WorkTooFast })
	at := fast.number("take 64")
	if got := addresses(dram(t, find(t, s, fast.pid))); len(got) != 1 || got[0] != at {
		t.Errorf("its allocator: %v", got)
	}
	eventually(t, "the other one is known", func() bool {
		slow.do("report 5 0 1") // the ring may be full of the fast one's
		x := workOf(s, slow.pid)
		return x != nil && x.Programs >= 5
	})
	if got := why(slow.pid); got != "" {
		t.Errorf("the other one: %q", got)
	}
}

// TestPagesOfAUser: a user that fills the ring of pages loses its own.
func TestPagesOfAUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to play several users")
	}
	s := watch(t, Options{Limit: 1e9})
	program, library := fake(t)
	forAll(filepath.Dir(program))
	own := startFake(t, exec.Command(program, library))
	eventually(t, "root's program is watched", func() bool { _, ok := s.Find(own.pid); return ok })
	own.do("make %d 5", 1<<20)
	flood := startAs(t, program, library, 60000)
	eventually(t, "the user's program is watched", func() bool { _, ok := s.Find(flood.pid); return ok })
	flood.do("make %d 6", 1<<20)
	fmt.Fprintln(flood.in, "report 1000000000 0 1024")
	eventually(t, "the user loses pages", func() bool { x := workOf(s, flood.pid); return x != nil && x.Lost > 0 })
	for range 50 {
		own.do("report 1 0 20")
	}
	eventually(t, "root's are all known", func() bool { x := workOf(s, own.pid); return x != nil && x.Programs == 1000 })
	if x := workOf(s, own.pid); x.Lost != 0 || x.Busy != 70*1000 {
		t.Errorf("%+v", x)
	}
}

// TestDeaf: programs that are not seen have the reason, and those that are have
// none.
func TestDeaf(t *testing.T) {
	pagesAt, other := probe{site: atPages}, probe{site: taken}
	for _, c := range []struct {
		name   string
		probes []probe
		change func(*process)
		want   model.WorkCause
	}{
		{"watched from the start", []probe{other, pagesAt}, func(*process) {}, ""},
		{"a library without the functions", []probe{other}, func(*process) {}, model.WorkNoSymbols},
		{"too fast", []probe{pagesAt}, func(p *process) { p.fast[groupPages] = true }, model.WorkTooFast},
		{"it ran before, and nothing came since", []probe{pagesAt}, func(p *process) { p.Late = true }, model.WorkSilent},
		{"it ran before, and has reported", []probe{pagesAt}, func(p *process) { p.Late = true; p.account().Open(0, 1) }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSource(Options{}, &kernel{})
			p := s.accounts.process(7)
			p.Late = false
			c.change(p)
			id := fileID{1, 2}
			s.libraries[id], s.known[7] = &library{probes: c.probes}, []fileID{id}
			if got := s.deaf(p); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// TestUnseenQueues: a process of which events were missed, or that opened its chip
// before it was watched, may have a second queue.
func TestUnseenQueues(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*process)
		want   int
	}{
		{"all was seen", func(*process) {}, 1},
		{"events were lost", func(p *process) { p.Lost = 1 }, 0},
		{"it was opened before", func(p *process) { p.Late, p.Seen = true, nil }, 0},
		{"late, and opened since", func(p *process) { p.Late = true }, 1},
		{"a second one was seen", func(p *process) { p.Lost = 1; p.work.Queue(1) }, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newAccounts(100, budget.Limit{}).process(7)
			p.account().Open(0, 1)
			p.work.Queue(0)
			p.Seen, p.numbered[0] = []uint64{77}, 77
			c.change(p)
			var set claim.Set
			(&Source{}).claimWork(&set, p, "")
			if len(set.Work) != 1 || set.Work[0].Queues != c.want {
				t.Errorf("%+v", set.Work)
			}
		})
	}
}

// TestHandWork: a successor knows why a process is not watched, and how it has
// divided its device.
func TestHandWork(t *testing.T) {
	p := newAccounts(100, budget.Limit{}).process(7)
	p.fast[groupPages] = true
	p.account().Divide(3)
	h := p.export()
	b, err := json.Marshal(&h)
	if err != nil {
		t.Fatal(err)
	}
	var given handedProcess
	if err := json.Unmarshal(b, &given); err != nil {
		t.Fatal(err)
	}
	next, err := given.restore()
	if err != nil {
		t.Fatal(err)
	}
	if next.work.Load(); !next.fast[groupPages] || next.work.SubDevices != 3 {
		t.Errorf("too fast %v, %d sub-devices", next.fast[groupPages], next.work.SubDevices)
	}
}

// TestWhichChip: a chip is known by the number that its process has for it.
func TestWhichChip(t *testing.T) {
	p := newAccounts(100, budget.Limit{}).process(7)
	p.account().Open(3, 1)
	if _, ok := p.chipNumbered(3); ok {
		t.Error("a chip that was never seen")
	}
	p.Seen = []uint64{77}
	if id, ok := p.chipNumbered(3); !ok || id != 77 {
		t.Errorf("the only one: %d, %v", id, ok)
	}
	p.account().Open(4, 1)
	if _, ok := p.chipNumbered(4); ok {
		t.Error("one of two")
	}
	p.numbered[4] = 78
	if id, ok := p.chipNumbered(4); !ok || id != 78 {
		t.Errorf("by its number: %d, %v", id, ok)
	}
}

// FuzzBatch: whatever is in a batch, it is read or refused.
func FuzzBatch(f *testing.F) {
	f.Add(make([]byte, batchBytes))
	f.Add(make([]byte, batchBytes+2*pageBytes))
	f.Fuzz(func(t *testing.T, b []byte) {
		var to batch
		if decodeBatch(b, &to) == nil && (len(to.pages) > len(b) || len(to.sources) > 1<<16) {
			t.Errorf("%d pages, %d pointers of %d bytes", len(to.pages), len(to.sources), len(b))
		}
	})
}

// TestDecodeBatch: pointers stand behind the room for pages, and end with the
// table's last id.
func TestDecodeBatch(t *testing.T) {
	b := make([]byte, batchBytes+16*pageBytes)
	head := (*watchBatch)(unsafe.Pointer(&b[0]))
	head.Pages, head.Room, head.Kind = 3, 16, uint8(watchBatchKindBATCH_LOSSLESS)
	binary.LittleEndian.PutUint32(b[batchBytes+8:], 65534)
	for i := range uint64(16) {
		binary.LittleEndian.PutUint64(b[batchBytes+16*64+8*int(i):], 100+i)
	}
	var to batch
	if err := decodeBatch(b, &to); err != nil || len(to.pages) != 3*64 || !slices.Equal(to.sources, []uint64{100, 101}) {
		t.Errorf("%v: %d bytes of pages, pointers %v", err, len(to.pages), to.sources)
	}
	head.Pages = 17
	if decodeBatch(b, &to) == nil {
		t.Error("more pages than there is room for")
	}
}
