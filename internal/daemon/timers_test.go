package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// playTimers in the environment has the test binary be a program that calls CoarseTimers.
const playTimers = "TTMON_TEST_TIMERS"

// slackOfAll is the least timer slack of all threads of this process. An ordinary user
// is told that of the calling one only.
func slackOfAll() string {
	files, err := filepath.Glob("/proc/self/task/*")
	if err != nil || len(files) < 2 {
		return fmt.Sprint("threads: ", files, err)
	}
	least := slack()
	for _, task := range files {
		b, err := os.ReadFile("/proc/" + filepath.Base(task) + "/timerslack_ns")
		if errors.Is(err, fs.ErrPermission) {
			continue
		}
		if err != nil {
			return err.Error()
		}
		var ns time.Duration
		if _, err := fmt.Sscan(string(b), &ns); err != nil {
			return err.Error()
		}
		least = min(least, ns)
	}
	return least.String()
}

// All threads have the slack, Go's monitor too; process and arguments stay the same.
func TestCoarseTimers(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0], "--socket", "a b")
	cmd.Env = append(os.Environ(), playTimers+"=1")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("%d %v [--socket a b]", cmd.Process.Pid, timerSlack)
	if got := strings.TrimSpace(string(out)); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
