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

// A test waits for what must happen, not for time: time.Sleep stands in a loop
// that asks whether it has happened, or has a comment beside or above it that says
// why there is nothing to wait for.
func TestSleepsSayWhy(t *testing.T) {
	root := moduleRoot(t)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "node_modules" || path != root && isModule(path)):
			return fs.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		for _, where := range silentSleeps(t, path) {
			t.Errorf("%s: time.Sleep outside of a loop: wait for what must happen, or say in a comment why that is not possible", where)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// silentSleeps are the calls of time.Sleep in a file that neither poll nor explain
// themselves.
func silentSleeps(t *testing.T, path string) (where []string) {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	for _, imported := range file.Imports {
		if imported.Path.Value == `"testing/synctest"` { // where no time passes
			return nil
		}
	}
	explained := map[int]bool{}
	for _, group := range file.Comments {
		first, last := set.Position(group.Pos()).Line, set.Position(group.End()).Line
		for line := first; line <= last+1; line++ {
			explained[line] = true
		}
	}
	var loops []ast.Node
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ForStmt, *ast.RangeStmt:
			loops = append(loops, n)
		case *ast.CallExpr:
			if !isSleep(n) || explained[set.Position(n.Pos()).Line] {
				return true
			}
			for _, loop := range loops {
				if loop.Pos() <= n.Pos() && n.End() <= loop.End() {
					return true
				}
			}
			where = append(where, set.Position(n.Pos()).String())
		}
		return true
	})
	return where
}

// isSleep reports whether time.Sleep is called, but for an hour: that is a process
// that stays until it is killed.
func isSleep(call *ast.CallExpr) bool {
	return len(call.Args) == 1 && isTime(call.Fun, "Sleep") && !isTime(call.Args[0], "Hour")
}

// isTime reports whether an expression is a name of package time.
func isTime(e ast.Expr, name string) bool {
	selector, ok := e.(*ast.SelectorExpr)
	if !ok || selector.Sel.Name != name {
		return false
	}
	pkg, ok := selector.X.(*ast.Ident)
	return ok && pkg.Name == "time"
}
