package uprobe

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/base/budget"
	"github.com/ttmon/ttmon/internal/book/launches"
	"github.com/ttmon/ttmon/internal/lab/e2e/ttnn"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/source/uprobe/pages"
)

// received is what a client makes of what it is sent, after a way as lines.
type received struct {
	t      *testing.T
	f      *ProgramFollower
	chips  map[uint64]*receivedChip
	missed uint64
	lost   uint64
}

type receivedChip struct {
	programs []launches.Program
	next     uint64
	batch    launches.Batch // the last one
}

func receive(t *testing.T, s *Source, allow func(pid, uid int) bool) *received {
	t.Helper()
	r := &received{t: t, f: s.FollowPrograms(allow), chips: map[uint64]*receivedChip{}}
	t.Cleanup(r.f.Close)
	return r
}

func everyone(int, int) bool { return true }

// upTo receives until all that was reported before now has been sent.
func (r *received) upTo(now time.Time) {
	r.t.Helper()
	for {
		list, err := r.f.Next(r.t.Context())
		if err != nil {
			r.t.Fatal(err)
		}
		for i := range list {
			text, err := launches.Append(nil, &list[i])
			if err != nil {
				r.t.Fatal(err)
			}
			m, err := launches.Parse(text)
			if err != nil {
				r.t.Fatalf("%v\n%s", err, text)
			}
			if m.Batch != nil {
				r.add(m.Batch)
			}
			if m.UpTo > now.UnixNano() {
				return
			}
		}
	}
}

func (r *received) add(b *launches.Batch) {
	c := r.chips[b.Chip]
	if c == nil {
		c = &receivedChip{next: b.From}
		r.chips[b.Chip] = c
	}
	r.missed += b.N - c.next
	r.lost = max(r.lost, b.Lost)
	c.programs = append(c.programs, b.Programs...)
	c.next, c.batch = b.N+uint64(len(b.Programs)), *b
}

// TestProgramsFollowed: every program that chips report to the real ttnn is received
// once, with its length, its name and its pause, on its chip.
func TestProgramsFollowed(t *testing.T) {
	hermetic.Long(t)
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
			before := uint64(0)
			eventually(t, "operations have names", func() bool { // they are read with the next pages
				chip.Program(1, 300, 700)
				chip.Program(2, 100, 50)
				before += 2
				ops := f.work(t, before)[0].Ops
				return isOld(release) || hasOp(ops, "eltwise/binary_ng", 1) && hasOp(ops, "eltwise/unary", 1)
			})
			r := receive(t, s, everyone)
			const rounds = 2000
			for range rounds {
				chip.Program(1, 300, 700)
				chip.Record(0, 5, 6) // a program without an id is none
				chip.Program(2, 100, 50)
			}
			f.work(t, 2*rounds+before)
			r.upTo(time.Now())
			if len(r.chips) != 1 || r.missed != 0 || r.lost != 0 {
				t.Fatalf("%d chips, %d missed, %d lost", len(r.chips), r.missed, r.lost)
			}
			for id, c := range r.chips {
				checkFollowed(t, c, 2*rounds, !isOld(release))
				if want := f.claimed()[0]; id != want.Chip || c.batch.PID != f.PID || c.batch.StartTicks != want.Process.StartTicks || c.batch.Process == "" || c.batch.From != before+1 {
					t.Errorf("chip %d, %+v", id, c.batch)
				}
			}
		})
	}
}

// checkFollowed compares programs with those that were fed in turn: 700 ns after a
// pause of 300, 50 ns after a pause of 100.
func checkFollowed(t *testing.T, c *receivedChip, n int, named bool) {
	t.Helper()
	if len(c.programs) != n {
		t.Fatalf("%d programs, want %d", len(c.programs), n)
	}
	moved := 0
	for i := range c.programs {
		p := &c.programs[i]
		length, pause, name := int64(700), int64(300), "eltwise/binary_ng"
		if i%2 == 1 {
			length, pause, name = 50, 100, "eltwise/unary"
		}
		if p.Length != length || named && p.Name != name {
			t.Fatalf("program %d: %+v", i, *p)
		}
		if i == 0 {
			continue
		}
		switch between := p.Start - c.programs[i-1].End(); {
		case between < 0:
			t.Fatalf("program %d begins %d ns before the end of the one before", i, -between)
		case between != pause:
			moved++
		}
	}
	// The feed's clock does not run as fast as the host's, so places are corrected
	// between batches.
	if moved > n/4 {
		t.Errorf("%d of %d pauses are not as they were fed", moved, n)
	}
}

