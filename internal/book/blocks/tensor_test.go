package blocks

import (
	"fmt"
	"testing"

	"github.com/ttmon/ttmon/internal/model"
)

func TestTensorRequest(t *testing.T) {
	for _, c := range []struct {
		tensor      Tensor
		bytes, page uint64
	}{
		{Tensor{Shape: []uint64{1, 1, 4096, 4096}, Type: "bfloat16", Layout: "tile"}, 4096 * 4096 * 2, 2048},
		{Tensor{Shape: []uint64{1, 1, 33, 1}, Type: "bfloat16", Layout: "tile"}, 2 * 2048, 2048},
		{Tensor{Shape: []uint64{2, 3, 32, 32}, Type: "bfloat8_b", Layout: "tile"}, 6 * 1088, 1088},
		{Tensor{Shape: []uint64{7, 100}, Type: "float32", Layout: "row_major"}, 7 * 400, 400},
		{Tensor{Shape: []uint64{100}, Type: "uint8", Layout: "row_major"}, 100, 100},
	} {
		t.Run(fmt.Sprint(c.tensor.Shape), func(t *testing.T) {
			r, err := c.tensor.Request()
			if err != nil || r.Bytes != c.bytes || r.Page != c.page {
				t.Errorf("%+v: %+v %v", c.tensor, r, err)
			}
		})
	}
	for _, bad := range []Tensor{
		{Shape: nil, Type: "bfloat16", Layout: "tile"},
		{Shape: []uint64{1}, Type: "bfloat17", Layout: "tile"},
		{Shape: []uint64{1}, Type: "bfloat16", Layout: "diagonal"},
		{Shape: []uint64{1}, Type: "bfloat8_b", Layout: "row_major"},
		{Shape: []uint64{1 << 40, 1 << 40, 1 << 40}, Type: "bfloat16", Layout: "tile"},
		{Shape: []uint64{1 << 62}, Type: "uint32", Layout: "row_major"},
	} {
		t.Run(fmt.Sprintf("%v %s %s", bad.Shape, bad.Type, bad.Layout), func(t *testing.T) {
			if r, err := bad.Request(); err == nil {
				t.Errorf("%+v is accepted: %+v", bad, r)
			}
		})
	}
}

// TestShards: what ttnn 0.76 and 0.81 were seen to take from each core.
func TestShards(t *testing.T) {
	over := func(x Tensor, rows, columns uint64) Tensor {
		s, err := x.Over(rows, columns)
		if err != nil {
			t.Fatal(err)
		}
		x.Shard = s
		return x
	}
	l1 := Geometry{Pool: model.L1, Banks: 110, Capacity: 1428352, Align: 64, Smallest: 64}
	tiles := func(shape ...uint64) Tensor { return Tensor{Shape: shape, Type: "bfloat16", Layout: "tile"} }
	rows := func(kind string, shape ...uint64) Tensor {
		return Tensor{Shape: shape, Type: kind, Layout: "row_major"}
	}
	for _, c := range []struct {
		name         string
		tensor       Tensor
		shards, bank uint64
	}{
		{"height", over(tiles(1, 1, 256, 64), 8, 1), 8, 4096},
		{"height, the last with less", over(tiles(1, 1, 3200, 64), 8, 1), 8, 53248},
		{"height, padded", over(tiles(1, 1, 100, 64), 4, 1), 4, 4096},
		{"width", over(tiles(1, 1, 32, 480), 1, 8), 8, 4096},
		{"block", over(tiles(1, 1, 224, 224), 4, 4), 16, 8192},
		{"rows", over(rows("bfloat16", 1, 1, 75, 100), 8, 1), 8, 2112},
		{"rows of bytes", over(rows("uint8", 1, 1, 80, 100), 8, 1), 8, 1152},
		{"parts of rows", over(rows("bfloat16", 1, 1, 8, 800), 1, 8), 8, 1664},
		{"tiles of bytes", over(Tensor{Shape: []uint64{1, 1, 256, 64}, Type: "bfloat8_b", Layout: "tile"}, 8, 1), 8, 2176},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := c.tensor.Request()
			if got, _ := l1.Need(r); err != nil || r.Shards != c.shards || got != c.bank {
				t.Errorf("%+v takes %d of each core, %v; want %d shards, %d", r, got, err, c.shards, c.bank)
			}
		})
	}
	for _, bad := range []Shard{{20, 64}, {32, 0}, {512, 64}, {32, 128}} {
		t.Run(fmt.Sprint(bad), func(t *testing.T) {
			x := tiles(1, 1, 256, 64)
			x.Shard = bad
			if r, err := x.Request(); err == nil {
				t.Errorf("a shard of %v is accepted: %+v", bad, r)
			}
		})
	}
}
