package node

import (
	"os"
	"path/filepath"
	"testing"
)

// The process that connects to the socket of a keeper gets all connections: no other user's.
func TestKeeperSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "h")
	l, err := listenForNext(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", st.Mode(), err)
	}
}
