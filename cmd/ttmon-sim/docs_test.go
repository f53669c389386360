package main

import (
	"flag"
	"testing"

	"github.com/ttmon/ttmon/internal/clidocs"
)

var update = flag.Bool("update", false, "write the pages of docs/ anew")

// docs/ has a page and a manual page per command, made from the tree.
func TestDocs(t *testing.T) {
	clidocs.Pages(t, rootCommand(), "../../docs/commands", *update)
	clidocs.Man(t, rootCommand(), "../../docs/man", *update)
}