// TestTwoChipsFollowed: each chip has its own programs, by its own clock.
func TestTwoChipsFollowed(t *testing.T) {
	s := watch(t, Options{})
	r := receive(t, s, everyone)
	f := startFed(t, s, ttnn.Newest, 2, 1.35)
	for range 500 {
		f.feed.Chips[0].Program(1, 0, 1350)
		f.feed.Chips[1].Program(1, 1350, 2700)
	}
	got := f.work(t, 500, 500)
	r.upTo(time.Now())
	for i, length := range []int64{1000, 2000} {
		c := r.chips[got[i].Chip]
		if c == nil || len(c.programs) != 500 || r.missed != 0 {
			t.Fatalf("chip %d: %+v, %d missed", i, c, r.missed)
		}
		for _, p := range c.programs {
			if d := p.Length - length; d < -1 || d > 1 {
				t.Fatalf("chip %d: %+v", i, p)
			}
		}
	}
}

// TestLastProgramsOfAProcess: what a process reported before it was killed is
// received, although it is gone.
func TestLastProgramsOfAProcess(t *testing.T) {
	s := watch(t, Options{})
	program, library := fake(t)
	r := receive(t, s, everyone)
	w := startFake(t, exec.Command(program, library))
	eventually(t, "the library is watched", func() bool { _, ok := s.Find(w.pid); return ok })
	w.do("make %d 5", 1<<20)
	w.do("report 3 0 100")
	w.end()
	eventually(t, "it is gone", func() bool { _, ok := s.Find(w.pid); return !ok })
	r.upTo(time.Now())
	if c := r.chips[5]; c == nil || len(c.programs) != 300 || r.missed != 0 || c.programs[299].Length != 70 {
		t.Errorf("%+v, %d missed", r.chips, r.missed)
	}
}

// TestWhoFollowsPrograms: a client receives the programs that it may see, nothing is
// kept of others, and nothing when the last one has left.
func TestWhoFollowsPrograms(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to play several users")
	}
	s := watch(t, Options{})
	program, library := fake(t)
	forAll(filepath.Dir(program))
	of := func(uid int) func(pid, owner int) bool { return func(_, owner int) bool { return owner == uid } }
	all, user := receive(t, s, everyone), receive(t, s, of(60000))
	own, theirs := startFake(t, exec.Command(program, library)), startAs(t, program, library, 60000)
	for i, w := range []*workload{own, theirs} {
		eventually(t, "the library is watched", func() bool { _, ok := s.Find(w.pid); return ok })
		w.do("make %d %d", 1<<20, 5+i)
		w.do("report 1 0 10")
	}
	all.upTo(time.Now())
	user.upTo(time.Now())
	if len(all.chips) != 2 || len(user.chips) != 1 || user.chips[6] == nil {
		t.Errorf("root received %v, the user %v", all.chips, user.chips)
	}
	all.f.Close()
	own.do("report 1 0 10")
	user.upTo(time.Now())
	s.mu.Lock()
	logs := len(s.accounts.programs.logs)
	s.mu.Unlock()
	if logs != 1 {
		t.Errorf("%d logs are kept for one user's process", logs)
	}
	user.f.Close()
	for _, w := range []*workload{own, theirs} {
		w.do("report 1 0 10")
	}
	s.Sync()
	if state := s.programRoom.State(); state.Used != 0 || s.accounts.programs != nil {
		t.Errorf("without a follower: %+v", state)
	}
	late := receive(t, s, everyone)
	late.upTo(time.Now())
	own.do("report 1 0 7")
	late.upTo(time.Now())
	if c := late.chips[5]; c == nil || len(c.programs) != 7 || late.missed != 0 || len(late.chips) != 1 {
		t.Errorf("who comes later received %+v, %d missed", late.chips, late.missed)
	}
}

