package bankmap

import (
	"bytes"
	"fmt"
	"math/bits"
	"strings"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/model"
)

// reported are the pools that tt-metal's memory reporter knows.
var reported = []model.Pool{model.DRAM, model.L1, model.L1Small}

// Reportable reports whether what is free is known of every pool of the reports.
func Reportable(a *blocks.Allocator) bool {
	for _, pool := range reported {
		for _, l := range a.Pool(pool) {
			if _, known := l.Space(); !known && l.Capacity > 0 {
				return false
			}
		}
	}
	return true
}

// Reports are the files that tt-metal's memory reporter writes for a device,
// by name: the same columns, rows and order. The allocator is Reportable.
func Reports(a *blocks.Allocator) map[string][]byte {
	var summary, l1, detailed bytes.Buffer
	summary.WriteString(", Total Allocatable Size (B), Total Allocated (B), Total Free (B), Largest Free Block (B)\n")
	l1.WriteString("This report indicates available space for interleaving L1 buffers\n")
	l1.WriteString(", Largest Contiguous Free Block (B), Total Free L1 Space (B)\n")
	for _, pool := range reported {
		l := &blocks.List{} // a pool that was not opened is there, and empty
		if lists := a.Pool(pool); len(lists) > 0 {
			l = lists[0]
		}
		space, _ := l.Space()
		fmt.Fprintf(&summary, ",%d,%d,%d,%d\n", l.Capacity, l.Usage().BankBytes, space.Free, space.Largest)
		if pool == model.L1 {
			fmt.Fprintf(&l1, ",%d,%d\n", space.Largest, space.Largest*l.Banks)
		}
		detail(&detailed, strings.ToUpper(pool.String()), l, space)
	}
	return map[string][]byte{
		"memory_usage_summary.csv": summary.Bytes(), "l1_usage_summary.csv": l1.Bytes(), "detailed_memory_usage.csv": detailed.Bytes(),
	}
}

// entry is a row of the table of blocks, free ones among them.
type entry struct {
	at, size uint64
	taken    bool
}

func entries(l *blocks.List) (rows []entry) {
	at := l.Base + l.Cut
	for b := range l.All() {
		if b.Addr > at {
			rows = append(rows, entry{at - l.Base, b.Addr - at, false})
		}
		rows = append(rows, entry{b.Addr - l.Base, b.Size, true})
		at = b.End()
	}
	if end := l.Base + l.Capacity; end > at || len(rows) == 0 { // a pool that was not opened has an empty block
		rows = append(rows, entry{at - l.Base, end - at, false})
	}
	return rows
}

// detail writes the part of one pool: sums over all banks, free blocks by size,
// and the table. Blocks are numbered by address; tt-metal numbers them by age.
func detail(out *bytes.Buffer, name string, l *blocks.List, space blocks.Space) {
	fmt.Fprintf(out, ",%s\n,Total allocatable (B):,%d\n,Total allocated (B):,%d\n,Total free (B):,%d\n",
		name, l.Capacity*l.Banks, l.Usage().BankBytes*l.Banks, space.Free*l.Banks)
	out.WriteString("FreeListOpt allocator info:\nsegregated free blocks by size:\n")
	rows := entries(l)
	const smallest, most = 1024, 18
	classes := min(max(2, bits.Len64(l.Capacity/smallest)), most) // as tt-metal makes them
	for class := range classes {
		low := uint64(smallest) << class
		high := fmt.Sprint(low * 2)
		if class == classes-1 {
			high = "inf"
		}
		fmt.Fprintf(out, "  Size class %d: (%d - %s) blocks: ", class, low, high)
		for i, r := range rows {
			if !r.taken && classOf(r.size, smallest, classes) == class {
				fmt.Fprintf(out, "%d ", i)
			}
		}
		out.WriteByte('\n')
	}
	out.WriteString("Free slots in block table: \nBlock table:\n")
	fmt.Fprintf(out, "%12s %12s %12s %12s %12s %12s \n", "Block", "Address", "Size", "PrevID", "NextID", "Allocated")
	for i, r := range rows {
		previous, next, taken := fmt.Sprint(i-1), fmt.Sprint(i+1), "no"
		if i == 0 {
			previous = "none"
		}
		if i == len(rows)-1 {
			next = "none"
		}
		if r.taken {
			taken = "yes"
		}
		fmt.Fprintf(out, "%12d %12d %12d %12s %12s %12s\n", i, r.at, r.size, previous, next, taken)
	}
}

func classOf(size, smallest uint64, classes int) int {
	if size < smallest {
		return 0
	}
	return min(bits.Len64(size/smallest)-1, classes-1)
}
