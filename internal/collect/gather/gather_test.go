package gather

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/book/failure"
	"github.com/ttmon/ttmon/internal/book/failure/keep"
	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/hostfs/proc"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/source/track"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

var noon = time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)

const chip = 77

// probed is a failure as the probes see it, of our own process.
func probed(count uint64) *failure.Record {
	l := blocks.NewList(blocks.Geometry{Pool: model.DRAM, Banks: 8, Capacity: 4096, Align: 64, Smallest: 64}, blocks.FromStart)
	l.Alloc(blocks.Block{Addr: 0, Size: 4032})
	return &failure.Record{
		Schema: failure.Schema, Kind: failure.NoRoom, Time: noon, First: noon, Last: noon, Count: count, Source: "uprobe", Pool: "dram", State: l,
		Process: failure.Process{PID: os.Getpid(), UID: -1}, Request: failure.Request{BankBytes: 128}, Chips: []failure.Chip{{ID: chip}},
		Sites: []failure.Site{}, Siblings: []failure.Sibling{}, Others: []failure.Other{}, Doubts: []failure.DoubtKind{},
	}
}

// ledger is one with a failure that happened count times.
func ledger(count uint64) *ledgerfile.Ledger {
	return &ledgerfile.Ledger{
		PID: os.Getpid(), Comm: "python", Chips: []ledgerfile.Chip{{ID: chip}},
		Failures: []ledgerfile.Failure{{
			Number: 1, Kind: ledgerfile.NoRoom, Count: count, First: noon, Last: noon, Time: noon, Bytes: 128, Asked: 1024, Chips: []int{0},
			Lists: []ledgerfile.FailedList{{
				List:   ledgerfile.List{Pool: ledgerfile.DRAM, Banks: 8, Capacity: 4096},
				Blocks: []ledgerfile.FailedBlock{{Address: 0, Bytes: 4032}},
			}},
		}},
	}
}

// desk is a Gatherer with everything that it is given at hand.
type desk struct {
	*Gatherer
	store   *keep.Store
	probes  []*failure.Record
	ledgers []track.Process
	latest  *model.Snapshot
	new     []string
	chips   []failure.Chip // of the last one
	leftOut uint64
}

func newDesk(t *testing.T) *desk {
	d := &desk{latest: host(), store: keep.Open(t.TempDir(), keep.DefaultLimits, slog.New(slog.DiscardHandler))}
	d.Gatherer = New(Options{
		Store:   d.store,
		Probes:  func() []*failure.Record { list := d.probes; d.probes = nil; return list },
		Ledgers: func() []track.Process { return d.ledgers },
		Latest:  func() *model.Snapshot { return d.latest },
		New:     func(r *failure.Record) { d.new, d.chips = append(d.new, r.ID), r.Chips },
		LeftOut: func(_ int, n uint64) { d.leftOut += n },
	})
	d.Fill(host())
	return d
}

// anothersStart is that of the other process that has the device open.
const anothersPID, anothersUID, anothersStart = 1 << 30, 4711, 5

// host is a snapshot with the chip, which our process and another have open.
func host() *model.Snapshot {
	using := func(pid, uid int, start uint64) model.Process {
		return model.Process{PID: pid, StartTicks: start, UID: model.Value(uid), Devices: []model.DeviceUse{{Device: 3, OpenFDs: model.Value(1)}}}
	}
	return &model.Snapshot{
		Devices: []model.Device{
			{Index: 3, BusID: "0000:03:00.0", Chips: []model.Chip{{ID: model.Value[uint64](chip)}}},
			{Index: 4, BusID: "0000:04:00.0", Chips: []model.Chip{{ID: model.Value[uint64](chip + 1)}}},
		},
		Processes: []model.Process{using(os.Getpid(), os.Getuid(), ownStart()), using(anothersPID, anothersUID, anothersStart)},
	}
}

// ownStart is when our process started, as the kernel has it.
var ownStart = sync.OnceValue(func() uint64 {
	r := proc.New(hostfs.Root{})
	defer r.Close()
	r.StartSweep()
	defer r.EndSweep()
	return r.Describe([]int{os.Getpid()})[0].StartTicks
})

