package laws

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// exceptions are where a word of the glossary's right column means something else,
// or is what another program prints. By file, below the module.
var exceptions = map[string][]string{
	"internal/lab/e2e/truth/composition_test.go": {"nobody"}, // the user, here and below
	"internal/lab/e2e/truth/mixed_test.go":       {"nobody"},
	"internal/lab/e2e/truth/rights_test.go":      {"nobody"},
	"internal/lab/e2e/truth/runs_test.go":        {"nobody"},
	"internal/lab/e2e/truth/stage_test.go":       {"nobody"},
	"internal/lab/e2e/truth/ttnn_test.go":        {"nobody"},
	"cmd/ttmon-sim/cli_test.go":                  {"nobody"}, // the user
	"internal/lab/laws/glossary_test.go":         {"anew", "fate", "goes on", "heir", "nobody", "patience", "taken for", "tells of", "tells whether"},
	"internal/hostfs/proc/tree_test.go":          {"nobody"},   // the Unix user
	"internal/source/uprobe/handover.go":         {"fate"},     // the name of descriptors that a predecessor passes
	"internal/lab/e2e/daemon_test.go":            {"nobody"},   // the Unix user
	"internal/lab/e2e/failures_test.go":          {"nobody"},   // the Unix user
	"internal/lab/e2e/memory_rights_test.go":     {"nobody"},   // the Unix user
	"internal/lab/e2e/memory_stale_test.go":      {"nobody"},   // the Unix user
	"internal/lab/e2e/process_test.go":           {"nobody"},   // the Unix user
	"internal/lab/e2e/selftest_program_test.go":  {"nobody"},   // the Unix user
	"internal/lab/e2e/selftest_test.go":          {"nobody"},   // the Unix user
	"internal/lab/e2e/slurm/slurm_test.go":       {"nobody"},   // packaging/slurm/epilog.sh matches the sentence
	"internal/past/alert/notify/notify_test.go":  {"nobody"},   // the Unix user
	"internal/past/server/alerts.go":             {"nobody"},   // the Unix user
	"internal/view/text/jobs.go":                 {"nobody"},   // packaging/slurm/epilog.sh matches the sentence
	"internal/view/text/jobs_test.go":            {"nobody"},   // packaging/slurm/epilog.sh matches the sentence
	"web/src/share.ts":                           {"tells of"}, // a comment: the bundle is made of the file as it is
	"web/src/watch.ts":                           {"tells of"},
}

// TestGlossary: names, comments, messages, help and docs use the trade's word for a
// thing, so that a reader finds it. The table is in CONTRIBUTING.md.
func TestGlossary(t *testing.T) {
	g := readGlossary(t)
	root := moduleRoot(t)
	used := map[string]bool{}
	for _, path := range textFiles(t, root) {
		b, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range g.find(path, string(b)) {
			key := path + " " + f.word
			if slices.Contains(exceptions[path], f.word) {
				used[key] = true
				continue
			}
			t.Errorf("%s:%d: %q: say %q (%s)", path, f.line, f.word, g.instead[f.word], strings.TrimSpace(f.text))
		}
	}
	for path, words := range exceptions {
		for _, w := range words {
			if !used[path+" "+w] {
				t.Errorf("%s no longer has %q: delete the exception", path, w)
			}
		}
	}
}

// TestGlossaryFinds: the law notices what it forbids, where it forbids it.
func TestGlossaryFinds(t *testing.T) {
	g := readGlossary(t)
	for _, c := range []struct {
		name, path, text string
		want             []string
	}{
		{"a name", "x.go", "package x\nvar readPatience = 1\n", []string{"patience"}},
		{"a local name", "x.go", "package x\nfunc f() { heir := 1; _ = heir }\n", []string{"heir"}},
		{"part of another word", "x.go", "package x\nvar their, newsletter = 1, 2 // their newsletter\n", nil},
		{"a comment", "x.go", "package x\n// f tells\n// whether it is.\nfunc f() {}\n", []string{"tells whether"}},
		{"a string", "x.go", "package x\nvar s = \"it goes on\"\n", []string{"goes on"}},
		{"a page", "docs/x.md", "It is made anew.\n", []string{"anew"}},
		{"over a line of a page", "docs/x.md", "It is taken\nfor another.\n", []string{"taken for"}},
		{"code in a page", "docs/x.md", "User `nobody` may.\n", nil},
		{"nothing", "docs/x.md", "It is opened again.\n", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, f := range g.find(c.path, c.text) {
				got = append(got, f.word)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("found %q, want %q", got, c.want)
			}
		})
	}
}

// glossary is the table of CONTRIBUTING.md: what to say instead of each word.
type glossary struct {
	instead map[string]string
	words   *regexp.Regexp
	// parts has a word of each entry. A text without any of them has no entry, which
	// is found far sooner than by words.
	parts []string
}

type finding struct {
	line       int
	word, text string
}

