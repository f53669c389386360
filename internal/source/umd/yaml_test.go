package umd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What is a descriptor's text to UMD must be text to us: ids of 64 bits, bus
// addresses that look like numbers, words that look like something else.
func TestYAMLKeepsText(t *testing.T) {
	const src = "a: 18446744073709551615\nb: 0000:41:00.0\nc: [0x41, 010, yes, 1e3, ~, \"~\"]\nd: {7: null}\n"
	got, err := parseYAML([]byte(src))
	if err != nil {
		t.Fatal(err)
	}
	text := func(line int, s string) node { return node{line: line, text: s, plain: true} }
	want := node{kind: mapping, line: 1, keys: []string{"a", "b", "c", "d"}, items: []node{
		text(1, "18446744073709551615"), text(2, "0000:41:00.0"),
		{kind: sequence, line: 3, items: []node{
			text(3, "0x41"), text(3, "010"), text(3, "yes"), text(3, "1e3"), text(3, "~"), {line: 3, text: "~"},
		}},
		{kind: mapping, line: 4, keys: []string{"7"}, items: []node{text(4, "null")}},
	}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(node{})); diff != "" {
		t.Error(diff)
	}
}

func TestYAMLRefuses(t *testing.T) {
	for src, want := range map[string]string{
		"":                        "the file is empty",
		"# nothing\n":             "the file is empty",
		"a: 1\n  b: 2\n":          "line 2: ",
		"a: &x 1\nb: *x\n":        "line 2: an alias",
		"a: &x [*x]\n":            "alias",
		"? [a]\n: b\n":            "line 1: a key that is not",
		"a: [1, 2\n":              "line 1: did not find",
		"a: \"x\n":                "line ",
		"a: 1\na: 2\n":            `line 2: key "a" is there twice`,
		"a: {b: 1, b: 2}\n":       `key "b" is there twice`,
		"a:\n\t- 1\n":             "line 2: ",
		"a: \x00\n":               "control characters",
		strings.Repeat("[", 1000): "line ",
		strings.Repeat("[", 40) + strings.Repeat("]", 40): "nested too deeply",
		strings.Repeat("- ", 99):                          "nested too deeply",
	} {
		t.Run(src, func(t *testing.T) {
			if n, err := parseYAML([]byte(src)); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%.40q: %+v, %v, want %q", src, n, err, want)
			}
		})
	}
}

// Only the first document counts, as for UMD.
func TestYAMLReadsOneDocument(t *testing.T) {
	got, err := parseYAML([]byte("---\na: 1\n...\nrest is: [not read\n"))
	if err != nil || len(got.keys) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}

func samples(t testing.TB) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(paths) < 9 {
		t.Fatalf("samples: %v, %v", paths, err)
	}
	files := map[string][]byte{}
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Base(p)] = b
	}
	return files
}
