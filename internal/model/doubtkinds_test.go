package model

import (
	"go/ast"
	"go/parser"
	"go/token"
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
