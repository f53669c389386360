package main

import (
	"testing"

	"github.com/ttmon/ttmon/internal/lab/clidocs"
)

// docs/ has a page and a manual page per command, made from the tree.
func TestDocs(t *testing.T) {
	clidocs.Pages(t, rootCommand(), "../../docs/commands")
	clidocs.Manual{}.Check(t, rootCommand(), "../../docs/man")
}
