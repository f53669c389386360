// Package story says a failed allocation in sentences: what was asked for and by which
// line, who held the rest, why the request failed and what would have made it fit.
//
// It reads records of internal/book/failure, for events, exported recordings and the views
// of internal/view/why.
package story

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/book/callsite"
	"github.com/ttmon/ttmon/internal/book/failure"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// Bank is what a bank of a pool is called.
func Bank(r *failure.Record) string { return bankOf(r.Pool) }

func bankOf(pool string) string {
	if p, ok := model.PoolNamed(pool); ok && (p == model.L1 || p == model.L1Small) {
		return "core" // a core's L1 is a bank
	}
	return "bank"
}

// Holder is a line of the program and what it holds of each bank.
type Holder struct {
	Line     string // model.py:88; empty: not known
	Function string
	Tag      string
	Bytes    uint64 // of each bank
	Blocks   int
	Oldest   time.Time // zero: not known
	Stack    []ledgerfile.Frame
	Tensor   string   // that all of its blocks are for; empty: not known, or of several kinds
	Number   int      // from 1: the colour in the map of the bank
	sites    []uint32 // of the record
}

// Name is the line, the tag, or both.
func (h *Holder) Name() string {
	switch {
	case h.Line == "" && h.Tag == "":
		return words.NoLine
	case h.Line == "":
		return h.Tag
	case h.Tag == "":
		return h.Line
	}
	return h.Tag + " " + h.Line
}

// HolderText is a holder in a line: "model.py:88 kv_cache: 640 KiB in 8 blocks".
func HolderText(h *Holder) string {
	return fmt.Sprintf("%s: %s in %s", strings.TrimSpace(h.Name()+" "+h.Function), words.Bytes(h.Bytes), words.Count(h.Blocks, "block"))
}

// Holders are those who held the pool, the largest first. Lines are the ones that
// tell them apart.
func Holders(r *failure.Record) []Holder {
	if r.State == nil {
		return nil
	}
	g := newGrouping(r)
	for b := range r.State.All() {
		h := &g.list[g.index(b.Site)]
		h.Bytes += b.Size
		h.Blocks++
		if born := time.Unix(0, b.Born); b.Born > 0 && (h.Oldest.IsZero() || born.Before(h.Oldest)) {
			h.Oldest = born
		}
	}
	slices.SortStableFunc(g.list, func(a, b Holder) int { return cmp.Compare(b.Bytes, a.Bytes) })
	for i := range g.list {
		g.list[i].Number = i + 1
	}
	return g.list
}

// grouping puts the sites of a record together that share a tag and a line.
type grouping struct {
	sites map[uint32]*failure.Site
	lines map[uint32]ledgerfile.Frame
	list  []Holder
	at    map[holderKey]int
	by    map[uint32]int // by site
}

type holderKey struct {
	tag  string
	line ledgerfile.Frame
}

func newGrouping(r *failure.Record) *grouping {
	g := &grouping{sites: map[uint32]*failure.Site{}, lines: map[uint32]ledgerfile.Frame{}, at: map[holderKey]int{}, by: map[uint32]int{}}
	stacks := make([][]ledgerfile.Frame, len(r.Sites)+1)
	for i := range r.Sites {
		stacks[i] = r.Sites[i].Stack
	}
	stacks[len(r.Sites)] = r.Stack // the request is told from what is held, too
	for i, line := range callsite.Lines(stacks)[:len(r.Sites)] {
		s := &r.Sites[i]
		g.sites[s.Number], g.lines[s.Number] = s, line
	}
	return g
}

// index is the place of a site's holder in the list.
func (g *grouping) index(site uint32) int {
	if i, ok := g.by[site]; ok {
		return i
	}
	var h Holder
	k := holderKey{line: g.lines[site]}
	if s := g.sites[site]; s != nil {
		k.tag = s.Tag
		h.Tag, h.Stack = words.Escape(s.Tag), s.Stack
		if s.Tensor != nil {
			h.Tensor = Tensor(s.Tensor)
		}
	}
	if k.line != (ledgerfile.Frame{}) {
		h.Line, h.Function = Line(k.line), words.Escape(k.line.Function)
	}
	i, ok := g.at[k]
	if !ok {
		i = len(g.list)
		g.at[k] = i
		g.list = append(g.list, h)
	} else if g.list[i].Tensor != h.Tensor {
		g.list[i].Tensor = ""
	}
	g.list[i].sites = append(g.list[i].sites, site)
	g.by[site] = i
	return i
}

