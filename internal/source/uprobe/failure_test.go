package uprobe

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/book/failure"
	"github.com/ttmon/ttmon/internal/cli/preload"
	"github.com/ttmon/ttmon/internal/lab/e2e/ttnn"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// TestFailuresAreTrue is the truth about failed allocations: in a real ttnn, what
// the probes and libttmon keep of a request that found no room equals tt-metal's
// own message and its own table of blocks to the byte, and whatever is said to
// have made it fit is done, and fits.
func TestFailuresAreTrue(t *testing.T) {
	hermetic.Long(t)
	for _, release := range []string{ttnn.AllThreads, middle, ttnn.Newest} {
		for _, on := range []struct {
			descriptor string
			open       ttnn.Step
			rounds     int
		}{
			{"blackhole_P150", ttnn.Step{"do": "open", "l1_small": 65536, "trace": 4 << 20}, 130},
			{"wormhole_N300_pci_bdf", ttnn.Step{"do": "open", "mesh": []int{1, 2}, "l1_small": 65536, "trace": 4 << 20}, 30},
		} {
			if release == middle {
				on.rounds /= 3
			}
			t.Run(release+" "+on.descriptor, func(t *testing.T) { failuresAreTrue(t, release, on.descriptor, on.open, on.rounds) })
		}
	}
}

// middle is a release between the oldest and the newest one that tests run.
const middle = ttnn.Middle

// stage is a program that fails on purpose, watched from outside and inside.
type stage struct {
	*testing.T
	source  *Source
	job     *ttnn.Job
	ledgers string // where libttmon writes
	random  *rand.Rand
	steps   []ttnn.Step // that led to what is held
	held    map[string]ttnn.Step
	made    int
	tried   map[string]int // kinds of failures and fixes, and how often
	release string
	on      string // descriptor
	open    ttnn.Step
}

func failuresAreTrue(t *testing.T, release, descriptor string, open ttnn.Step, rounds int) {
	x := newStage(t, release, descriptor, open)
	for i := range rounds {
		x.round([]string{"dram", "l1", "sharded", "l1_small", "trace"}[i%5], i%7 == 3)
		if t.Failed() {
			t.FailNow()
		}
	}
	t.Logf("%s on %s: %v", release, descriptor, x.tried)
	if rounds >= 100 {
		for _, kind := range []string{"dram", "l1", "sharded", "l1_small", "trace"} {
			if x.tried[kind] < 15 {
				t.Errorf("only %d failures of %s", x.tried[kind], kind)
			}
		}
	}
}

// newStage starts a program that is watched from outside and inside, with other
// libraries in it.
func newStage(t *testing.T, release, descriptor string, open ttnn.Step, preloads ...string) *stage {
	t.Helper()
	path, err := ttnn.Descriptor(descriptor)
	if err != nil {
		t.Fatal(err)
	}
	library, err := preload.Install()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(library.Close)
	s := watch(t, Options{})
	ledgers := t.TempDir()
	job := start(t, s, ttnn.Options{Release: release, Descriptor: path, Env: []string{
		"LD_PRELOAD=" + strings.Join(append(preloads, library.Path), " "), "TTMON_DIR=" + ledgers, "TTMON_STACKS=python", "TTMON_RUN=1.1.00000000",
	}})
	do(t, job, open)
	return &stage{
		T: t, source: s, job: job, ledgers: ledgers, random: rand.New(rand.NewPCG(7, 130)), held: map[string]ttnn.Step{},
		tried: map[string]int{}, release: release, on: path, open: open,
	}
}

// pool is the list that the program allocates from.
func (x *stage) pool(name string) *blocks.List {
	x.Helper()
	for _, l := range ttnn.InUse(find(x.T, x.source, x.job.PID)).Lists {
		if l.Pool.String() == name {
			return l
		}
	}
	x.Fatalf("it has no %s", name)
	return nil
}

