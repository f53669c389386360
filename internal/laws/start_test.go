package laws

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/hermetic"
)

// startsOnPurpose are the packages that may run code before main.
var startsOnPurpose = []string{
	"internal/source/kmd", // its table of files has functions made of functions; nearly every command needs it
	"lib/ledgerfile",      // a variable without size: a return, and nothing else
}

// TestNothingOfOursRunsBeforeMain: no package of ours that ttmon links has code that
// runs at every start, whatever the command: a map, a pattern, a call. Each of them
// takes a page of code from the disk's cache, which is most of its cost. Tables are
// switches, lists, or made on first use (internal/lazy).
func TestNothingOfOursRunsBeforeMain(t *testing.T) {
	hermetic.Long(t)
	bin := filepath.Join(t.TempDir(), "ttmon")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", bin, module+"cmd/ttmon")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	symbols, err := exec.Command("go", "tool", "nm", bin).Output()
	if err != nil {
		t.Fatal(err)
	}
	initialiser := regexp.MustCompile(`(?m) [Tt] (` + regexp.QuoteMeta(module) + `[^\s()]+|main)\.init(\.\d+)?$`)
	var seen []string
	for _, m := range initialiser.FindAllStringSubmatch(string(symbols), -1) {
		seen = append(seen, strings.TrimPrefix(m[1], module))
	}
	for _, name := range seen {
		if !slices.Contains(startsOnPurpose, name) {
			t.Errorf("%s has variables that are made at every start of ttmon: make them on first use, see internal/lazy", name)
		}
	}
	for _, name := range startsOnPurpose {
		if !slices.Contains(seen, name) {
			t.Errorf("%s runs nothing at the start any more: take it off the list", name)
		}
	}
}