func (d *desk) counted() uint64 {
	s := host()
	d.Fill(s)
	return s.Devices[0].AllocationFailures.V
}

func (d *desk) list(t *testing.T, want int) []failure.Summary {
	t.Helper()
	list := d.store.List(func(int) bool { return true })
	if len(list) != want {
		t.Fatalf("%d records are kept, not %d: %+v", len(list), want, list)
	}
	return list
}

func TestProbes(t *testing.T) {
	d := newDesk(t)
	for _, n := range []uint64{1, 400, 599} {
		d.probes = []*failure.Record{probed(n)}
		d.fromProbes()
	}
	r := d.list(t, 1)[0]
	if r.Count != 1000 || r.Cause != failure.Full || r.Process.UID != os.Getuid() || r.Process.Name == "" || r.Process.Command == "" || r.Process.Start == 0 {
		t.Errorf("%+v", r)
	}
	if len(d.new) != 1 || d.counted() != 1000 {
		t.Errorf("%d are reported as new, %d are counted", len(d.new), d.counted())
	}
}

func TestLedgers(t *testing.T) {
	d := newDesk(t)
	own := track.Process{PID: os.Getpid(), Path: "/dev/shm/a"}
	for _, n := range []uint64{1, 1, 5} { // a ledger counts from its beginning
		own.Ledger = ledger(n)
		d.ledgers = []track.Process{own}
		d.fromLedgers()
	}
	r := d.list(t, 1)[0]
	if r.Count != 5 || r.Source != "track" || r.Process.UID != os.Getuid() || len(d.new) != 1 || d.counted() != 5 {
		t.Errorf("%+v, %d new, %d counted", r, len(d.new), d.counted())
	}
	d.ledgers = nil
	d.fromLedgers()
	if len(d.seen) != 0 {
		t.Errorf("a ledger that is gone is remembered: %v", d.seen)
	}
}

// TestBothSources: what the probes and libttmon see of one process is counted once,
// and what libttmon alone sees is counted, too.
func TestBothSources(t *testing.T) {
	d := newDesk(t)
	d.probes = []*failure.Record{probed(3)}
	d.fromProbes()
	d.ledgers = []track.Process{{PID: os.Getpid(), Path: "/dev/shm/a", Ledger: ledger(3), Start: d.list(t, 1)[0].Process.Start}}
	d.fromLedgers()
	if d.list(t, 1); d.counted() != 3 || len(d.new) != 1 {
		t.Errorf("%d are counted, %d new", d.counted(), len(d.new))
	}
	unwatched := ledger(4)
	unwatched.PID, unwatched.StartTicks = anothersPID, anothersStart
	d.Ended(track.Ended{Path: "/dev/shm/b", UID: 4711, Ledger: unwatched})
	d.fromLedgers()
	if d.list(t, 2); d.counted() != 7 {
		t.Errorf("%d are counted", d.counted())
	}
}

// TestReportedWhenPlaced: a failure is reported when it is known which device it is
// about, or after a while.
func TestReportedWhenPlaced(t *testing.T) {
	d := newDesk(t)
	d.latest = nil
	d.probes = []*failure.Record{probed(1)}
	d.fromProbes()
	d.report(time.Now())
	if d.list(t, 1); len(d.new) != 0 {
		t.Fatal("it is reported before a snapshot has its chip")
	}
	d.latest = host()
	d.report(time.Now())
	d.report(time.Now())
	if r := d.list(t, 1)[0]; len(d.new) != 1 || r.Chips[0].BusID != "0000:03:00.0" || *r.Chips[0].Device != 3 {
		t.Errorf("%d are reported, chips %+v", len(d.new), r.Chips)
	}
	d.latest = &model.Snapshot{}
	other := ledger(1)
	other.PID = 1 << 30
	d.Ended(track.Ended{Path: "/dev/shm/b", UID: 4711, Ledger: other})
	d.fromLedgers()
	if len(d.new) != 1 {
		t.Fatal("it is reported at once")
	}
	d.report(time.Now().Add(deviceTimeout))
	if len(d.new) != 2 {
		t.Error("a failure on a chip that no snapshot has is never reported")
	}
	for i := range 2 * maxWaiting {
		other.PID++
		d.fromLedger(fmt.Sprint(i), other, failure.Process{PID: other.PID, UID: 4711})
	}
	if len(d.waiting) != maxWaiting {
		t.Errorf("%d failures wait", len(d.waiting))
	}
}

