package umd

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// tree is a node without what is not data, to compare two readers by.
type tree struct {
	Text  string
	Keys  []string
	Items []tree
}

func ours(n node) tree {
	t := tree{Text: n.text, Keys: n.keys}
	for _, item := range n.items {
		t.Items = append(t.Items, ours(item))
	}
	return t
}

// theirs turns what the library read into a tree; ok is false if it used a
// part of YAML that our reader refuses.
func theirs(n *yaml.Node) (t tree, ok bool) {
	const other = yaml.LiteralStyle | yaml.FoldedStyle
	if n.Anchor != "" || n.Kind == yaml.AliasNode || n.Style&(other|yaml.TaggedStyle) != 0 {
		return t, false
	}
	t.Text = n.Value
	for i, c := range n.Content {
		item, ok := theirs(c)
		if !ok {
			return t, false
		}
		if n.Kind == yaml.MappingNode && i%2 == 0 {
			if c.Kind != yaml.ScalarNode {
				return t, false
			}
			t.Keys = append(t.Keys, c.Value)
			continue
		}
		t.Items = append(t.Items, item)
	}
	return t, true
}

func library(src []byte) (t tree, ok bool) {
	var doc yaml.Node
	if err := yaml.Unmarshal(src, &doc); err != nil || len(doc.Content) != 1 {
		return t, false
	}
	return theirs(doc.Content[0])
}

// yamlCases are all shapes that a descriptor may be written in, by UMD or by
// hand.
var yamlCases = map[string]string{
	"block maps":            "a:\n  b: 1\n  c: 2\nd: 3\n",
	"block sequence":        "a:\n  - 1\n  - 2\n",
	"items not indented":    "a:\n- 1\n- 2\nb: 3\n",
	"dash alone":            "a:\n  -\n    - b: 1\n      c: 2\n    - b: 3\n  -\n    - b: 4\n",
	"nested dashes":         "- - a\n  - b\n- - c\n",
	"map in item":           "- a: 1\n  b:\n    - 2\n- a: 3\n",
	"deeper item":           "-   a: 1\n    b: 2\n",
	"empty collections":     "a:\n  {}\nb:\n  []\nc: {}\nd: []\n",
	"flow":                  "a: {0: 1, 1: [2, 3], b: {c: d}}\nb: [{chip: 0, chan: 8}, {chip: 1, chan: 0}]\n",
	"flow over lines":       "a: [1,\n    2,\n  3]\nb: {x: 1,\n  y: 2\n  }\n",
	"trailing comma":        "a: [1, 2,]\nb: {x: 1,}\n",
	"addresses":             "a: 0000:41:00.0\nb: [0000:41:00.0, 0000:42:00.0]\nc: {0: 0000:41:00.0}\n",
	"quotes":                "a: \"0x41\"\n'b c': 'it''s'\n\"d\": \"x # y\"\ne: \"\"\nf: \"a\\\"b\\\\c\"\n",
	"comments":              "# first\na: 1 # one\n  # between\nb: # nothing here\n  - 2 # two\nc: x#y\n",
	"null":                  "a:\nb: ~\nc:\n",
	"document markers":      "---\na: 1\n...\nrest is: [not read\n",
	"carriage returns":      "a: 1\r\nb:\r\n  - 2\r\n",
	"byte order mark":       "\ufeffa: 1\n",
	"no line break at end":  "a:\n  b: 0000:01:00.0",
	"blanks at line ends":   "a:   \n  b: 1  \n",
	"scalar alone":          "hello\n",
	"words with blanks":     "a: one two  three\n",
	"minus":                 "a: -1\nb: --x\n- c\n",
	"key with blanks":       "a b : 1\n",
	"quoted key in a flow":  "{\"a\": 1, 'b': 2}\n",
	"JSON":                  "a: {\"b\":1}\n",
	"missing value in flow": "a: {b: , c: 1}\n",
}

func TestYAMLAgreesWithALibrary(t *testing.T) {
	for name, src := range yamlCases {
		want, ok := library([]byte(src))
		n, err := parseYAML(src)
		switch {
		case ok && err != nil:
			t.Errorf("%s: %v", name, err)
		case !ok && err == nil:
			t.Errorf("%s: only we can read this", name)
		case ok:
			if diff := cmp.Diff(want, ours(n)); diff != "" {
				t.Errorf("%s:\n%s", name, diff)
			}
		}
	}
}

func TestYAMLRefuses(t *testing.T) {
	for src, want := range map[string]string{
		"":                        "line 1: the file is empty",
		"# nothing\n":             "line 1: the file is empty",
		"a: 1\n  b: 2\n":          "line 2: unexpected indentation",
		"a:\n    b: 1\n  c: 2\n":  "line 3: ",
		"a: &x 1\n":               "not used in cluster descriptors",
		"a: *x\n":                 "not used in cluster descriptors",
		"a: !!str x\n":            "not used in cluster descriptors",
		"a: |\n  text\n":          "not used in cluster descriptors",
		"? a\n: b\n":              "not used in cluster descriptors",
		"a: [1, 2\n":              "does not end",
		"a: {b: 1\nc: 2\n":        "does not end",
		"a: [1 2}\n":              "want , or ]",
		"a: \"x\n":                "the quote does not end",
		"a: \"\\x41\"\n":          "escape that is not known",
		"a: 1\na: 2\n":            `line 2: key "a" is there twice`,
		"a: {b: 1, b: 2}\n":       `key "b" is there twice`,
		"a: b: c\n":               "a key within a value",
		"a: [1] 2\n":              "follows a value",
		"a:\n\t- 1\n":             "tab",
		"a: 1\njust text\n":       "neither a key nor an item",
		"first line\nsecond\n":    "line 2: ",
		strings.Repeat("[", 1000): "nested too deeply",
		strings.Repeat("- ", 99):  "nested too deeply",
	} {
		_, err := parseYAML(src)
		if bad, ok := errors.AsType[*yamlError](err); !ok || !strings.Contains(bad.Error(), want) {
			t.Errorf("%.40q: %v, want %q", src, err, want)
		}
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

func TestYAMLOfRealDescriptors(t *testing.T) {
	for name, src := range samples(t) {
		want, ok := library(src)
		n, err := parseYAML(string(src))
		if !ok || err != nil {
			t.Errorf("%s: %v, %v", name, ok, err)
			continue
		}
		if diff := cmp.Diff(want, ours(n)); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

// FuzzYAML: whatever both readers accept, they must read alike.
func FuzzYAML(f *testing.F) {
	for _, src := range yamlCases {
		f.Add([]byte(src))
	}
	for _, src := range samples(f) {
		if len(src) < 2000 {
			f.Add(src)
		}
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		n, err := parseYAML(string(src))
		if err != nil {
			return
		}
		want, ok := library(src)
		if !ok {
			return
		}
		if diff := cmp.Diff(want, ours(n)); diff != "" {
			t.Errorf("%q:\n%s", src, diff)
		}
	})
}
