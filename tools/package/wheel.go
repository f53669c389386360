package main

import (
	"archive/zip"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"
)

// wheel is the Python package in the binary distribution format (PEP 427): a zip
// of the modules, and papers. It is written here and not by setuptools because
// ours is one directory and one library, for two architectures, on a machine
// that needs no Python.
type wheel struct {
	version, platform        string
	library, licence, source string
	program                  string // the command ttmon, which pip puts into bin
	readme                   string // the description on the project's page
	date                     time.Time
}

// project is what of pyproject.toml goes into a wheel.
type project struct {
	Project struct {
		Name           string
		Version        string
		Description    string
		RequiresPython string                       `toml:"requires-python"`
		License        struct{ Text string }        `toml:"license"`
		EntryPoints    map[string]map[string]string `toml:"entry-points"`
		Classifiers    []string
		Keywords       []string
		URLs           map[string]string
	}
	Tool struct {
		Setuptools struct{ Packages []string }
	}
}

// prerelease is the part of a version of ours behind the hyphen.
var prerelease = regexp.MustCompile(`^(\d+\.\d+\.\d+)-([a-z]+)\.?(\d*)`)

// pythonVersion spells a version as PEP 440 does: 0.1.0-rc.2 is 0.1.0rc2.
func pythonVersion(v string) string {
	m := prerelease.FindStringSubmatch(v)
	if m == nil {
		return v
	}
	kind := map[string]string{"alpha": "a", "beta": "b", "rc": "rc"}[m[2]]
	return m[1] + cmp.Or(kind, ".dev") + cmp.Or(m[3], "0")
}

type zipped struct {
	name string
	body []byte
	exec bool
}

// write writes the wheel into dir.
func (w *wheel) write(dir string) error {
	var p project
	text, err := os.ReadFile(filepath.Join(w.source, "pyproject.toml"))
	if err != nil {
		return err
	}
	if err := toml.Unmarshal(text, &p); err != nil {
		return fmt.Errorf("reading pyproject.toml: %w", err)
	}
	version := pythonVersion(w.version)
	files, err := w.modules(p.Tool.Setuptools.Packages)
	if err != nil {
		return err
	}
	info := p.Project.Name + "-" + version + ".dist-info/"
	licence, err := os.ReadFile(w.licence)
	if err != nil {
		return err
	}
	program, err := os.ReadFile(w.program)
	if err != nil {
		return err
	}
	readme, err := os.ReadFile(w.readme)
	if err != nil {
		return err
	}
	files = append(
		files,
		zipped{name: p.Project.Name + "/_version.py", body: fmt.Appendf(nil, "__version__ = %q\n", version)},
		zipped{name: p.Project.Name + "-" + version + ".data/scripts/ttmon", body: program, exec: true},
		zipped{name: info + "METADATA", body: p.metadata(version, readme)},
		zipped{name: info + "WHEEL", body: w.tags()},
		zipped{name: info + "entry_points.txt", body: entryPoints(p.Project.EntryPoints)},
		zipped{name: info + "LICENSE", body: licence},
	)
	files = append(files, record(files, info+"RECORD"))
	b, err := w.zip(files)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s-%s-py3-none-%s.whl", p.Project.Name, version, w.platform)), b, 0o644)
}

// metadata describes the package (PEP 566), with the README below it.
func (p *project) metadata(version string, readme []byte) []byte {
	b := fmt.Appendf(nil, "Metadata-Version: 2.1\nName: %s\nVersion: %s\nSummary: %s\nLicense: %s\nRequires-Python: %s\n",
		p.Project.Name, version, p.Project.Description, p.Project.License.Text, p.Project.RequiresPython)
	for _, name := range sorted(p.Project.URLs) {
		b = fmt.Appendf(b, "Project-URL: %s, %s\n", name, p.Project.URLs[name])
	}
	b = fmt.Appendf(b, "Keywords: %s\n", strings.Join(p.Project.Keywords, ","))
	for _, c := range p.Project.Classifiers {
		b = fmt.Appendf(b, "Classifier: %s\n", c)
	}
	return append(append(b, "Description-Content-Type: text/markdown\n\n"...), readme...)
}

// modules are the Python files, and the library beside them.
func (w *wheel) modules(packages []string) (files []zipped, err error) {
	for _, name := range packages {
		list, err := filepath.Glob(filepath.Join(w.source, name, "*.py"))
		if err != nil || len(list) == 0 {
			return nil, fmt.Errorf("no modules in %s", filepath.Join(w.source, name))
		}
		slices.Sort(list)
		for _, path := range list {
			if filepath.Base(path) == "_version.py" {
				continue // made for this wheel
			}
			body, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			files = append(files, zipped{name: name + "/" + filepath.Base(path), body: body})
		}
		body, err := os.ReadFile(w.library)
		if err != nil {
			return nil, err
		}
		files = append(files, zipped{name: name + "/libttmon.so", body: body, exec: true})
	}
	return files, nil
}

func (w *wheel) tags() []byte {
	b := []byte("Wheel-Version: 1.0\nGenerator: ttmon\nRoot-Is-Purelib: false\n")
	for platform := range strings.SplitSeq(w.platform, ".") {
		b = fmt.Appendf(b, "Tag: py3-none-%s\n", platform)
	}
	return b
}

func entryPoints(groups map[string]map[string]string) (b []byte) {
	for _, group := range sorted(groups) {
		b = fmt.Appendf(b, "[%s]\n", group)
		for _, name := range sorted(groups[group]) {
			b = fmt.Appendf(b, "%s = %s\n", name, groups[group][name])
		}
	}
	return b
}

func sorted[V any](m map[string]V) (keys []string) {
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// record lists the files with their sums; itself without.
func record(files []zipped, name string) zipped {
	var b []byte
	for _, f := range files {
		sum := sha256.Sum256(f.body)
		b = fmt.Appendf(b, "%s,sha256=%s,%d\n", f.name, base64.RawURLEncoding.EncodeToString(sum[:]), len(f.body))
	}
	return zipped{name: name, body: fmt.Appendf(b, "%s,,\n", name)}
}

func (w *wheel) zip(files []zipped) ([]byte, error) {
	var buf bytes.Buffer
	z := zip.NewWriter(&buf)
	for _, f := range files {
		h := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: w.date}
		h.SetMode(0o644)
		if f.exec {
			h.SetMode(0o755)
		}
		e, err := z.CreateHeader(h)
		if err == nil {
			_, err = e.Write(f.body)
		}
		if err != nil {
			return nil, err
		}
	}
	err := z.Close()
	return buf.Bytes(), err
}
