package pages

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ttmon/ttmon/internal/book/launches"
)

// followed is a process whose programs are kept, as many as there is room for.
func followed(room int) (p *Process, l *Log) {
	p, l = NewProcess(), &Log{}
	l.Grow = func(n int) bool { room -= n; return room >= 0 }
	p.Logs = func(uint32) *Log { return l }
	return p, l
}

// at adds pages of chip 0 that came so long after now.
func at(p *Process, ms float64, sources []uint64, list ...[]byte) {
	b := Batch{Time: now.UnixNano() + int64(ms*1e6), Ticks: 1, Sources: sources}
	for _, x := range list {
		b.Pages = append(b.Pages, x...)
	}
	p.Add(&b)
}

// lengths are the programs, as start in so many ns and length in ns, from the first
// one on.
func lengths(list []launches.Program, grain int64) (out []string) {
	for i := range list {
		out = append(out, fmt.Sprintf("%d+%d", (list[i].Start-list[0].Start+grain/2)/grain*grain, list[i].Length))
	}
	return out
}

// Programs have their own lengths and order, and their places by the record that
// came soonest, without overlapping.
func TestLaid(t *testing.T) {
	const ms = 1_000_000
	for _, tt := range []struct {
		name string
		feed func(p *Process)
		want []string
		last float64 // ms after now, of the last program's end; 0: not checked
	}{
		{"one batch", func(p *Process) { at(p, 0, nil, of(1, 1000, 1700), of(2, 2000, 2050), of(3, 2050, 2051)) }, []string{"0+700", "1000+50", "1050+1"}, 0},
		{"a record that came late makes no room", func(p *Process) {
			at(p, 1, nil, of(1, 1000, 2000))
			at(p, 50, nil, of(1, 3000, 4000))
		}, []string{"0+1000", "2000+1000"}, 0},
		{"one that came sooner shortens the pause", func(p *Process) {
			at(p, 30, nil, of(1, 0, 10*ms)) // 20 ms late
			at(p, 60, nil, of(1, 59*ms, 60*ms))
		}, []string{"0+10000000", "39000000+1000000"}, 60},
		{"as far as there is one", func(p *Process) {
			at(p, 30, nil, of(1, 0, 10*ms)) // 20 ms late
			at(p, 16, nil, of(1, 15*ms, 16*ms), of(1, 21*ms, 22*ms))
		}, []string{"0+10000000", "10000000+1000000", "11000000+1000000"}, 0},
		{"programs of sub-devices overlap", func(p *Process) { at(p, 0, nil, of(1, 1000, 5000), of(2, 2000, 3000)) }, []string{"0+4000", "1000+1000"}, 0},
		{"a clock that begins again", func(p *Process) {
			at(p, 0, nil, of(1, 1000, 5000))
			p.Open(0, now.UnixNano()+5*ms)
			at(p, 10, nil, of(1, 100, 200))
		}, []string{"0+4000", "10004000+100"}, 10},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, l := followed(1 << 20)
			tt.feed(p)
			list, first, _ := l.Since(0, 100, now.Add(time.Hour).UnixNano())
			grain := int64(1) // in a batch places are exact, between them to 256 ns
			if tt.last != 0 {
				grain = 1000
			}
			if diff := cmp.Diff(tt.want, lengths(list, grain)); diff != "" || first != 1 {
				t.Errorf("from %d, -want +got:\n%s", first, diff)
			}
			if end := float64(list[len(list)-1].End()-now.UnixNano()) / ms; tt.last != 0 && (end < tt.last-0.001 || end > tt.last+0.001) {
				t.Errorf("the last one ended after %v ms, want %v", end, tt.last)
			}
		})
	}
}

