package laws

import (
	"go/ast"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// ordinary are names of functions that every Go program has more than once.
var ordinary = strings.Fields(`
	Close Draw Error Key New Run String Update Check
	add check draw key keys match open print read run start stop write
`)

// maxShared is how many functions of a family may have one name.
const maxShared = 4

// TestNamesAreNotShared: a reader who searches for a function finds that one, and
// not twenty. A family is a directory of a room with all below it; methods that
// an interface demands are no choice of theirs.
func TestNamesAreNotShared(t *testing.T) {
	demanded := map[string]bool{}
	where := map[string]map[string][]string{} // family, name: files
	for _, dir := range families(t) {
		goFiles(t, dir, func(path string, f *ast.File) {
			if where[dir] == nil {
				where[dir] = map[string][]string{}
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if i, ok := n.(*ast.InterfaceType); ok {
					for _, m := range i.Methods.List {
						for _, name := range m.Names {
							demanded[name.Name] = true
						}
					}
				}
				return true
			})
			for _, d := range f.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok {
					where[dir][fn.Name.Name] = append(where[dir][fn.Name.Name], path)
				}
			}
		})
	}
	for dir, names := range where {
		for name, files := range names {
			if len(files) > maxShared && !demanded[name] && !slices.Contains(ordinary, name) {
				t.Errorf("%d functions below %s are named %s: say what each does to what (%s)", len(files), dir, name, strings.Join(files, ", "))
			}
		}
	}
}

// families are the directories of cmd, and those of the rooms below internal.
func families(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, pattern := range []string{"../../../cmd/*", "../../*/*"} {
		list, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, dir := range list {
			if hasGo(dir) {
				out = append(out, dir)
			}
		}
	}
	if len(out) < 50 {
		t.Fatalf("%d families: this test cannot fail", len(out))
	}
	return out
}

// hasGo reports whether there is source below a directory, other than tests.
func hasGo(dir string) bool {
	found := false
	_ = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		found = found || err == nil && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go")
		return err
	})
	return found
}
