package laws

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/lab/golden"
)

// TestDeps: each program's deps.txt lists the packages that are linked into it, so
// that a new one shows in a diff and is reviewed. make update writes the files.
func TestDeps(t *testing.T) {
	root := moduleRoot(t)
	programs, err := os.ReadDir(filepath.Join(root, "cmd"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range programs {
		t.Run(p.Name(), func(t *testing.T) {
			file := filepath.Join(root, "cmd", p.Name(), "deps.txt")
			got := linked(t, module+"cmd/"+p.Name())
			if *golden.Update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatalf("%v: make update writes it", err)
			}
			for _, line := range changed(string(want), got) {
				t.Errorf("cmd/%s/deps.txt: %s", p.Name(), line)
			}
			if t.Failed() {
				t.Error("if these packages are to be linked, or no longer: make update")
			}
		})
	}
}

// TestRootsHalfIsSmall: what runs as root links few packages of others, and none of
// what listens on TCP or keeps history.
func TestRootsHalfIsSmall(t *testing.T) {
	const most = 30
	b, err := os.ReadFile(filepath.Join(moduleRoot(t), "cmd/ttmond/deps.txt"))
	if err != nil {
		t.Fatal(err)
	}
	others, section := 0, ""
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		switch name, isHead := strings.CutPrefix(line, "# "); {
		case isHead:
			section = name
		case line != "" && strings.Contains(section, "/"):
			others++
		}
		if slices.Contains([]string{"internal/past/server", "internal/past/journal", "internal/past/history/disk", "internal/past/promapi", "internal/past/alert", "internal/past/httpguard"}, line) {
			t.Errorf("ttmond links %s, which is for ttmon-server", line)
		}
	}
	if others > most || others == 0 {
		t.Errorf("ttmond links %d packages of others, at most %d", others, most)
	}
}

// linked lists the packages of a program as it is released: our own, those of
// others below their modules, and those of the standard library that have a
// public name.
func linked(t *testing.T, program string) string {
	t.Helper()
	cmd := exec.Command("go", "list", "-deps", "-json=ImportPath,Standard,Module", program)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var own, standard []string
	others := map[string][]string{}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath string
			Standard   bool
			Module     *struct{ Path string }
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		switch {
		case p.Standard && !strings.HasPrefix(p.ImportPath, "vendor/") && !slices.Contains(strings.Split(p.ImportPath, "/"), "internal"):
			standard = append(standard, p.ImportPath)
		case p.Standard:
		case strings.HasPrefix(p.ImportPath, module):
			own = append(own, strings.TrimPrefix(p.ImportPath, module))
		default:
			others[p.Module.Path] = append(others[p.Module.Path], p.ImportPath)
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# What is linked into %s, for linux/amd64 without cgo. Written by make update.\n", filepath.Base(program))
	section(&b, "ttmon", own)
	for _, m := range slices.Sorted(maps.Keys(others)) {
		section(&b, m, others[m])
	}
	section(&b, "standard library", standard)
	return b.String()
}

func section(b *strings.Builder, title string, list []string) {
	fmt.Fprintf(b, "\n# %s\n", title)
	slices.Sort(list)
	for _, p := range list {
		b.WriteString(p + "\n")
	}
}

// changed lists the packages that only one of two files has.
func changed(want, got string) (lines []string) {
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	for _, line := range b {
		if !strings.HasPrefix(line, "#") && !slices.Contains(a, line) {
			lines = append(lines, line+" is linked and not listed")
		}
	}
	for _, line := range a {
		if !strings.HasPrefix(line, "#") && !slices.Contains(b, line) {
			lines = append(lines, line+" is listed and not linked")
		}
	}
	if len(lines) == 0 && want != got {
		lines = append(lines, "its headings are out of date")
	}
	return lines
}
