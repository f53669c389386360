package top

import (
	"slices"

	"github.com/ttmon/ttmon/internal/field/metric"
	"github.com/ttmon/ttmon/internal/model"
)

// tree puts children below their parents, siblings in the given order.
// Parents that use no device are not in a snapshot; where several processes
// share such a parent, a row stands in for it.
func tree(rows []row, value func(*model.Process) metric.Value, order func(a, b *row) int) []row {
	byPID := map[int]int{}
	siblings := map[int]int{}
	for i := range rows {
		byPID[rows[i].p.PID] = i
		siblings[rows[i].p.PPID]++
	}
	for ppid, n := range siblings {
		if _, listed := byPID[ppid]; !listed && n > 1 && ppid > 1 {
			byPID[ppid] = len(rows)
			rows = append(rows, row{p: &model.Process{PID: ppid, State: model.Running}, parent: true})
		}
	}
	children := map[int][]int{}
	var roots []int
	for i := range rows {
		p := rows[i].p
		if at, ok := byPID[p.PPID]; ok && p.PPID != p.PID && p.PPID > 0 && at != i {
			children[at] = append(children[at], i)
		} else {
			roots = append(roots, i)
		}
	}
	b := treeBuilder{rows: rows, children: children, order: order}
	for i := range rows {
		if rows[i].parent {
			b.stand(i)
			rows[i].sort = value(rows[i].p)
		}
	}
	b.add(roots, "", 0)
	// Pids seen at different moments can form a cycle: no process is lost to it.
	for i := range rows {
		if !slices.Contains(b.done, i) {
			b.add([]int{i}, "", 0)
		}
	}
	return b.out
}

type treeBuilder struct {
	rows     []row
	children map[int][]int
	order    func(a, b *row) int
	out      []row
	done     []int
}

// stand gives a stand-in what its children have of devices, so that it shows their sums
// and sorts where they belong.
func (b *treeBuilder) stand(i int) {
	r := &b.rows[i]
	for _, c := range b.children[i] {
		r.below++
		r.p.Devices = append(r.p.Devices, b.rows[c].p.Devices...)
	}
}

func (b *treeBuilder) add(list []int, prefix string, depth int) {
	slices.SortStableFunc(list, func(x, y int) int { return b.order(&b.rows[x], &b.rows[y]) })
	for n, i := range list {
		if slices.Contains(b.done, i) {
			continue
		}
		b.done = append(b.done, i)
		r := b.rows[i]
		r.depth = depth
		below := prefix
		if depth > 0 {
			if n == len(list)-1 {
				r.branch, below = prefix+"└─ ", prefix+"   "
			} else {
				r.branch, below = prefix+"├─ ", prefix+"│  "
			}
		}
		b.out = append(b.out, r)
		b.add(b.children[i], below, depth+1)
	}
}
