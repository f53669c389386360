package ledger

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/ttmon/ttmon/internal/model"
)

// A table that grows to many slabs and shrinks again in random order keeps
// every entry findable and gives its memory back.
func TestTableGrowsAndShrinks(t *testing.T) {
	const n = 20_000
	table := newTable(newArena(n))
	defer table.arena.close()
	order := rand.New(rand.NewPCG(1, 2)).Perm(n)
	for _, i := range order {
		_, head := table.find(buffer, uint16(i%3), uint64(i)*32)
		table.insert(buffer, uint16(i%3), uint64(i)*32, head).size = uint64(i) + 1
	}
	check := func(from int) {
		t.Helper()
		for at, i := range order {
			e, _ := table.find(buffer, uint16(i%3), uint64(i)*32)
			if at < from != (e == nil) || e != nil && e.size != uint64(i)+1 {
				t.Fatalf("with %d removed, entry %d is %v", from, i, e)
			}
		}
	}
	check(0)
	for _, k := range []entry{{kind: buffer, id: 32}, {kind: circular}} {
		if e, _ := table.find(k.kind, k.dev, k.id); e != nil {
			t.Errorf("an entry is found under another device or kind: %+v", e)
		}
	}
	for at, i := range order {
		_, link := table.find(buffer, uint16(i%3), uint64(i)*32)
		table.remove(link)
		if at == n/2 {
			check(n/2 + 1)
		}
	}
	check(n)
	held := 0
	for _, s := range table.slabs {
		held += len(s.entries)
	}
	if held > slabLen || table.buckets > 2*firstLen || len(table.heads) != 1 {
		t.Errorf("an empty table keeps %d entries, %d buckets in %d chunks", held, table.buckets, len(table.heads))
	}
}

// Readers may look at any time.
func TestReadersBesideWriters(t *testing.T) {
	l := New(Options{})
	var wg sync.WaitGroup
	for pid := range 3 {
		wg.Go(func() {
			p := l.Open(Info{ProcessID: model.ProcessID{PID: pid}}, t0)
			events := make([]Event, 0, 64)
			for round := range uint64(200) {
				events = events[:0]
				for i := range uint64(32) {
					events = append(events, alloc(0, (round*32+i)*32, 10, dram), free(0, ((round-1)*32+i)*32))
				}
				l.Apply(p, events, t0)
			}
			if pid == 0 {
				l.End(p, "exited", t0, nil)
			}
		})
	}
	for range 200 {
		for _, h := range l.Processes() {
			seen := map[uint64]bool{}
			l.Walk(h.ProcessID, func(b Buffer) bool {
				if seen[b.ID] {
					t.Errorf("buffer %#x seen twice", b.ID)
				}
				seen[b.ID] = true
				return true
			})
		}
		l.Devices()
	}
	wg.Wait()
	l.Wait()
	if got := l.Device(0).Bytes[dram]; got != 2*32*10 {
		t.Errorf("device holds %d, want %d", got, 2*32*10)
	}
}
