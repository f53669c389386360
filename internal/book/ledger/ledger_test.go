package ledger

import (
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/ttmon/ttmon/internal/base/budget"
	"github.com/ttmon/ttmon/internal/model"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var t0 = time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)

const (
	dram    = uint8(model.DRAM)
	l1      = uint8(model.L1)
	l1Small = uint8(model.L1Small)
	trace   = uint8(model.Trace)
)

func alloc(dev int32, id, size uint64, pool uint8) Event {
	return Event{Op: Alloc, Device: dev, ID: id, Size: size, Pool: pool}
}
func free(dev int32, id uint64) Event { return Event{Op: Free, Device: dev, ID: id} }

// holdingOf is what a process has; nothing where it is not known.
func holdingOf(l *Ledger, k model.ProcessID) (h Holding) {
	for _, x := range l.WithPID(k.PID) {
		if x.ProcessID == k {
			h = x
		}
	}
	return h
}

// Each row of the old server's defects, as far as it is a matter of booking.
func TestRules(t *testing.T) {
	one, two := model.ProcessID{PID: 1, StartTicks: 1}, model.ProcessID{PID: 2, StartTicks: 2}
	type step struct {
		who model.ProcessID
		Event
	}
	cb := func(op Op, id, size uint64) Event { return Event{Op: op, ID: id, Size: size} }
	for name, c := range map[string]struct {
		steps []step
		want  map[int32][NumPools]uint64 // bytes per device
		count func(c *Counters) uint64   // of process one
		odd   uint64
	}{
		"two processes, one address": {
			steps: []step{{one, alloc(0, 4096, 1000, dram)}, {two, alloc(0, 4096, 999, l1)}},
			want:  map[int32][NumPools]uint64{0: {model.DRAM: 1000, model.L1: 999}},
		},
		"the other's buffer is not freed": {
			steps: []step{{one, alloc(0, 4096, 1000, dram)}, {two, free(0, 4096)}, {one, free(0, 8192)}},
			want:  map[int32][NumPools]uint64{0: {model.DRAM: 1000}},
			count: func(c *Counters) uint64 { return c.UnknownFrees }, odd: 1,
		},
		"missed free": {
			steps: []step{{one, alloc(0, 1, 1000, dram)}, {one, alloc(0, 1, 999, l1)}},
			want:  map[int32][NumPools]uint64{0: {model.L1: 999}},
			count: func(c *Counters) uint64 { return c.MissedFrees }, odd: 1,
		},
		"same number in DRAM and L1": {
			steps: []step{
				{one, alloc(0, 0x100000, 5000, dram)},
				{one, alloc(0, 0x100000, 999, l1)},
				{one, free(0, 0x100000)},
			},
			want:  map[int32][NumPools]uint64{0: {model.DRAM: 5000}},
			count: func(c *Counters) uint64 { return c.MissedFrees + c.UnknownFrees }, odd: 0,
		},
		"device 0 in every free": {
			steps: []step{{one, alloc(3, 7, 64, dram)}, {one, alloc(5, 8, 32, dram)}, {one, free(0, 7)}},
			want:  map[int32][NumPools]uint64{3: {}, 5: {model.DRAM: 32}},
			count: func(c *Counters) uint64 { return c.DeviceGuesses }, odd: 1,
		},
		"device 0 in a free that could mean two": {
			steps: []step{{one, alloc(3, 7, 64, dram)}, {one, alloc(5, 7, 32, dram)}, {one, free(0, 7)}},
			want:  map[int32][NumPools]uint64{3: {model.DRAM: 64}, 5: {model.DRAM: 32}},
			count: func(c *Counters) uint64 { return c.UnknownFrees }, odd: 1,
		},
		"device 5 in a free is not guessed": {
			steps: []step{{one, alloc(3, 7, 64, dram)}, {one, free(5, 7)}},
			want:  map[int32][NumPools]uint64{3: {model.DRAM: 64}},
			count: func(c *Counters) uint64 { return c.UnknownFrees }, odd: 1,
		},
		"bounds": {
			steps: []step{
				{one, alloc(0, 1, 0, dram)},
				{one, alloc(0, 2, MaxSize+1, dram)},
				{one, alloc(-1, 3, 1, dram)},
				{one, alloc(MaxDevice+1, 4, 1, dram)},
				{one, alloc(0, 5, 1, uint8(model.CB))},
				{one, alloc(31, 6, MaxSize, trace)},
				{one, alloc(MaxDevice, 6, 2, l1Small)},
			},
			want:  map[int32][NumPools]uint64{31: {model.Trace: MaxSize}, MaxDevice: {model.L1Small: 2}},
			count: func(c *Counters) uint64 { return c.ZeroSizes + c.Oversizes + c.BadDevices + c.BadPools }, odd: 5,
		},
		"host memory is no device memory": {
			steps: []step{{one, alloc(0, 1, 77, uint8(Host))}},
			want:  map[int32][NumPools]uint64{0: {Host: 77}},
		},
		"circular buffer said three times": {
			steps: []step{{one, cb(CBAlloc, 9, 1000)}, {one, cb(CBAlloc, 9, 1000)}, {one, cb(CBAlloc, 9, 1200)}},
			want:  map[int32][NumPools]uint64{0: {model.CB: 1200}},
			count: func(c *Counters) uint64 { return c.CBRepeats }, odd: 2,
		},
		"circular buffer said three times, freed once": {
			steps: []step{{one, cb(CBAlloc, 9, 1000)}, {one, cb(CBAlloc, 9, 1000)}, {one, cb(CBFree, 9, 1000)}},
			want:  map[int32][NumPools]uint64{0: {}},
		},
		"unknown circular buffer": {
			steps: []step{{one, cb(CBFree, 9, 3000)}, {one, cb(CBAlloc, 8, 1)}, {one, cb(CBFree, 9, 3000)}},
			want:  map[int32][NumPools]uint64{0: {model.CB: 1}},
			count: func(c *Counters) uint64 { return c.UnknownCBFrees }, odd: 2,
		},
		"kernel at every dispatch": {
			steps: []step{
				{one, cb(KernelLoad, 5, 2000)}, {one, cb(KernelLoad, 5, 2000)}, {one, cb(KernelLoad, 5, 2000)},
			},
			want:  map[int32][NumPools]uint64{0: {model.Kernel: 2000}},
			count: func(c *Counters) uint64 { return c.KernelRepeats }, odd: 2,
		},
		"kernel unloaded with another size": {
			steps: []step{{one, cb(KernelLoad, 5, 2000)}, {one, cb(KernelUnload, 5, 9999)}},
			want:  map[int32][NumPools]uint64{0: {}},
			count: func(c *Counters) uint64 { return c.SizeDisputes }, odd: 1,
		},
		"one number, three kinds": {
			steps: []step{{one, alloc(0, 9, 1, dram)}, {one, cb(CBAlloc, 9, 2)}, {one, cb(KernelLoad, 9, 4)}, {one, free(0, 9)}},
			want:  map[int32][NumPools]uint64{0: {model.CB: 2, model.Kernel: 4}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := New(Options{})
			p := map[model.ProcessID]*Process{one: l.Open(Info{ProcessID: one}, t0), two: l.Open(Info{ProcessID: two}, t0)}
			for _, s := range c.steps {
				l.Apply(p[s.who], []Event{s.Event}, t0)
			}
			got := map[int32][NumPools]uint64{}
			for _, u := range l.Devices() {
				got[u.Device] = u.Bytes
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("bytes (-want +got):\n%s", diff)
			}
			h := holdingOf(l, one)
			if c.count != nil && c.count(&h.Counters) != c.odd {
				t.Errorf("odd events counted %d, want %d: %+v", c.count(&h.Counters), c.odd, h.Counters)
			}
			l.End(p[one], "test", t0, nil)
			l.End(p[two], "test", t0, nil)
			l.Wait()
			for _, u := range l.Devices() {
				if u.Bytes != [NumPools]uint64{} || u.Count() != 0 {
					t.Errorf("device %d holds %v after everybody died", u.Device, u.Bytes)
				}
			}
		})
	}
}

