package callsite

import (
	"testing"

	"github.com/ttmon/ttmon/lib/ledgerfile"
)

func TestWhere(t *testing.T) {
	const (
		native    = "/usr/lib/libtt_metal.so"
		installed = "/usr/lib/python3.12/site-packages/torch/nn.py"
		ttnn      = "/home/x/tt-metal/ttnn/decorators.py"
		own       = "/home/x/train.py"
	)
	for _, tt := range []struct {
		stack []string // innermost first
		want  string
	}{
		{nil, ""},
		{[]string{native, installed, ttnn, own}, ttnn},
		{[]string{native, installed, own}, own},
		{[]string{native, installed}, installed},
		{[]string{native}, native},
		{[]string{"<frozen runpy>", own}, own},
		{[]string{"/opt/lib/libx.so.3", "<frozen runpy>"}, "<frozen runpy>"},
	} {
		var stack []ledgerfile.Frame
		for _, file := range tt.stack {
			stack = append(stack, ledgerfile.Frame{File: file})
		}
		if f, ok := Where(stack); f.File != tt.want || ok != (len(stack) > 0) {
			t.Errorf("%q: %q, %v", tt.stack, f.File, ok)
		}
	}
}