// feedLog adds programs of a process to the account, as the reader of pages does.
func feedLog(a *accounts, pid uint32, chip uint32, n int) {
	p := a.process(pid)
	a.followPrograms(p)
	b := pages.Batch{Time: time.Now().UnixNano(), Chip: chip, Ticks: 1, Pages: make([]byte, n*pages.PageBytes)}
	for i := range n {
		b.Pages[i*pages.PageBytes+8], b.Pages[i*pages.PageBytes+20] = 1, 9
	}
	p.work.Add(&b)
}

// TestSlowFollower: one that does not read has bounded memory kept for it, learns how
// many it missed, and takes nothing from the processes of others.
func TestSlowFollower(t *testing.T) {
	s := newSource(Options{}, &kernel{})
	s.programRoom = budget.NewPool("followed_programs", budget.Limit{PerUID: 2048, All: 4096}, nil)
	f := s.FollowPrograms(everyone)
	self := uint32(os.Getpid())
	feedLog(s.accounts, self, 3, 10)
	f.decide()
	const flood = 20_000
	for range 20 {
		feedLog(s.accounts, self, 3, flood/20)
	}
	for chip := range uint32(200) {
		feedLog(s.accounts, self, chip, 1)
	}
	if used := s.programRoom.State().Used; used > 4096 || used == 0 {
		t.Errorf("%d programs are kept", used)
	}
	f.decide()
	got, missed := map[uint32]int{}, map[uint32]uint64{}
	for f.more = true; f.more; {
		for _, m := range f.read(time.Now().Add(time.Hour)) {
			got[m.Batch.Number] += len(m.Batch.Programs)
			missed[m.Batch.Number] += m.Batch.N - m.Batch.From
		}
	}
	if n := got[3] + int(missed[3]); n != flood+11 || missed[3] == 0 || got[3] == 0 {
		t.Errorf("received %d, missed %d of %d", got[3], missed[3], flood+11)
	}
	for chip := range uint32(200) {
		if chip != 3 && got[chip]+int(missed[chip]) != 1 {
			t.Fatalf("chip %d: received %d, missed %d", chip, got[chip], missed[chip])
		}
	}
	f.Close()
	if used := s.programRoom.State().Used; used != 0 {
		t.Errorf("%d programs are kept for no one", used)
	}
}

// TestProgramsAfterTheEnd: what is kept of a process that has ended is dropped after a
// while, read or not.
func TestProgramsAfterTheEnd(t *testing.T) {
	s := newSource(Options{}, &kernel{})
	f := s.FollowPrograms(everyone)
	defer f.Close()
	feedLog(s.accounts, 7, 0, 10)
	p := s.accounts.process(7)
	s.accounts.remove(p)
	got := s.accounts.exitedProcess(7, time.Now().Add(-time.Millisecond).UnixNano())
	if got == nil || got.work != p.work {
		t.Fatalf("its last pages belong to %+v", got)
	}
	s.accounts.followPrograms(got)
	got.work.Add(&pages.Batch{Time: time.Now().UnixNano(), Ticks: 1, Pages: append(make([]byte, 8), append([]byte{1}, make([]byte, 55)...)...)})
	if got.work.Chips[0].Programs != 11 {
		t.Errorf("%d programs", got.work.Chips[0].Programs)
	}
	if got := s.accounts.exitedProcess(7, time.Now().Add(time.Minute).UnixNano()); got != nil {
		t.Error("pages of another process with its pid belong to it")
	}
	f.decide()
	t0 := s.accounts.programs
	if t0.clean(time.Now()); len(t0.logs) != 1 {
		t.Fatalf("%d logs", len(t0.logs))
	}
	t0.clean(time.Now().Add(2 * lateRead))
	if len(t0.logs)+len(t0.live)+len(t0.exited)+len(f.at) != 0 || s.programRoom.State().Used != 0 {
		t.Errorf("%+v is left", t0)
	}
}

