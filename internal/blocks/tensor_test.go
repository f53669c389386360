package blocks

import "testing"

func TestTensorRequest(t *testing.T) {
	for _, c := range []struct {
		tensor      Tensor
		bytes, page uint64
	}{
		{Tensor{[]uint64{1, 1, 4096, 4096}, "bfloat16", "tile"}, 4096 * 4096 * 2, 2048},
		{Tensor{[]uint64{1, 1, 33, 1}, "bfloat16", "tile"}, 2 * 2048, 2048},
		{Tensor{[]uint64{2, 3, 32, 32}, "bfloat8_b", "tile"}, 6 * 1088, 1088},
		{Tensor{[]uint64{7, 100}, "float32", "row_major"}, 7 * 400, 400},
		{Tensor{[]uint64{100}, "uint8", "row_major"}, 100, 100},
	} {
		r, err := c.tensor.Request()
		if err != nil || r.Bytes != c.bytes || r.Page != c.page {
			t.Errorf("%+v: %+v %v", c.tensor, r, err)
		}
	}
	for _, bad := range []Tensor{
		{nil, "bfloat16", "tile"},
		{[]uint64{1}, "bfloat17", "tile"},
		{[]uint64{1}, "bfloat16", "diagonal"},
		{[]uint64{1}, "bfloat8_b", "row_major"},
		{[]uint64{1 << 40, 1 << 40, 1 << 40}, "bfloat16", "tile"},
		{[]uint64{1 << 62}, "uint32", "row_major"},
	} {
		if r, err := bad.Request(); err == nil {
			t.Errorf("%+v is accepted: %+v", bad, r)
		}
	}
}