// TestEndedAreBounded: processes that end may leave as many ledgers as they like.
func TestEndedAreBounded(t *testing.T) {
	d := newDesk(t)
	for i := range 3 * maxEnded {
		l := ledger(1)
		l.PID = 1<<30 + i
		d.Ended(track.Ended{Path: "/dev/shm/x", UID: 1000 + i, Ledger: l})
	}
	d.Ended(track.Ended{Ledger: &ledgerfile.Ledger{}}) // without a failure
	if len(d.ended) != maxEnded {
		t.Errorf("%d ledgers wait", len(d.ended))
	}
	(*Gatherer)(nil).Ended(track.Ended{Ledger: ledger(1)}) // before there is one
}

// TestOnlyDevicesThatAreOpen: which chips a failure is about is what its program
// says. It counts for a device that the process has open, and no other is named.
func TestOnlyDevicesThatAreOpen(t *testing.T) {
	value := func(d *desk, index int) model.Reading[uint64] {
		s := host()
		d.Fill(s)
		return s.Device(index).AllocationFailures
	}
	d := newDesk(t)
	r := probed(2)
	r.Chips = []failure.Chip{{ID: chip}, {ID: chip}, {ID: chip + 1}} // it has only the first one open
	d.probes = []*failure.Record{r}
	d.fromProbes()
	if v := value(d, 4); len(d.new) != 0 || v.V != 0 {
		t.Fatalf("%d are reported, %+v", len(d.new), v)
	}
	d.report(time.Now().Add(deviceTimeout))
	if n, ok := value(d, 3).Get(); !ok || n != 2 {
		t.Errorf("%d are counted for the device that it has open", n)
	}
	if v := value(d, 4); v.Status != model.Absent || v.Why == "" {
		t.Errorf("%+v for a device that it does not have open", v)
	}
	if len(d.new) != 1 || len(d.chips) != 3 || d.chips[0].BusID != "0000:03:00.0" || d.chips[2].BusID != "" || d.chips[2].Device != nil {
		t.Errorf("%d are reported, the last on %+v", len(d.new), d.chips)
	}

	d = newDesk(t)
	forged := ledger(9) // in the name of a process of another user
	forged.PID, forged.StartTicks = anothersPID, anothersStart
	d.Ended(track.Ended{Path: "/dev/shm/b", UID: anothersUID + 1, Ledger: forged})
	d.fromLedgers()
	d.report(time.Now().Add(deviceTimeout))
	if v := value(d, 3); v.Status != model.Absent {
		t.Errorf("%+v after another user's ledger", v)
	}
}

// TestWhoHoldsADevice: one that a ledger names is used by a process whose ancestor of
// the same user opened it, and by no other.
func TestWhoHoldsADevice(t *testing.T) {
	s := host()
	said := []model.DeviceUse{{Device: 3, Source: model.FromTrack, OpenFDs: model.Missing[int](model.Absent, "")}}
	for pid, p := range map[int]struct{ parent, uid int }{100: {anothersPID, anothersUID}, 101: {100, anothersUID}, 102: {anothersPID, anothersUID + 1}, 103: {1, anothersUID}, 104: {104, anothersUID}} {
		s.Processes = append(s.Processes, model.Process{PID: pid, PPID: p.parent, StartTicks: 1, UID: model.Value(p.uid), Devices: said})
	}
	d := newDesk(t)
	d.Fill(s)
	for pid, want := range map[int]bool{100: true, 101: true, 102: false, 103: false, 104: false} {
		t.Run(fmt.Sprint(pid), func(t *testing.T) {
			if got := d.devices.uses(&failure.Process{PID: pid, Start: 1, UID: -1}, "0000:03:00.0"); got != want {
				t.Error(got)
			}
		})
	}
}

