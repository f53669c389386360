package track

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/hostfs/proc"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/lib/ledgerfile"
	"github.com/ttmon/ttmon/lib/libtest"
)

// built is the folder with the driver, built once.
var built string

func TestMain(m *testing.M) {
	hermetic.Enter(hermetic.Options{}) // sanitizers, and the real ttnn
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "ttmon-track-*")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		if _, err := libtest.Compiler(); err == nil && os.Getenv(reportsVar) == "" { // a test's child needs none
			if err := libtest.Build(dir, "plain"); err != nil {
				panic(err)
			}
			built = dir
		}
		return m.Run()
	}())
}

// driver starts a driver whose ledgers are in a folder of its own.
func driver(t *testing.T, env ...string) (*libtest.Driver, string) {
	t.Helper()
	if built == "" {
		t.Skip("no C compiler")
	}
	dir := t.TempDir()
	cmd := exec.Command(filepath.Join(built, "driver"))
	cmd.Env = append(append(os.Environ(), "TTMON_DIR="+dir), env...)
	d, err := libtest.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Kill)
	return d, dir
}

func do(t *testing.T, d *libtest.Driver, want, format string, args ...any) {
	t.Helper()
	got, err := d.Do(format, args...)
	if err != nil {
		t.Fatalf("%s: %v", format, err)
	}
	if got != want {
		t.Fatalf("%s: it says %q, want %q", format, got, want)
	}
}

// one is the only process that a reader finds.
func one(t *testing.T, r *Reader) Process {
	t.Helper()
	s := r.Read(nil)
	if len(s.Processes) != 1 || len(s.Failures) > 0 {
		t.Fatalf("found %d processes, %d ended, failures %v", len(s.Processes), len(s.Ended), s.Failures)
	}
	return s.Processes[0]
}

// ledgersIn lists the ledgers in a folder.
func ledgersIn(t *testing.T, dir string) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, ledgerfile.Prefix+"*"))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestLiveProcess(t *testing.T) {
	d, dir := driver(t)
	r := NewReader(Options{Dir: dir})
	defer r.Close()
	if s := r.Read(nil); len(s.Processes) != 0 {
		t.Fatalf("a process without lists has a ledger: %+v", s)
	}
	do(t, d, "1", "list 77 0")
	do(t, d, "0", "alloc 1 4096 100")
	do(t, d, "ok", "push kv-cache")
	do(t, d, "0", "alloc 1 8192 64")
	do(t, d, "ok", "pop")
	p := one(t, r)
	if p.PID != d.Cmd.Process.Pid || p.Start == 0 || p.Start != p.Ledger.StartTicks {
		t.Errorf("process %d, start %d; it is %d and says %d", p.PID, p.Start, d.Cmd.Process.Pid, p.Ledger.StartTicks)
	}
	if len(p.State.Allocators) != 1 || len(p.State.Allocators[0].Chips) != 1 || p.State.Allocators[0].Chips[0] != 77 {
		t.Fatalf("allocators: %+v", p.State.Allocators)
	}
	list := p.State.Allocators[0].Lists[0]
	if u := list.Usage(); u.BankBytes != 128+64 || u.Blocks != 2 || !list.Exact() {
		t.Errorf("usage %+v, exact %v; 100 bytes are rounded to 128", u, list.Exact())
	}
	b, ok := list.At(8192)
	if !ok || p.Ledger.Sites[b.Site].Tag != "kv-cache" {
		t.Errorf("block at 8192: %v, tag %q", ok, p.Ledger.Sites[b.Site].Tag)
	}
	if again := one(t, r); again.State != p.State {
		t.Error("an unchanged ledger was decoded again")
	}
	do(t, d, "0", "free 1 4096")
	if u := one(t, r).State.Allocators[0].Lists[0].Usage(); u.Blocks != 1 {
		t.Errorf("after a free: %+v", u)
	}
	if err := d.End(); err != nil {
		t.Fatal(err)
	}
	if s := r.Read(nil); len(s.Processes)+len(s.Ended)+len(s.Failures) != 0 {
		t.Errorf("a process that ended in good order left %+v", s)
	}
}

