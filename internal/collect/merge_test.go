package collect

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ttmon/ttmon/internal/book/claim"
	"github.com/ttmon/ttmon/internal/model"
)

// A claim for the table below: its doubts are all of one kind, so that the
// result shows whose they are.
func poolsClaim(doubt model.DoubtKind, bytes map[model.Pool]model.Bytes) *claim.Held {
	h := &claim.Held{Doubts: []model.Doubt{{Kind: doubt}}}
	for pool, b := range bytes {
		h.Bytes[pool] = b
	}
	return h
}

func withPools(h *claim.Held, whole ...model.Pool) *claim.Held {
	h.Pools = &claim.Pools{}
	for _, pool := range whole {
		h.Pools[pool] = claim.Pool{Occupied: h.Bytes[pool], Whole: true}
	}
	return h
}

func partial(h *claim.Held) *claim.Held {
	h.Partial = true
	return h
}

// The figures of a process that several sources report come with the doubts of
// the sources that they were taken from, and with no others.
func TestMergePools(t *testing.T) {
	exact, atLeast, unsure := model.ExactBytes, func(n uint64) model.Bytes { return model.BoundBytes(n, model.AtLeast) }, func(n uint64) model.Bytes { return model.BoundBytes(n, model.Unsure) }
	type bytes = map[model.Pool]model.Bytes
	for name, c := range map[string]struct {
		chosen *claim.Held
		others []*claim.Held
		want   bytes
		doubts []model.DoubtKind
		part   bool
	}{
		"nothing is better elsewhere": {
			poolsClaim(model.ReportRejected, bytes{model.DRAM: exact(5)}),
			[]*claim.Held{poolsClaim(model.GraphCapture, bytes{model.DRAM: unsure(9)})},
			bytes{model.DRAM: exact(5)},
			[]model.DoubtKind{model.ReportRejected},
			false,
		},
		"one pool from each": {
			poolsClaim(model.RequestUnknown, bytes{model.DRAM: exact(5)}),
			[]*claim.Held{poolsClaim(model.GraphCapture, bytes{model.DRAM: unsure(9), model.CB: unsure(3)})},
			bytes{model.DRAM: exact(5), model.CB: unsure(3)},
			[]model.DoubtKind{model.RequestUnknown}, // nothing else is not exact because of a release
			false,
		},
		"circular buffers of one who guessed the owner": {
			poolsClaim(model.RequestUnknown, bytes{model.DRAM: exact(5)}),
			[]*claim.Held{poolsClaim(model.OwnerGuessed, bytes{model.DRAM: unsure(9), model.CB: unsure(3)})},
			bytes{model.DRAM: exact(5), model.CB: unsure(3)},
			[]model.DoubtKind{model.RequestUnknown, model.OwnerGuessed},
			false,
		},
		"circular buffers and L1": {
			poolsClaim(model.RequestUnknown, bytes{model.DRAM: exact(5)}),
			[]*claim.Held{poolsClaim(model.GraphCapture, bytes{model.DRAM: unsure(9), model.L1: unsure(2), model.CB: unsure(3)})},
			bytes{model.DRAM: exact(5), model.L1: unsure(2), model.CB: unsure(3)},
			[]model.DoubtKind{model.RequestUnknown, model.GraphCapture},
			false,
		},
		"the chosen one is set aside": {
			partial(withPools(poolsClaim(model.NoticedLate, bytes{model.DRAM: atLeast(2), model.L1: atLeast(1)}))),
			[]*claim.Held{poolsClaim(model.OtherThreads, bytes{model.DRAM: unsure(130), model.L1: unsure(4)})},
			bytes{model.DRAM: unsure(130), model.L1: unsure(4)},
			[]model.DoubtKind{model.OtherThreads},
			false,
		},
		"the second of two others has all": {
			partial(poolsClaim(model.NoticedLate, bytes{model.DRAM: atLeast(2)})),
			[]*claim.Held{
				poolsClaim(model.OtherThreads, bytes{model.DRAM: unsure(130)}),
				partial(withPools(poolsClaim(model.EventsLost, bytes{model.DRAM: exact(34)}), model.DRAM)),
			},
			bytes{model.DRAM: atLeast(34)},
			[]model.DoubtKind{model.EventsLost},
			true,
		},
		"an other that is worse adds no doubt": {
			partial(poolsClaim(model.NoticedLate, bytes{model.DRAM: atLeast(2)})),
			[]*claim.Held{
				poolsClaim(model.OtherThreads, bytes{model.DRAM: unsure(130)}),
				poolsClaim(model.ReportLate, bytes{model.DRAM: atLeast(1)}),
			},
			bytes{model.DRAM: unsure(130)},
			[]model.DoubtKind{model.OtherThreads},
			false,
		},
		"a missing figure with a reason counts as said": {
			poolsClaim(model.RecordsErased, bytes{model.DRAM: atLeast(2), model.L1: model.NoBytes(model.Denied)}),
			[]*claim.Held{poolsClaim(model.OtherThreads, bytes{model.DRAM: exact(7)})},
			bytes{model.DRAM: exact(7), model.L1: model.NoBytes(model.Denied)},
			[]model.DoubtKind{model.RecordsErased, model.OtherThreads},
			false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := mergePools(c.chosen, c.others)
			var want model.PoolBytes
			for pool, b := range c.want {
				want[pool] = b
			}
			if d := cmp.Diff(want, got.Bytes); d != "" {
				t.Errorf("bytes (-want +got):\n%s", d)
			}
			var kinds []model.DoubtKind
			for _, d := range got.Doubts {
				kinds = append(kinds, d.Kind)
			}
			if d := cmp.Diff(c.doubts, kinds); d != "" {
				t.Errorf("doubts (-want +got):\n%s", d)
			}
			if got.Partial != c.part {
				t.Errorf("partial is %v", got.Partial)
			}
		})
	}
}
