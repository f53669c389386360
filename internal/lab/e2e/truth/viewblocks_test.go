package truth

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/ttmon/ttmon/internal/model"
)

// blocks is mem -p of every process whose allocator is known.
func (l *looks) blocks() {
	for x := range l.live() {
		if x.other || x.inDRAM < 0 {
			continue
		}
		r := l.runTTMon("mem", "-p", strconv.Itoa(x.pid), "--json")
		if r.code != 0 {
			continue // it says why there are none
		}
		var doc blocksDoc
		if err := json.Unmarshal([]byte(r.out), &doc); err != nil {
			l.bad("mem -p --json", "%v: %s", err, r.out)
			continue
		}
		l.allocators(x, &doc)
	}
}

// blocksDoc is what mem -p --json prints.
type blocksDoc struct {
	Processes []struct {
		Allocators []struct {
			Pools []poolDoc
		}
	}
}

type poolDoc struct {
	Pool      string
	Exact     bool
	Used      *uint64 `json:"used_bytes"`
	UsedBound string  `json:"used_bound"`
	Occupied  *uint64 `json:"occupied_bytes"`
}

// dram are the pools of DRAM.
func (d *blocksDoc) dram() (list []poolDoc) {
	for _, p := range d.Processes {
		for _, a := range p.Allocators {
			for _, pool := range a.Pools {
				if pool.Pool == "dram" {
					list = append(list, pool)
				}
			}
		}
	}
	return list
}

// allocators judges what is said of the allocators of a process.
func (l *looks) allocators(x *holder, doc *blocksDoc) {
	var used, occupied model.Sum
	var doubts []model.Doubt
	add := func(sum *model.Sum, n *uint64, bound model.Bound) {
		if n == nil {
			sum.Miss(model.Absent)
			return
		}
		sum.Add(model.BoundBytes(*n, bound))
		doubts = append(doubts, model.Doubt{Kind: doubtOf[bound]}) // the document says no more
	}
	for _, p := range doc.dram() {
		bound := model.Exact
		if !p.Exact {
			bound = model.Unsure
		}
		add(&used, p.Used, max(bound, boundNamed[p.UsedBound]))
		add(&occupied, p.Occupied, bound)
	}
	name := fmt.Sprintf("process %d ", x.pid)
	for _, f := range []figure{
		{what: name + "used_bytes", want: exactly(x.used[model.DRAM]), said: used.Bytes()},
		{what: name + "occupied_bytes", want: exactly(uint64(x.inDRAM)), said: occupied.Bytes()},
	} {
		if f.view, f.doubts = "mem -p --json", doubts; f.said.Known() {
			l.add(f)
		}
	}
}
