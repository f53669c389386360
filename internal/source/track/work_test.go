package track

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/book/claim"
	"github.com/ttmon/ttmon/internal/lab/e2e/ttnn"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// workReleases are those whose profiler is fed: always the newest and the
// oldest that has one, and with RELEASES_OF_TTNN those that it names.
func workReleases() []string {
	list := []string{ttnn.Newest, ttnn.AllThreads}
	for _, r := range strings.Fields(os.Getenv("RELEASES_OF_TTNN")) {
		if !slices.Contains(list, r) {
			list = append(list, r)
		}
	}
	return list
}

// fed is a job whose chips report what the test makes up.
type fed struct {
	*ttnn.Job
	feed    *ttnn.Feed
	release string
	reader  *Reader
}

func startFed(t *testing.T, release string, chips int, ticks float64) *fed {
	t.Helper()
	return startFedWith(t, release, chips, ticks, nil)
}

// startFedWith opens the device as more says.
func startFedWith(t *testing.T, release string, chips int, ticks float64, more ttnn.Step) *fed {
	t.Helper()
	if built == "" {
		t.Skip("no C compiler")
	}
	feed, err := ttnn.NewFeed(t.TempDir(), chips, ticks)
	if err != nil {
		t.Fatal(err)
	}
	descriptor, open := "blackhole_P150", ttnn.Step{"do": "open", "device": 0}
	if chips == 2 {
		descriptor, open = "wormhole_N300_pci_bdf", ttnn.Step{"do": "open", "mesh": []int{1, 2}}
	}
	path, err := ttnn.Descriptor(descriptor)
	if err != nil {
		t.Fatal(err)
	}
	j := ttnn.Play(t, ttnn.Options{Release: release, Descriptor: path, Dir: t.TempDir(), Env: feed.Env(filepath.Join(built, "libttmon.so"))})
	f := &fed{Job: j, feed: feed, release: release, reader: NewReader(Options{})}
	t.Cleanup(f.reader.Close)
	maps.Copy(open, more)
	step(t, j, open)
	if isOld(release) {
		step(t, j, ttnn.Step{"do": "feed"})
	}
	return f
}

// isOld: each record is delivered alone, and nothing names its operation.
func isOld(release string) bool { return release < "0.76" }

// programs is how many programs the first chip was fed.
func (f *fed) programs() uint64 { return f.feed.Chips[0].Written() }

// flush waits until all pages were taken, and what came of them was counted.
func (f *fed) flush(t *testing.T, want ...uint64) *ledgerfile.Work {
	t.Helper()
	for _, c := range f.feed.Chips {
		if err := c.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		w := find(t, f.reader, f.PID).Work
		if w != nil && len(w.Chips) == len(want) && !slices.ContainsFunc(w.Chips, func(c ledgerfile.ChipWork) bool { return c.Programs < want[c.Logical] || c.Moving }) {
			return w
		}
		if time.Now().After(end) {
			t.Fatalf("%v programs have not come: %+v", want, w)
		}
	}
}

func chipOf(t *testing.T, w *ledgerfile.Work, logical int) ledgerfile.ChipWork {
	t.Helper()
	for _, c := range w.Chips {
		if c.Logical == logical {
			return c
		}
	}
	t.Fatalf("no chip %d in %+v", logical, w)
	return ledgerfile.ChipWork{}
}

// TestFedPrograms: what a chip reports is what the ledger says, to the tick,
// with pages among it that are no programs.
func TestFedPrograms(t *testing.T) {
	for _, release := range workReleases() {
		t.Run(release, func(t *testing.T) {
			f := startFed(t, release, 1, 1)
			for _, s := range []ttnn.Step{
				{"do": "alloc", "name": "a", "pool": "dram", "bytes": 65536},
				{"do": "add", "name": "b", "of": []string{"a", "a"}},
				{"do": "relu", "name": "c", "of": []string{"a"}},
			} {
				step(t, f.Job, s)
			}
			chip := f.feed.Chips[0]
			const rounds = 10_000
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
			got := chipOf(t, f.flush(t, 2*rounds), 0)
			if got.Programs != 2*rounds || got.Busy != 750*rounds || got.Longest != 700 || got.Gap != 400*rounds-300 || got.LongestGap != 300 || got.Refused != 0 {
				t.Errorf("%+v", got)
			}
			if len(got.LongestGaps) != model.MaxGaps || got.LongestGaps[7].Length != 300 || got.LongestGaps[0].End.Before(got.Since) {
				t.Errorf("gaps %+v", got.LongestGaps)
			}
			wantLoss := ledgerfile.WorkLossy
			if release >= "0.80" {
				wantLoss = ledgerfile.WorkLossless
			}
			if got.Loss != wantLoss {
				t.Errorf("loss %v, want %v", got.Loss, wantLoss)
			}
			if isOld(release) {
				return // the feed's records have no sources
			}
			for _, g := range got.LongestGaps {
				if g.After != "eltwise/unary" {
					t.Errorf("a gap of %v after %q", g.Length, g.After)
				}
			}
			if got.State != ledgerfile.WorkOn || got.Unprofiled != rounds/1000 {
				t.Errorf("%+v", got)
			}
			var calls []uint64
			for _, name := range []string{"eltwise/binary_ng", "eltwise/unary"} {
				for _, o := range got.Ops {
					if o.Name == name && o.Time == map[string]time.Duration{"eltwise/binary_ng": 700 * rounds, "eltwise/unary": 50 * rounds}[name] {
						calls = append(calls, o.Calls)
					}
				}
			}
			if !slices.Equal(calls, []uint64{rounds, rounds}) {
				t.Errorf("operations: %+v", got.Ops)
			}
			if w := find(t, f.reader, f.PID).Work; w.Host.Enqueued != 2 {
				t.Errorf("%d programs enqueued, want 2", w.Host.Enqueued)
			}
			step(t, f.Job, ttnn.Step{"do": "close"})
			if c := chipOf(t, find(t, f.reader, f.PID).Work, 0); c.State != ledgerfile.WorkOff || c.Programs != 2*rounds {
				t.Errorf("after close: %+v", c)
			}
		})
	}
}