// A program whose times cannot be true is missing, and the others are there.
func TestLaidNonsense(t *testing.T) {
	p, l := followed(1 << 20)
	at(p, 0, nil, of(1, 1000, 1<<63-1), of(2, 1000, 1<<62), of(3, 1<<62, 1<<62+5), of(4, 1000, 2000))
	end := now.Add(time.Hour).UnixNano()
	list, first, next := l.Since(0, 100, end)
	if len(list) != 1 || first != 4 || next != 5 || list[0].Length != 1000 {
		t.Errorf("%+v from %d, next %d", list, first, next)
	}
}

// What is not read in time is gone, and the numbers say so; what was read makes
// room.
func TestLogIsBounded(t *testing.T) {
	for _, tt := range []struct {
		name     string
		room     int
		programs int
		read     bool // a client reads along
		size     int
		first    uint64
	}{
		{"few", 1 << 20, 100, false, fewRan, 1},
		{"many", 1 << 20, 1000, false, 1024, 1},
		{"many that were read", 1 << 20, 10_000, true, fewRan, 10_000 - fewRan + 1},
		{"too many", 1 << 20, maxRan + 5000, false, maxRan, 5001},
		{"no more than its user may have", 600, 10_000, false, 512, 10_000 - 512 + 1},
		{"none at all", 0, 10, false, 0, 11},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, l := followed(tt.room)
			for i := range uint64(tt.programs) {
				at(p, float64(i)/1000, nil, of(1, i*1000, i*1000+500))
				if tt.read {
					l.Read = l.Next()
				}
			}
			end := now.Add(time.Hour).UnixNano()
			list, first, next := l.Since(1, 1<<20, end)
			if l.Size() != tt.size || first != tt.first || next != uint64(tt.programs)+1 || len(list) != int(next-first) || l.First != 1 {
				t.Errorf("room for %d, %d programs from %d, next %d", l.Size(), len(list), first, next)
			}
			if again, _, _ := l.Since(next, 10, end); len(again) != 0 {
				t.Errorf("%d more", len(again))
			}
		})
	}
}

// A program waits for its name, and not for ever.
func TestLogWaitsForNames(t *testing.T) {
	p, l := followed(1 << 20)
	at(p, 0, []uint64{0xaaaa}, of(1, 1000, 2000), of(1, 3000, 4000))
	soon, late := now.UnixNano()+1e6, now.UnixNano()+2e9
	if list, _, next := l.Since(0, 10, soon); len(list) != 0 || next != 1 {
		t.Errorf("%+v without a name, next %d", list, next)
	}
	if list, _, _ := l.Since(0, 10, late); len(list) != 2 || list[0].Name != "" {
		t.Errorf("after a while: %+v", list)
	}
	p.Wanted(1)
	p.Name(0xaaaa, "/x/operations/eltwise/unary/device/kernels/y.cpp")
	if list, _, _ := l.Since(0, 10, soon); len(list) != 2 || list[1].Name != "eltwise/unary" {
		t.Errorf("named: %+v", list)
	}
	at(p, 1, []uint64{0xbbbb}, of(7, 5000, 6000))
	l.Ended = true
	if list, _, _ := l.Since(3, 10, soon); len(list) != 1 || list[0].Name != "" {
		t.Errorf("when it has ended: %+v", list)
	}
	if p.Unfollow(); p.Chips[0].log != nil {
		t.Error("it is still kept")
	}
}

// A process that names each of its programs by another pointer does not have more
// kept than the programs themselves.
func TestLogKeepsFewOperations(t *testing.T) {
	p, l := followed(1 << 20)
	const programs = 20 * maxPrograms
	for i := range uint64(programs) {
		at(p, float64(i)/1000, []uint64{1<<32 + i}, of(1, i*1000, i*1000+500))
	}
	ops := map[*Op]bool{}
	for n := l.next - uint64(l.held); n < l.next; n++ {
		ops[l.ring[n%uint64(len(l.ring))].op] = true
	}
	if l.held != programs || len(ops) > maxPrograms+1 {
		t.Errorf("%d operations for %d programs", len(ops), l.held)
	}
}