func readGlossary(t *testing.T) glossary {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(moduleRoot(t), "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(b), "\n## Words\n")
	text, _, _ = strings.Cut(text, "\n## ")
	g := glossary{instead: map[string]string{}}
	var alternatives []string
	for line := range strings.Lines(text) {
		cells := strings.Split(line, "|")
		if len(cells) < 5 || strings.HasPrefix(cells[1], "---") || strings.TrimSpace(cells[3]) == "not" {
			continue
		}
		for w := range strings.SplitSeq(cells[3], ",") {
			w = strings.TrimSpace(w)
			g.instead[w] = strings.TrimSpace(cells[1])
			g.parts = append(g.parts, slices.MaxFunc(strings.Fields(w), func(a, b string) int { return len(a) - len(b) }))
			alternatives = append(alternatives, strings.ReplaceAll(regexp.QuoteMeta(w), " ", `\s+`))
		}
	}
	if len(alternatives) < 20 {
		t.Fatalf("the glossary has %d words: its table was not found", len(alternatives))
	}
	slices.SortFunc(alternatives, func(a, b string) int { return len(b) - len(a) })
	g.words = regexp.MustCompile(`(?i)\b(` + strings.Join(alternatives, "|") + `)\b`)
	return g
}

// textFiles are the sources and the pages that people write.
func textFiles(t *testing.T, root string) []string {
	t.Helper()
	var out []string
	for _, dir := range []string{"cmd", "internal", "lib", "tools", "docs", "README.md", "packaging", "web/src"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.IsDir() && (d.Name() == "testdata" || d.Name() == "node_modules") {
				return filepath.SkipDir
			}
			if ext := filepath.Ext(path); !d.IsDir() && slices.Contains([]string{".go", ".md", ".ts", ".tsx"}, ext) && !strings.HasSuffix(path, "_bpfel.go") {
				rel, _ := filepath.Rel(root, path)
				out = append(out, rel)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(out) < 500 {
		t.Fatalf("%d files: this test cannot fail", len(out))
	}
	return out
}

// find lists the words of the right column in a file.
func (g glossary) find(path, text string) []finding {
	if g.parts = g.within(strings.ToLower(text)); len(g.parts) == 0 {
		return nil
	}
	switch filepath.Ext(path) {
	case ".go":
		return g.findGo(text)
	case ".ts", ".tsx":
		return g.match(text, 1)
	}
	return g.match(withoutCode(text), 1)
}

var (
	codeSpan = regexp.MustCompile("(?s)```.*?```|`[^`\n]*`")
	hump     = regexp.MustCompile(`([a-z0-9])([A-Z])`)
)

func withoutCode(text string) string {
	if !strings.Contains(text, "`") {
		return text
	}
	return codeSpan.ReplaceAllStringFunc(text, blank)
}

// blank keeps the lines of what it takes out.
func blank(s string) string { return strings.Repeat("\n", strings.Count(s, "\n")) + " " }

func (g glossary) findGo(text string) []finding {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "", text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil
	}
	at := func(p token.Pos) int { return fset.Position(p).Line }
	var out []finding
	for _, c := range f.Comments {
		out = append(out, g.match(c.Text(), at(c.Pos()))...)
	}
	names := map[string]bool{f.Name.Name: true} // each is reported once
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			if s, err := strconv.Unquote(n.Value); n.Kind == token.STRING && err == nil {
				out = append(out, g.match(withoutCode(s), at(n.Pos()))...)
			}
		case *ast.Ident:
			if !names[n.Name] {
				names[n.Name] = true
				out = append(out, g.matchName(n.Name, at(n.Pos()))...)
			}
		}
		return true
	})
	return out
}

// matchName matches the words that a name is made of.
func (g glossary) matchName(name string, line int) []finding {
	if len(g.within(strings.ToLower(name))) == 0 {
		return nil
	}
	return g.match(hump.ReplaceAllString(name, "$1 $2"), line)
}

// within is which parts a text has, in lower case.
func (g glossary) within(text string) (parts []string) {
	for _, p := range g.parts {
		if strings.Contains(text, p) {
			parts = append(parts, p)
		}
	}
	return parts
}

func (g glossary) match(text string, line int) []finding {
	if lower := strings.ToLower(text); !slices.ContainsFunc(g.parts, func(p string) bool { return strings.Contains(lower, p) }) {
		return nil
	}
	var out []finding
	for _, at := range g.words.FindAllStringIndex(text, -1) {
		word := strings.ToLower(strings.Join(strings.Fields(text[at[0]:at[1]]), " "))
		begin, end := strings.LastIndexByte(text[:at[0]], '\n')+1, len(text)
		if i := strings.IndexByte(text[at[1]:], '\n'); i >= 0 {
			end = at[1] + i
		}
		out = append(out, finding{line + strings.Count(text[:at[0]], "\n"), word, strings.ReplaceAll(text[begin:end], "\n", " ")})
	}
	return out
}
