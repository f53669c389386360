//go:build packages

package packages

import (
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ttmon/ttmon/internal/lab/e2e/machine"
)

// rpmArch is how rpm calls this machine.
var rpmArch = map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]

func copyRPM(t *testing.T, m *machine.Machine, dir, version string, names ...string) (paths []string) {
	t.Helper()
	for _, name := range names {
		file := name + "-" + tilde(version) + "-1." + rpmArch + ".rpm"
		m.Copy(filepath.Join(dir, file), "/var/tmp/"+file)
		paths = append(paths, "/var/tmp/"+file)
	}
	return paths
}

// The life of the .rpm packages, by rpm itself, with a real systemd: of Debian, since
// there is no other distribution here.
func TestRPMLife(t *testing.T) {
	from, to := release(t, oldRelease), release(t, newRelease)
	m := machine.Boot(t, "rpm")
	compileClient(t, m)
	// rpm's own database, and directories that belong to other packages where rpm is
	// at home.
	except := append([]string{"/.rpmdb", "/usr/share/fish", "/usr/share/zsh/site-functions"}, passing...)
	before := m.Files(except...)

	names := []string{"ttmon", "ttmond", "libttmon1"}
	m.Run(append([]string{"rpm", "-i", "--nosignature"}, copyRPM(t, m, from, oldVersion, names...)...)...)
	for _, unit := range []string{"ttmond.service", "ttmond.socket", "ttmond-api.socket"} {
		if m.Run("systemctl", "is-enabled", unit) != "enabled" || m.Run("systemctl", "is-active", unit) != "active" {
			t.Errorf("%s is not enabled and active", unit)
		}
	}
	load := startLoad(t, m)
	m.Run(append([]string{"rpm", "-U", "--nosignature"}, copyRPM(t, m, to, newVersion, names...)...)...)
	if got := m.Run("ttmon", "daemon", "status"); !strings.Contains(got, newVersion) {
		t.Errorf("after the upgrade no %s in:\n%s", newVersion, got)
	}
	load.stop()
	for _, c := range load.clients {
		c.end()
	}
	m.Run(append([]string{"rpm", "-e"}, names...)...)
	m.Run("rm", "-rf", "/var/lib/ttmon", "/etc/ttmon") // rpm knows no purge
	if diff := cmp.Diff(before, m.Files(except...)); diff != "" {
		t.Errorf("what is left (+) or gone (-):\n%s", diff)
	}
}