// TestTwoFedChips: each chip has its own account and clock.
func TestTwoFedChips(t *testing.T) {
	f := startFed(t, ttnn.Newest, 2, 1.35)
	for range 5000 {
		f.feed.Chips[0].Program(1, 0, 1350)
	}
	for range 700 {
		f.feed.Chips[1].Program(1, 1350, 2700)
	}
	w := f.flush(t, 5000, 700)
	if c := chipOf(t, w, 0); c.Busy != 5*time.Millisecond || c.Gaps != 0 {
		t.Errorf("chip 0: %+v", c)
	}
	if c := chipOf(t, w, 1); c.Busy != 1400*time.Microsecond || c.Gap != 699*time.Microsecond {
		t.Errorf("chip 1: %+v", c)
	}
	set := find(t, f.reader, f.PID)
	claims := (&Sweep{Processes: []Process{set}}).Claims()
	if len(claims.Work) != 2 || claims.Work[0].Chip == claims.Work[1].Chip || claims.Work[0].Chip == 0 {
		t.Errorf("claims: %+v", claims.Work)
	}
}

// TestCommandQueues: tt-metal reports the programs of a device's first queue, so
// it counts whether others were used, and not whether there are any.
func TestCommandQueues(t *testing.T) {
	for _, release := range workReleases() {
		if isOld(release) {
			continue // its records come without a queue
		}
		t.Run(release, func(t *testing.T) {
			f := startFedWith(t, release, 1, 1, ttnn.Step{"queues": 2})
			step(t, f.Job, ttnn.Step{"do": "alloc", "name": "a", "pool": "dram", "bytes": 65536})
			used := func(want int) {
				t.Helper()
				f.feed.Chips[0].Program(1, 10, 10)
				if got := f.flush(t, f.programs()).Host.Queues; got != want {
					t.Errorf("%d queues used, want %d", got, want)
				}
			}
			used(0)
			// On one queue only: in mock mode the other one does not release the device.
			step(t, f.Job, ttnn.Step{"do": "add", "name": "c", "of": []string{"a", "a"}, "queue": 1})
			used(2)
			claims := (&Sweep{Processes: []Process{find(t, f.reader, f.PID)}}).Claims()
			if len(claims.Work) != 1 || claims.Work[0].Queues != 2 {
				t.Errorf("claims: %+v", claims.Work)
			}
		})
	}
}

// TestReopened: the first queue of a device that is opened again is a first one.
func TestReopened(t *testing.T) {
	f := startFed(t, ttnn.Newest, 1, 1)
	for range 3 {
		step(t, f.Job, ttnn.Step{"do": "alloc", "name": "a", "pool": "dram", "bytes": 65536})
		step(t, f.Job, ttnn.Step{"do": "add", "name": "b", "of": []string{"a", "a"}})
		step(t, f.Job, ttnn.Step{"do": "close"})
		step(t, f.Job, ttnn.Step{"do": "open", "device": 0})
	}
	if h := find(t, f.reader, f.PID).Work.Host; h.Queues != 1 || h.Enqueued != 3 || h.SubDevices != 0 {
		t.Errorf("%+v", h)
	}
}

// TestSubDevices: programs that run at the same time on parts of a device are
// reported as too short.
func TestSubDevices(t *testing.T) {
	for _, release := range workReleases() {
		if isOld(release) {
			continue // dividing does not work in its mock mode
		}
		t.Run(release, func(t *testing.T) {
			f := startFed(t, release, 1, 1)
			if got := find(t, f.reader, f.PID).Work.Host.SubDevices; got != 0 {
				t.Errorf("%d sub-devices before there are any", got)
			}
			step(t, f.Job, ttnn.Step{"do": "divide", "parts": 3})
			if got := find(t, f.reader, f.PID).Work.Host.SubDevices; got != 3 {
				t.Errorf("%d sub-devices, want 3", got)
			}
		})
	}
}