func TestKilledProcessIsToldOnce(t *testing.T) {
	d, dir := driver(t)
	do(t, d, "1", "list 77 0")
	do(t, d, "0", "alloc 1 4096 64")
	first, second := NewReader(Options{Dir: dir}), NewReader(Options{Dir: dir, Remove: true})
	defer first.Close()
	defer second.Close()
	one(t, first)
	one(t, second)
	d.Kill()
	for _, c := range []struct {
		name string
		*Reader
	}{{"without the right to remove", first}, {"with it", second}} { // in this order: the second takes it away
		name, r := c.name, c.Reader
		s := r.Read(nil)
		if len(s.Ended) != 1 || len(s.Processes) != 0 || s.Ended[0].Ledger.Lists[1].Live.Bytes != 64 {
			t.Errorf("%s: ended %+v", name, s.Ended)
		}
		if s := r.Read(nil); len(s.Ended)+len(s.Processes) != 0 {
			t.Errorf("%s: told again", name)
		}
	}
	if list := ledgersIn(t, dir); len(list) != 0 {
		t.Errorf("not removed: %v", list)
	}
}

// What a process left stays for other readers as long as it is to, and is removed then.
func TestRemovedLater(t *testing.T) {
	d, dir := driver(t)
	do(t, d, "1", "list 77 0")
	r := NewReader(Options{Dir: dir, Remove: true, RemoveAfter: time.Hour})
	defer r.Close()
	one(t, r)
	d.Kill()
	for range 2 {
		if r.Read(nil); len(ledgersIn(t, dir)) != 1 {
			t.Fatal("it was removed at once")
		}
	}
	r.opts.RemoveAfter = time.Nanosecond
	if r.Read(nil); len(ledgersIn(t, dir)) != 0 {
		t.Error("it was not removed later")
	}
}

// A forked child has its parent's memory and none of its device memory; what
// it allocates itself is its own.
func TestFork(t *testing.T) {
	d, dir := driver(t)
	do(t, d, "1", "list 77 0")
	do(t, d, "0", "alloc 1 4096 64")
	r := NewReader(Options{Dir: dir})
	defer r.Close()
	do(t, d, "child -1", "fork\nfree 1 4096") // the parent waits; its list is not the child's
	p := one(t, r)
	if p.PID != d.Cmd.Process.Pid || p.Ledger.Lists[1].Live.Bytes != 64 {
		t.Errorf("the child changed its parent's ledger: %+v", p.Ledger.Lists[1])
	}
	do(t, d, "1", "list 5 0")
	do(t, d, "0", "alloc 1 8192 128")
	s := r.Read(nil)
	if len(s.Processes) != 2 {
		t.Fatalf("%d processes, want parent and child", len(s.Processes))
	}
	child := s.Processes[1]
	if child.PID == d.Cmd.Process.Pid {
		child = s.Processes[0]
	}
	if child.Ledger.Lists[1].Live.Bytes != 128 || child.Ledger.Chips[0].ID != 5 {
		t.Errorf("the child's ledger: %+v", child.Ledger)
	}
	if err := d.Tell("abandon"); err != nil { // the child; the parent continues
		t.Fatal(err)
	}
	if got, err := d.Answer(); err != nil || got != "ok" {
		t.Fatalf("the parent says %q, %v", got, err)
	}
	if s := r.Read(nil); len(s.Processes) != 1 || len(s.Ended) != 1 {
		t.Errorf("after the child: %d live, %d ended", len(s.Processes), len(s.Ended))
	}
}

func TestExecEndsTheLedger(t *testing.T) {
	d, dir := driver(t)
	do(t, d, "1", "list 77 0")
	r := NewReader(Options{Dir: dir})
	defer r.Close()
	one(t, r)
	do(t, d, "-", "exec\npath")
	if s := r.Read(nil); len(s.Ended) != 1 || len(s.Processes) != 0 {
		t.Errorf("%d ended, %d live: pid and start time are the same after exec, the ledger is not", len(s.Ended), len(s.Processes))
	}
}

// A program that closes all descriptors loses its lock, and is alive.
func TestClosedDescriptors(t *testing.T) {
	d, dir := driver(t)
	do(t, d, "1", "list 77 0")
	do(t, d, "ok", "closefds")
	do(t, d, "ok", "steal")
	r := NewReader(Options{Dir: dir})
	defer r.Close()
	if p := one(t, r); p.PID != d.Cmd.Process.Pid {
		t.Errorf("pid %d, want %d", p.PID, d.Cmd.Process.Pid)
	}
	// Growing finds the file again, and does not touch who has its number now.
	do(t, d, "ok", "storm 2 1 20000")
	if p := one(t, r); len(p.Ledger.Lists) < 4 || p.Ledger.Flags&ledgerfile.Full != 0 {
		t.Errorf("after growing: %d lists, flags %b", len(p.Ledger.Lists), p.Ledger.Flags)
	}
	d.Kill()
	if s := r.Read(nil); len(s.Ended) != 1 {
		t.Errorf("after its end: %d ended, %d live", len(s.Ended), len(s.Processes))
	}
}

