package runreport

import (
	"testing"

	"github.com/ttmon/ttmon/internal/book/runs"
)

// TestGrown: what came in each quarter of the run grew.
func TestGrown(t *testing.T) {
	place := func(line int, quarters ...uint64) runs.Place {
		p := runs.Place{Stack: []runs.Frame{{File: "a.py", Line: line}}, Quarters: quarters}
		for _, n := range quarters {
			p.Add(runs.Amount{Bytes: n << 20, Blocks: n})
		}
		return p
	}
	for name, tt := range map[string]struct {
		left []runs.Place
		want []bool
	}{
		"a leak beside weights":       {[]runs.Place{place(1, 3, 2, 3, 1), place(2, 40, 0, 0, 0), place(3, 0, 0, 0, 2)}, []bool{true, false, false}},
		"nothing but a leak":          {[]runs.Place{place(1, 3, 2, 3, 1)}, []bool{true}},
		"a leak of two kinds":         {[]runs.Place{place(1, 3, 0, 3, 0), place(1, 0, 2, 0, 2)}, []bool{true, true}},
		"too few":                     {[]runs.Place{place(1, 1, 1, 1, 0)}, []bool{false}},
		"a ledger of an older writer": {[]runs.Place{place(1)}, []bool{false}},
	} {
		t.Run(name, func(t *testing.T) {
			p := &runs.Blocks{LeftBy: tt.left}
			for _, x := range tt.left {
				p.Left.Add(x.Amount)
			}
			markGrown(p)
			var want runs.Amount
			for i, x := range p.LeftBy {
				if x.Grew != tt.want[i] {
					t.Errorf("line %d: grew %v", i, x.Grew)
				}
				if tt.want[i] {
					want.Add(x.Amount)
				}
			}
			if p.Grown != want {
				t.Errorf("grown %+v, want %+v", p.Grown, want)
			}
		})
	}
}
