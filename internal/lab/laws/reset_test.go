package laws

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// resets finds a call of Tenstorrent's tool that resets chips, with what follows.
var resets = regexp.MustCompile(`tt-smi (?:-r|--reset)\b.{0,20}`)

var asTTSMI = regexp.MustCompile(`(?m)^code 3 tt-smi .*$`)

// TestResetNamesPath: wherever a reset is advised, in code, docs, rules and what
// tests expect, it names the path of the device. To tt-smi a bare number is UMD's
// id and not the kernel's index, and a call without a target resets every chip.
func TestResetNamesPath(t *testing.T) {
	root := moduleRoot(t)
	found := 0
	for _, dir := range []string{"cmd", "internal", "lib", "tools", "docs", "README.md", "packaging", "web/src"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			rel, _ := filepath.Rel(root, path)
			if rel == "internal/lab/laws/reset_test.go" || slices.Contains([]string{".so", ".gz", ".zst", ".ttr"}, filepath.Ext(path)) {
				return nil
			}
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if filepath.Ext(rel) == ".txtar" { // where ttmon is called by that name, too
				b = asTTSMI.ReplaceAll(b, nil)
			}
			for _, call := range resets.FindAllString(string(b), -1) {
				found++
				_, target, _ := strings.Cut(call[len("tt-smi "):], " ")
				if rel == "internal/field/words/reset.go" { // which writes the path with a name
					target = strings.Replace(target, `" + nodePath`, "/dev/tenstorrent/", 1)
				}
				if !strings.HasPrefix(target, "/dev/tenstorrent/") {
					t.Errorf("%s: %q: name the path of the device", rel, call)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if found < 10 {
		t.Fatalf("%d calls found: this test cannot fail", found)
	}
}