// TestInventedChips: a program that names chips that do not exist takes nothing from
// the counters of those that do.
func TestInventedChips(t *testing.T) {
	d := newDesk(t)
	for i := range uint64(2 * maxClaims) {
		r := probed(1)
		r.Chips = []failure.Chip{{ID: 1000 + i}}
		d.probes = append(d.probes, r)
	}
	d.fromProbes()
	if len(d.devices.claims) > maxClaims || len(d.devices.counts) != 0 || len(d.devices.doubtful) != 0 {
		t.Errorf("%d wait, %d are counted, %d in doubt", len(d.devices.claims), len(d.devices.counts), len(d.devices.doubtful))
	}
	d.report(time.Now().Add(deviceTimeout))
	s := host()
	s.Devices = append(s.Devices, model.Device{Index: 5, BusID: "0000:05:00.0"}) // its chips are not known
	if d.Fill(s); s.Devices[0].AllocationFailures != model.Value[uint64](0) || s.Devices[2].AllocationFailures.Status != model.Absent {
		t.Errorf("%+v, %+v", s.Devices[0].AllocationFailures, s.Devices[2].AllocationFailures)
	}
	d.probes = []*failure.Record{probed(3)}
	d.fromProbes()
	if d.counted() != 3 {
		t.Errorf("%d of 3 are counted", d.counted())
	}
}

// TestCountedWhenSeen: a program that fails before a snapshot has it is counted when
// one does, once.
func TestCountedWhenSeen(t *testing.T) {
	d := newDesk(t)
	d.devices.users = map[model.ProcessID]*user{}
	d.probes = []*failure.Record{probed(3), probed(1)}
	d.fromProbes()
	if n := d.devices.counts["0000:03:00.0"]; n != 0 {
		t.Fatalf("%d are counted before it was seen", n)
	}
	d.Fill(host())
	d.report(time.Now())
	d.report(time.Now().Add(deviceTimeout))
	if d.counted() != 4 || len(d.new) != 1 {
		t.Errorf("%d are counted, %d reported", d.counted(), len(d.new))
	}
	d.devices.observe(&model.Snapshot{}, time.Now().Add(2*remembered))
	if len(d.devices.users) != 0 {
		t.Errorf("%d processes are remembered", len(d.devices.users))
	}
}

// TestReportsOfUser: a user whose programs fail all the time does not push out the
// events of others, and it is said how many were left out.
func TestReportsOfUser(t *testing.T) {
	d := newDesk(t)
	failing := func(uid, n int) {
		for range n {
			d.announce(&failure.Record{ID: fmt.Sprint(uid), Process: failure.Process{UID: uid}}, noon)
		}
	}
	failing(1000, 100)
	failing(2000, 1)
	if n := len(d.new); n != reportBurst+1 || d.new[n-1] != "2000" {
		t.Fatalf("%d are reported: %v", n, d.new)
	}
	d.report(noon.Add(59 * time.Second))
	if d.leftOut != 0 {
		t.Errorf("%d are said to be left out too early", d.leftOut)
	}
	d.report(noon.Add(time.Minute))
	if d.leftOut != 100-reportBurst {
		t.Errorf("%d are said to be left out", d.leftOut)
	}
	for uid := range 2 * maxReporters {
		failing(10000+uid, 1)
	}
	if len(d.reports) > maxReporters+1 {
		t.Errorf("%d users are remembered", len(d.reports))
	}
	d.report(noon.Add(time.Hour))
	d.report(noon.Add(2 * time.Hour))
	if len(d.reports) != 0 {
		t.Errorf("%d users are remembered for long", len(d.reports))
	}
}

// TestRunFlushes: what was not written yet is on disk when the daemon ends.
func TestRunFlushes(t *testing.T) {
	dir := t.TempDir()
	d := newDesk(t)
	d.store = keep.Open(dir, keep.DefaultLimits, slog.New(slog.DiscardHandler))
	d.Gatherer.o.Store = d.store
	d.probes = []*failure.Record{probed(1)}
	d.fromProbes()
	d.probes = []*failure.Record{probed(6)}
	d.fromProbes()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	d.Run(ctx)
	d.store = keep.Open(dir, keep.DefaultLimits, slog.New(slog.DiscardHandler))
	if r := d.list(t, 1)[0]; r.Count != 7 {
		t.Errorf("%d of 7 are on disk", r.Count)
	}
}