func TestPeaks(t *testing.T) {
	l := New(Options{})
	p := l.Open(Info{ProcessID: model.ProcessID{PID: 1}}, t0)
	l.Apply(p, []Event{alloc(0, 1, 100, dram), alloc(0, 2, 50, dram), free(0, 1), alloc(0, 3, 10, dram)}, t0)
	h := holdingOf(l, model.ProcessID{PID: 1})
	if u := h.Devices[0]; u.Bytes[dram] != 60 || u.Peak[dram] != 150 || u.Buffers[dram] != 2 {
		t.Errorf("holds %d in %d buffers, at most %d; want 60 in 2, at most 150", u.Bytes[dram], u.Buffers[dram], u.Peak[dram])
	}
}

// The leftovers of a dead process are reported once, and it reports no more.
func TestEnd(t *testing.T) {
	l := New(Options{MaxLeaks: 2})
	info := Info{ProcessID: model.ProcessID{PID: 42, StartTicks: 7}, UID: 1000, Name: "python3"}
	p := l.Open(info, t0)
	l.Apply(p, []Event{alloc(1, 32, 100, dram), alloc(2, 64, 700, l1), alloc(2, 96, 1, uint8(Host))}, t0.Add(time.Second))
	died := t0.Add(time.Minute)
	reported := make(chan Leftovers, 2)
	for range 2 {
		l.End(p, "exited", died, func(f Leftovers) { reported <- f })
	}
	l.Apply(p, []Event{alloc(1, 33, 100, dram)}, died)
	l.Wait()
	if len(reported) != 1 {
		t.Fatalf("reported %d times", len(reported))
	}
	born := t0.Add(time.Second)
	want := Leftovers{
		Seq: 1, Info: info, Died: died, Reason: "exited", Count: 3,
		Bytes: [NumPools]uint64{model.DRAM: 100, model.L1: 700, Host: 1}, Devices: []int32{1, 2},
		Largest: Buffer{Kind: KindBuffer, Device: 2, ID: 64, Size: 700, Pool: model.L1, Born: born}, Oldest: born,
	}
	if diff := cmp.Diff(want, <-reported); diff != "" {
		t.Errorf("leftovers (-want +got):\n%s", diff)
	}
	if want.Total() != 800 {
		t.Errorf("Total is %d, want 800", want.Total())
	}
	if s := l.Stats(); s.Buffers != 0 || s.Processes != 0 {
		t.Errorf("after the end: %+v", s)
	}
	for pid := range 3 { // one more than is kept; a clean one is not reported
		p := l.Open(Info{ProcessID: model.ProcessID{PID: pid}}, t0)
		if pid != 1 {
			l.Apply(p, []Event{alloc(0, 1, 1, dram)}, t0)
		}
		l.End(p, "exited", died, nil)
		l.Wait()
	}
	leaks := l.Leaks()
	if len(leaks) != 2 || leaks[0].PID != 2 || leaks[1].PID != 0 {
		t.Errorf("kept %+v, want pids 2, 0", leaks)
	}
}

