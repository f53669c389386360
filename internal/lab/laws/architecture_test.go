package laws

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestArchitecture: the table in docs/architecture.md has a place for every
// package, and for nothing that is not there.
func TestArchitecture(t *testing.T) {
	const page = "docs/architecture.md"
	text, err := os.ReadFile(filepath.Join(moduleRoot(t), page))
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]int{}
	name := regexp.MustCompile("`([^`]+)`")
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			continue
		}
		for _, m := range name.FindAllStringSubmatch(cells[1], -1) {
			for _, pkg := range packagesNamed(m[1]) {
				rows[pkg]++
			}
		}
	}
	tree := packages(t)
	for pkg := range tree {
		switch rows[pkg] {
		case 0:
			t.Errorf("%s has no row for %s: say there what it holds", page, pkg)
		case 1:
		default:
			t.Errorf("%s has %d rows for %s", page, rows[pkg], pkg)
		}
	}
	for pkg := range rows {
		if _, ok := tree[pkg]; !ok {
			t.Errorf("%s has a row for %s, which is not there", page, pkg)
		}
	}
}

// packagesNamed are the packages that the table means: names stand below internal/,
// unless they begin with another directory of the tree, and braces hold several.
func packagesNamed(name string) (list []string) {
	switch top, _, _ := strings.Cut(name, "/"); top {
	case "cmd", "lib", "tools", "internal":
	default:
		name = "internal/" + name
	}
	before, rest, several := strings.Cut(name, "{")
	if !several {
		return []string{name}
	}
	for last := range strings.SplitSeq(strings.TrimSuffix(rest, "}"), ",") {
		list = append(list, before+last)
	}
	return list
}
