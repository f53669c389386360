package sim_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/lab/sim"
	"github.com/ttmon/ttmon/internal/source/umd"
)

// output runs a command in the host.
func output(t *testing.T, h *sim.Host, name string, args ...string) string {
	t.Helper()
	out, err := h.Command(t.Context(), name, args...).Output()
	if err != nil {
		t.Fatalf("%s %v: %v", name, args, err)
	}
	return string(out)
}

// readDescriptor reads the descriptor of a host at a root.
func readDescriptor(root string) (*umd.Descriptor, error) {
	b, err := os.ReadFile(filepath.Join(root, sim.MockDescriptor))
	if err != nil {
		return nil, err
	}
	return umd.Parse(b)
}

// TestMockDescriptor: commands in a host find a descriptor of its
// boards, which any user can read and which follows what is plugged in.
func TestMockDescriptor(t *testing.T) {
	h := start(t, sim.Options{Boards: "n300,p150a"})
	path := strings.TrimSpace(output(t, h, "sh", "-c", `echo "$`+umd.MockPathVar+`"`))
	if path != sim.MockDescriptor {
		t.Fatalf("%s is %q", umd.MockPathVar, path)
	}
	d, err := umd.Parse([]byte(output(t, h, "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "cat", path)))
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Chips) != 2 || d.Chips[0].Device != 0 {
		t.Errorf("chips %+v, want the two of the n300", d.Chips)
	}
	ctl(t, h, "unplug", "0")
	until(t, "the descriptor is the p150's", func() bool {
		d, err := readDescriptor(h.Root())
		return err == nil && len(d.Chips) == 1 && d.Chips[0].Device == 1
	})
}

// TestUMDDump: what UMD leaves in /tmp is found in the host, and in it only.
func TestUMDDump(t *testing.T) {
	h := start(t, sim.Options{Boards: "galaxy-wormhole", UMDDump: true})
	finder := umd.Finder{Root: hostfs.At(h.Root())}
	found, err := finder.Poll()
	if err != nil {
		t.Fatal(err)
	}
	at := ""
	for _, f := range found {
		if len(f.Descriptor.Chips) == 32 && f.Descriptor.Chips[0].BusID != "" {
			at = f.Path
		}
	}
	if at == "" {
		t.Fatalf("UMD's descriptor is not there: %d others", len(found))
	}
	if _, err := os.Stat(at); !os.IsNotExist(err) {
		t.Errorf("the real host sees %s: %v", at, err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Dir(at)); !os.IsNotExist(err) {
		t.Errorf("%s was left behind: %v", filepath.Dir(at), err)
	}
}

func TestPlainDescriptor(t *testing.T) {
	dir := t.TempDir()
	tr, err := sim.NewTree(sim.Options{Boards: "2xp150a", Cables: true}, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	d, err := readDescriptor(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Chips) != 2 || len(d.Links) == 0 {
		t.Errorf("%d chips, %d links", len(d.Chips), len(d.Links))
	}
}