// anna is the first of several users, none of whom is root or who runs the tests:
// these have no limits.
var anna = os.Getuid() + 1000

// Users are bounded: each for itself, and all so that root has a reserve.
func TestLimits(t *testing.T) {
	l := New(Options{MaxBuffers: 16}) // 4 for each user, 14 for all but root
	fill := func(pid, uid int, n uint64) (got int, over uint64) {
		p := l.Open(Info{ProcessID: model.ProcessID{PID: pid}, UID: uid}, t0)
		for i := range n {
			l.Apply(p, []Event{alloc(0, 32*i, 10, dram)}, t0)
		}
		h := holdingOf(l, model.ProcessID{PID: pid})
		return h.Buffers, h.Counters.OverLimit
	}
	for _, c := range []struct {
		pid, uid, want int
		over           uint64
	}{
		{pid: 1, uid: anna + 1, want: 3},
		{pid: 2, uid: anna + 1, want: 1, over: 2}, // two processes, one user
		{pid: 3, uid: anna + 2, want: 3},
		{pid: 4, uid: anna + 3, want: 3},
		{pid: 5, uid: anna + 4, want: 3},
		{pid: 6, uid: anna + 5, want: 1, over: 2}, // the reserve
		{pid: 7, uid: 0, want: 2, over: 1},
	} {
		if got, over := fill(c.pid, c.uid, 3); got != c.want || over != c.over {
			t.Errorf("process %d of user %d has %d buffers and %d over the limit, want %d and %d", c.pid, c.uid, got, over, c.want, c.over)
		}
	}
	p := l.Open(Info{ProcessID: model.ProcessID{PID: 1}}, t0)
	if l.Apply(p, []Event{alloc(0, 0, 20, dram)}, t0) {
		t.Error("the change of a buffer that is there was refused")
	}
	if !l.Apply(p, []Event{alloc(0, 1000, 20, dram)}, t0) {
		t.Error("a refusal was not reported")
	}
	s := l.Budget()
	if s.Used != 16 || s.Users[0] != (budget.User{UID: anna + 1, Used: 4, Refused: 3}) {
		t.Errorf("budget %+v", s)
	}
	l.End(p, "exited", t0, nil)
	l.Wait()
	if got, _ := fill(8, anna+5, 3); got != 1 { // root has two of the reserve

		t.Errorf("%d buffers fit after another process has ended, want 1", got)
	}
}