// request is a random tensor of a kind, of about a part of a bank.
func (x *stage) request(kind string, part float64) ttnn.Step {
	size := func(tilesOfBank float64) int { return max(1, int(tilesOfBank*part)) }
	switch kind {
	case "dram":
		return ttnn.Step{"pool": "dram", "rows": 32 * size(1024), "columns": 32 * 1024}
	case "l1":
		return ttnn.Step{"pool": "l1", "rows": 32 * size(600), "columns": 32 * 64}
	case "sharded":
		cores := 1 + x.random.IntN(16)
		return ttnn.Step{"pool": "l1", "rows": 32 * cores * size(600), "columns": 32, "cores": cores}
	case "l1_small":
		cores := 1 + x.random.IntN(8)
		return ttnn.Step{"pool": "l1_small", "rows": 32 * cores * size(30), "columns": 32, "cores": cores}
	}
	return ttnn.Step{"pool": "trace", "rows": 32 * size(64), "columns": 32 * 32}
}

func with(s ttnn.Step, more ttnn.Step) ttnn.Step {
	out := ttnn.Step{}
	for _, m := range []ttnn.Step{s, more} {
		for k, v := range m {
			out[k] = v
		}
	}
	return out
}

// round fills a pool, makes holes in it and asks for more until it fails.
func (x *stage) round(kind string, thread bool) {
	for range 4 + x.random.IntN(14) {
		name := fmt.Sprintf("t%d", x.made)
		x.made++
		step := with(x.request(kind, 0.02+0.2*x.random.Float64()), ttnn.Step{"do": "ask", "name": name})
		if do(x.T, x.job, step).Fits {
			x.steps = append(x.steps, step)
			x.held[name] = step
		}
	}
	for _, name := range slices.Sorted(maps.Keys(x.held)) {
		if x.random.IntN(3) == 0 {
			free := ttnn.Step{"do": "free", "name": name}
			do(x.T, x.job, free)
			x.steps = append(x.steps, free)
			delete(x.held, name)
		}
	}
	if x.random.IntN(4) == 0 { // regions that are empty can be said to be too small
		for _, name := range slices.Sorted(maps.Keys(x.held)) {
			if x.held[name]["pool"] == x.request(kind, 0)["pool"] {
				free := ttnn.Step{"do": "free", "name": name}
				do(x.T, x.job, free)
				x.steps = append(x.steps, free)
				delete(x.held, name)
			}
		}
	}
	x.source.Sync()
	x.source.Failures() // of the filling
	for part := 0.3 + 0.3*x.random.Float64(); ; part += 0.1 {
		ask := x.request(kind, part)
		reply := do(x.T, x.job, with(ask, ttnn.Step{"do": "ask", "thread": thread}))
		if reply.Fits {
			continue
		}
		x.check(kind, ask, reply.Message)
		return
	}
}

var message = regexp.MustCompile(`allocate (\d+) B (\w+) buffer across (\d+) banks, where each bank needs to store (\d+) B, but bank size is (\d+) B \(allocated: (\d+) B, free: (\d+) B, largest free block: (\d+) B\)`)

// check holds what both sources kept of a failure against tt-metal.
func (x *stage) check(kind string, ask ttnn.Step, said string) {
	x.Helper()
	m, n := x.parse(said)
	table := do(x.T, x.job, ttnn.Step{"do": "table"}).Table
	x.tried[kind]++
	outside, inside := x.outside(), x.inside()
	if outside != nil && inside != nil && !slices.Equal(outside.Stack, inside.Stack) {
		x.Errorf("%s: lines from outside %v, from inside %v", kind, outside.Stack, inside.Stack)
	}
	for source, r := range map[string]*failure.Record{"uprobe": outside, "libttmon": inside} {
		if r == nil {
			x.Errorf("%s: %s kept nothing of %.200s", kind, source, m[0])
			continue
		}
		x.equals(kind+": "+source, r, ask, m[0], n)
		if w, ok := table[r.Pool]; ok {
			var list [][2]uint64
			for b := range r.State.All() {
				list = append(list, [2]uint64{b.Addr - r.State.Base, b.Size})
			}
			if !slices.Equal(list, w.Blocks) {
				x.Errorf("%s: %s has blocks %v, tt-metal %v", kind, source, list, w.Blocks)
			}
		}
		r.Process.Release = "ttnn " + x.release
		r.Judge()
		x.tried[string(r.Verdict.Cause)]++
		if c := r.Verdict.Cause; c == failure.Unknown || c == failure.Reserved {
			x.Errorf("%s: %s says %s of %s", kind, source, c, m[0])
		}
		x.fix(kind, source, r, ask)
	}
}

