package laws

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/ttmon/ttmon/"

// pkg is what go list prints about a package.
type pkg struct {
	ImportPath string
	Doc        string
	Imports    []string
	Deps       []string
	GoFiles    []string
	Standard   bool
}

// packages lists all of our packages, by path below the module.
func packages(t *testing.T) map[string]pkg {
	t.Helper()
	list, err := listPackages()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// listPackages asks the go command, which takes a second, once for all tests.
var listPackages = sync.OnceValues(func() (map[string]pkg, error) {
	cmd := exec.Command("go", "list", "-json=ImportPath,Doc,Imports,Deps,GoFiles,Standard", module+"...")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	list := map[string]pkg{}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return list, nil
		} else if err != nil {
			return nil, err
		}
		list[strings.TrimPrefix(p.ImportPath, module)] = p
	}
})

func TestModelImportsOnlyTheStandardLibrary(t *testing.T) {
	for _, imp := range packages(t)["internal/model"].Imports {
		if strings.Contains(imp, ".") {
			t.Errorf("internal/model imports %s: everything may import it, so it imports nothing", imp)
		}
	}
}

// TestTTMonIsLight keeps the client that everybody types quick to start.
func TestTTMonIsLight(t *testing.T) {
	reasons := map[string]string{
		"github.com/hanwen/go-fuse":        "the simulator's",
		"github.com/cilium/ebpf":           "the daemon's",
		"github.com/google/pprof":          "slow to initialise; the profile is written by hand and read back by it in tests",
		"github.com/prometheus/":           "the daemon's, and slow to initialise",
		module + "internal/lab/sim":        "ttmon never makes data up",
		module + "internal/book/ledger":    "the daemon's",
		module + "internal/view/web":       "the daemon's",
		module + "internal/view/prom":      "the daemon's",
		"github.com/BurntSushi/toml":       "slow to initialise",
		"github.com/mattn/go-runewidth":    "slow to initialise",
		"github.com/spf13/cobra/doc":       "documentation is made by a test",
		"github.com/coreos/go-systemd/v22": "the daemon's",
	}
	p, ok := packages(t)["cmd/ttmon"]
	if !ok {
		t.Fatal("cmd/ttmon is gone")
	}
	for _, dep := range p.Deps {
		for prefix, why := range reasons {
			if strings.HasPrefix(dep, prefix) {
				t.Errorf("cmd/ttmon links %s: %s", dep, why)
			}
		}
	}
}

func TestOnlyCommandsSeeEverything(t *testing.T) {
	for name, p := range packages(t) {
		if strings.HasPrefix(name, "cmd/") {
			continue
		}
		for _, imp := range p.Imports {
			if strings.HasPrefix(imp, module+"cmd/") {
				t.Errorf("%s imports %s", name, imp)
			}
		}
		if strings.HasPrefix(name, "internal/lab/sim") || strings.HasPrefix(name, "internal/lab/e2e") {
			continue
		}
		for _, imp := range p.Imports {
			if strings.HasPrefix(imp, module+"internal/lab/sim") {
				t.Errorf("%s imports %s: made-up numbers come from ttmon-sim only", name, imp)
			}
		}
	}
}

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	for name, p := range packages(t) {
		if len(p.GoFiles) > 0 && len(strings.Fields(p.Doc)) < 5 {
			t.Errorf("%s has no doc comment that says its place", name)
		}
	}
}

// TestNoGrabBags: files are named after what they hold, not after a kind.
func TestNoGrabBags(t *testing.T) {
	banned := []string{"types.go", "const.go", "constants.go", "variables.go", "util.go", "utils.go", "common.go", "helpers.go", "misc.go"}
	root := moduleRoot(t)
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != root || d.Name() == "node_modules") {
			return filepath.SkipDir
		}
		if slices.Contains(banned, d.Name()) || d.IsDir() && slices.Contains([]string{"util", "utils", "common", "helpers"}, d.Name()) {
			t.Errorf("%s: name it after what it holds", path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func moduleRoot(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Dir(strings.TrimSpace(string(out)))
}

// maxThirdParty bounds what runs with root's rights and was written elsewhere.
const maxThirdParty = 30

// TestTTMondIsSmall: what runs as root links no database, no PromQL, no view, no alert
// target and nothing about the past; that is ttmon-server's.
func TestTTMondIsSmall(t *testing.T) {
	p := packages(t)["cmd/ttmond"]
	banned := []string{
		"github.com/prometheus/", "github.com/klauspost/", module + "internal/past/server", module + "internal/past/promapi", module + "internal/past/alert",
		module + "internal/past/history/disk", module + "internal/past/remotewrite", module + "internal/past/kube", module + "internal/view/web", module + "internal/past/httpguard",
		module + "internal/past", module + "internal/past/page", module + "internal/view/", module + "internal/book/runs", module + "internal/book/runreport", module + "internal/model/history", module + "internal/past/journal", module + "internal/past/recording", module + "internal/past/recorder",
	}
	var others []string
	for _, dep := range p.Deps {
		for _, b := range banned {
			if strings.HasPrefix(dep, b) {
				t.Errorf("cmd/ttmond links %s, which is ttmon-server's", dep)
			}
		}
		if first, _, _ := strings.Cut(dep, "/"); strings.Contains(first, ".") && !strings.HasPrefix(dep, module) {
			others = append(others, dep)
		}
	}
	if len(others) > maxThirdParty {
		t.Errorf("cmd/ttmond links %d packages of others, more than %d:\n%s", len(others), maxThirdParty, strings.Join(others, "\n"))
	}
}
