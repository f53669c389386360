package api

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/blocks"
	"github.com/ttmon/ttmon/internal/callsite"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/runs"
	"github.com/ttmon/ttmon/internal/sorted"
	"github.com/ttmon/ttmon/internal/view/bankmap"
	"github.com/ttmon/ttmon/internal/words"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// maxMapBlocks bounds the blocks of one pool in a map: more than a screen has
// points. The largest are listed.
const maxMapBlocks = 5000

// mapPool is one pool of one allocator, for a drawing.
type mapPool struct {
	Pool     string   `json:"pool"`
	What     string   `json:"what"`  // "DRAM of device 0, 8 banks of 4.0 GiB"
	State    string   `json:"state"` // "used 2.3 GiB, free …"
	Exact    bool     `json:"exact"`
	Chips    []string `json:"chips"`
	Base     uint64   `json:"base_address"`
	Capacity uint64   `json:"bank_capacity"`
	Cut      uint64   `json:"bank_cut_bytes"`
	Banks    uint64   `json:"banks"`
	Peak     string   `json:"peak"` // the most it ever held, and when; empty: not known
	// Blocks are address, bytes of each bank, bytes asked for over all banks (0:
	// not known), when it was allocated in Unix milliseconds (0: not known), and
	// the number of its site (0: none).
	Blocks  [][5]uint64 `json:"blocks"`
	LeftOut int         `json:"left_out"` // smaller blocks that are not in the list
	// Holders are the lines of the program that hold blocks of it, the largest first;
	// empty where none is known.
	Holders []mapHolder `json:"holders"`
}

// mapSite is a place of the program that holds memory.
type mapSite struct {
	Pool   string   `json:"pool"`
	Chip   string   `json:"chip"`
	Tag    string   `json:"tag,omitempty"`
	Where  string   `json:"where,omitempty"`  // the line of the program itself that tells it from the others
	Holder string   `json:"holder,omitempty"` // its line as the holders of pools are called
	Stack  []string `json:"stack"`            // outermost first
	Own    []string `json:"own"`              // of it, the frames that are not in a library
	Bytes  uint64   `json:"bytes"`            // held now
	Blocks uint64   `json:"blocks"`
}

// mapOf answers with the allocators of a process as they are drawn: its banks
// along their addresses, what would fit, and who in the program holds what.
func (s *Server) mapOf(w http.ResponseWriter, r *http.Request) {
	of, ok := s.ownBlocks(w, r)
	if !ok {
		return
	}
	name := s.chipNames()
	sites := []mapSite{}
	var chips []runs.Chip
	if of.Places != nil {
		chips = of.Places()
		sites = sitesOf(chips, name)
	}
	lines := newMapLines(&of, chips)
	out := map[string]any{"schema": "ttmon.map/1", "pid": of.Process.PID, "doubts": append([]string{}, bankmap.Doubts(of.Process)...)}
	list := []mapPool{}
	for _, x := range bankmap.Pools(of.Process) {
		m := newMapPool(of.Process, x, name)
		m.Holders = lines.of(x, m.Blocks)
		list = append(list, m)
	}
	out["pools"] = list
	fits, err := fits(of.Process, r.URL.Query(), name)
	if err != nil {
		Fail(w, http.StatusBadRequest, "%v", err)
		return
	}
	out["fits"] = fits
	out["sites"] = sites
	Answer(w, http.StatusOK, out)
}

