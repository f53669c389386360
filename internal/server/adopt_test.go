package server

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
)

// The history of an earlier release's ttmond is the server's after an upgrade;
// what the server has already stays, and links are left alone.
func TestAdopt(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("files are given to another user by root only")
	}
	dir := t.TempDir()
	from, to := filepath.Join(dir, "ttmon"), filepath.Join(dir, "ttmon-server")
	put := func(path string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(path), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(from + "/history/fine/wal/1")
	put(from + "/jobs.json")
	put(from + "/libraries.json") // ttmond's own
	if err := os.Symlink("/etc/passwd", from+"/alerts.json"); err != nil {
		t.Fatal(err)
	}
	put(to + "/events/events.jsonl")
	put(from + "/events/events.jsonl")
	moved, err := Adopt(from, to, 4711, 4712)
	if want := []string{"history", "jobs.json"}; err != nil || !slices.Equal(moved, want) {
		t.Fatalf("moved %q, %v; want %q", moved, err, want)
	}
	for _, path := range []string{"/history", "/history/fine/wal/1", "/jobs.json"} {
		st, err := os.Lstat(to + path)
		if err != nil {
			t.Fatal(err)
		}
		if sys := st.Sys().(*syscall.Stat_t); sys.Uid != 4711 || sys.Gid != 4712 {
			t.Errorf("%s belongs to %d:%d", path, sys.Uid, sys.Gid)
		}
	}
	for _, path := range []string{from + "/libraries.json", from + "/alerts.json", from + "/events/events.jsonl"} {
		if _, err := os.Lstat(path); err != nil {
			t.Error(err)
		}
	}
	if b, _ := os.ReadFile(to + "/events/events.jsonl"); string(b) != to+"/events/events.jsonl" {
		t.Errorf("the server's own events were replaced by those of %s", b)
	}
	if moved, err = Adopt(from, to, 4711, 4712); err != nil || len(moved) > 0 {
		t.Errorf("a second time: %q, %v", moved, err)
	}
	if moved, err = Adopt(dir+"/none", dir+"/new", 4711, 4712); err != nil || len(moved) > 0 {
		t.Errorf("without a ttmond: %q, %v", moved, err)
	}
}