// TestSettledQueues: work that was not waited for is not forgotten because
// another queue was waited for.
func TestSettledQueues(t *testing.T) {
	f := startFedWith(t, ttnn.Newest, 1, 1, ttnn.Step{"queues": 2})
	step(t, f.Job, ttnn.Step{"do": "alloc", "name": "a", "pool": "dram", "bytes": 65536})
	settled := func(want bool) {
		t.Helper()
		if h := hostWork(&find(t, f.reader, f.PID).Work.Host); h.Settled() != want {
			t.Errorf("settled: %v, want %v: %+v", !want, want, h)
		}
	}
	step(t, f.Job, ttnn.Step{"do": "add", "name": "b", "of": []string{"a", "a"}, "queue": 0})
	settled(false)
	step(t, f.Job, ttnn.Step{"do": "finish", "queue": 1})
	settled(false)
	step(t, f.Job, ttnn.Step{"do": "finish", "queue": 0})
	settled(true)
}

// TestForgedPages: a program that feeds its own profiler with nonsense says
// nothing that cannot be, and stays alive.
func TestForgedPages(t *testing.T) {
	f := startFed(t, ttnn.Newest, 1, 1)
	chip := f.feed.Chips[0]
	chip.Record(1, 1000, 2000)
	chip.Record(2, 5000, 4000)         // ends before it begins
	chip.Record(3, 0, 1500)            // over the first
	chip.Record(0xffff, 1000, 1<<63-1) // longer than the world
	chip.Record(0x123456, 1000, 2000)  // an id of more than 16 bits
	got := chipOf(t, f.flush(t, 4), 0)
	if got.Programs != 4 || got.Refused != 1 || got.Busy < 0 {
		t.Errorf("%+v", got)
	}
	step(t, f.Job, ttnn.Step{"do": "ping"})
}

// TestBurst: three million programs as fast as they are taken, none lost.
func TestBurst(t *testing.T) {
	if testing.Short() {
		t.Skip("a burst takes a while")
	}
	f := startFed(t, ttnn.Newest, 1, 1)
	const n = 3_000_000
	for i := range uint32(n) {
		f.feed.Chips[0].Program(1+i%60000, 30, 70)
	}
	if got := chipOf(t, f.flush(t, n), 0); got.Programs != n || got.Busy != 70*n {
		t.Errorf("%+v", got)
	}
}

// TestHostWaits: a thread that waits for its chips is seen while it does, with
// the moment since when.
func TestHostWaits(t *testing.T) {
	f := startFed(t, ttnn.Newest, 1, 1)
	step(t, f.Job, ttnn.Step{"do": "alloc", "name": "a", "pool": "dram", "bytes": 65536})
	step(t, f.Job, ttnn.Step{"do": "add", "name": "b", "of": []string{"a", "a"}})
	chip := f.feed.Chips[0]
	before := time.Now()
	chip.Hold(true)
	step(t, f.Job, ttnn.Step{"do": "finish", "later": true})
	var host model.HostWork
	for end := time.Now().Add(time.Minute); host.WaitingSince.IsZero(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("no thread is seen to wait")
		}
		host = hostWork(&find(t, f.reader, f.PID).Work.Host)
	}
	if host.WaitingFor != model.WaitsForFinish || host.WaitingSince.Before(before.Add(-time.Second)) || host.Settled() {
		t.Errorf("%+v", host)
	}
	chip.Hold(false)
	for end := time.Now().Add(time.Minute); !host.Settled(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it still waits: %+v", host)
		}
		host = hostWork(&find(t, f.reader, f.PID).Work.Host)
	}
}

// TestKilledInFullStream: what a killed process had reported stays in its ledger.
func TestKilledInFullStream(t *testing.T) {
	f := startFed(t, ttnn.Newest, 1, 1)
	for range 20_000 {
		f.feed.Chips[0].Program(1, 30, 70)
	}
	f.flush(t, 20_000)
	path := find(t, f.reader, f.PID).Path
	copied, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer copied.Close()
	if err := f.Kill(); err != nil {
		t.Fatal(err)
	}
	w, err := new(ledgerfile.WorkReader).Read(int(copied.Fd()))
	if err != nil || chipOf(t, w, 0).Programs != 20_000 {
		t.Errorf("%+v, %v", w, err)
	}
}

// TestListens: a process with libttmon in it is known to have it, also
// where its chips report nothing.
func TestListens(t *testing.T) {
	for want, work := range map[model.WorkCause]*ledgerfile.Work{"": {}, model.WorkNoReport: nil} {
		t.Run(string(want), func(t *testing.T) {
			var set claim.Set
			(&Process{PID: 5, Start: 7, Work: work}).claimWork(&set)
			if len(set.Listens) != 1 || set.Listens[0].Why != want || set.Listens[0].Process != (model.ProcessID{PID: 5, StartTicks: 7}) {
				t.Errorf("%+v", set.Listens)
			}
		})
	}
}
