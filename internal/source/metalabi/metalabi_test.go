package metalabi

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/lab/golden"
	"github.com/ttmon/ttmon/lib/libtest"
)

// TestHeaders: libttmon is compiled with this table.
func TestHeaders(t *testing.T) {
	root, err := libtest.Root()
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, filepath.Join(root, "lib/src/symbols.h"), AppendSymbols(nil))
	golden.Check(t, filepath.Join(root, "lib/src/names.h"), AppendNames(nil))
}

func TestFunctions(t *testing.T) {
	names, symbols := map[string]bool{}, map[string]string{}
	functions := Followed()
	for i := range functions {
		f := &functions[i]
		if names[f.Name] || symbols[f.Symbol()] != "" || !strings.HasPrefix(f.Prefix, "_ZN") {
			t.Errorf("%+v is there twice, or is no function", f)
		}
		names[f.Name], symbols[f.Symbol()] = true, f.Name
		if f.Library == Unused && f.Probe == Unused || f.Library == Learning {
			t.Errorf("%s: unused, or used differently", f.Name)
		}
		for j := range functions[:i] {
			g := &functions[j]
			if f.Probe != Unused && g.Probe != Unused && (strings.HasPrefix(f.Prefix, g.Prefix) || strings.HasPrefix(g.Prefix, f.Prefix)) {
				t.Errorf("probes of %s and %s cannot be told apart", f.Name, g.Name)
			}
		}
	}
	for _, r := range Releases {
		for _, name := range r.Lacks {
			if !names[name] {
				t.Errorf("%s lacks %s, which is no function here", r.Version, name)
			}
		}
	}
}
