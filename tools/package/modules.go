package main

import (
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
)

// module is a Go module inside a program.
type module struct {
	Path, Version, Sum string
}

// modules are those inside any of the programs, by path; go is the release that
// compiled them. It is what "go version -m" prints.
func modules(programs []string) (list []module, goVersion string, err error) {
	seen := map[module]bool{}
	for _, program := range programs {
		info, err := buildinfo.ReadFile(program)
		if err != nil {
			return nil, "", fmt.Errorf("reading what %s is made of: %w", program, err)
		}
		goVersion = info.GoVersion
		for _, d := range info.Deps {
			seen[moduleOf(d)] = true
		}
	}
	for m := range seen {
		list = append(list, m)
	}
	slices.SortFunc(list, func(a, b module) int { return strings.Compare(a.Path+"@"+a.Version, b.Path+"@"+b.Version) })
	return list, goVersion, nil
}

func moduleOf(d *debug.Module) module {
	for d.Replace != nil {
		d = d.Replace
	}
	return module{d.Path, d.Version, d.Sum}
}

// licenceFile are the names under which licences and notices go.
var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)(\.(md|txt))?$`)

// writeLicences writes the licences of all modules, from the module cache.
func writeLicences(w io.Writer, programs []string) error {
	list, goVersion, err := modules(programs)
	if err != nil {
		return err
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("asking go for its directory: %w", err)
	}
	if err := writeLicence(w, "Go "+strings.TrimPrefix(goVersion, "go"), strings.TrimSpace(string(root))); err != nil {
		return err
	}
	for _, m := range list {
		dir, err := cacheDir(m)
		if err != nil {
			return err
		}
		if err := writeLicence(w, m.Path+" "+m.Version, dir); err != nil {
			return err
		}
	}
	return nil
}

// cacheDir is where a module's files are.
func cacheDir(m module) (string, error) {
	cmd := exec.Command("go", "mod", "download", "-json", m.Path+"@"+m.Version)
	cmd.Dir = os.TempDir() // outside any module
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("looking for %s %s: %w: %s", m.Path, m.Version, err, out)
	}
	var answer struct{ Dir string }
	if err := json.Unmarshal(out, &answer); err != nil {
		return "", err
	}
	return answer.Dir, nil
}

var errNoLicence = errors.New("no licence file")

func writeLicence(w io.Writer, title, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	found := false
	for _, e := range entries {
		if e.IsDir() || !licenceFile.MatchString(e.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		writeString(w, &err, fmt.Sprintf("%s: %s\n\n%s\n\n%s\n\n", title, e.Name(), strings.TrimSpace(string(text)), strings.Repeat("-", 79)))
		if err != nil {
			return err
		}
		found = true
	}
	if !found {
		return fmt.Errorf("%s: %w in %s", title, errNoLicence, dir)
	}
	return nil
}
