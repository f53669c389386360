// Package callsite says which line of a program a stack stands for: the rule is one
// for reports of runs, recordings and the page.
package callsite

import (
	"path/filepath"
	"strings"

	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// Where is the innermost frame of a stack that is not in a library: not in an
// installed one, else not in ttnn, else not in native code. Where all are, it is
// the innermost of all.
func Where(stack []ledgerfile.Frame) (ledgerfile.Frame, bool) {
	if len(stack) == 0 {
		return ledgerfile.Frame{}, false
	}
	for _, foreign := range []func(string) bool{inLibrary, inTTNN, isNative} {
		for _, f := range stack {
			if !foreign(f.File) && !isNative(f.File) {
				return f, true
			}
		}
	}
	return stack[0], true
}

// inLibrary reports whether code was installed, rather than being worked on.
func inLibrary(file string) bool {
	return strings.Contains(file, "/site-packages/") || strings.Contains(file, "/dist-packages/") ||
		strings.Contains(file, "/lib/python3.") || strings.HasPrefix(file, "<frozen ")
}

func inTTNN(file string) bool { return strings.Contains(file, "/ttnn/") }

func isNative(file string) bool {
	base := filepath.Base(file)
	return strings.HasSuffix(base, ".so") || strings.Contains(base, ".so.")
}
