package model

import "testing"

func TestSum(t *testing.T) {
	exact, least, unsure, denied := ExactBytes(5), BoundBytes(7, AtLeast), BoundBytes(11, Unsure), NoBytes(Denied)
	for name, c := range map[string]struct {
		parts []Bytes
		want  Bytes
	}{
		"nothing":               {nil, Bytes{}},
		"exact":                 {[]Bytes{exact, exact}, ExactBytes(10)},
		"exact and at least":    {[]Bytes{exact, least}, BoundBytes(12, AtLeast)},
		"exact and missing":     {[]Bytes{exact, denied}, BoundBytes(5, AtLeast)},
		"at least and unsure":   {[]Bytes{least, unsure}, BoundBytes(18, Unsure)},
		"unsure and missing":    {[]Bytes{unsure, denied}, BoundBytes(11, Unsure)},
		"missing only":          {[]Bytes{{}, denied}, denied},
		"at least 0 is missing": {[]Bytes{ExactBytes(0), denied}, denied},
		"unsure 0 is not":       {[]Bytes{BoundBytes(0, Unsure)}, BoundBytes(0, Unsure)},
	} {
		t.Run(name, func(t *testing.T) {
			if got := AddUp(c.parts...); got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
			for i := len(c.parts) - 1; i > 0; i-- { // in any order
				c.parts[i], c.parts[0] = c.parts[0], c.parts[i]
				if got := AddUp(c.parts...); got != c.want {
					t.Errorf("%s, in another order: %+v, want %+v", name, got, c.want)
				}
			}
		})
	}
}

func TestBytes(t *testing.T) {
	if BoundBytes(0, AtLeast).Known() {
		t.Error("at least 0 says something")
	}
	if b := ExactBytes(3).Doubted(Unsure).Doubted(AtLeast); b != BoundBytes(3, Unsure) {
		t.Errorf("a doubt was lost: %+v", b)
	}
	if b := NoBytes(Denied).Doubted(Unsure); b != NoBytes(Denied) {
		t.Errorf("a missing figure became %+v", b)
	}
	text, err := BoundBytes(9, AtLeast).MarshalJSON()
	var back Bytes
	if err != nil || back.UnmarshalJSON(text) != nil || back != BoundBytes(9, AtLeast) {
		t.Errorf("%s reads as %+v", text, back)
	}
	defer func() {
		if recover() == nil {
			t.Error("a missing figure could be made known")
		}
	}()
	NoBytes(Known)
}

func TestDoubts(t *testing.T) {
	a := Doubt{Kind: SlotShared, PIDs: []int{1, 2}}
	list := AddDoubts(nil, a, Doubt{Kind: SlotShared, PIDs: []int{1, 2}}, Doubt{Kind: SlotShared, PIDs: []int{1, 3}}, Doubt{Kind: OtherThreads})
	if len(list) != 3 {
		t.Errorf("%+v", list)
	}
	if WorstBound(list) != Unsure || WorstBound(list[:2]) != Exact {
		t.Errorf("worst %v", WorstBound(list))
	}
}

func TestPoolBytesTotal(t *testing.T) {
	var b PoolBytes
	if b.Total().Known() {
		t.Error("nothing known has a total")
	}
	b[L1], b[DRAM] = ExactBytes(5), BoundBytes(7, Unsure)
	if b.Total() != BoundBytes(12, Unsure) {
		t.Errorf("total %+v", b.Total())
	}
	if len(Pools()) != int(NumPools) || Pools()[3].String() != "trace" {
		t.Error("a pool is missing from the list")
	}
}
