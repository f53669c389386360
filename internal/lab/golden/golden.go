// Package golden compares the output of a test with a file that a person has
// reviewed, and rewrites that file with -update. It is outside the data flow;
// only tests import it.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Update is the flag by which golden files are written instead of compared.
var Update = flag.Bool("update", false, "rewrite the golden files")

// Check compares got with the file at path.
func Check(t *testing.T, path string, got []byte) {
	t.Helper()
	if *Update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Errorf("%v (make update writes it)", err)
		return
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got; make update rewrites it):\n%s", path, diff)
	}
}

// CheckTable compares a Markdown table with the one in the document at path that has
// the same first line; the rest of the document is written by people.
func CheckTable(t *testing.T, path string, table string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, _, _ := strings.Cut(table, "\n")
	before, after, found := strings.Cut(string(text), head+"\n")
	if !found {
		t.Fatalf("%s has no table that begins with %s", path, head)
	}
	for strings.HasPrefix(after, "|") {
		_, after, _ = strings.Cut(after, "\n")
	}
	Check(t, path, []byte(before+table+after))
}
