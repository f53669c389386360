package model_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"testing"

	"github.com/ttmon/ttmon/internal/lab/golden"
	"github.com/ttmon/ttmon/internal/model"
)

// The list of kinds has every constant of doubt.go.
func TestDoubtKindsIsWhole(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "doubt.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var declared []model.DoubtKind
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
			declared = append(declared, model.DoubtKind(word))
		}
		return true
	})
	if len(declared) == 0 {
		t.Fatal("doubt.go declares no kind")
	}
	for _, k := range declared {
		if k.Row().When == "" {
			t.Errorf("%s has no row", k)
		}
	}
	if len(declared) != len(model.DoubtKinds) {
		t.Errorf("%d kinds are declared, and there are %d rows", len(declared), len(model.DoubtKinds))
	}
}

// docs/memory.md has the tables.
func TestDoubtKindsAreDocumented(t *testing.T) {
	marks := map[model.Bound]string{model.Exact: "–", model.AtLeast: "≥", model.Unsure: "~"}
	tables := map[model.DoubtSubject]string{}
	for _, k := range model.DoubtKinds {
		tables[k.Subject] += fmt.Sprintf("| `%s` | %s | %s |\n", k.Kind, marks[k.Bound], k.When)
	}
	for subject, head := range map[model.DoubtSubject]string{
		model.DoubtsFigures: "Of one process",
		model.DoubtsProcess: "Of a process that is in no figure",
		model.DoubtsChip:    "Of a chip or device",
		model.DoubtsOpeners: "How a process has a device open",
		model.DoubtsRemoval: "Why a region with bytes of the dead stays",
	} {
		t.Run(head, func(t *testing.T) {
			golden.CheckTable(t, "../../docs/memory.md", "| "+head+" | mark | |\n|---|---|---|\n"+tables[subject])
		})
	}
}
