package failure

import (
	"strconv"
	"strings"
)

// Tensor is what a buffer was asked for.
type Tensor struct {
	Shape  []uint64 `json:"shape"`
	Type   string   `json:"dtype,omitempty"`
	Layout string   `json:"layout,omitempty"`
	// Memory is how it is spread over the banks: interleaved, height_sharded, ….
	Memory string `json:"memory_layout,omitempty"`
}

// maxDimensions is how many dimensions a tensor has at most.
const maxDimensions = 8

// ParseTensor reads what libttmon writes down of a tensor,
// "[1,8,4096,128] bfloat16 tile interleaved"; nil where it is something else.
func ParseTensor(text string) *Tensor {
	shape, rest, ok := strings.Cut(strings.TrimPrefix(text, "["), "]")
	if !ok || !strings.HasPrefix(text, "[") {
		return nil
	}
	t := &Tensor{Shape: []uint64{}}
	if shape != "" {
		for _, s := range strings.Split(shape, ",") {
			n, err := strconv.ParseUint(s, 10, 32)
			if err != nil || len(t.Shape) == maxDimensions {
				return nil
			}
			t.Shape = append(t.Shape, n)
		}
	}
	words := append(strings.Fields(rest), "", "", "")
	t.Type, t.Layout, t.Memory = words[0], words[1], words[2]
	return t
}
