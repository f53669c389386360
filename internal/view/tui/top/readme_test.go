package top

import (
	"os"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/golden"
)

// The picture in the README is what the program draws; -update draws it anew.
func TestReadme(t *testing.T) {
	const path, begin, end = "../../../../README.md", "`ttmon top`, the monitor", "\n```\n"
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(old), begin)
	if !ok {
		t.Fatalf("%s has no place for the picture: %q", path, begin)
	}
	words, rest, _ := strings.Cut(rest, end)
	_, tail, _ := strings.Cut(rest, end)
	screen := strings.TrimSuffix(open(t, 3, 100, 24).draw(), "\n")
	golden.Check(t, path, []byte(head+begin+words+end+screen+end+tail))
}
