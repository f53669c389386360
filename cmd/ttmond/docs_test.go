package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// The page about ttmond knows every flag.
func TestDocs(t *testing.T) {
	b, err := os.ReadFile("../../docs/ttmond.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(b)
	command().Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && !slices.Contains([]string{"verbose", "help", "version"}, f.Name) && !strings.Contains(page, "--"+f.Name) {
			t.Errorf("--%s is not on the page", f.Name)
		}
	})
}

// The page about attacks names tests that there are, every attack there is, and
// no other.
func TestSecurityPage(t *testing.T) {
	b, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(b)
	there := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	err = filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == ".git" || d.Name() == "node_modules") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		b, err := os.ReadFile(path)
		for _, m := range declared.FindAllStringSubmatch(string(b), -1) {
			there[m[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(page, -1)
	if len(names) < 20 {
		t.Errorf("only %d tests are named", len(names))
	}
	for _, m := range names {
		if !there[m[1]] {
			t.Errorf("there is no %s", m[1])
		}
	}
	said := map[string]bool{"paths": true, "followers": true, "queries": true, "half-open": true} // have tests of their own
	for _, m := range regexp.MustCompile("`TestHostile` \\(([a-z, -]+)\\)").FindAllStringSubmatch(page, -1) {
		for name := range strings.SplitSeq(m[1], ", ") {
			if said[name] = true; attacks[name] == nil {
				t.Errorf("there is no attack %s", name)
			}
		}
	}
	for _, name := range attackNames() {
		if !said[name] {
			t.Errorf("the attack %s is not on the page", name)
		}
	}
}