// holderOf finds who has a block.
func holderOf(list []Holder, b blocks.Block) *Holder {
	for i := range list {
		if slices.Contains(list[i].sites, b.Site) {
			return &list[i]
		}
	}
	return nil
}

// Line is a frame in short: model.py:88, or libtt_metal.so+0x1234.
func Line(f ledgerfile.Frame) string {
	return words.Escape(callsite.Name(f))
}

// Requester is the line that made the request, and its function; empty: not known. Where what is
// held came through the same line from another function, it is the caller at which
// they part: a small function that makes all buffers says nothing.
func Requester(r *failure.Record) (line, function string) {
	own := callsite.Own(r.Stack)
	if len(own) == 0 {
		return "", ""
	}
	depth := 0
	for i := range r.Sites {
		depth = max(depth, parting(own, callsite.Own(r.Sites[i].Stack)))
	}
	return Line(own[depth]), words.Escape(own[depth].Function)
}

// parting is the depth at which two stacks with the same innermost line go on in
// different functions; 0: they do not.
func parting(a, b []ledgerfile.Frame) int {
	for d := range min(len(a), len(b)) {
		switch {
		case a[d] == b[d]:
		case d > 0 && (a[d].File != b[d].File || a[d].Function != b[d].Function):
			return d
		default:
			return 0
		}
	}
	return 0
}

// Program names the process: its command line or name, and its pid.
func Program(r *failure.Record) string {
	return words.CommandLine(cmp.Or(r.Process.Command, r.Process.Name), 60)
}

// Where names the chips: "device 0 p150a", "each of 8 chips".
func Where(r *failure.Record) string {
	switch len(r.Chips) {
	case 0:
		return "a chip that is not known"
	case 1:
		c := &r.Chips[0]
		if c.Device == nil {
			return fmt.Sprintf("chip %d", c.ID)
		}
		return strings.TrimSpace(strings.Join(strings.Fields(fmt.Sprintf("device %d %s %s", *c.Device, words.Escape(c.Board), words.Escape(c.Name))), " "))
	}
	return fmt.Sprintf("each of %d chips", len(r.Chips))
}

// What is what failed, in two or three words.
func What(r *failure.Record) string {
	switch r.Kind {
	case failure.Clash:
		if r.Verdict.Cause == failure.TooLarge {
			return "circular buffers are larger than L1"
		}
		return "circular buffers clash with L1"
	case failure.Trace:
		return "trace region too small"
	case failure.NoRoom:
	}
	return words.PoolName(r.PoolKind()) + subDevice(r) + ": no room"
}

// subDevice names the sub-device whose allocator was asked: " of sub-device 1".
func subDevice(r *failure.Record) string {
	switch {
	case r.SubDevice != nil:
		return fmt.Sprintf(" of sub-device %d", *r.SubDevice)
	case r.OfSubDevice():
		return " of a sub-device"
	}
	return ""
}

// Requested describes the request: its bytes, and the tensor or the pages.
func Requested(r *failure.Record) string {
	if r.Kind == failure.Clash {
		c := r.Clash
		cores := ""
		if len(c.Cores) == 4 {
			cores = fmt.Sprintf(" on cores %d-%d to %d-%d", c.Cores[0], c.Cores[1], c.Cores[2], c.Cores[3])
		}
		text := fmt.Sprintf("%s of circular buffers%s, up to address %#x", words.Bytes(c.Reach-min(c.Base, c.Reach)), cores, c.Reach)
		if c.Lowest == 0 {
			return text
		}
		return text + fmt.Sprintf("; the lowest buffer lies at %#x", c.Lowest)
	}
	if r.Kind == failure.Trace {
		return exactBytes(r.Region.Needed) + " for all traces of the device"
	}
	parts := []string{fmt.Sprintf("%s a %s", words.Bytes(r.Need()), Bank(r))}
	if t := r.Request.Tensor; t != nil {
		parts = append(parts, Tensor(t))
	}
	if n := r.Request.Bytes; n > 0 {
		parts = append(parts, words.Bytes(n)+" in all")
	}
	switch sharded := r.Request.Sharded; {
	case sharded == nil:
	case *sharded:
		parts = append(parts, fmt.Sprintf("sharded over %s", words.Count(int(r.Request.Shards), Bank(r))))
	case r.State != nil && r.State.Banks > 0:
		parts = append(parts, fmt.Sprintf("interleaved over %s", words.Count(int(r.State.Banks), Bank(r))))
	default:
		parts = append(parts, "interleaved")
	}
	if n := r.Request.Page; n > 0 {
		parts = append(parts, "pages of "+words.Bytes(n))
	}
	return strings.Join(parts, ", ")
}

