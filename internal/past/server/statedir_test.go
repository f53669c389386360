package server

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// The directory is made for a user once; one that has an owner keeps it, and a link
// in its place is refused.
func TestMakeStateDir(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root gives directories away")
	}
	dir := filepath.Join(t.TempDir(), "state")
	owner := func() uint32 {
		t.Helper()
		st, err := os.Lstat(dir)
		if err != nil {
			t.Fatal(err)
		}
		return st.Sys().(*syscall.Stat_t).Uid
	}
	for _, uid := range []int{60000, 60001} {
		if err := MakeStateDir(dir, uid, uid); err != nil {
			t.Fatal(err)
		}
		if got := owner(); got != 60000 {
			t.Errorf("it belongs to %d", got)
		}
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink("/etc", link); err != nil {
		t.Fatal(err)
	}
	if err := MakeStateDir(link, 60000, 60000); err == nil {
		t.Error("a link was accepted")
	}
}
