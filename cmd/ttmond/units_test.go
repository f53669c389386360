package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/source/allocsock"
)

// systemd understands the units, but for what is newer than it.
func TestUnits(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("no systemd-analyze on this machine")
	}
	units, err := filepath.Glob("../../packaging/systemd/*")
	if err != nil || len(units) != 4 {
		t.Fatalf("units %v, %v", units, err)
	}
	dir := t.TempDir()
	args := []string{"verify"}
	for _, u := range units {
		b, err := os.ReadFile(u)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.NewReplacer("/usr/bin/ttmond", program(t), "/usr/bin/ttmon-server", program(t)).Replace(string(b))
		text = regexp.MustCompile(`(?m)^Documentation=.*$`).ReplaceAllString(text, "")
		to := filepath.Join(dir, filepath.Base(u))
		if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, to)
	}
	out, err := exec.Command(analyze, args...).CombinedOutput()
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, dir) && !strings.Contains(line, "FileDescriptorStorePreserve") && !strings.Contains(line, "world-inaccessible") {
			t.Error(line)
		}
	}
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// How exposed systemd thinks the services are: docs/security.md has the figures.
// What is left of ttmond are things that it is for: other users' processes, their
// files in /tmp and /dev/shm, BPF; of ttmon-server, HTTP.
func TestUnitExposure(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("no systemd-analyze on this machine")
	}
	for unit, most := range map[string]string{"ttmond.service": "28", "ttmon-server.service": "12"} {
		t.Run(unit, func(t *testing.T) {
			b, err := os.ReadFile("../../packaging/systemd/" + unit)
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), unit)
			text := regexp.MustCompile(`(?m)^ExecStart=\S+`).ReplaceAllLiteralString(string(b), "ExecStart="+program(t))
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			out, err := exec.Command(analyze, "security", "--offline=true", "--threshold="+most, "--no-pager", path).CombinedOutput()
			if strings.Contains(string(out), "unrecognized option") {
				t.Skip("this systemd-analyze cannot look at files")
			}
			if err != nil {
				t.Errorf("%v:\n%s", err, out)
			}
		})
	}
}

// systemd keeps as many connections as ttmond gives it, and what else it gives:
// more would be closed at once, and a crash would kill who has them.
func TestStoreIsLargeEnough(t *testing.T) {
	b, err := os.ReadFile("../../packaging/systemd/ttmond.service")
	if err != nil {
		t.Fatal(err)
	}
	setting := func(name string) (n int64) {
		m := regexp.MustCompile(`(?m)^` + name + `=(\d+)$`).FindSubmatch(b)
		if m == nil {
			t.Fatalf("the unit has no %s", name)
		}
		n, _ = strconv.ParseInt(string(m[1]), 10, 64)
		return n
	}
	const sockets = 16 // and what else it keeps
	given := allocsock.DefaultLimits(int(setting("LimitNOFILE"))).Stored.All
	if has := setting("FileDescriptorStoreMax"); has < given+sockets {
		t.Errorf("systemd keeps %d descriptors, ttmond gives it %d connections", has, given)
	}
}
