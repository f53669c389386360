package laws

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// TestTestsStandAlone: what runs on the machine neither helps nor harms a
// test, and a test leaves nothing behind. A package whose tests touch more
// than memory enters a host of their own.
func TestTestsStandAlone(t *testing.T) {
	// They only ask the go command about the tree.
	exempt := map[string]string{"internal/lab/laws": "asks the go command about the source tree, and nothing else"}
	touches := regexp.MustCompile(`exec\.Command|\bTempDir\(|MkdirTemp|CreateTemp|net\.Listen|StartProcess|ForkExec|sim\.Start|metal\.Start|ttnn\.(Play|Start|Interpreter)|os\.\w+\("/(proc|dev/shm|run|tmp)\b`)
	enters := regexp.MustCompile(`hermetic\.(Main|Enter)\(|programs\.Main\(|^package hermetic\n`)
	root := moduleRoot(t)
	found := 0
	for name := range packages(t) {
		if exempt[name] != "" {
			continue
		}
		files, err := filepath.Glob(filepath.Join(root, name, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		texts := map[string][]byte{}
		inside := false
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			texts[filepath.Base(file)] = text
			inside = inside || enters.Match(text)
		}
		if inside {
			found++
			continue
		}
		for file, text := range texts {
			if m := touches.Find(text); m != nil {
				t.Errorf("%s: %s has %s, and no TestMain calls hermetic.Main, hermetic.Enter or programs.Main: see CONTRIBUTING.md", name, file, m)
			}
		}
	}
	if found == 0 {
		t.Error("no package enters a host of its own: this test cannot fail")
	}
}
