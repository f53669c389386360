package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestChroot: in a plain chroot, which is no mount of its own, a simulated
// host works, and shows nothing outside.
func TestChroot(t *testing.T) {
	t.Parallel()
	needRoot(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// Every directory of the host is there, and the program under a new name.
	const script = `set -e
mount --make-rshared /
cd "$1"
for at in /*; do
	if [ -h "$at" ]; then cp -P "$at" ."$at"
	elif [ -d "$at" ]; then mkdir ."$at"; mount --rbind "$at" ."$at"
	fi
done
cp "$2" ./simulator
exec chroot . /simulator --boards n150 -- sh -c 'cd /; pwd; cat /sys/class/tenstorrent/tenstorrent!0/tt_card_type; ls /simulator'
`
	cmd := exec.Command("unshare", "--mount", "sh", "-c", script, "sh", t.TempDir(), exe)
	cmd.Env = append(os.Environ(), asProgram+"=1", "TMPDIR=/")
	cmd.Dir = "/"
	code, stdout, stderr := result(t, cmd)
	if want := "/\nn150\n/simulator\n"; code != 0 || stdout != want {
		t.Errorf("exit %d, printed %q, want %q; %s", code, stdout, want, stderr)
	}
	if mounts, err := os.ReadFile("/proc/self/mounts"); err != nil || strings.Contains(string(mounts), " /simulator") {
		t.Errorf("mounts outside: %v\n%s", err, mounts)
	}
}
