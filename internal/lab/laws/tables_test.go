package laws

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// steps are loops over a table that is no list of cases: each row continues where the
// one before it ended, so none can run alone. By file and test.
var steps = []string{
	"internal/collect/assess/assess_test.go TestSamplesApart",
	"internal/base/budget/budget_test.go TestAcquire",
	"internal/collect/gather/early_test.go TestEarlyRead",
	"internal/node/handover/handover_test.go TestStore",
	"internal/past/history/disk/store_test.go TestSeriesSet",
	"internal/lab/laws/glossary_test.go TestGlossary", // over the exceptions, once the files are read
	"internal/lab/laws/laws_test.go TestTTMonIsLight", // for each of some hundred packages
	"internal/book/ledger/ledger_test.go TestLimits",
	"internal/book/ledger/table_test.go TestTableGrowsAndShrinks",
	"internal/hostfs/proc/machine_test.go TestMachineCPU",
	"internal/hostfs/proc/status_test.go TestCPUMeter",
	"internal/cli/session/failures_test.go TestLedgerFailures",
	"internal/cli/session/follow_test.go TestFollow",
	"internal/lab/sim/cluster/cluster_test.go TestFiles",
	"internal/lab/sim/control/control_test.go TestStates",
	"internal/source/track/track_test.go TestKilledProcessIsToldOnce",
	"internal/source/uprobe/accounts_test.go TestLostIsCountedOnce",
	"internal/source/uprobe/host_test.go TestHostTakeover",
	"internal/source/uprobe/host_test.go TestQueuesFromOutside",
	"internal/view/tui/key_test.go TestMouse",
	"internal/view/tui/ops/ops_test.go TestSort",
	"internal/view/tui/widget/widget_test.go TestList",
}

// TestTableCasesRunAlone: each case of a table is a subtest, so that it can be run by
// its name, and one that fails hides no other.
func TestTableCasesRunAlone(t *testing.T) {
	root := moduleRoot(t)
	used := map[string]bool{}
	files := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == ".git" || d.Name() == "node_modules" || path != root && isModule(path)) {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		files++
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		loops, err := bareTables(name, text)
		for _, l := range loops {
			key := name + " " + l.test
			if used[key] = true; !slices.Contains(steps, key) {
				t.Errorf("%s:%d: %s: wrap each case of the table in t.Run", name, l.line, l.test)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 100 {
		t.Fatalf("%d files: this test cannot fail", files)
	}
	for _, key := range steps {
		if !used[key] {
			t.Errorf("%s has no such loop any more: delete the exception", key)
		}
	}
}

// isModule reports whether a directory is a Go module of its own.
func isModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

// TestTableCasesAreFound: the law notices what it forbids, and nothing else.
func TestTableCasesAreFound(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		want int
	}{
		"structs":         {`for _, c := range []struct{ a int }{{1}} { if c.a != 1 { t.Errorf("x") } }`, 1},
		"by name":         {`cases := []struct{ a int }{{1}}; for _, c := range cases { if c.a != 1 { t.Error("x") } }`, 1},
		"a map":           {`for in, want := range map[string]int{"": 1} { if f(in) != want { t.Error("x") } }`, 1},
		"argument lists":  {`for _, args := range [][]string{{"a"}} { if f(args) { t.Error("x") } }`, 1},
		"within a loop":   {`for range 2 { for in := range map[string]int{"": 1} { if f(in) { t.Error("x") } } }`, 1},
		"runs a program":  {`for _, args := range [][]string{{"a"}} { if cmd.Run(args, 1) != nil { t.Error("x") } }`, 1},
		"subtests":        {`for in, want := range map[string]int{"": 1} { t.Run(in, func(t *testing.T) { if f(in) != want { t.Error("x") } }) }`, 0},
		"in a subtest":    {`t.Run("x", func(t *testing.T) { for in := range map[string]int{"": 1} { if f(in) { t.Error("x") } } })`, 0},
		"prepares only":   {`for name, text := range map[string]string{"a": "b"} { if err := write(name, text); err != nil { t.Fatal(err) } }`, 0},
		"parts of a text": {`for _, want := range []string{"a"} { if !strings.Contains(got, want) { t.Error("x") } }`, 0},
		"what was found":  {`seen := map[string]bool{}; for name := range seen { t.Error(name) }`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := bareTables("x_test.go", fmt.Appendf(nil, "package x\nfunc TestX(t *testing.T) {\n%s\n}\n", c.body))
			if err != nil || len(got) != c.want {
				t.Errorf("%d found, want %d: %v", len(got), c.want, err)
			}
		})
	}
}

// tableLoop is a loop over a table whose cases are no subtests.
type tableLoop struct {
	test string
	line int
}

// bareTables finds the loops of a file's tests that check the rows of a literal,
// outside of any subtest.
func bareTables(path string, text []byte) ([]tableLoop, error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, path, text, 0)
	if err != nil {
		return nil, err
	}
	named := literals(f)
	var out []tableLoop
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil || !strings.HasPrefix(fn.Name.Name, "Test") {
			continue
		}
		ast.Inspect(fn.Body, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && isTestMethod(call, "Run") {
				return false
			}
			if r, ok := n.(*ast.RangeStmt); ok && isTable(r.X, named) && calls(r.Body, "Error", "Errorf") && !calls(r.Body, "Run") {
				out = append(out, tableLoop{fn.Name.Name, fset.Position(r.Pos()).Line})
			}
			return true
		})
	}
	return out, nil
}

// literals are the variables of a file that a literal is assigned to.
func literals(f *ast.File) map[string]ast.Expr {
	out := map[string]ast.Expr{}
	ast.Inspect(f, func(n ast.Node) bool {
		switch s := n.(type) {
		case *ast.AssignStmt:
			for i, left := range s.Lhs {
				if id, ok := left.(*ast.Ident); ok && len(s.Lhs) == len(s.Rhs) {
					out[id.Name] = s.Rhs[i]
				}
			}
		case *ast.ValueSpec:
			for i, id := range s.Names {
				if i < len(s.Values) {
					out[id.Name] = s.Values[i]
				}
			}
		}
		return true
	})
	return out
}

// isTable reports whether a loop runs over rows that are written down: a map, or a
// list of structs or lists. A list of single values is most often what one result
// must contain.
func isTable(x ast.Expr, named map[string]ast.Expr) bool {
	if id, ok := x.(*ast.Ident); ok {
		x = named[id.Name]
	}
	lit, ok := x.(*ast.CompositeLit)
	if !ok || len(lit.Elts) == 0 {
		return false
	}
	switch lit.Type.(type) {
	case *ast.MapType:
		return true
	case *ast.ArrayType:
		row, ok := lit.Elts[0].(*ast.CompositeLit)
		return ok && row.Type == nil
	}
	return false
}

// calls reports whether one of these methods of t is called below a node.
func calls(n ast.Node, names ...string) bool {
	found := false
	ast.Inspect(n, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		found = found || ok && isTestMethod(call, names...)
		return !found
	})
	return found
}

func isTestMethod(call *ast.CallExpr, names ...string) bool {
	s, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !slices.Contains(names, s.Sel.Name) {
		return false
	}
	t, ok := s.X.(*ast.Ident)
	return ok && t.Name == "t"
}