// exactBytes is a size that a parameter is set to: rounded, and to the byte where
// that is another number.
func exactBytes(n uint64) string {
	if n < 1024 {
		return words.Bytes(n)
	}
	return fmt.Sprintf("%s (%d bytes)", words.Bytes(n), n)
}

// Tensor names a tensor: [1,8,4096,128] bfloat16 tile interleaved.
func Tensor(t *failure.Tensor) string {
	var dims []string
	for _, n := range t.Shape {
		dims = append(dims, strconv.FormatUint(n, 10))
	}
	return strings.TrimSpace(words.Escape("[" + strings.Join(dims, ",") + "] " + strings.Join([]string{t.Type, t.Layout, t.Memory}, " ")))
}

// Free says what was free.
func Free(r *failure.Record) string {
	s := r.Verdict.Space
	if s == nil && r.State != nil && r.State.Capacity == 0 {
		return "nothing"
	}
	if s == nil {
		return "not known"
	}
	switch s.Holes {
	case 0:
		return "nothing"
	case 1:
		return fmt.Sprintf("%s per %s in one hole", words.Bytes(s.Free), Bank(r))
	}
	return fmt.Sprintf("%s per %s in %d holes, the largest %s", words.Bytes(s.Free), Bank(r), s.Holes, words.Bytes(s.Largest))
}

// Verdict says why the request failed.
func Verdict(r *failure.Record) string {
	v, bank := &r.Verdict, Bank(r)
	switch v.Cause {
	case failure.Full:
		return fmt.Sprintf("full: %s per %s short", words.Bytes(v.Missing), bank)
	case failure.Fragmented:
		return fmt.Sprintf("fragmented: enough is free, but the largest hole is %s too small", words.Bytes(v.Missing))
	case failure.TooLarge:
		if r.OfSubDevice() {
			return fmt.Sprintf("too large: a %s has %s for the sub-device (local_l1_size), so that it would not fit if nothing else were there", bank, words.Bytes(r.State.Capacity))
		}
		return fmt.Sprintf("too large: a %s has %s, so that it would not fit if nothing else were there", bank, words.Bytes(r.State.Capacity))
	case failure.Reserved:
		switch v.By {
		case failure.ByCut:
			return fmt.Sprintf("reserved: the low %s of each %s are set aside, for sub-devices as a rule (local_l1_size)", words.Bytes(r.State.Cut), bank)
		case failure.ByLimit:
			return fmt.Sprintf("reserved: no address below %#x was allowed for it", r.Request.Limit)
		}
		return "reserved: a hole is large enough, but another allocator of the device uses the same addresses"
	case failure.Overlap:
		return fmt.Sprintf("they overlap by %s", words.Bytes(v.Missing))
	case failure.RegionTooSmall:
		if r.Region == nil {
			return fmt.Sprintf("the device was opened without %s", words.PoolName(r.PoolKind()))
		}
		return fmt.Sprintf("the trace region is %s too small: the device was opened with trace_region_size=%d", words.Bytes(v.Missing), r.Region.Size)
	}
	return "why is not known: " + strings.Join(Doubts(r), "; ")
}

// Fixes say what would have made the request fit, one sentence each.
func Fixes(r *failure.Record, now time.Time) (list []string) {
	holders := Holders(r)
	for i := range r.Verdict.Fixes {
		list = append(list, fixText(r, &r.Verdict.Fixes[i], holders, now))
	}
	return list
}

