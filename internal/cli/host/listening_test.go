package host

import (
	"net"
	"path/filepath"
	"slices"
	"testing"
)

func TestDaemonSockets(t *testing.T) {
	const table = "Num       RefCount Protocol Flags    Type St Inode Path\n" +
		"0000000086356925: 00000003 00000000 00000000 0001 03 1811843\n" +
		"0000000070d3531a: 00000003 00000000 00000000 0001 03 1792715 /run/ttmon/ttmond.sock\n" +
		"0000000070d3531b: 00000002 00000000 00010000 0001 01   92715 /run/ttmon/ttmond.sock\n" +
		"0000000070d3531c: 00000002 00000000 00010000 0001 01 1792717 /run/ttmon/alloc.sock\n" +
		"0000000070d3531d: 00000002 00000000 00010000 0001 01 1792718 @/x/ttmond.sock\n" +
		"0000000070d3531e: 00000002 00000000 00010000 0001 01 1792719 /home/a b/ttmond.sock\n"
	if got, want := daemonSockets(table), []string{"/run/ttmon/ttmond.sock", "/home/a b/ttmond.sock"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestListeningDaemons: one that listens is found by what the kernel says of it.
func TestListeningDaemons(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ttmond.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if got := ListeningDaemons(); !slices.Contains(got, path) {
		t.Errorf("%s is not in %q", path, got)
	}
}