// parse reads tt-metal's message.
func (x *stage) parse(said string) (m []string, n [9]uint64) {
	x.Helper()
	m = message.FindStringSubmatch(said)
	if m == nil {
		x.Fatalf("tt-metal says something else: %.300s", said)
	}
	for i, text := range m {
		n[i], _ = strconv.ParseUint(text, 10, 64)
	}
	return m, n
}

// equals holds a record against tt-metal's message and its numbers.
func (x *stage) equals(what string, r *failure.Record, ask ttnn.Step, said string, n [9]uint64) {
	x.Helper()
	space, known := r.State.Space()
	got := [8]uint64{r.Request.Bytes, 0, 0, r.Need(), r.State.Capacity - r.State.Cut, r.State.Usage().BankBytes, space.Free, space.Largest}
	want := [8]uint64{n[1], 0, 0, r.State.Round(n[4]), n[5], n[6], n[7], n[8]}
	if got != want || !known || len(r.Chips) == 0 {
		x.Errorf("%s has %v (%v), tt-metal said %s", what, got, known, said)
	}
	if shards := r.Request.Shards; r.Request.Sharded == nil || *r.Request.Sharded != (ask["cores"] != nil) || *r.Request.Sharded && shards != n[3] {
		x.Errorf("%s: %v shards of %s", what, shards, said)
	}
	if len(r.Stack) == 0 {
		x.Errorf("%s has no line", what)
	}
}

// outside is what the probes saw.
func (x *stage) outside() *failure.Record {
	x.source.Sync()
	list := x.source.Failures()
	for _, r := range list {
		if r.Process.PID == x.job.PID {
			return r
		}
	}
	return nil
}

// inside is what libttmon kept last.
func (x *stage) inside() *failure.Record {
	files, err := filepath.Glob(filepath.Join(x.ledgers, fmt.Sprintf("%s%d-*", ledgerfile.Prefix, x.job.PID)))
	if err != nil || len(files) == 0 {
		x.Fatalf("no ledger in %s: %v", x.ledgers, err)
	}
	l, err := ledgerfile.ReadFile(files[0])
	if err != nil {
		x.Fatal(err)
	}
	var last *ledgerfile.Failure
	for i := range l.Failures {
		if f := &l.Failures[i]; last == nil || f.Last.After(last.Last) {
			last = f
		}
	}
	if last == nil || last.Time != last.Last {
		return nil
	}
	r, _ := failure.FromLedger(l, last, failure.Process{PID: x.job.PID})
	return r
}

// fix does what would have made a request fit.
func (x *stage) fix(kind, source string, r *failure.Record, ask ttnn.Step) {
	x.Helper()
	for _, f := range r.Verdict.Fixes {
		var fits bool
		step := ttnn.Step{"do": "fix", "ask": ask, "free": []uint64{}}
		switch f.Kind {
		case failure.FreeFewest, failure.FreeYoungest, failure.Move:
			step["free"], step["again"] = addressesOf(f.Blocks), f.Kind == failure.Move
		case failure.Interleaved:
			interleaved := with(ask, nil)
			delete(interleaved, "cores")
			step["ask"] = interleaved
		case failure.InDRAM:
			in := with(ask, ttnn.Step{"pool": "dram"})
			delete(in, "cores")
			step["ask"] = in
		case failure.L1SmallSize, failure.TraceRegion:
			if x.tried["with "+string(f.Kind)] >= 8 { // each takes a program of its own
				continue
			}
			fits = x.again(f, ask)
			step = nil
		}
		if step != nil {
			fits = do(x.T, x.job, step).Fits
		}
		x.tried["with "+string(f.Kind)]++
		if !fits {
			x.Errorf("%s: %s: it does not fit with %+v", kind, source, f)
		}
	}
}

