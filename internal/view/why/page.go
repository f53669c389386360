package why

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/blocks"
	"github.com/ttmon/ttmon/internal/failure"
	"github.com/ttmon/ttmon/internal/view/words"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// Page is a failure as the page shows it: sentences, the bank as it is drawn, and
// who held it.
type Page struct {
	Schema  string    `json:"schema"`
	ID      string    `json:"id"`
	PID     int       `json:"pid"`
	Program string    `json:"program"`
	Where   string    `json:"where"`
	What    string    `json:"what"`
	Time    time.Time `json:"time"`
	First   time.Time `json:"first"`
	Last    time.Time `json:"last"`
	Count   uint64    `json:"count"`
	Asked   string    `json:"asked"`
	By      string    `json:"by"` // the line; empty: not known
	Free    string    `json:"free"`
	Verdict string    `json:"verdict"`
	// Fits introduces Fixes.
	Fits    string       `json:"fits"`
	Fixes   []string     `json:"fixes"`
	Notes   []string     `json:"notes"`
	Bank    string       `json:"bank"` // what a bank is called
	Holders []PageHolder `json:"holders"`
	Stack   []string     `json:"stack"`
	Map     *PageMap     `json:"map"` // nil: the size of a bank is not known
}

// PageSchema names the JSON of a Page.
const PageSchema = "ttmon.failurepage/1"

// PageHolder is a line of the program and what it held.
type PageHolder struct {
	Name     string   `json:"name"`
	Function string   `json:"function"`
	Tensor   string   `json:"tensor"` // that its blocks are for; empty: not known
	Number   int      `json:"number"` // from 1: its colour
	Bytes    uint64   `json:"bytes"`  // of each bank
	Size     string   `json:"size"`
	Blocks   int      `json:"blocks"`
	Age      string   `json:"age"` // of the oldest; empty: not known
	Stack    []string `json:"stack"`
}

// PageMap is a bank along its addresses.
type PageMap struct {
	Base     uint64 `json:"base_address"`
	Capacity uint64 `json:"bank_capacity"`
	Size     string `json:"size"` // of the bank
	Cut      uint64 `json:"bank_cut_bytes"`
	Exact    bool   `json:"exact"` // what is not a block is free
	// Blocks are address, bytes of each bank, number of the holder (0: not known)
	// and milliseconds before the failure at which it was made (0: not known).
	Blocks  [][4]uint64 `json:"blocks"`
	LeftOut int         `json:"left_out"` // smaller blocks that are not in the list
	// Piece is what was asked for, and Hole where it is drawn: at the largest hole.
	Piece uint64 `json:"piece_bytes"`
	Hole  uint64 `json:"hole_address"`
	Label string `json:"label"`
}

// maxPageBlocks bounds the blocks of a picture: more than a screen has points.
const maxPageBlocks = 5000

// NewPage makes the page of a record.
func NewPage(r *failure.Record, now time.Time) *Page {
	line, function := Requester(r)
	holders := Holders(r)
	p := &Page{
		Schema: PageSchema, ID: r.ID, PID: r.Process.PID, Program: Program(r), Where: Where(r), What: What(r), Time: r.Time, First: r.First, Last: r.Last, Count: r.Count,
		Asked: Requested(r), By: strings.TrimSpace(line + " " + function), Free: Free(r), Verdict: Verdict(r), Fits: fixLabel(r), Fixes: append([]string{}, Fixes(r, now)...),
		Notes: append(append([]string{}, Doubts(r)...), Others(r)...), Bank: Bank(r), Holders: []PageHolder{}, Stack: frames(r.Stack), Map: newPageMap(r, holders),
	}
	for i := range holders {
		h := &holders[i]
		x := PageHolder{Name: h.Name(), Function: h.Function, Tensor: h.Tensor, Number: h.Number, Bytes: h.Bytes, Size: words.Bytes(h.Bytes), Blocks: h.Blocks, Stack: frames(h.Stack)}
		if !h.Oldest.IsZero() {
			x.Age = words.Duration(r.Time.Sub(h.Oldest))
		}
		p.Holders = append(p.Holders, x)
	}
	return p
}

// frames are the lines of a stack, with the whole paths.
func frames(stack []ledgerfile.Frame) []string {
	list := []string{}
	for _, f := range stack {
		list = append(list, strings.TrimSpace(fmt.Sprintf("%s%s %s", words.Escape(f.File), position(f), words.Escape(f.Function))))
	}
	return list
}

func newPageMap(r *failure.Record, holders []Holder) *PageMap {
	l := r.State
	if l == nil || l.Capacity == 0 {
		return nil
	}
	m := &PageMap{Base: l.Base, Capacity: l.Capacity, Size: words.Bytes(l.Capacity), Cut: l.Cut, Exact: l.Exact(), Blocks: [][4]uint64{}}
	m.Piece, m.Hole, m.Label = piece(r)
	number := numbers(holders)
	all := slices.Collect(l.All())
	if len(all) > maxPageBlocks {
		slices.SortStableFunc(all, func(a, b blocks.Block) int { return cmp.Compare(b.Size, a.Size) })
		m.LeftOut = len(all) - maxPageBlocks
		all = all[:maxPageBlocks]
		slices.SortFunc(all, func(a, b blocks.Block) int { return cmp.Compare(a.Addr, b.Addr) })
	}
	for _, b := range all {
		age := uint64(0)
		if b.Born > 0 {
			age = uint64(max(r.Time.Sub(time.Unix(0, b.Born)).Milliseconds(), 1))
		}
		m.Blocks = append(m.Blocks, [4]uint64{b.Addr, b.Size, uint64(number[b.Site]), age})
	}
	return m
}

// numbers are those of the holders, by site.
func numbers(holders []Holder) map[uint32]int {
	out := map[uint32]int{}
	for i := range holders {
		for _, s := range holders[i].sites {
			out[s] = holders[i].Number
		}
	}
	return out
}

// piece is what was asked for of a bank, where it is drawn, and what is written
// beside it. Circular buffers lie at the low end.
func piece(r *failure.Record) (bytes, at uint64, label string) {
	if r.Kind == failure.Clash {
		return r.Clash.Reach - min(r.Clash.Base, r.Clash.Reach), r.State.Base, "circular buffers"
	}
	var largest blocks.Range
	for h := range r.State.Holes() {
		if h.Size > largest.Size {
			largest = h
		}
	}
	if largest.Size == 0 {
		largest.Addr = r.State.Base
	}
	if r.Kind == failure.Trace {
		return r.Region.Bank, largest.Addr, "the trace that was refused"
	}
	return r.Need(), largest.Addr, words.Bytes(r.Need()) + " were asked for"
}
