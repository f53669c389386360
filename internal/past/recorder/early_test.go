package recorder

import (
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/past/recording"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// A list whose pool is not known for long, or is none that is accounted for,
// takes no more memory than its live blocks; what it held is told in the end.
func TestPoolKnownLate(t *testing.T) {
	for _, tt := range []struct {
		name   string
		first  ledgerfile.Pool // what the list is said to be when it is made
		then   ledgerfile.Pool
		allocs int
	}{
		{"known late", ledgerfile.PoolUnknown, ledgerfile.DRAM, 2},
		{"never known", ledgerfile.PoolUnknown, ledgerfile.PoolUnknown, 0},
		{"not accounted for", 2, 2, 0},
		{"not accounted for, known late", ledgerfile.PoolUnknown, 2, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			begun := time.Now()
			r := newRecorded(t, begun)
			p := r.process("ledger", fromLedger, begun, recording.Process{PID: 1, Method: recording.ByLedger})
			tell := func(e ledgerfile.Event) {
				e.Time, e.List = begun, 1
				r.ledgerEvent(p, &e, &ledgerfile.Ledger{})
			}
			tell(ledgerfile.Event{Kind: ledgerfile.EventMade, Pool: tt.first, Tag: 1, Bytes: 1 << 30, Asked: 32})
			tell(ledgerfile.Event{Kind: ledgerfile.EventAlloc, Address: 64, Bytes: 64})
			tell(ledgerfile.Event{Kind: ledgerfile.EventAsked, Address: 64, Asked: 33})
			for range 10 * fewEarly {
				tell(ledgerfile.Event{Kind: ledgerfile.EventAlloc, Address: 4096, Bytes: 128})
				tell(ledgerfile.Event{Kind: ledgerfile.EventFree, Address: 4096})
			}
			tell(ledgerfile.Event{Kind: ledgerfile.EventAlloc, Address: 4096, Bytes: 256})
			if n := len(p.lists[1].early); n > fewEarly {
				t.Errorf("%d events wait, more than %d", n, fewEarly)
			}
			tell(ledgerfile.Event{Kind: ledgerfile.EventPool, Pool: tt.then})
			_, c := r.end(t)
			held := map[uint64][2]uint64{}
			for _, id := range c.Lists() {
				_, live, _ := c.List(id)
				for b := range live.All() {
					held[b.Addr] = [2]uint64{b.Size, b.Asked}
				}
			}
			if len(held) != tt.allocs {
				t.Fatalf("it holds %v, want %d blocks", held, tt.allocs)
			}
			if tt.allocs > 0 && (held[64] != [2]uint64{64, 33} || held[4096] != [2]uint64{256, 0}) {
				t.Errorf("it holds %v", held)
			}
		})
	}
}
