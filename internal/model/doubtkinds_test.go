package model

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strconv"
	"testing"
)

// The list of kinds has every constant of doubt.go.
func TestDoubtKindsIsWhole(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "doubt.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var declared []DoubtKind
	ast.Inspect(file, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if typ, ok := v.Type.(*ast.Ident); ok && typ.Name == "DoubtKind" {
			word, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			declared = append(declared, DoubtKind(word))
		}
		return true
	})
	if len(declared) == 0 {
		t.Fatal("doubt.go declares no kind")
	}
	if !slices.Equal(declared, DoubtKinds()) {
		t.Errorf("doubt.go declares\n%v\nDoubtKinds lists\n%v", declared, DoubtKinds())
	}
}

// docs/memory.md has a row for every kind, with its mark, and for no other.
func TestDoubtKindsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/memory.md")
	if err != nil {
		t.Fatal(err)
	}
	marks := map[Bound]string{Exact: "–", AtLeast: "≥", Unsure: "~"}
	documented := map[DoubtKind]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| ([–≥~]) \\| .+ \\|$").FindAllStringSubmatch(string(page), -1) {
		documented[DoubtKind(m[1])] = m[2]
	}
	for _, k := range DoubtKinds() {
		if documented[k] != marks[k.Bound()] {
			t.Errorf("%s: the page has %q, want %q", k, documented[k], marks[k.Bound()])
		}
		delete(documented, k)
	}
	for k := range documented {
		t.Errorf("%s is no kind", k)
	}
}