// TestRunIsWoken: what the probes see is taken when they say so, each time.
func TestRunIsWoken(t *testing.T) {
	failed, taken := make(chan struct{}, 1), make(chan struct{})
	d := newDesk(t)
	d.Gatherer.o.Failed = failed
	d.Gatherer.o.Probes = func() []*failure.Record { taken <- struct{}{}; return []*failure.Record{probed(1)} }
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); d.Run(ctx) }()
	for range 3 {
		failed <- struct{}{}
		<-taken
	}
	cancel()
	<-ended
	if r := d.list(t, 1)[0]; r.Count != 3 {
		t.Errorf("%d of 3 were taken", r.Count)
	}
}

// TestFailuresOfProcess: a snapshot says of each process, and of those that have
// exited, how often it failed; of one that is not watched, nothing.
func TestFailuresOfProcess(t *testing.T) {
	d := newDesk(t)
	d.probes = []*failure.Record{probed(3)}
	d.fromProbes()
	k := d.list(t, 1)[0]
	own := model.ProcessID{PID: k.Process.PID, StartTicks: k.Process.Start}
	check := func(g *Gatherer) {
		t.Helper()
		s := host()
		s.Processes = []model.Process{{PID: own.PID, StartTicks: own.StartTicks}, {PID: own.PID, StartTicks: own.StartTicks + 1}, {PID: 1, Devices: []model.DeviceUse{{Source: model.FromUprobe}}}}
		s.Exits = []model.Exit{{ID: own}, {ID: model.ProcessID{PID: 1}}}
		g.Fill(s)
		want := model.Failures{Count: 3, Last: noon, ID: k.ID, Pool: "dram"}
		if f := s.Processes[0].Failures; f == nil || *f != want {
			t.Errorf("%+v instead of %+v", f, want)
		}
		if f := s.Processes[1].Failures; f != nil {
			t.Errorf("another process with its pid: %+v", f)
		}
		if f := s.Processes[2].Failures; f == nil || *f != (model.Failures{}) {
			t.Errorf("a watched process that did not fail: %+v", f)
		}
		if f := s.Exits[0].Failures; f == nil || *f != want || s.Exits[1].Failures != nil {
			t.Errorf("exits: %+v, %+v", f, s.Exits[1].Failures)
		}
	}
	check(d.Gatherer)
	check(New(d.o)) // a successor
}

// TestManyProcesses: a user whose programs all fail pushes out its own, not those of
// others.
func TestManyProcesses(t *testing.T) {
	g := newDesk(t).Gatherer
	add := func(pid, uid int) {
		g.countProcess(&failure.Summary{Last: noon.Add(time.Duration(pid) * time.Second), Process: failure.Process{PID: pid, Start: 1, UID: uid}}, 1)
	}
	add(1, 1000)
	for pid := range 3 * maxFailedOfUser {
		add(10+pid, 2000)
	}
	if len(g.failed) != maxFailedOfUser+1 || g.failuresOf(model.ProcessID{PID: 1, StartTicks: 1}) == nil || g.failuresOf(model.ProcessID{PID: 9 + 3*maxFailedOfUser, StartTicks: 1}) == nil {
		t.Errorf("%d are counted", len(g.failed))
	}
	for uid := range 2 * maxFailed / maxFailedOfUser {
		for pid := range maxFailedOfUser {
			add(10000+uid*1000+pid, 3000+uid)
		}
	}
	if len(g.failed) != maxFailed {
		t.Errorf("%d are counted in all", len(g.failed))
	}
}

// twice is a ledger with two failures of one line: on two devices, a second apart.
func twice() *ledgerfile.Ledger {
	l := ledger(1)
	second := l.Failures[0]
	second.Number, second.Lists = 2, slices.Clone(second.Lists)
	second.First, second.Last, second.Time = noon.Add(time.Second), noon.Add(time.Second), noon.Add(time.Second)
	l.Failures = append(l.Failures, second)
	return l
}