func fixText(r *failure.Record, f *failure.Fix, holders []Holder, now time.Time) string {
	bank := Bank(r)
	switch f.Kind {
	case failure.FreeFewest:
		return "without " + blockText(f.Blocks, holders, bank, r.Time)
	case failure.FreeYoungest:
		return "without the youngest: " + blockText(f.Blocks, holders, bank, r.Time)
	case failure.Move:
		return "with one block copied, into another hole, and freed then: " + blockText(f.Blocks, holders, bank, r.Time)
	case failure.Interleaved:
		return fmt.Sprintf("interleaved over all %ss instead of sharded (%s a %s)", bank, words.Bytes(f.Bytes), bank)
	case failure.InDRAM:
		return fmt.Sprintf("in DRAM (%s a bank, the largest hole has %s)", words.Bytes(f.Bytes), words.Bytes(f.Hole))
	case failure.L1SmallSize:
		if r.PoolKind() == model.L1Small { // a program that needs a first buffer there mostly needs more
			return fmt.Sprintf("with l1_small_size=%d (this request takes %s of it, what follows is not known)", f.Bytes, words.Bytes(r.Need()))
		}
		return fmt.Sprintf("with l1_small_size=%d", f.Bytes)
	case failure.TraceRegion:
		return fmt.Sprintf("with trace_region_size=%d", f.Bytes)
	}
	return words.Escape(string(f.Kind))
}

// blockText names blocks: "2 blocks of model.py:131 scores (256 KiB per core, the
// oldest allocated 4 s before)".
func blockText(list []blocks.Block, holders []Holder, bank string, at time.Time) string {
	var names []string
	counts := map[string]int{}
	sum, oldest := uint64(0), int64(0)
	for i, b := range list {
		sum += b.Size
		if i == 0 || b.Born < oldest {
			oldest = b.Born
		}
		name := ""
		if h := holderOf(holders, b); h != nil && (h.Line != "" || h.Tag != "") {
			name = strings.TrimSpace(h.Name() + " " + h.Function)
			if h.Tensor != "" {
				name += " " + h.Tensor
			}
		}
		if counts[name]++; counts[name] == 1 {
			names = append(names, name)
		}
	}
	what := words.Count(len(list), "block")
	if len(list) == 1 {
		what = fmt.Sprintf("the block at %#x", list[0].Addr)
	}
	var of []string
	for _, n := range names {
		switch {
		case n == "":
		case len(names) > 1:
			of = append(of, fmt.Sprintf("%d of %s", counts[n], n))
		default:
			of = append(of, "of "+n)
		}
	}
	if len(of) > 4 {
		of = append(of[:4], "others")
	}
	if len(of) > 0 {
		what += " " + strings.Join(of, ", ")
	}
	age := ""
	if oldest > 0 {
		age = ", allocated " + before(at.Sub(time.Unix(0, oldest)))
		if len(list) > 1 {
			age = ", the oldest allocated " + before(at.Sub(time.Unix(0, oldest)))
		}
	}
	return fmt.Sprintf("%s (%s per %s%s)", what, words.Bytes(sum), bank, age)
}

// before is how long before the failure something was.
func before(d time.Duration) string {
	if d < time.Second {
		return "just before"
	}
	return words.Duration(d) + " before"
}

// Doubts say what is not known.
func Doubts(r *failure.Record) (list []string) {
	for _, d := range r.Doubts {
		if text := Doubt(d); text != "" {
			list = append(list, text)
		}
	}
	return list
}

// Doubt says one thing that is not known; empty: there is no sentence for it.
func Doubt(d failure.DoubtKind) string {
	switch d {
	case failure.StateUnknown:
		return "the process ran before it was watched, or events were lost: its blocks are not all known"
	case failure.BlocksMissing:
		return "not all blocks that it held are kept with the failure"
	case failure.NoLines:
		return "lines are not known: ttmon run --stacks -- COMMAND names them"
	case failure.NoHolderLines:
		return "which lines hold the memory is not known: ttmon run --stacks -- COMMAND names them"
	case failure.LinesMissing:
		return "which lines hold the memory is not known: no line that is recorded led to it (--stacks=all records functions, too)"
	case failure.ChipUnknown:
		return "which chip it is about is not known"
	case failure.SeveralDevices:
		return "the program has several devices: which of them was checked is not known"
	case failure.PerCore:
		return "L1 is given out core by core (HYBRID): what is free is that of the core that had no room, or of all cores at one address"
	}
	return ""
}

