package failure

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseTensor(t *testing.T) {
	for text, want := range map[string]*Tensor{
		"[1,8,4096,128] bfloat16 tile interleaved": {Shape: []uint64{1, 8, 4096, 128}, Type: "bfloat16", Layout: "tile", Memory: "interleaved"},
		"[32] uint32":                  {Shape: []uint64{32}, Type: "uint32"},
		"[]":                           {Shape: []uint64{}},
		"":                             nil,
		"1,2]":                         nil,
		"[1,2":                         nil,
		"[1,-2] bfloat16":              nil,
		"[1,2,3,4,5,6,7,8,9] bfloat16": nil,
	} {
		t.Run(text, func(t *testing.T) {
			if diff := cmp.Diff(want, ParseTensor(text)); diff != "" {
				t.Errorf("%q: %s", text, diff)
			}
		})
	}
}

func FuzzParseTensor(f *testing.F) {
	f.Add("[1,8,4096,128] bfloat16 tile interleaved")
	f.Fuzz(func(t *testing.T, text string) {
		if x := ParseTensor(text); x != nil && len(x.Shape) > maxDimensions {
			t.Errorf("%q has %d dimensions", text, len(x.Shape))
		}
	})
}
