package bankmap

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/model"
)

func TestFitQuery(t *testing.T) {
	for _, c := range []struct {
		ask  FitQuery
		want FitRequest
		err  string
	}{
		{ask: FitQuery{Size: "512M"}, want: FitRequest{What: "512 MiB", Pool: model.DRAM, Request: blocks.Request{Bytes: 512 << 20}}},
		{ask: FitQuery{Size: "1k", Pool: "l1_small"}, want: FitRequest{What: "1.0 KiB", Pool: model.L1Small, Request: blocks.Request{Bytes: 1024}}},
		{ask: FitQuery{Size: "much"}, err: `"much" is not a size`},
		{ask: FitQuery{Size: "1G", Pool: "cb"}, err: `"cb" is not one of dram, l1, l1_small and trace`},
		{ask: FitQuery{Shape: "1,0,32"}, err: `"1,0,32" is not a shape`},
		{ask: FitQuery{Shape: "32,32", Type: "int5"}, err: "int5"},
		{ask: FitQuery{Shape: "256,64", Shard: "32x64", Pool: "l1"}, want: FitRequest{
			What: "[256,64] bfloat16 tile in shards of 32x64 (32 KiB)", Pool: model.L1, Request: blocks.Request{Bytes: 32 << 10, Page: 2048, Shards: 8, ShardPages: 2},
		}},
		{ask: FitQuery{Shape: "256,64", Shard: "height:8", Pool: "l1"}, want: FitRequest{
			What: "[256,64] bfloat16 tile in shards of 32x64 (32 KiB)", Pool: model.L1, Request: blocks.Request{Bytes: 32 << 10, Page: 2048, Shards: 8, ShardPages: 2},
		}},
		{ask: FitQuery{Shape: "256,64", Shard: "width:2", Pool: "l1"}, want: FitRequest{
			What: "[256,64] bfloat16 tile in shards of 256x32 (32 KiB)", Pool: model.L1, Request: blocks.Request{Bytes: 32 << 10, Page: 2048, Shards: 2, ShardPages: 8},
		}},
		{ask: FitQuery{Shape: "256,64", Shard: "block:4x2", Pool: "l1"}, want: FitRequest{
			What: "[256,64] bfloat16 tile in shards of 64x32 (32 KiB)", Pool: model.L1, Request: blocks.Request{Bytes: 32 << 10, Page: 2048, Shards: 8, ShardPages: 2},
		}},
		{ask: FitQuery{Shape: "256,64", Shard: "height:4x4"}, err: "is not a shard"},
		{ask: FitQuery{Shape: "256,64", Shard: "nd:4"}, err: "is not a shard"},
		{ask: FitQuery{Shape: "256,64", Shard: "0x64"}, err: "is not a shard"},
		{ask: FitQuery{Size: "1M", Shard: "32x32"}, err: "needs a shape"},
		{ask: FitQuery{Size: "1000", Pool: "l1", PerCore: true, Cores: "1,2-3,4"}, want: FitRequest{
			What: "1000 B of a core", Pool: model.L1, Request: blocks.Request{Page: 1000, Shards: 1, ShardPages: 1}, PerCore: true, Cores: &coreRange{1, 2, 3, 4},
		}},
		{ask: FitQuery{Shape: "256,64", Shard: "height:8", Pool: "l1", Range: true, Cores: "5,0"}, want: FitRequest{
			What: "[256,64] bfloat16 tile in shards of 32x64 (32 KiB)", Pool: model.L1, Request: blocks.Request{Bytes: 32 << 10, Page: 2048, Shards: 8, ShardPages: 2},
			Range: true, Cores: &coreRange{5, 0, 5, 0},
		}},
		{ask: FitQuery{Size: "1M", Pool: "l1", Cores: "1,2"}, err: "cores are those of a buffer"},
		{ask: FitQuery{Size: "1M", Pool: "l1", PerCore: true, Range: true}, err: "not both"},
		{ask: FitQuery{Size: "1M", PerCore: true}, err: "DRAM is not given out core by core"},
		{ask: FitQuery{Shape: "256,64", Pool: "l1", PerCore: true}, err: "needs a shard"},
		{ask: FitQuery{Size: "1M", Pool: "l1", Range: true, Cores: "3,4-1,2"}, err: "from the upper left"},
		{ask: FitQuery{Size: "1M", Pool: "l1", Range: true, Cores: "1-2"}, err: "are no cores"},
		{ask: FitQuery{Size: "1M", Pool: "l1", Range: true, Cores: "-1,2"}, err: "are no cores"},
	} {
		t.Run(fmt.Sprint(c.ask), func(t *testing.T) {
			got, err := c.ask.Parse()
			switch {
			case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
				t.Errorf("%+v: error %v, want %s", c.ask, err, c.err)
			case c.err == "" && (err != nil || !reflect.DeepEqual(got, c.want)):
				t.Errorf("%+v: %+v %v, want %+v", c.ask, got, err, c.want)
			}
		})
	}
}

// Where events were lost the map may be wrong, and so may be every answer.
func TestAnswer(t *testing.T) {
	p := sample()
	l := p.Allocators[1].Lists[0]
	w := FitRequest{What: "that", Pool: model.DRAM, Request: blocks.Request{Bytes: 1 << 20}}
	if line, fit := w.answer(p, l); fit == nil || !strings.Contains(line, "yes") {
		t.Errorf("%s %v", line, fit)
	}
	p.Lost = 3
	if line, fit := w.answer(p, l); fit != nil || !strings.Contains(line, "not known") {
		t.Errorf("with lost events: %s %v", line, fit)
	}
}