// TestRecordsOfALedgerStayApart: what libttmon tells apart is not merged, though its
// line and pool are the same.
func TestRecordsOfALedgerStayApart(t *testing.T) {
	d := newDesk(t)
	d.ledgers = []track.Process{{PID: os.Getpid(), Path: "/dev/shm/a", Ledger: twice(), Start: ownStart()}}
	d.fromLedgers()
	list := d.list(t, 2)
	if list[0].Count != 1 || list[1].Count != 1 || !list[1].Last.Equal(noon) || d.counted() != 2 {
		t.Errorf("%+v, %d counted", list, d.counted())
	}
}

// TestLedgerHasPrecedence: what the probes see of a process that keeps a ledger
// changes no record of that ledger, whichever comes first, and nothing is counted
// twice.
func TestLedgerHasPrecedence(t *testing.T) {
	second := func() *failure.Record {
		r := probed(1)
		r.First, r.Last, r.Time = noon.Add(time.Second), noon.Add(time.Second), noon.Add(time.Second)
		return r
	}
	for _, tt := range []struct {
		name   string
		ledger *ledgerfile.Ledger // that has been read when the probes see the second failure
	}{{"before the first is read", &ledgerfile.Ledger{PID: os.Getpid()}}, {"after it", ledger(1)}} {
		t.Run(tt.name, func(t *testing.T) {
			d := newDesk(t)
			read := func(l *ledgerfile.Ledger) {
				d.ledgers = []track.Process{{PID: os.Getpid(), Path: "/dev/shm/a", Ledger: l, Start: ownStart()}}
				d.fromLedgers()
			}
			read(tt.ledger)
			d.probes = []*failure.Record{probed(1), second()}
			d.fromProbes()
			read(twice())
			list := d.list(t, 2)
			if !list[0].Last.Equal(noon.Add(time.Second)) || !list[1].Last.Equal(noon) || list[0].Source != "track" || list[1].Source != "track" || d.counted() != 2 {
				t.Errorf("%+v, %d counted", list, d.counted())
			}
			if len(d.held) != 0 {
				t.Errorf("%d wait", len(d.held))
			}
		})
	}
}

// TestLedgerWithoutFailures: what only the probes see of a process that keeps a
// ledger is kept, when its ledger says nothing of it for a while, or is gone.
func TestLedgerWithoutFailures(t *testing.T) {
	for _, gone := range []bool{true, false} {
		t.Run(fmt.Sprint("gone ", gone), func(t *testing.T) {
			d := newDesk(t)
			d.ledgers = []track.Process{{PID: os.Getpid(), Path: "/dev/shm/a", Ledger: &ledgerfile.Ledger{PID: os.Getpid()}, Start: ownStart()}}
			d.probes = []*failure.Record{probed(1)}
			d.fromProbes()
			d.list(t, 0)
			if gone {
				d.ledgers = nil
			} else {
				d.held[0].since = d.held[0].since.Add(-ledgerTimeout)
			}
			d.fromLedgers()
			if r := d.list(t, 1)[0]; r.Source != "uprobe" || d.counted() != 1 || len(d.held) != 0 {
				t.Errorf("%+v, %d counted, %d wait", r, d.counted(), len(d.held))
			}
		})
	}
}

// TestMoreLinesThanRecords: a ledger keeps the last records only. Where it has had
// more, what is counted is at least, by then and later.
func TestMoreLinesThanRecords(t *testing.T) {
	d := newDesk(t)
	bound := func() model.Bound {
		s := host()
		d.Fill(s)
		return s.Devices[0].AllocationFailuresBound
	}
	l := ledger(2)
	l.PID, l.StartTicks = anothersPID, anothersStart
	d.Ended(track.Ended{Path: "/dev/shm/a", UID: anothersUID, Ledger: l})
	d.fromLedgers()
	if n, b := d.counted(), bound(); n != 2 || b != model.Exact {
		t.Errorf("%v %d, of one record", b, n)
	}
	l = ledger(3)
	l.PID, l.StartTicks, l.Failures[0].Number = anothersPID, anothersStart, 70
	d.Ended(track.Ended{Path: "/dev/shm/b", UID: anothersUID, Ledger: l})
	d.fromLedgers()
	if n, b := d.counted(), bound(); n < 3 || b != model.AtLeast {
		t.Errorf("%v %d, of the 70th record", b, n)
	}
}