// No process holds more on a device than the largest chip has.
func TestCapacity(t *testing.T) {
	l := New(Options{})
	var capacity [NumPools]uint64
	capacity[dram] = 100
	l.SetCapacity(capacity)
	p := l.Open(Info{}, t0)
	if l.Apply(p, []Event{alloc(0, 32, 60, dram), alloc(1, 32, 100, dram), alloc(0, 64, 1000, l1), alloc(0, 32, 100, dram)}, t0) {
		t.Error("what a chip can hold was refused")
	}
	if !l.Apply(p, []Event{alloc(0, 128, 1, dram)}, t0) {
		t.Error("a refusal was not reported")
	}
	h := holdingOf(l, model.ProcessID{})
	if u := l.Device(0); u.Bytes[dram] != 100 || h.Counters.OverCapacity != 1 {
		t.Errorf("device 0 holds %d, %d refused", u.Bytes[dram], h.Counters.OverCapacity)
	}
	l.Apply(p, []Event{free(0, 32), alloc(0, 128, 1, dram)}, t0)
	if u := l.Device(0); u.Bytes[dram] != 1 {
		t.Errorf("device 0 holds %d after the free, want 1", u.Bytes[dram])
	}
}

// Device numbers are bounded, and are forgotten with those who named them.
func TestDeviceLimits(t *testing.T) {
	l := New(Options{})
	name := func(pid, uid int, from, n int32) (accepted int) {
		p := l.Open(Info{ProcessID: model.ProcessID{PID: pid}, UID: uid}, t0)
		for dev := from; dev < from+n; dev++ {
			l.Apply(p, []Event{alloc(dev, 0, 10, dram), free(dev, 0)}, t0)
		}
		h := holdingOf(l, model.ProcessID{PID: pid})
		return len(h.Devices)
	}
	if got := name(1, anna, 0, 300); got != maxDevices {
		t.Errorf("one process named %d devices, want %d", got, maxDevices)
	}
	total := 0
	for pid := range 100 {
		total += name(1000+pid, anna+1, int32(1000+100*pid), 60)
	}
	if total != oddPerUser {
		t.Errorf("one user named %d odd devices, want %d", total, oddPerUser)
	}
	for uid := range 50 {
		for pid := range 5 {
			name(10_000+10*uid+pid, anna+1000+uid, int32(20_000+500*uid+60*pid), 60)
		}
	}
	if n := len(l.Devices()); n != oddInAll+firstOddDevice {
		t.Errorf("%d devices are known, want %d", n, oddInAll+firstOddDevice)
	}
	if got := name(3, anna+3, 0, 32); got != 32 {
		t.Errorf("a sane process could name %d devices, want 32", got)
	}
	if got := name(4, 0, 60_000, 10); got != 10 {
		t.Errorf("root could name %d devices, want 10", got)
	}
	for _, h := range l.Processes() {
		l.End(l.Open(h.Info, t0), "exited", t0, nil)
	}
	if n := len(l.Devices()); n != 0 || len(l.owners) != 0 || l.oddUses != 0 {
		t.Errorf("%d devices, %d users, %d uses are known after all have ended", n, len(l.owners), l.oddUses)
	}
}

// Many ends of one user do not make others' forgotten.
func TestLeaksOfOthers(t *testing.T) {
	l := New(Options{MaxLeaks: 8})
	end := func(pid, uid int) {
		p := l.Open(Info{ProcessID: model.ProcessID{PID: pid}, UID: uid}, t0)
		l.Apply(p, []Event{alloc(0, 0, 10, dram)}, t0)
		l.End(p, "exited", t0, nil)
		l.Wait()
	}
	end(1, 1000)
	for pid := range 100 {
		end(100+pid, 1001)
	}
	leaks := l.Leaks()
	if len(leaks) != 8 || leaks[7].PID != 1 || leaks[0].PID != 199 {
		t.Errorf("kept %d: %+v", len(leaks), leaks)
	}
}

func TestLargest(t *testing.T) {
	l := New(Options{})
	p := l.Open(Info{ProcessID: model.ProcessID{PID: 1}}, t0)
	for i := range uint64(5000) {
		l.Apply(p, []Event{alloc(int32(i%2), 32*i, 1+i*7919%5000, dram)}, t0)
	}
	got, ok := l.Largest(model.ProcessID{PID: 1}, 3, func(b Buffer) bool { return b.Device == 1 })
	if !ok || len(got) != 3 {
		t.Fatalf("got %v, %v", got, ok)
	}
	last := uint64(1 << 60)
	for _, b := range got {
		if b.Size > last || b.Device != 1 || b.Size < 4990 {
			t.Errorf("unexpected buffer %+v", b)
		}
		last = b.Size
	}
	if _, ok := l.Largest(model.ProcessID{PID: 2}, 3, nil); ok {
		t.Error("buffers of a process that is not there")
	}
}
