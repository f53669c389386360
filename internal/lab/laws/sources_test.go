package laws

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// goFiles parses every source file below a directory, tests left out.
func goFiles(t *testing.T, dir string, each func(path string, f *ast.File)) {
	t.Helper()
	n := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err == nil {
			n++
			each(path, f)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if n == 0 {
		t.Fatalf("no source below %s: this test cannot fail", dir)
	}
}

// TestSourcesNeverSeeASnapshot: they return claims; collect is the one place
// where what they say is joined.
func TestSourcesNeverSeeASnapshot(t *testing.T) {
	for _, dir := range []string{"../../source", "../../book/ledger", "../../book/claim", "../../book/blocks", "../../hostfs/proc"} {
		goFiles(t, dir, func(path string, f *ast.File) {
			ast.Inspect(f, func(n ast.Node) bool {
				s, ok := n.(*ast.SelectorExpr)
				if !ok || s.Sel.Name != "Snapshot" {
					return true
				}
				if id, ok := s.X.(*ast.Ident); ok && id.Name == "model" {
					t.Errorf("%s uses model.Snapshot: sources return claims, and collect joins them", path)
				}
				return true
			})
		})
	}
}

// TestNoDecisionOnSentences: what a doubt means is its kind. Code that looks
// into a text for it changes its mind when the text is reworded.
func TestNoDecisionOnSentences(t *testing.T) {
	sentences := map[string]bool{"Note": true, "Notes": true, "Why": true, "Text": true, "Reason": true, "StateReason": true, "Detail": true}
	looks := map[string]bool{"Contains": true, "HasPrefix": true, "HasSuffix": true, "CutPrefix": true, "CutSuffix": true, "Cut": true, "Split": true, "SplitSeq": true, "Index": true, "EqualFold": true}
	for _, dir := range []string{"../..", "../../../cmd"} {
		goFiles(t, dir, func(path string, f *ast.File) {
			ast.Inspect(f, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok || len(call.Args) == 0 {
					return true
				}
				fun, ok := call.Fun.(*ast.SelectorExpr)
				if !ok || !looks[fun.Sel.Name] {
					return true
				}
				if id, ok := fun.X.(*ast.Ident); !ok || id.Name != "strings" {
					return true
				}
				if arg, ok := call.Args[0].(*ast.SelectorExpr); ok && sentences[arg.Sel.Name] {
					t.Errorf("%s: strings.%s on a %s: decide on a type, not on a sentence", path, fun.Sel.Name, arg.Sel.Name)
				}
				return true
			})
		})
	}
}
