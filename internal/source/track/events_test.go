package track

import (
	"math/rand/v2"
	"testing"

	"github.com/ttmon/ttmon/lib/ledgerfile"
	"github.com/ttmon/ttmon/lib/libtest"
)

// follow keeps the blocks of lists by what a process tells.
type follow struct {
	live map[int]map[uint64]ledgerfile.Event
	lost uint64
	tags map[string]int
}

func (f *follow) take(t *testing.T, told []LedgerEvents) {
	t.Helper()
	for _, x := range told {
		f.lost = x.Lost
		if x.Resync != nil {
			f.live = map[int]map[uint64]ledgerfile.Event{}
			for i := range x.Resync.Lists {
				f.live[i] = map[uint64]ledgerfile.Event{}
			}
			for _, b := range x.Resync.Blocks {
				f.live[x.Resync.Sites[b.Site].List][b.Address] = ledgerfile.Event{Bytes: b.Bytes}
			}
		}
		for _, e := range x.Events {
			switch e.Kind {
			case ledgerfile.EventMade:
				f.live[e.List] = map[uint64]ledgerfile.Event{}
			case ledgerfile.EventAlloc:
				f.live[e.List][e.Address] = e
				f.tags[x.Places.Text(e.Tag)]++
			case ledgerfile.EventFree:
				if _, ok := f.live[e.List][e.Address]; !ok {
					t.Errorf("a free of nothing at %d", e.Address)
				}
				delete(f.live[e.List], e.Address)
			case ledgerfile.EventClear:
				f.live[e.List] = map[uint64]ledgerfile.Event{}
			case ledgerfile.EventClosed:
				delete(f.live, e.List)
			}
		}
	}
}

func newFollow() *follow {
	return &follow{live: map[int]map[uint64]ledgerfile.Event{}, tags: map[string]int{}}
}

// What a process tells adds up to what its ledger says, at every look, and
// the last events of one that has ended are read.
func TestEvents(t *testing.T) {
	d, dir := driver(t, "TTMON_EVENTS=1")
	r := NewReader(Options{Dir: dir, Events: true})
	defer r.Close()
	do(t, d, "1", "list 77 0")
	rng := rand.New(rand.NewPCG(3, 4))
	f := newFollow()
	taken := map[uint64]bool{}
	for i := range 2000 {
		address := uint64(rng.IntN(300)) * 4096
		if taken[address] {
			do(t, d, "0", "free 1 %d", address)
		} else {
			do(t, d, "ok", "push tag%d", i%4)
			do(t, d, "0", "alloc 1 %d", address)
			do(t, d, "ok", "pop")
		}
		taken[address] = !taken[address]
		if i%50 != 0 {
			continue
		}
		p := one(t, r)
		f.take(t, r.Events())
		if len(p.Ledger.Blocks) != len(f.live[1]) {
			t.Fatalf("event %d: %d blocks are told, %d are there", i, len(f.live[1]), len(p.Ledger.Blocks))
		}
		for _, b := range p.Ledger.Blocks {
			if e, ok := f.live[1][b.Address]; !ok || e.Bytes != b.Bytes || !e.Time.Equal(b.Born) {
				t.Fatalf("event %d: block at %d: told %+v, there %+v", i, b.Address, e, b)
			}
		}
	}
	if len(f.tags) != 4 || f.lost != 0 {
		t.Errorf("tags %v, lost %d", f.tags, f.lost)
	}
	do(t, d, "2", "list 78 0")
	do(t, d, "ok", "close 2")
	do(t, d, "0", "alloc 1 4096000 64")
	want := 1
	for _, is := range taken {
		if is {
			want++
		}
	}
	if err := d.End(); err != nil {
		t.Fatal(err)
	}
	r.Read(nil)
	f.take(t, r.Events())
	if got := len(f.live[1]); got != want {
		t.Errorf("%d blocks at the end, want %d", got, want)
	}
	r.Read(nil)
	if len(r.files) != 0 {
		t.Error("the file is held after all was read")
	}
}

// Who is too slow for the ring counts what it missed, and knows what holds.
func TestEventsMissed(t *testing.T) {
	d, dir := driver(t, "TTMON_EVENTS=1")
	r := NewReader(Options{Dir: dir, Events: true})
	defer r.Close()
	do(t, d, "1", "list 77 0")
	one(t, r)
	f := newFollow()
	f.take(t, r.Events())
	do(t, d, "ok", "storm 1 1 150001")
	p := one(t, r)
	f.take(t, r.Events())
	if f.lost == 0 {
		t.Fatal("nothing was missed: the test does not test what it should")
	}
	blocks := 0
	for _, list := range f.live {
		blocks += len(list)
	}
	if blocks != len(p.Ledger.Blocks) || blocks == 0 {
		t.Errorf("%d blocks after the resync, %d are there", blocks, len(p.Ledger.Blocks))
	}
	do(t, d, "0", "alloc 1 40960 64")
	f.take(t, r.Events())
	if _, ok := f.live[1][40960]; !ok {
		t.Error("it does not go on after the resync")
	}
}

// While a process tells as fast as it can, every event that is read is whole.
func TestEventsUnderStorm(t *testing.T) {
	d, dir := driver(t, "TTMON_EVENTS=1")
	r := NewReader(Options{Dir: dir, Events: true})
	defer r.Close()
	do(t, d, "1", "list 77 0")
	one(t, r)
	if err := d.Tell("storm 2 1 300000"); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = d.Answer()
	}()
	events := 0
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		for _, x := range r.Events() {
			for _, e := range x.Events {
				events++
				if e.Kind == ledgerfile.EventAlloc && e.List > 1 && e.Bytes != libtest.BlockBytes(e.Address) {
					t.Fatalf("a block that was never there: %+v", e)
				}
			}
		}
	}
	t.Logf("%d events of 600000 were read", events)
	if events == 0 {
		t.Error("none")
	}
}