// A forged file speaks for no process.
func TestForgery(t *testing.T) {
	d, dir := driver(t)
	do(t, d, "1", "list 77 0")
	do(t, d, "0", "alloc 1 4096 64")
	path, err := d.Do("path")
	if err != nil {
		t.Fatal(err)
	}
	image, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ledgerfile.Prefix+"1-0123456789abcdef"), image, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, make := range map[string]func(string) error{
		"fifo":    func(p string) error { return unix.Mkfifo(p, 0o600) },
		"link":    func(p string) error { return os.Symlink(path, p) },
		"folder":  func(p string) error { return os.Mkdir(p, 0o700) },
		"garbage": func(p string) error { return os.WriteFile(p, []byte(strings.Repeat("garbage ", 1000)), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			if err := make(filepath.Join(dir, ledgerfile.Prefix+name)); err != nil {
				t.Fatal(err)
			}
		})
	}
	r := NewReader(Options{Dir: dir})
	defer r.Close()
	s := r.Read(nil)
	if len(s.Processes) != 1 || s.Processes[0].Path != path {
		t.Errorf("processes: %+v", s.Processes)
	}
	if len(s.Failures) != 4 {
		t.Errorf("failures: %+v", s.Failures)
	}
}

func TestRunsAreLeftToTheirOwner(t *testing.T) {
	self := RunName(os.Getpid(), ownStart(t), 7)
	gone := RunName(os.Getpid(), ownStart(t)+1, 7) // another process had our number
	for _, run := range []string{self, gone} {
		d, dir := driver(t, "TTMON_RUN="+run)
		do(t, d, "1", "list 77 0")
		d.Kill()
		other, owner := NewReader(Options{Dir: dir, Remove: true}), NewReader(Options{Dir: dir, Run: run})
		s := other.Read(nil)
		if got := len(s.Ended) == 0; got != (run == self) {
			t.Errorf("run %s: others told its end: %v", run, !got)
		}
		if run == self && len(owner.Read(nil).Ended) != 1 {
			t.Error("the run itself does not see its process")
		}
		other.Close()
		owner.Close()
	}
}