// Others say what other processes had of the chips.
func Others(r *failure.Record) (list []string) {
	for _, o := range r.Others {
		name := ""
		if o.Name != "" {
			name = " (" + words.Escape(o.Name) + ")"
		}
		mark := map[string]string{model.AtLeast.String(): "≥", model.Unsure.String(): "~"}[o.Bound]
		list = append(list, fmt.Sprintf("process %d%s held %s%s of %s there, from an allocator of its own", o.PID, name, mark, words.Bytes(o.Bytes), words.PoolName(r.PoolKind())))
	}
	return list
}

// Event is the sentence of an event. own: it is for those only who may see the record;
// else it has neither arguments of the program nor lines of code.
func Event(r *failure.Record, own bool) string {
	line, function := Requester(r)
	program, by := words.ProgramOf(r.Process.Command, r.Process.Name), ""
	if own {
		program = Program(r)
	}
	if own && line != "" {
		by = " at " + strings.TrimSpace(line+" "+function)
	}
	times := ""
	if r.Count > 1 {
		times = fmt.Sprintf(" (%d times)", r.Count)
	}
	switch r.Kind {
	case failure.Clash:
		if r.Verdict.Cause == failure.TooLarge {
			return fmt.Sprintf("%s (%d): circular buffers are larger than L1 by %s%s on %s%s", program, r.Process.PID, words.Bytes(r.Verdict.Missing), by, Where(r), times)
		}
		return fmt.Sprintf("%s (%d): circular buffers clash with a buffer of L1 by %s%s on %s%s", program, r.Process.PID, words.Bytes(r.Verdict.Missing), by, Where(r), times)
	case failure.Trace:
		return fmt.Sprintf("%s (%d): traces need %s, trace_region_size is %d%s on %s%s", program, r.Process.PID, exactBytes(r.Region.Needed), r.Region.Size, by, Where(r), times)
	case failure.NoRoom:
	}
	return fmt.Sprintf("%s (%d): no room for %s a %s of %s%s on %s: %s%s", program, r.Process.PID, words.Bytes(r.Need()), Bank(r), words.PoolName(r.PoolKind()), by, Where(r), Cause(r.Verdict.Cause), times)
}

// Sentence is a failure of a list in a few words: "no room for 640 KiB of L1:
// fragmented".
func Sentence(x *failure.Summary) string {
	switch x.Kind {
	case failure.Clash:
		if x.Cause == failure.TooLarge {
			return "circular buffers are larger than L1"
		}
		return "circular buffers clash with a buffer of L1"
	case failure.Trace:
		return fmt.Sprintf("trace region too small: traces need %s", Total(x))
	case failure.NoRoom:
	}
	pool, _ := model.PoolNamed(x.Pool)
	return fmt.Sprintf("no room for %s of %s: %s", Total(x), words.PoolName(pool), Cause(x.Cause))
}

// Total is what was asked for over all banks or, where that is not known, of one.
func Total(x *failure.Summary) string {
	switch {
	case x.Kind == failure.Clash:
		return words.Nothing
	case x.Bytes > 0:
		return words.Bytes(x.Bytes)
	}
	return words.Bytes(x.BankBytes) + " a " + bankOf(x.Pool)
}

// Cause is a cause in a word or two.
func Cause(c failure.Cause) string {
	switch c {
	case failure.TooLarge:
		return "too large"
	case failure.Overlap:
		return "clash"
	case failure.RegionTooSmall:
		return "region too small"
	}
	return words.Escape(string(c))
}

// Numbers are the numbers of holders, by their blocks; 0: it has none.
func Numbers(holders []Holder) func(blocks.Block) int {
	number := map[uint32]int{}
	for i := range holders {
		for _, s := range holders[i].sites {
			number[s] = holders[i].Number
		}
	}
	return func(b blocks.Block) int { return number[b.Site] }
}
