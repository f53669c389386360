package laws

import (
	"go/ast"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/field/metric"
)

// arrangements are the files that name fields of devices: those that say which of them
// stand where there is room for a few. All else takes fields from their table
// by a tag, a section or a heading, so that a new one is nowhere forgotten.
var arrangements = map[string]string{
	"internal/view/text/columns.go":     "dmon's letters, in nvidia-smi's order",
	"internal/view/text/table.go":       "smi's columns by the width of a terminal",
	"internal/view/tui/top/line.go":     "a device in a line",
	"internal/view/tui/top/grid.go":     "a device in a cell",
	"internal/view/tui/top/block.go":    "a device in a block",
	"internal/view/tui/top/health.go":   "its worst, in words",
	"internal/field/sums/sums.go":       "what is summed over hosts, by the names of its recording rules",
	"internal/past/fleet/server.go":     "what cells are coloured by until a user chooses",
	"internal/cli/selftest/devices.go":  "second witnesses, each of one field",
	"internal/cli/selftest/official.go": "second witnesses, each of one field",
	"cmd/ttmon/mode.go":                 "what is shown in the place of busy",
	"web/src/device.tsx":                "charts that every device has, and its row of values",
	"web/src/fleet.tsx":                 "what a fleet is coloured by, and its sums",
	"web/src/memory.tsx":                "the chart of memory",
	"web/src/overview.tsx":              "a device in a card",
	"web/src/run.tsx":                   "charts of a run",
	"web/src/trail.ts":                  "the lines beside devices",
}

// TestFieldNames: no name of a field is a literal outside of its table and of the
// arrangements, and no arrangement names what is not in the table.
func TestFieldNames(t *testing.T) {
	known := map[string]bool{}
	for _, f := range metric.Devices() {
		if strings.Contains(f.Name, ".") {
			known[f.Name] = true
		}
	}
	used := map[string]bool{}
	found := func(path, name string) {
		used[path] = true
		if arrangements[path] == "" {
			t.Errorf("%s names the field %s: take it from the table by a tag (internal/field/metric/stand.go), or list the file here with the reason", path, name)
		}
	}
	for _, dir := range []string{"internal", "cmd"} {
		goFiles(t, "../../../"+dir, func(path string, f *ast.File) {
			path = filepath.ToSlash(strings.TrimPrefix(path, "../../../"))
			if strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "internal/field/metric/") {
				return
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
					if name, err := strconv.Unquote(l.Value); err == nil && known[name] {
						found(path, name)
					}
				}
				return true
			})
		})
	}
	sources, err := filepath.Glob("../../../web/src/*.ts*")
	if err != nil || len(sources) == 0 {
		t.Fatalf("the page has no sources: %v", err)
	}
	for _, path := range sources {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for name := range known {
			if strings.Contains(string(text), strconv.Quote(name)) {
				found(filepath.ToSlash(strings.TrimPrefix(path, "../../../")), name)
			}
		}
	}
	idle := maps.Clone(arrangements)
	maps.DeleteFunc(idle, func(path, _ string) bool { return used[path] })
	if len(idle) > 0 {
		t.Errorf("these name no field and need not be listed: %v", idle)
	}
}
