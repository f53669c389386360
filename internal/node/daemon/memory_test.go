package daemon

import (
	"math"
	"os"
	"path/filepath"
	"testing"
)

func TestCgroupLimit(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"sys/fs/cgroup/memory/system.slice/ttmond.service/memory.limit_in_bytes": "3000\n",
		"sys/fs/cgroup/memory/system.slice/memory.limit_in_bytes":                "2000\n",
		"sys/fs/cgroup/memory/memory.limit_in_bytes":                             "9223372036854771712\n",
		"sys/fs/cgroup/a/memory.max":                                             "max\n",
		"sys/fs/cgroup/a/b/memory.max":                                           "7000\n",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for line, want := range map[string]int64{
		"8:memory:/system.slice/ttmond.service": 2000, // that above is smaller
		"8:cpu,memory:/system.slice":            2000,
		"8:cpu,cpuacct:/system.slice":           math.MaxInt64,
		"0::/a/b":                               7000,
		"0::/a":                                 math.MaxInt64,
		"0::/../../elsewhere":                   math.MaxInt64,
		"8:memory:/not/there":                   9223372036854771712,
		"nonsense":                              math.MaxInt64,
	} {
		t.Run(line, func(t *testing.T) {
			if got := cgroupLimit(root, line); got != want {
				t.Errorf("%s: %d, want %d", line, got, want)
			}
		})
	}
}
