package prom

import (
	"os"
	"regexp"
	"testing"
)

// TestFamiliesListsAll: rules, metadata and remote write know a family from here.
func TestFamiliesListsAll(t *testing.T) {
	source, err := os.ReadFile("family.go")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, f := range Families() {
		known[f.Name] = true
	}
	declared := regexp.MustCompile(`(?:gauge|counter)\("([a-z_]+)"`).FindAllSubmatch(source, -1)
	if len(declared) < 30 {
		t.Fatalf("%d families are declared: this test cannot fail", len(declared))
	}
	for _, m := range declared {
		if name := "tenstorrent_" + string(m[1]); !known[name] {
			t.Errorf("%s is not listed", name)
		}
	}
}