func addressesOf(list []blocks.Block) (out []uint64) {
	for _, b := range list {
		out = append(out, b.Addr)
	}
	return out
}

// again does all that the program did on a device that was opened with another
// size of a region.
func (x *stage) again(f failure.Fix, ask ttnn.Step) bool {
	x.Helper()
	j, err := ttnn.Start(ttnn.Options{Release: x.release, Descriptor: x.on, Dir: x.TempDir()})
	if err != nil {
		x.Fatal(err)
	}
	defer func() {
		if err := j.End(); err != nil {
			x.Error(err)
		}
	}()
	key := map[failure.FixKind]string{failure.L1SmallSize: "l1_small", failure.TraceRegion: "trace"}[f.Kind]
	do(x.T, j, with(x.open, ttnn.Step{key: f.Bytes}))
	pool := ask["pool"]
	for _, s := range x.steps {
		name, _ := s["name"].(string)
		if s["do"] == "ask" && s["pool"] != pool || s["do"] == "free" && !slices.ContainsFunc(x.steps, func(o ttnn.Step) bool {
			return o["do"] == "ask" && o["name"] == name && o["pool"] == pool
		}) {
			continue
		}
		if r := do(x.T, j, s); s["do"] == "ask" && !r.Fits {
			x.Fatalf("%v does not fit any more", s)
		}
	}
	return do(x.T, j, with(ask, ttnn.Step{"do": "ask"})).Fits
}

// TestFailedNotifies: a request that failed is announced with its event, not when the
// ring is empty, which it never is while programs allocate all the time.
func TestFailedNotifies(t *testing.T) {
	s := newSource(Options{}, &kernel{})
	apply := func(e event) {
		raw := watchEvent{Pid: 7, Kind: uint8(e.kind), Word: e.word}
		s.applySample(unsafe.Slice((*byte)(unsafe.Pointer(&raw)), eventBytes))
	}
	s.accounts.process(7)
	apply(made(aList, anAllocator, 0))
	if len(s.Failed()) != 0 {
		t.Fatal("nothing has failed yet")
	}
	e := event{kind: noRoom}
	*about[noRoomEvent](&e) = noRoomEvent{List: aList, Asked: 16 * capacity, Padded: 16 * capacity, Page: 64}
	apply(e)
	if len(s.Failed()) != 1 || len(s.Failures()) != 1 {
		t.Error("a request that failed is not announced")
	}
}

// TestNoL1Small: a device that was opened without l1_small_size has no room at all
// there. Both sources keep the request, and the size that they name is enough.
func TestNoL1Small(t *testing.T) {
	for _, on := range []struct{ release, descriptor string }{
		{ttnn.Newest, "blackhole_P150"}, {ttnn.AllThreads, "wormhole_N300_pci_bdf"}, {middle, "blackhole_P150"},
	} {
		t.Run(on.release, func(t *testing.T) {
			if on.release != ttnn.Newest {
				hermetic.Long(t)
			}
			x := newStage(t, on.release, on.descriptor, ttnn.Step{"do": "open", "l1_small": 0, "trace": 4 << 20})
			x.source.Sync()
			x.source.Failures()
			ask := ttnn.Step{"pool": "l1_small", "rows": 64, "columns": 32, "cores": 1}
			reply := do(t, x.job, with(ask, ttnn.Step{"do": "ask"}))
			if reply.Fits {
				t.Fatal("there is room")
			}
			for source, r := range map[string]*failure.Record{"uprobe": x.outside(), "libttmon": x.inside()} {
				if r == nil {
					t.Errorf("%s kept nothing of %.300s", source, reply.Message)
					continue
				}
				r.Process.Release = "ttnn " + x.release
				r.Judge()
				if !slices.ContainsFunc(r.Verdict.Fixes, func(f failure.Fix) bool { return f.Kind == failure.L1SmallSize && f.Bytes == 32768 }) {
					t.Errorf("%s names another size than 32768: %+v, %+v of %.300s", source, r.Request, r.Verdict, reply.Message)
				}
				x.fix("l1_small", source, r, ask)
			}
		})
	}
}
