package truth

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/lab/e2e/ttnn"
)

// TestDocs: docs/truth.md names scenarios and tests that there are, and
// something for each letter and number.
func TestDocs(t *testing.T) {
	root, err := ttnn.Repository()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs/truth.md"))
	if err != nil {
		t.Fatal(err)
	}
	tests := testNames(t, root)
	known := map[string]bool{}
	for _, c := range scenarios() {
		known[c.name] = true
		if _, after, ok := strings.Cut(c.name, ": "); ok && strings.HasPrefix(c.name, "ttnn ") {
			known[after] = true
		}
	}
	var keys []string
	for letter := 'a'; letter <= 'w'; letter++ {
		keys = append(keys, string(letter))
	}
	for _, m := range regexp.MustCompile(`(?m)^\| ([0-9]+) \|`).FindAllStringSubmatch(string(page), -1) {
		keys = append(keys, m[1])
	}
	for _, key := range keys {
		line := regexp.MustCompile(`(?m)^\| ` + key + ` \|.*\|(.*)\|$`).FindStringSubmatch(string(page))
		if line == nil {
			t.Errorf("nothing is said of %s", key)
			continue
		}
		names := 0
		for _, m := range regexp.MustCompile(`"([^"]+)"`).FindAllStringSubmatch(line[1], -1) {
			names++
			if !known[m[1]] {
				t.Errorf("%s: there is no scenario %q", key, m[1])
			}
		}
		for _, m := range regexp.MustCompile("`(Test[A-Za-z0-9]+)`").FindAllStringSubmatch(line[1], -1) {
			names++
			if !tests[m[1]] {
				t.Errorf("%s: there is no %s", key, m[1])
			}
		}
		if names == 0 {
			t.Errorf("%s is kept by nothing", key)
		}
	}
	for _, c := range scenarios() { // the page lists all that can happen to a run
		if what, ok := strings.CutPrefix(c.name, "a run seen by shared memory, "); ok && !strings.Contains(string(page), `| "`+what+`"`) && !strings.Contains(string(page), `, "`+what+`" |`) {
			t.Errorf("the page does not list the scenario %q", c.name)
		}
	}
	real := 0
	for _, c := range scenarios() {
		if strings.HasPrefix(c.name, "ttnn ") {
			real++
		}
	}
	if all := len(scenarios()); all < 110 || real < 30 {
		t.Errorf("%d scenarios, %d with the real ttnn; the page promises more", all, real)
	}
}

// testNames are the names of all tests of the tree.
func testNames(t *testing.T, root string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9]+)\(`)
	for _, dir := range []string{"cmd", "internal"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, m := range declared.FindAllStringSubmatch(string(text), -1) {
				names[m[1]] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return names
}
