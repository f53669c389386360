package version

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/lab/hermetic"
)

func TestMain(m *testing.M) { hermetic.Main(m) }

// What tools/version says of a checkout as it grows: each version is newer than the
// one before.
func TestTreeVersion(t *testing.T) {
	tree := newCheckout(t)
	var versions []string
	for _, step := range []struct {
		name         string
		do           func()
		want, python string // as regular expressions
	}{
		{"first commit", func() { tree.commit("one") }, `^0\.1\.0-dev\.1$`, `^0\.1\.0\.dev1\+g[0-9a-f]{12}\.d20261115$`},
		{"edited", func() { tree.write("two") }, `^0\.1\.0-dev\.1\+dirty$`, `^0\.1\.0\.dev1\+g[0-9a-f]{12}\.d20261115\.dirty$`},
		{"second commit", func() { tree.commit("two") }, `^0\.1\.0-dev\.2$`, `^0\.1\.0\.dev2\+g[0-9a-f]{12}\.d20261115$`},
		{"release", func() { tree.git("tag", "v0.1.0") }, `^0\.1\.0$`, `^0\.1\.0$`},
		{"edited release", func() { tree.write("three") }, `^0\.1\.0\+dirty$`, `^0\.1\.0\+dirty$`},
		{"commit after it", func() { tree.commit("three") }, `^0\.1\.0\+1\.g[0-9a-f]+$`, `^0\.1\.0\+1\.g[0-9a-f]+$`},
		{"edited after it", func() { tree.write("four") }, `^0\.1\.0\+1\.g[0-9a-f]+\.dirty$`, `^0\.1\.0\+1\.g[0-9a-f]+\.dirty$`},
		{"next release", func() { tree.commit("four"); tree.git("tag", "v0.2.0-rc.1") }, `^0\.2\.0-rc\.1$`, `^0\.2\.0rc1$`},
	} {
		t.Run(step.name, func(t *testing.T) {
			step.do()
			got := tree.version()
			if !regexp.MustCompile(step.want).MatchString(got) {
				t.Errorf("%s, want %s", got, step.want)
			}
			if got := tree.version("-p"); !regexp.MustCompile(step.python).MatchString(got) {
				t.Errorf("to Python %s, want %s", got, step.python)
			}
			versions = append(versions, got)
		})
	}
	if got := tree.version("-c"); !regexp.MustCompile(`^[0-9a-f]{12} 2026-11-15$`).MatchString(got) {
		t.Errorf("commit and date: %q", got)
	}
	newer(t, versions)
}

// newer has dpkg compare neighbours. A release with changes is newer than the release,
// and is not to be compared with the commit after it.
func newer(t *testing.T, versions []string) {
	t.Helper()
	if _, err := exec.LookPath("dpkg"); err != nil {
		t.Skip("needs dpkg, to compare versions")
	}
	for i, v := range versions[1:] {
		if strings.HasSuffix(versions[i], "dirty") {
			continue
		}
		older, later := strings.Replace(versions[i], "-", "~", 1), strings.Replace(v, "-", "~", 1)
		if err := exec.Command("dpkg", "--compare-versions", older, "lt", later).Run(); err != nil {
			t.Errorf("to dpkg %s is not newer than %s", later, older)
		}
	}
}

type checkout struct {
	t   *testing.T
	dir string
}

func newCheckout(t *testing.T) *checkout {
	t.Helper()
	c := &checkout{t: t, dir: t.TempDir()}
	script, err := os.ReadFile("../../../tools/version")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(c.dir, "tools"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(c.dir, "tools/version"), script, 0o755); err != nil {
		t.Fatal(err)
	}
	c.git("init", "-q")
	return c
}

// run runs a command in the checkout, without the settings of the user who tests.
func (c *checkout) run(name string, args ...string) string {
	c.t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = c.dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + c.dir, "TZ=UTC", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org",
		"GIT_AUTHOR_DATE=2026-11-15T12:00:00Z", "GIT_COMMITTER_DATE=2026-11-15T12:00:00Z",
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		c.t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (c *checkout) git(args ...string) {
	c.t.Helper()
	c.run("git", args...)
}

func (c *checkout) version(args ...string) string {
	c.t.Helper()
	return c.run(filepath.Join(c.dir, "tools/version"), args...)
}

func (c *checkout) write(text string) {
	c.t.Helper()
	if err := os.WriteFile(filepath.Join(c.dir, "file"), []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

func (c *checkout) commit(text string) {
	c.t.Helper()
	c.write(text)
	c.git("add", ".")
	c.git("commit", "-q", "-m", text)
}
