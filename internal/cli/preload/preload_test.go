package preload

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/lab/hermetic"
)

const root = "../../.."

// sources reads sources.txt: hashes by path, compilers by architecture.
func sources(t *testing.T) (hashes, compilers map[string]string) {
	t.Helper()
	f, err := os.Open("sources.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	hashes, compilers = map[string]string{}, map[string]string{}
	for s := bufio.NewScanner(f); s.Scan(); {
		first, rest, _ := strings.Cut(s.Text(), " ")
		switch first {
		case "#":
		case "amd64", "arm64":
			compilers[first] = rest
		default:
			hashes[strings.TrimSpace(rest)] = first
		}
	}
	return hashes, compilers
}

// The libraries in the repository are those of the sources in it.
func TestLibrariesAreUpToDate(t *testing.T) {
	hashes, _ := sources(t)
	files := []string{"lib/build", "lib/include/ttmon.h", "lib/include/ttmon_ledger.h", "internal/cli/preload/libttmon-amd64.so", "internal/cli/preload/libttmon-arm64.so"}
	code, err := filepath.Glob(root + "/lib/src/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range code {
		files = append(files, strings.TrimPrefix(path, root+"/"))
	}
	for _, path := range files {
		b, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%x", sha256.Sum256(b)); got != hashes[path] {
			t.Errorf("%s has changed: run make lib and commit what it makes", path)
		}
	}
	if len(files) != len(hashes) {
		t.Errorf("%d files, %d in sources.txt: run make lib", len(files), len(hashes))
	}
}

// The same compiler makes the same bytes.
func TestLibrariesCanBeMadeAgain(t *testing.T) {
	hermetic.Long(t)
	_, compilers := sources(t)
	for arch, cc := range map[string]string{"amd64": "cc", "arm64": "aarch64-linux-gnu-gcc"} {
		t.Run(arch, func(t *testing.T) {
			out, err := exec.Command(cc, "--version").Output()
			version, _, _ := strings.Cut(string(out), "\n")
			if err != nil || version != compilers[arch] {
				t.Skipf("the compiler of %s is %q, the library was made by %q", arch, version, compilers[arch])
			}
			file := filepath.Join(t.TempDir(), "libttmon.so")
			if out, err := exec.Command(root+"/lib/build", arch, file).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			made, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			kept, err := os.ReadFile("libttmon-" + arch + ".so")
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(made, kept) {
				t.Error("other bytes than those in the repository")
			}
		})
	}
}

func TestPlace(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	l, err := Install()
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Dir(filepath.Dir(filepath.Dir(l.Path))) != cache || filepath.Base(l.Path) != soname {
		t.Errorf("placed at %s, not in the cache", l.Path)
	}
	again, err := Install()
	if err != nil || again.Path != l.Path {
		t.Errorf("placed again at %v, %v", again, err)
	}
	// It was changed: it is restored.
	if err := os.WriteFile(l.Path, []byte("something else"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Install(); err != nil || !isIntact(l.Path) {
		t.Errorf("a changed library was used: %v", err)
	}
	// LD_PRELOAD cannot name what is in there.
	t.Setenv("XDG_CACHE_HOME", filepath.Join(cache, "with blank"))
	l, err = Install()
	if err != nil || !strings.HasPrefix(l.Path, "/proc/") {
		t.Fatalf("placed at %v, %v", l, err)
	}
	defer l.Close()
	if out, err := exec.Command("env", "LD_PRELOAD="+l.Path, "true").CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("preloading it: %v\n%s", err, out)
	}
}

// TestLibrariesNeedOnlyC: what the libraries call is found in any C library. A
// helper of the compiler's would be in none, and a program that has the library
// could not start.
func TestLibrariesNeedOnlyC(t *testing.T) {
	for _, arch := range []string{"amd64", "arm64"} {
		t.Run(arch, func(t *testing.T) {
			f, err := elf.Open("libttmon-" + arch + ".so")
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			needed, err := f.ImportedLibraries()
			if err != nil || len(needed) > 0 {
				t.Errorf("%s names the libraries %v, %v", arch, needed, err)
			}
			symbols, err := f.ImportedSymbols()
			if err != nil || len(symbols) == 0 {
				t.Fatal(err)
			}
			for _, s := range symbols {
				if strings.HasPrefix(s.Name, "_") && s.Name != "__errno_location" {
					t.Errorf("%s calls %s", arch, s.Name)
				}
			}
		})
	}
}

// TestOthersDirectories: a directory in which another user could put a file of
// theirs in the library's place is not used, and nothing is written there.
func TestOthersDirectories(t *testing.T) {
	hermetic.NeedOtherUsers(t)
	for name, prepare := range map[string]func(t *testing.T, home string){
		"home of another":     func(t *testing.T, home string) { give(t, home) },
		"open to a group":     func(t *testing.T, home string) { open(t, home, 0o775) },
		"open to all":         func(t *testing.T, home string) { open(t, home, 0o777) },
		"a link there":        func(t *testing.T, home string) { link(t, home); give(t, home) },
		"another user's link": func(t *testing.T, home string) { give(t, link(t, home)) },
	} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			prepare(t, home)
			t.Setenv("XDG_CACHE_HOME", filepath.Join(home, ".cache"))
			l, err := Install()
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			if l.Lasting() {
				t.Errorf("the library is at %s", l.Path)
			}
			if _, err := os.Stat(home + "/.cache/ttmon"); err == nil {
				t.Error("a directory was made there")
			}
		})
	}
}

func give(t *testing.T, home string) {
	t.Helper()
	if err := os.Lchown(home, 1000, 1000); err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, home string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(home, mode); err != nil {
		t.Fatal(err)
	}
}

// link makes the cache of a home a link to a directory of root's.
func link(t *testing.T, home string) string {
	t.Helper()
	if err := os.Symlink(t.TempDir(), home+"/.cache"); err != nil {
		t.Fatal(err)
	}
	return home + "/.cache"
}
