package main

import (
	"os"
	"strings"
	"testing"
)

// TestOpenRefusesRealHosts: real boards are never opened, so it works inside a
// simulated host only.
func TestOpenRefusesRealHosts(t *testing.T) {
	if _, err := os.Stat("/sys/ttmon-sim"); err == nil {
		t.Skip("this host is a simulated one")
	}
	code, stdout, stderr := result(t, program(t, "open", "--", "true"))
	if code != 2 || stdout != "" || !strings.Contains(stderr, "never opened") {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
	}
}

func TestOpen(t *testing.T) {
	needRoot(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args []string
		want string // devices that the command has open, by the driver's lists
		code int
	}{
		{[]string{"open", "--"}, "0 1 2", 0},
		{[]string{"open", "--devices", "2,0", "--"}, "0 2", 0},
		{[]string{"open", "--devices", "7", "--"}, "opening /dev/tenstorrent/7", 1},
		{[]string{"open", "--devices", "x", "--"}, `"x" is not a device index`, 2},
	} {
		t.Run(strings.Join(tt.args, " "), func(t *testing.T) {
			script := `for n in 0 1 2; do grep -qx $$ /proc/driver/tenstorrent/$n/pids && printf "$n "; done; true`
			args := append([]string{"--boards", "3xn150", "--", exe}, tt.args...)
			code, stdout, stderr := result(t, program(t, append(args, "sh", "-c", script)...))
			if code != tt.code || !strings.Contains(strings.TrimSpace(stdout)+stderr, tt.want) || tt.code == 0 && strings.TrimSpace(stdout) != tt.want {
				t.Errorf("exit %d, %q %q, want %d and %q", code, stdout, stderr, tt.code, tt.want)
			}
		})
	}
}

func TestChips(t *testing.T) {
	needRoot(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := result(t, program(t, "--boards", "p150a,n300", "--", exe, "ctl", "chips"))
	if lines := strings.Split(strings.TrimSpace(stdout), "\n"); code != 0 || len(lines) != 4 || !strings.Contains(stdout, " R ") || !strings.Contains(lines[0], "simulated") {
		t.Errorf("exit %d:\n%s%s", code, stdout, stderr)
	}
}
