package main

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

func TestPythonVersion(t *testing.T) {
	for in, want := range map[string]string{
		"0.1.0": "0.1.0", "0.1.0-dev": "0.1.0.dev0", "0.1.0-dev.2": "0.1.0.dev2", "1.2.3-rc.1": "1.2.3rc1", "1.2.3-beta2": "1.2.3b2",
		"0.1.0+3.gabc": "0.1.0+3.gabc",
	} {
		if got := pythonVersion(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

// The sums in RECORD are those of the files, and every file is there.
func TestWheel(t *testing.T) {
	dir := t.TempDir()
	library := filepath.Join(dir, "lib.so")
	if err := os.WriteFile(library, []byte("library"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := wheel{version: "0.1.0-dev", platform: "a.b", library: library, program: library, readme: "../../README.md", licence: "../../LICENSE", source: "../../lib/python", date: time.Unix(1e9, 0).UTC()}
	if err := w.write(dir); err != nil {
		t.Fatal(err)
	}
	z, err := zip.OpenReader(filepath.Join(dir, "ttmon-0.1.0.dev0-py3-none-a.b.whl"))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	files := map[string]string{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[f.Name] = string(b)
	}
	const info = "ttmon-0.1.0.dev0.dist-info/"
	n := 0
	for line := range strings.Lines(files[info+"RECORD"]) {
		n++
		parts := strings.Split(strings.TrimSpace(line), ",")
		body, ok := files[parts[0]]
		sum := sha256.Sum256([]byte(body))
		if !ok || parts[1] != "" && parts[1] != "sha256="+base64.RawURLEncoding.EncodeToString(sum[:]) {
			t.Errorf("RECORD has %s", line)
		}
	}
	if n != len(files) {
		t.Errorf("RECORD has %d of %d files", n, len(files))
	}
	for name, want := range map[string]string{
		info + "WHEEL": "Tag: py3-none-b\n", info + "entry_points.txt": "[pytest11]\nttmon = ttmon.pytest_plugin\n",
		info + "METADATA": "Version: 0.1.0.dev0\n", "ttmon/libttmon.so": "library",
		"ttmon-0.1.0.dev0.data/scripts/ttmon": "library", "ttmon/_version.py": `__version__ = "0.1.0.dev0"`,
	} {
		if !strings.Contains(files[name], want) {
			t.Errorf("%s has no %q:\n%s", name, want, files[name])
		}
	}
}

// The list decodes as CycloneDX, and names the modules of this very test.
func TestSBOM(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1000000000")
	t.Setenv("VERSION", "1.2.3")
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var first, second bytes.Buffer
	for _, b := range []*bytes.Buffer{&first, &second} {
		if err := writeSBOM(b, []string{program}); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("it is not the same when it is made again")
	}
	var bom cdx.BOM
	if err := cdx.NewBOMDecoder(&first, cdx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	if got := bom.Metadata.Timestamp; got != "2001-09-09T01:46:40Z" {
		t.Errorf("it is from %s", got)
	}
	found := map[string]string{}
	for _, c := range *bom.Components {
		found[c.Name] = c.PackageURL
		if c.Type == cdx.ComponentTypeLibrary && c.Name != "stdlib" && c.Hashes == nil {
			t.Errorf("%s has no sum", c.Name)
		}
	}
	if !strings.HasPrefix(found["github.com/spf13/cobra"], "pkg:golang/github.com/spf13/cobra@v") || found["stdlib"] != "pkg:golang/stdlib@"+strings.TrimPrefix(runtime.Version(), "go") {
		t.Errorf("found %v", found)
	}
}

func TestLicences(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := writeLicences(&b, []string{program}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"github.com/spf13/cobra v", "Go " + strings.TrimPrefix(runtime.Version(), "go") + ": LICENSE"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no licence of %s", want)
		}
	}
}