// ownStart is when this process started.
func ownStart(t *testing.T) uint64 {
	t.Helper()
	st, err := proc.ReadStat(hostfs.Root{}, os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	return st.Start
}

// kills is how often a process is killed at a random moment.
const kills = 2000

// TestKilledAtAnyMoment kills a process that allocates as fast as it can, again
// and again. Whatever it was doing, what it leaves can be read, every block in
// it is one that it had, and sums and blocks agree.
func TestKilledAtAnyMoment(t *testing.T) {
	hermetic.Long(t)
	if built == "" {
		t.Skip("no C compiler")
	}
	dir := t.TempDir()
	n := kills
	if testing.Short() {
		n = 100
	}
	var cut, moving, read int
	for i := range n {
		cmd := exec.Command(filepath.Join(built, "driver"), "storm", "2", "1")
		cmd.Env = append(os.Environ(), "TTMON_DIR="+dir)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		r := NewReader(Options{Dir: dir, Remove: true})
		deadline := time.Now().Add(time.Duration(rand.IntN(3000)) * time.Microsecond)
		for time.Now().Before(deadline) {
			for _, p := range r.Read(nil).Processes {
				check(t, p.Ledger)
				read++
				if p.Ledger.Moving {
					moving++
				}
			}
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		s := r.Read(nil)
		if len(s.Processes) > 0 || len(s.Failures) > 0 {
			t.Fatalf("kill %d: alive %+v, failures %+v", i, s.Processes, s.Failures)
		}
		for _, e := range s.Ended {
			check(t, e.Ledger)
			if e.Ledger.Cut {
				cut++
			}
		}
		r.Close()
		if t.Failed() {
			t.Fatalf("kill %d", i)
		}
		// One that was killed before its ledger began leaves rubbish.
		for _, path := range ledgersIn(t, dir) {
			if _, err := ledgerfile.ReadFile(path); err == nil {
				t.Fatalf("kill %d: %s was not removed", i, path)
			}
			os.Remove(path)
		}
	}
	t.Logf("%d kills, %d of them in the middle of a change; %d reads of the living, %d of them moving", n, cut, read, moving)
	if cut == 0 {
		t.Error("no kill hit a change: the test does not test what it should")
	}
}

// check checks a ledger of the driver's storm.
func check(t *testing.T, l *ledgerfile.Ledger) {
	t.Helper()
	sums := make([]ledgerfile.Sum, len(l.Lists))
	for _, b := range l.Blocks {
		if b.Bytes != libtest.BlockBytes(b.Address) || b.Address%4096 != 0 || b.Address >= 512*4096 {
			t.Errorf("a block that was never there: address %d, %d bytes", b.Address, b.Bytes)
		}
		if tag := "layer " + string(rune('0'+b.Address/4096%10)); l.Sites[b.Site].Tag != tag {
			t.Errorf("block at %d has tag %q, want %q", b.Address, l.Sites[b.Site].Tag, tag)
		}
		s := &sums[l.Sites[b.Site].List]
		s.Bytes += b.Bytes
		s.Blocks++
	}
	for i, x := range l.Lists {
		if x.Live != sums[i] {
			t.Errorf("list %d says %+v, its blocks are %+v (cut %v, moving %v)", i, x.Live, sums[i], l.Cut, l.Moving)
		}
		if x.Live.Bytes > x.Peak.Bytes {
			t.Errorf("list %d holds %d, its peak is %d", i, x.Live.Bytes, x.Peak.Bytes)
		}
	}
	if l.Moving {
		return // an address may be seen twice: freed, and given to another slot
	}
	for _, a := range State(l, 1, 1).Allocators {
		for _, list := range a.Lists {
			if list.Contradictions > 0 {
				t.Errorf("%d blocks over others", list.Contradictions)
			}
		}
	}
}

// What is kept about peaks at each event equals a replay of all of them.
func TestPeaks(t *testing.T) {
	d, dir := driver(t)
	do(t, d, "1", "list 77 0")
	rng := rand.New(rand.NewPCG(1, 2))
	type block struct {
		bytes uint64
		tag   string
	}
	live := map[uint64]block{}
	var sum, peak uint64
	atPeak := map[string]uint64{}
	r := NewReader(Options{Dir: dir})
	defer r.Close()
	for i := range 3000 {
		address := uint64(rng.IntN(200)) * 4096
		if _, ok := live[address]; ok {
			do(t, d, "0", "free 1 %d", address)
			sum -= live[address].bytes
			delete(live, address)
		} else {
			b := block{uint64(1+rng.IntN(60)) * 64, string(rune('a' + rng.IntN(5)))}
			do(t, d, "ok", "push %s", b.tag)
			do(t, d, "0", "alloc 1 %d %d", address, b.bytes)
			do(t, d, "ok", "pop")
			live[address] = b
			sum += b.bytes
		}
		if i == 2000 {
			do(t, d, "ok", "reset")
			peak = 0
		}
		if sum > peak || i == 2000 {
			peak = sum
			clear(atPeak)
			for _, b := range live {
				atPeak[b.tag] += b.bytes
			}
		}
		if i%250 != 0 && i != 2999 {
			continue
		}
		l := one(t, r).Ledger
		if l.Lists[1].Peak.Bytes != peak || l.Lists[1].Live.Bytes != sum {
			t.Fatalf("event %d: peak %d, live %d; by replay %d, %d", i, l.Lists[1].Peak.Bytes, l.Lists[1].Live.Bytes, peak, sum)
		}
		got := map[string]uint64{}
		for _, s := range l.Sites {
			if s.List == 1 && s.Peak.Bytes > 0 {
				got[s.Tag] += s.Peak.Bytes
			}
		}
		for tag, n := range atPeak {
			if got[tag] != n {
				t.Fatalf("event %d: tag %s had %d at the peak, by replay %d", i, tag, got[tag], n)
			}
		}
		if len(got) != len(atPeak) {
			t.Fatalf("event %d: at the peak %v, by replay %v", i, got, atPeak)
		}
	}
}
