package failure

import (
	"cmp"
	"slices"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// FromLedger is the record of a failure that libttmon wrote down; false where
// its pool is not known.
func FromLedger(l *ledgerfile.Ledger, f *ledgerfile.Failure, who Process) (*Record, bool) {
	asked := &f.Lists[0]
	pool, ok := blocks.PoolOf(asked.Pool)
	if !ok {
		return nil, false
	}
	r := &Record{
		Schema: Schema, Kind: NoRoom, Time: f.Time.UTC(), First: f.First.UTC(), Last: f.Last.UTC(), Count: f.Count, Source: string(model.FromTrack),
		Process: who, Pool: pool.String(), Stack: l.Stack(f.Node), Tag: f.Tag, Traced: l.Flags&(ledgerfile.StacksOn|ledgerfile.NativeOn) != 0, Allocator: uint64(f.Group),
		Request: Request{Bytes: f.Asked, Limit: f.Limit, BottomUp: &f.BottomUp, Tensor: ParseTensor(f.Tensor)},
		Chips:   []Chip{}, Sites: []Site{}, Siblings: []Sibling{}, Others: []Other{}, Doubts: []DoubtKind{},
	}
	if f.PageKnown {
		r.Request.Page = f.Page
	}
	if f.ShardsKnown {
		sharded := f.Shards > 0
		r.Request.Sharded, r.Request.Shards = &sharded, uint64(f.Shards)
	}
	if f.SubDevice > 0 {
		n := int(f.SubDevice - 1)
		r.SubDevice = &n
	}
	for _, n := range f.Chips {
		r.Chips = append(r.Chips, Chip{ID: l.Chips[n].ID})
	}
	if len(r.Chips) == 0 && len(l.Chips) == 1 {
		r.Chips = append(r.Chips, Chip{ID: l.Chips[0].ID})
	}
	r.takeLists(l, f)
	r.Request.BankBytes = r.State.Round(f.Bytes)
	switch f.Kind {
	case ledgerfile.NoRoom:
	case ledgerfile.TraceRefused:
		r.Kind, r.Request = Trace, Request{}
		r.Region = &Region{Size: f.Region, Needed: f.Needed}
	case ledgerfile.Clash:
		r.Kind, r.Request = Clash, Request{}
		r.Clash = &Collision{Program: f.Program, Reach: f.Reach, Lowest: f.Lowest, Base: r.State.Base, Cores: f.Cores}
		if f.Lowest > 0 { // else L1 has no buffer
			r.Clash.Overlap = f.Reach - min(f.Reach, f.Lowest)
		}
	}
	if f.SeveralDevices {
		r.doubt(SeveralDevices)
	}
	r.Judge()
	return r, true
}

// takeLists takes the state of the allocator over.
func (r *Record) takeLists(l *ledgerfile.Ledger, f *ledgerfile.Failure) {
	type place struct {
		node        uint32
		tag, tensor string
	}
	numbers := map[place]uint32{}
	for i := range f.Lists {
		x := &f.Lists[i]
		pool, ok := blocks.PoolOf(x.Pool)
		if !ok {
			continue
		}
		list := blocks.FromLedger(&x.List, pool)
		sorted := slices.Clone(x.Blocks) // others read the ledger, too
		slices.SortFunc(sorted, func(a, b ledgerfile.FailedBlock) int {
			return cmp.Or(a.Born.Compare(b.Born), cmp.Compare(a.Address, b.Address))
		})
		for _, b := range sorted {
			block := blocks.Block{Addr: b.Address, Size: b.Bytes, Asked: b.Asked}
			if !b.Born.IsZero() {
				block.Born = b.Born.UnixNano()
			}
			if at := (place{b.Node, b.Tag, b.Tensor}); i == 0 && at != (place{}) {
				n, known := numbers[at]
				if !known {
					n = uint32(len(r.Sites) + 1)
					numbers[at] = n
					r.Sites = append(r.Sites, Site{Number: n, Tag: b.Tag, Stack: l.Stack(b.Node), Tensor: ParseTensor(b.Tensor)})
				}
				block.Site = n
			}
			list.Alloc(block)
		}
		if f.Missed > 0 {
			list.Origin = blocks.Late // not all of its blocks are here
		}
		if i == 0 {
			r.State = list
		} else {
			r.AddSibling(list)
		}
	}
	if f.Missed > 0 {
		r.doubt(BlocksMissing)
	}
}

// AddSibling adds another pool of the allocator.
func (r *Record) AddSibling(l *blocks.List) {
	s := Sibling{Pool: l.Pool.String(), Geometry: l.Geometry, Used: l.Usage().BankBytes, Cut: l.Cut}
	if space, known := l.Space(); known {
		s.Space = &space
	}
	r.Siblings = append(r.Siblings, s)
}

func (r *Record) doubt(k DoubtKind) {
	if !slices.Contains(r.Doubts, k) {
		r.Doubts = append(r.Doubts, k)
	}
}
