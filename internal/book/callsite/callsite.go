// Package callsite says which line of a program a stack stands for: the rule is one
// for reports of runs, recordings and the page.
package callsite

import (
	"path/filepath"
	"strings"

	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// Where is the innermost frame of a stack that is not in a library: not in an
// installed one or in ttnn, else not in native code. Where all are, it is the
// innermost of all.
func Where(stack []ledgerfile.Frame) (ledgerfile.Frame, bool) {
	own := Own(stack)
	if len(own) == 0 {
		return ledgerfile.Frame{}, false
	}
	return own[0], true
}

// Own are the frames of a stack that are not in a library, innermost first. Of a
// stack that has none it is those that are not native, or all.
func Own(stack []ledgerfile.Frame) []ledgerfile.Frame {
	for _, foreign := range []func(string) bool{inLibrary, isNative} {
		var own []ledgerfile.Frame
		for _, f := range stack {
			if !foreign(f.File) && !isNative(f.File) {
				own = append(own, f)
			}
		}
		if len(own) > 0 {
			return own
		}
	}
	return stack
}

// Lines says of each stack the frame that tells it from the others: the line that
// asked or, where several stacks share that line, the caller at which they part.
// A small function that all allocations go through is not credited with them.
func Lines(stacks [][]ledgerfile.Frame) []ledgerfile.Frame {
	own := make([][]ledgerfile.Frame, len(stacks))
	lines := make([]ledgerfile.Frame, len(stacks))
	groups := map[ledgerfile.Frame][]int{}
	for i, s := range stacks {
		if own[i] = Own(s); len(own[i]) == 0 {
			continue
		}
		lines[i] = own[i][0]
		groups[lines[i]] = append(groups[lines[i]], i)
	}
	for _, group := range groups {
		depth := parts(own, group)
		for _, i := range group {
			lines[i] = own[i][min(depth, len(own[i])-1)]
		}
	}
	return lines
}

// parts is the depth at which the stacks of a group part first; 0: they do not.
func parts(own [][]ledgerfile.Frame, group []int) int {
	for depth := 1; ; depth++ {
		deeper := false
		first := own[group[0]]
		for _, i := range group {
			if len(own[i]) > depth {
				deeper = true
			}
			if len(own[i]) > depth != (len(first) > depth) || len(first) > depth && own[i][depth] != first[depth] {
				return depth
			}
		}
		if !deeper {
			return 0
		}
	}
}

// inLibrary reports whether code was installed, rather than being worked on.
func inLibrary(file string) bool {
	return inTTNN(file) || strings.Contains(file, "/site-packages/") || strings.Contains(file, "/dist-packages/") ||
		strings.Contains(file, "/lib/python3.") || strings.HasPrefix(file, "<frozen ")
}

// inTTNN reports whether code is ttnn's own, in a checkout of tt-metal.
func inTTNN(file string) bool { return strings.Contains(file, "/ttnn/ttnn/") }

func isNative(file string) bool {
	base := filepath.Base(file)
	return strings.HasSuffix(base, ".so") || strings.Contains(base, ".so.")
}
