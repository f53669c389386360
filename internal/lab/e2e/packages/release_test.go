//go:build packages

package packages

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The same commit makes the same bytes.
func TestReproducible(t *testing.T) {
	first := release(t, newRelease)
	second, err := build("release", newVersion, "amd64 arm64")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sums(t, first), sums(t, second)); diff != "" {
		t.Errorf("it is not the same when it is made again:\n%s", diff)
	}
	// The image alone, made into the release, is the same, and takes nothing away.
	if err := buildInto(second, "image", newVersion, "amd64 arm64"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sums(t, first), sums(t, second)); diff != "" {
		t.Errorf("the release (-), and with the image made again (+):\n%s", diff)
	}
}

// sums are those of all files below a directory, by name.
func sums(t *testing.T, dir string) map[string]string {
	t.Helper()
	list := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		list[name] = fmt.Sprintf("%x", sha256.Sum256(b))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// Everything that a release page needs.
func TestReleaseIsComplete(t *testing.T) {
	dir := release(t, newRelease)
	for _, c := range []struct {
		pattern string
		count   int
	}{
		{"ttmon_*_linux_amd64.tar.gz", 1},
		{"ttmon_*_linux_arm64.tar.gz", 1},
		{"ttmon_*_linux_*.cdx.json", 2},
		{"*_amd64.deb", 6},
		{"*_arm64.deb", 6},
		{"ttmon-aliases_*_all.deb", 1},
		{"*.x86_64.rpm", 6},
		{"*.aarch64.rpm", 6},
		{"ttmon-aliases-*.noarch.rpm", 1},
		{"ttmon-*_x86_64.whl", 1},
		{"ttmon-*_aarch64.whl", 1},
		{"ttmon_*_image.oci.tar", 1},
		{"ttmon-" + newVersion + ".tgz", 1}, // the Helm chart
		{"ttmon_*_kubernetes.tar.gz", 1},
		{"install.sh", 1},
		{"CHANGES.md", 1},
		{"SHA256SUMS", 1},
		{"repository/deb/*.deb", 13},
		{"repository/deb/Packages.gz", 1},
		{"repository/deb/Release", 1},
		{"repository/rpm/*.rpm", 13},
		{"repository/rpm/repodata/repomd.xml", 1},
	} {
		t.Run(c.pattern, func(t *testing.T) {
			list, err := filepath.Glob(filepath.Join(dir, c.pattern))
			if err != nil || len(list) != c.count {
				t.Errorf("%d files, want %d: %v %v", len(list), c.count, list, err)
			}
		})
	}
}

// SHA256SUMS has the sum of every file of a release, and of no other: it would be
// its own otherwise.
func TestSums(t *testing.T) {
	dir := release(t, newRelease)
	want := sums(t, dir)
	delete(want, "SHA256SUMS")
	got := map[string]string{}
	for line := range strings.Lines(output(t, "cat", filepath.Join(dir, "SHA256SUMS"))) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		got[name] = sum
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the files (-), SHA256SUMS (+):\n%s", diff)
	}
}

// elsewhere says where files of the .deb are in the .rpm.
var elsewhere = strings.NewReplacer(
	"/lib/systemd/system/", "/usr/lib/systemd/system/",
	"/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib/aarch64-linux-gnu", "/usr/lib64",
	"/vendor-completions/", "/site-functions/", "/copyright", "/LICENSE",
)

// The .rpm packages hold what the .deb packages hold, at the places of other
// distributions.
func TestRPM(t *testing.T) {
	dir := release(t, newRelease)
	for _, name := range packageNames(t) {
		arches := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}
		if name == "ttmon-aliases" {
			arches = map[string]string{"all": "noarch"}
		}
		for deb, rpm := range arches {
			t.Run(name+" "+deb, func(t *testing.T) {
				path := glob(t, dir, name+"-"+tilde(newVersion)+"-1."+rpm+".rpm")
				got := strings.Fields(output(t, "rpm", "-qp", "--nosignature", "--queryformat", "[%{FILENAMES}\n]", path))
				if diff := cmp.Diff(expected(t, dir, name, deb), files(got)); diff != "" {
					t.Errorf("the .deb (-) and the .rpm (+):\n%s", diff)
				}
				if out := output(t, "rpm", "-K", "--nosignature", path); !strings.Contains(out, "digests OK") {
					t.Error(out)
				}
			})
		}
	}
	path := glob(t, dir, "ttmond-"+tilde(newVersion)+"-1.x86_64.rpm")
	if got := output(t, "rpm", "-qpc", "--nosignature", path); strings.TrimSpace(got) != "/etc/ttmon/ttmond.toml" {
		t.Errorf("configuration files: %s", got)
	}
	scripts := output(t, "rpm", "-qp", "--nosignature", "--scripts", path)
	for _, want := range []string{"postinstall scriptlet", "preuninstall scriptlet", "postuninstall scriptlet", "reload ttmond.service"} {
		if !strings.Contains(scripts, want) {
			t.Errorf("no %q among the scripts:\n%s", want, scripts)
		}
	}
}

// expected are the files of a .deb, as an .rpm has them.
func expected(t *testing.T, dir, name, arch string) []string {
	t.Helper()
	var list []string
	for line := range strings.Lines(output(t, "dpkg-deb", "--contents", glob(t, dir, name+"_"+tilde(newVersion)+"-1_"+arch+".deb"))) {
		path := strings.TrimPrefix(strings.Fields(line)[5], ".")
		if strings.HasPrefix(line, "d") || strings.Contains(path, "/lintian/") || strings.HasSuffix(path, "changelog.Debian.gz") {
			continue
		}
		list = append(list, elsewhere.Replace(path))
	}
	if name == "ttmond" || name == "ttmon-server" {
		list = append(list, "/usr/lib/systemd/system-preset/50-"+name+".preset")
	}
	return files(list)
}

// files sorts, and leaves directories out.
func files(list []string) []string {
	list = slices.DeleteFunc(slices.Clone(list), func(f string) bool {
		return slices.ContainsFunc(list, func(o string) bool { return strings.HasPrefix(o, f+"/") })
	})
	slices.Sort(list)
	return list
}

// Python installs the wheel, finds the library in it, and knows what it was made from.
func TestWheel(t *testing.T) {
	dir := release(t, newRelease)
	target := t.TempDir()
	output(t, "python3", "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", target, glob(t, dir, "ttmon-*_x86_64.whl"))
	t.Setenv("PYTHONPATH", target)
	script := "import ttmon, ctypes; ttmon.attach(); from ttmon import _library as l; print(hex(l.library().ttmon_version()), l._lib._name)"
	if got := output(t, "python3", "-c", script); !strings.Contains(got, filepath.Join(target, "ttmon/libttmon.so")) {
		t.Errorf("python says %s", got)
	}
	said := output(t, "python3", "-c", "import ttmon; print(ttmon.__version__)")
	for _, want := range append([]string{"0.1.0.dev2"}, commitAndDate(t)...) {
		if !strings.Contains(said, strings.ReplaceAll(want, "-", "")) {
			t.Errorf("no %s in what the module says: %s", want, said)
		}
	}
	if got := output(t, filepath.Join(target, "bin/ttmon"), "version"); !strings.Contains(got, newVersion) {
		t.Errorf("the command of the wheel says %s", got)
	}
}