func newMapPool(p *blocks.Process, x bankmap.Pool, name func(uint64) string) mapPool {
	l := x.List
	what, state := bankmap.Heading(x, name)
	m := mapPool{
		Pool: l.Pool.String(), What: what, State: state, Exact: p.Lost == 0 && l.Exact(), Chips: []string{},
		Base: l.Base, Capacity: l.Capacity, Cut: l.Cut, Banks: l.Banks, Blocks: [][5]uint64{},
	}
	for _, id := range x.Of.Chips {
		m.Chips = append(m.Chips, name(id))
	}
	if l.Peak.BankBytes > 0 {
		m.Peak = words.Bytes(l.Peak.BankBytes)
		if l.Peak.BankAt > 0 {
			m.Peak += " at " + time.Unix(0, l.Peak.BankAt).Format("15:04:05")
		}
	}
	largest := bankmap.Largest(l, maxMapBlocks)
	m.LeftOut = int(l.Usage().Blocks) - len(largest)
	sorted.By(largest, func(a, b *blocks.Block) int { return cmp.Compare(a.Addr, b.Addr) })
	for _, b := range largest {
		m.Blocks = append(m.Blocks, [5]uint64{b.Addr, b.Size, b.Asked, uint64(max(b.Born, 0)) / 1e6, uint64(b.Site)})
	}
	return m
}

// fits answers "would it fit?" in a sentence for each pool that could have it.
func fits(p *blocks.Process, q url.Values, name func(uint64) string) ([]string, error) {
	out := []string{}
	ask := bankmap.FitQuery{
		Size: q.Get("fit"), Shape: q.Get("shape"), Type: q.Get("dtype"), Layout: q.Get("layout"), Shard: q.Get("shard"), Pool: q.Get("pool"),
		PerCore: q.Has("per_core"), Range: q.Has("range"), Cores: q.Get("cores"),
	}
	if ask.Size == "" && ask.Shape == "" {
		return out, nil
	}
	want, err := ask.Parse()
	if err != nil {
		return nil, err
	}
	for _, a := range want.Answers(p, name) {
		out = append(out, strings.TrimPrefix(a.What+": ", ": ")+a.Line)
	}
	return out, nil
}

// chipNames names chips for people, by the latest snapshot.
func (s *Server) chipNames() func(id uint64) string {
	snap := s.opt.Feed.Latest()
	if snap == nil {
		snap = &model.Snapshot{}
	}
	return words.ChipNames(snap)
}

// sitesOf are the places on chips that hold something, the largest first. Their lines
// are those that tell them apart.
func sitesOf(chips []runs.Chip, name func(uint64) string) []mapSite {
	out := []mapSite{}
	var stacks [][]ledgerfile.Frame
	var tags []string
	for i := range chips {
		id, err := strconv.ParseUint(chips[i].ID, 10, 64)
		if err != nil {
			id = blocks.UnknownChip
		}
		for _, pool := range model.Pools() {
			b := chips[i].Pools[pool.String()].Blocks
			if b == nil {
				continue
			}
			for _, place := range b.Places {
				if place.Held.Bytes > 0 {
					out = append(out, newMapSite(&place, pool.String(), name(id)))
					stacks, tags = append(stacks, place.Stack), append(tags, place.Tag)
				}
			}
		}
	}
	for i, line := range callsite.Lines(stacks) {
		out[i].Holder = bankmap.CallSite(tags[i], line)
		if line != (ledgerfile.Frame{}) {
			line.File = filepath.Base(line.File)
			out[i].Where = frame(line)
		}
	}
	sorted.Stable(out, func(a, b *mapSite) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return out
}

func newMapSite(p *runs.Place, pool, chip string) mapSite {
	s := mapSite{Pool: pool, Chip: chip, Tag: words.Escape(p.Tag), Stack: []string{}, Own: []string{}, Bytes: p.Held.Bytes, Blocks: p.Held.Blocks}
	for _, f := range slices.Backward(p.Stack) {
		s.Stack = append(s.Stack, frame(f))
	}
	for _, f := range slices.Backward(callsite.Own(p.Stack)) {
		s.Own = append(s.Own, frame(f))
	}
	return s
}

func frame(f ledgerfile.Frame) string {
	at := words.Escape(f.File)
	if f.Line > 0 {
		at += ":" + strconv.Itoa(f.Line)
	} else if f.Offset > 0 {
		at += fmt.Sprintf("+%#x", f.Offset)
	}
	if f.Function != "" {
		return words.Escape(f.Function) + " (" + at + ")"
	}
	return at
}
