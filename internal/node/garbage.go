package node

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// garbage is collected before a snapshot is made, where there is enough of it: while
// one is made and encoded, a collection that runs at the same time makes each of its
// steps dearer. Go itself collects only where more piles up than a snapshot leaves.
type garbage struct {
	samples [2]metrics.Sample
	before  uint64 // bytes that had been allocated at the last collection
	off     bool
}

// leastGarbage is what a collection is worth. Half of what lives, where that is more:
// ttmond has little that lives, and is to be small.
const leastGarbage = 1 << 20

// ownPercent is when Go collects by itself: at three times what lives. At twice that,
// every other snapshot of 64 processes was made while it collected, and it gave back
// memory that the next one needed again.
const ownPercent = 200

func newGarbage() *garbage {
	g := &garbage{off: os.Getenv("GOGC") != ""} // the caller has decided
	g.samples[0].Name, g.samples[1].Name = "/gc/heap/allocs:bytes", "/gc/heap/live:bytes"
	if !g.off {
		debug.SetGCPercent(ownPercent)
	}
	return g
}

// collect collects what is worth it. It takes half a millisecond and more.
func (g *garbage) collect() {
	if g.off {
		return
	}
	metrics.Read(g.samples[:])
	allocated, live := g.samples[0].Value.Uint64(), g.samples[1].Value.Uint64()
	if allocated-g.before < max(leastGarbage, live/2) {
		return
	}
	g.before = allocated
	runtime.GC()
}
