package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// systemd understands the units, but for what is newer than it.
func TestUnits(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("no systemd-analyze on this machine")
	}
	units, err := filepath.Glob("../../packaging/systemd/*")
	if err != nil || len(units) != 3 {
		t.Fatalf("units %v, %v", units, err)
	}
	dir := t.TempDir()
	args := []string{"verify"}
	for _, u := range units {
		b, err := os.ReadFile(u)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.ReplaceAll(string(b), "/usr/bin/ttmond", program(t))
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