// TestExecEndsPrograms: another program in the same process begins its own log.
func TestExecEndsPrograms(t *testing.T) {
	s := newSource(Options{}, &kernel{})
	f := s.FollowPrograms(everyone)
	defer f.Close()
	feedLog(s.accounts, 7, 0, 10)
	s.accounts.forget(s.accounts.process(7), 1)
	feedLog(s.accounts, 7, 0, 4)
	f.decide()
	var n []int
	for _, m := range f.read(time.Now().Add(time.Minute)) {
		n = append(n, len(m.Batch.Programs))
	}
	if len(n) != 2 || n[0] != 10 || n[1] != 4 {
		t.Errorf("received %v", n)
	}
}

// TestFollowerEnds: it ends with its client, and with the source.
func TestFollowerEnds(t *testing.T) {
	s := newSource(Options{}, &kernel{})
	ctx, cancel := context.WithCancel(context.Background())
	f := s.FollowPrograms(everyone)
	defer f.Close()
	if _, err := f.Next(ctx); err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := f.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	close(s.ended)
	if _, err := f.Next(context.Background()); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// TestDroppedWhileDecided: a follower keeps nothing of a log that is dropped while it
// is decided who may see it.
func TestDroppedWhileDecided(t *testing.T) {
	s := newSource(Options{}, &kernel{})
	f := s.FollowPrograms(func(int, int) bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		if p := s.accounts.processes[7]; p != nil {
			s.accounts.remove(p)
		}
		s.accounts.programs.clean(time.Now().Add(2 * lateRead))
		return true
	})
	defer f.Close()
	feedLog(s.accounts, 7, 0, 10)
	f.decide()
	if len(f.at) != 0 {
		t.Errorf("%d logs are still known", len(f.at))
	}
}

// TestReusedPid: a log is no user's where the pid is another process's by now.
func TestReusedPid(t *testing.T) {
	for name, c := range map[string]struct {
		start uint64
		want  int
	}{"same process": {0, os.Getuid()}, "another process": {1, -1}} {
		t.Run(name, func(t *testing.T) {
			s := newSource(Options{}, &kernel{})
			defer s.FollowPrograms(everyone).Close()
			pid := uint32(os.Getpid())
			s.accounts.process(pid).Start = c.start
			feedLog(s.accounts, pid, 0, 1)
			if got := s.accounts.programs.logs[0].uid; got != c.want {
				t.Errorf("the log belongs to user %d, want %d", got, c.want)
			}
		})
	}
}

// TestNamelessPrograms: programs that wait for their names delay the time up to which
// all has been sent, and do not stop it.
func TestNamelessPrograms(t *testing.T) {
	s := newSource(Options{}, &kernel{})
	f := s.FollowPrograms(everyone)
	defer f.Close()
	p := s.accounts.process(7)
	s.accounts.followPrograms(p)
	page := make([]byte, pages.PageBytes)
	page[8], page[20] = 1, 9
	began := time.Now().UnixNano()
	p.work.Add(&pages.Batch{Time: time.Now().Add(time.Minute).UnixNano(), Ticks: 1, Pages: page, Sources: []uint64{0xaaaa}})
	list, err := f.Next(t.Context())
	if err != nil || len(list) != 1 || list[0].Batch != nil || list[0].UpTo >= began || list[0].UpTo < began-int64(pages.MaxHeld) {
		t.Errorf("%+v %v, want a time before %d", list, err, began)
	}
}

// TestProgramsBetweenNonsense: programs between those whose times cannot be true are
// sent at once.
func TestProgramsBetweenNonsense(t *testing.T) {
	s := newSource(Options{}, &kernel{})
	f := s.FollowPrograms(everyone)
	defer f.Close()
	p := s.accounts.process(7)
	s.accounts.followPrograms(p)
	b := pages.Batch{Time: time.Now().UnixNano(), Ticks: 1}
	for range 20 {
		nonsense, good := make([]byte, pages.PageBytes), make([]byte, pages.PageBytes)
		nonsense[8], nonsense[19] = 1, 0x70 // ends in 250 years
		good[8], good[20] = 1, 9
		b.Pages = slices.Concat(b.Pages, nonsense, good)
	}
	p.work.Add(&b)
	f.decide()
	got := 0
	for _, m := range f.read(time.Now().Add(time.Hour)) {
		got += len(m.Batch.Programs)
	}
	if got != 20 || f.held || f.more {
		t.Errorf("%d programs, held %v, more %v", got, f.held, f.more)
	}
}
