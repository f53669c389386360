package page

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/base/sorted"
	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/book/callsite"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/node/api"
	"github.com/ttmon/ttmon/internal/view/bankmap"
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

// held is what the call about the blocks of a process answers.
type held struct {
	Process *blocks.Process   `json:"process"`
	Sites   []callsite.Site   `json:"sites"`
	Frees   []blocks.ChipPool `json:"frees"`
}

// mapOf answers with the allocators of a process as they are drawn: its banks
// along their addresses, what would fit, and who in the program holds what.
func (s calls) mapOf(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	moment := url.Values{}
	if at := q.Get("at"); at != "" {
		moment.Set("at", at)
	}
	reply := s.Ask(r, "/v1/processes/"+url.PathEscape(r.PathValue("pid"))+"/blocks", moment)
	if !reply.OK(w) {
		return
	}
	var of held
	if err := reply.Decode(&of); err != nil {
		api.Fail(w, http.StatusInternalServerError, "reading the blocks of process %s: %v", r.PathValue("pid"), err)
		return
	}
	name := s.chipNames()
	fits, err := fits(of.Process, q, name)
	if err != nil {
		api.Fail(w, http.StatusBadRequest, "%v", err)
		return
	}
	out := mapAnswer{
		Schema: "ttmon.map/1", PID: of.Process.PID, Pools: []mapPool{}, Doubts: append([]string{}, bankmap.Doubts(of.Process)...), Fits: fits,
		Sites: sitesOf(&of, name),
	}
	lines := newMapLines(&of)
	for _, x := range bankmap.Pools(of.Process) {
		m := newMapPool(of.Process, x, name)
		m.Holders = lines.of(x, m.Blocks)
		out.Pools = append(out.Pools, m)
	}
	api.Answer(w, http.StatusOK, out)
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
func (s calls) chipNames() func(id uint64) string {
	snap := s.Latest()
	if snap == nil {
		snap = &model.Snapshot{}
	}
	return words.ChipNames(snap)
}

// onChip is a call site, and where what it asked for is.
type onChip struct {
	chip uint64
	pool model.Pool
	site uint32
}

// sitesOf are the call sites that hold something, chip by chip, the largest first. Their
// lines are those that tell them apart.
func sitesOf(of *held, name func(uint64) string) []mapSite {
	sites := map[uint32]*callsite.Site{}
	for i := range of.Sites {
		sites[uint32(of.Sites[i].Number)] = &of.Sites[i]
	}
	sums := map[onChip]*mapSite{}
	for _, a := range bankmap.InUse(of.Process) {
		chips := a.Chips
		if len(chips) == 0 {
			chips = []uint64{blocks.UnknownChip}
		}
		for _, l := range a.Lists {
			for b := range l.All() {
				for _, chip := range chips {
					addTo(sums, onChip{chip, l.Pool, b.Site}, sites[b.Site], b.Size*l.Banks)
				}
			}
		}
	}
	order := slices.SortedFunc(maps.Keys(sums), func(a, b onChip) int {
		return cmp.Or(cmp.Compare(a.chip, b.chip), cmp.Compare(a.pool, b.pool), cmp.Compare(a.site, b.site))
	})
	out, stacks := []mapSite{}, [][]ledgerfile.Frame{}
	for _, at := range order {
		x := *sums[at]
		x.Chip = name(at.chip)
		out, stacks = append(out, x), append(stacks, sites[at.site].Stack)
	}
	for i, line := range callsite.Lines(stacks) {
		out[i].Holder = bankmap.CallSite(sites[order[i].site].Tag, line)
		if line != (ledgerfile.Frame{}) {
			line.File = filepath.Base(line.File)
			out[i].Where = frame(line)
		}
	}
	sorted.Stable(out, func(a, b *mapSite) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return out
}

// addTo adds a block to its call site; nil: nothing is known of that.
func addTo(sums map[onChip]*mapSite, at onChip, site *callsite.Site, bytes uint64) {
	if site == nil {
		return
	}
	if sums[at] == nil {
		sums[at] = newMapSite(site, at.pool.String())
	}
	sums[at].Bytes += bytes
	sums[at].Blocks++
}

func newMapSite(site *callsite.Site, pool string) *mapSite {
	s := &mapSite{Pool: pool, Tag: words.Escape(site.Tag), Stack: []string{}, Own: []string{}}
	for _, f := range slices.Backward(site.Stack) {
		s.Stack = append(s.Stack, frame(f))
	}
	for _, f := range slices.Backward(callsite.Own(site.Stack)) {
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
