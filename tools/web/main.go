// Web bundles the page: web/src and web/index.html into internal/view/web/dist,
// which is committed, so that ttmond is built by Go alone.
//
//	go run -C tools/web .          writes the bundle
//	go run -C tools/web . check    fails if the committed one is another
//
// Both need the packages of web/package-lock.json (npm ci). Beside the bundle
// lies sources.sum, the hashes of everything it was made from: a test compares
// them without npm, so that a change of a source without its bundle is noticed
// wherever tests run.
package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

const (
	sources = "../../web"
	dist    = "../../internal/view/web/dist"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "web:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	files, err := bundle()
	if err != nil {
		return err
	}
	switch {
	case len(args) == 0:
		return write(files)
	case len(args) == 1 && args[0] == "check":
		return compare(files)
	default:
		return fmt.Errorf("%q: nothing, or check", args)
	}
}

// bundle makes the files of dist.
func bundle() (map[string][]byte, error) {
	if _, err := os.Stat(sources + "/node_modules/preact"); err != nil {
		return nil, fmt.Errorf("the page's packages are not installed: run npm ci in web/ (%w)", err)
	}
	res := api.Build(api.BuildOptions{
		EntryPointsAdvanced: []api.EntryPoint{
			{InputPath: sources + "/src/main.tsx", OutputPath: "page"},
			{InputPath: sources + "/src/stream.ts", OutputPath: "stream"},
			{InputPath: sources + "/src/style.css", OutputPath: "style"},
		},
		Bundle: true, MinifyWhitespace: true, MinifyIdentifiers: true, MinifySyntax: true,
		Format: api.FormatESModule, Target: api.ES2022, Charset: api.CharsetUTF8,
		JSX: api.JSXAutomatic, JSXImportSource: "preact",
		LegalComments: api.LegalCommentsNone, // dist/licences.txt has them
		Outdir:        "/dist", LogLevel: api.LogLevelWarning,
	})
	if len(res.Errors) > 0 {
		return nil, fmt.Errorf("esbuild found %d errors: see above", len(res.Errors))
	}
	files := map[string][]byte{}
	for _, f := range res.OutputFiles {
		files[filepath.Base(f.Path)] = f.Contents
	}
	var err error
	for _, name := range []string{"index.html", "icon.svg"} {
		if files[name], err = os.ReadFile(filepath.Join(sources, name)); err != nil {
			return nil, err
		}
	}
	if files["licences.txt"], err = licences(); err != nil {
		return nil, err
	}
	files["sources.sum"], err = sums()
	return files, err
}

// licences are those of the packages that are in the bundle.
func licences() ([]byte, error) {
	var b bytes.Buffer
	for _, name := range []string{"preact", "uplot"} {
		text, err := os.ReadFile(filepath.Join(sources, "node_modules", name, "LICENSE"))
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "%s\n\n%s\n\n", name, bytes.TrimSpace(text))
	}
	return b.Bytes(), nil
}

// sums lists the hashes of the sources, as sha256sum does.
func sums() ([]byte, error) {
	var lines []string
	err := filepath.WalkDir(sources, func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == "node_modules":
			return fs.SkipDir
		case d.IsDir() || strings.HasPrefix(d.Name(), "."):
			return nil
		}
		b, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(sources, p)
		lines = append(lines, fmt.Sprintf("%x  web/%s\n", sha256.Sum256(b), path.Clean(filepath.ToSlash(rel))))
		return err
	})
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(a[66:], b[66:]) })
	return []byte(strings.Join(lines, "")), err
}

func write(files map[string][]byte) error {
	if err := os.RemoveAll(dist); err != nil {
		return err
	}
	if err := os.MkdirAll(dist, 0o755); err != nil {
		return err
	}
	for name, b := range files {
		if err := os.WriteFile(filepath.Join(dist, name), b, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func compare(files map[string][]byte) error {
	var wrong []error
	for name, b := range files {
		have, err := os.ReadFile(filepath.Join(dist, name))
		if err != nil || !bytes.Equal(have, b) {
			wrong = append(wrong, fmt.Errorf("internal/view/web/dist/%s is not what web/ makes: run make web", name))
		}
	}
	return errors.Join(wrong...)
}
