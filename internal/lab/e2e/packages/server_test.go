//go:build packages

package packages

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ttmon/ttmon/internal/lab/e2e/machine"
)

// The whole of it on one host: the server runs as its own user beside ttmond, is
// restarted when it is upgraded, the other names of ttmon come and go, and a purge
// leaves nothing but the server's user, as Debian's packages do.
func TestDebianServerLife(t *testing.T) {
	from, to := release(t, oldRelease), release(t, newRelease)
	m := machine.Boot(t)
	before := m.Files(passing...)
	names := []string{"ttmon", "ttmond", "ttmon-server"}
	m.Write("/etc/ttmon/ttmon-server.toml", "[listen]\naddress = \""+freeAddress(t)+"\"\n", 0o644) // the network is the test's
	keep := []string{"dpkg", "--force-confold", "--install"}
	m.Run(append(keep, copyPackages(t, m, from, oldVersion, names...)...)...)
	first := serverPID(t, m)
	if user := m.Run("stat", "-c", "%U", "/proc/"+first); user != "ttmon" {
		t.Errorf("the server runs as %s", user)
	}
	m.Await("the page", func() bool {
		address, err := m.Try("ttmon", "web")
		return err == nil && strings.Contains(address, "http://127.0.0.1:")
	})

	m.Run(append(keep, copyPackages(t, m, to, newVersion, names...)...)...)
	m.Run(append(keep, copyPackage(m, to, "ttmon-aliases_"+tilde(newVersion)+"-1_all.deb"))...)
	if second := serverPID(t, m); second == first {
		t.Error("the upgrade did not restart the server")
	}
	for _, program := range []string{"ttmon-server", "tt-smi"} {
		if got := m.Run(program, "--version"); !strings.Contains(got, newVersion) {
			t.Errorf("%s --version: %s", program, got)
		}
	}

	m.Run(append([]string{"dpkg", "--purge", "ttmon-aliases"}, names...)...)
	m.Run("rm", "-rf", "/etc/ttmon") // the file that this test wrote before the package was there
	if diff := cmp.Diff(withoutAccounts(before), withoutAccounts(m.Files(passing...))); diff != "" {
		t.Errorf("what purge left (+) or took (-):\n%s", diff)
	}
	if got := m.Run("systemctl", "is-system-running"); got != "running" {
		t.Errorf("the machine is %s", got)
	}
}

// serverPID waits until the server is active, and returns its process.
func serverPID(t *testing.T, m *machine.Machine) string {
	t.Helper()
	m.Await("ttmon-server", func() bool {
		state, _ := m.Try("systemctl", "is-active", "ttmon-server.service")
		return state == "active"
	})
	return m.Run("systemctl", "show", "--property", "MainPID", "--value", "ttmon-server.service")
}

// withoutAccounts leaves out the backups that adding a user makes.
func withoutAccounts(files []string) (list []string) {
	for _, line := range files {
		path, _, _ := strings.Cut(line, " ")
		switch path {
		case "/etc/passwd-", "/etc/group-", "/etc/shadow-", "/etc/gshadow-", "/etc/.pwd.lock":
		default:
			list = append(list, line)
		}
	}
	return list
}
