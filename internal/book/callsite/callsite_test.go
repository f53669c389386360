package callsite

import (
	"fmt"
	"path"
	"slices"
	"testing"

	"github.com/ttmon/ttmon/lib/ledgerfile"
)

func TestWhere(t *testing.T) {
	const (
		native    = "/usr/lib/libtt_metal.so"
		installed = "/usr/lib/python3.12/site-packages/torch/nn.py"
		ttnn      = "/home/x/tt-metal/ttnn/ttnn/decorators.py"
		own       = "/home/x/train.py"
	)
	for _, tt := range []struct {
		stack []string // innermost first
		want  string
	}{
		{nil, ""},
		{[]string{native, installed, ttnn, own}, own},
		{[]string{native, installed, ttnn}, installed},
		{[]string{native, installed, own}, own},
		{[]string{native, installed}, installed},
		{[]string{native}, native},
		{[]string{"<frozen runpy>", own}, own},
		{[]string{"/opt/lib/libx.so.3", "<frozen runpy>"}, "<frozen runpy>"},
	} {
		t.Run(fmt.Sprintf("%s of %d", path.Base(tt.want), len(tt.stack)), func(t *testing.T) {
			var stack []ledgerfile.Frame
			for _, file := range tt.stack {
				stack = append(stack, ledgerfile.Frame{File: file})
			}
			if f, ok := Where(stack); f.File != tt.want || ok != (len(stack) > 0) {
				t.Errorf("%q: %q, %v", tt.stack, f.File, ok)
			}
		})
	}
}

func TestLines(t *testing.T) {
	frame := func(file string, line int) ledgerfile.Frame { return ledgerfile.Frame{File: file, Line: line} }
	const lib = "/x/site-packages/ttnn/decorators.py"
	helper, deco := frame("oom.py", 6), frame(lib, 9)
	for _, tt := range []struct {
		name   string
		stacks [][]ledgerfile.Frame
		want   []ledgerfile.Frame
	}{
		{"a helper that several lines call", [][]ledgerfile.Frame{{deco, helper, frame("oom.py", 10)}, {deco, helper, frame("oom.py", 12)}}, []ledgerfile.Frame{frame("oom.py", 10), frame("oom.py", 12)}},
		{"two helpers deep", [][]ledgerfile.Frame{{helper, frame("oom.py", 8), frame("oom.py", 20)}, {helper, frame("oom.py", 8), frame("oom.py", 21)}}, []ledgerfile.Frame{frame("oom.py", 20), frame("oom.py", 21)}},
		{"one is called from the top", [][]ledgerfile.Frame{{helper}, {helper, frame("oom.py", 8)}}, []ledgerfile.Frame{helper, frame("oom.py", 8)}},
		{"lines of their own", [][]ledgerfile.Frame{{deco, frame("a.py", 1), frame("m.py", 1)}, {deco, frame("b.py", 2), frame("m.py", 1)}}, []ledgerfile.Frame{frame("a.py", 1), frame("b.py", 2)}},
		{"alone", [][]ledgerfile.Frame{{deco, helper, frame("oom.py", 10)}}, []ledgerfile.Frame{helper}},
		{"the same twice", [][]ledgerfile.Frame{{helper, frame("oom.py", 10)}, {helper, frame("oom.py", 10)}}, []ledgerfile.Frame{helper, helper}},
		{"no stack", [][]ledgerfile.Frame{nil, {helper}}, []ledgerfile.Frame{{}, helper}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Lines(tt.stacks); !slices.Equal(got, tt.want) {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
}
