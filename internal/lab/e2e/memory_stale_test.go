package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creack/pty"

	"github.com/ttmon/ttmon/internal/lab/sim"
	"github.com/ttmon/ttmon/internal/lab/sim/metal"
)

// hostWithGhosts is a host with ghosts: in an unused region, in one that a
// process uses, and in another user's.
func hostWithGhosts(t *testing.T) *scriptedHost {
	c := newScriptedHost(t, sim.Options{Boards: "p150a"})
	for _, w := range []struct {
		o      metal.Options
		name   string
		region string
	}{{metal.Options{}, "alone", "@"}, {metal.Options{}, "beside", "77"}, {metal.Options{UID: nobody}, "foreign", "88"}} {
		c.kill(c.play(w.o, "name "+w.name, "open "+w.region, "alloc "+w.region+" dram 128M", "alloc "+w.region+" trace 2M"))
	}
	c.play(metal.Options{}, "name user", "open 77", "alloc 77 dram 1M")
	return c
}

func (c *scriptedHost) regions() []string {
	c.Helper()
	names, err := filepath.Glob(c.host.Root() + "/dev/shm/tt_device_*")
	if err != nil {
		c.Fatal(err)
	}
	for i := range names {
		names[i] = strings.TrimSuffix(strings.TrimPrefix(filepath.Base(names[i]), "tt_device_"), "_memory")
	}
	return names
}

func TestStaleLists(t *testing.T) {
	c := hostWithGhosts(t)
	r := runIn(t, c.host, "stale")
	for _, word := range []string{"alone", "beside", "foreign", "128 MiB", "in use by process", "--remove", "2 regions", "simulated"} {
		if r.code != 0 || !strings.Contains(r.out, word) {
			t.Errorf("exit code %d, and no %q in:\n%s%s", r.code, word, r.out, r.err)
		}
	}
	var got struct {
		Schema  string
		Regions []struct {
			Region     string
			Index      *int
			Removable  bool
			StaleSlots []struct {
				Name string
				DRAM uint64  `json:"dram_bytes"`
				Age  float64 `json:"age_s"`
			} `json:"ghosts"`
		}
	}
	r = runIn(t, c.host, "stale", "--json")
	if err := json.Unmarshal([]byte(r.out), &got); err != nil || got.Schema != "ttmon.stale/1" || len(got.Regions) != 3 {
		t.Fatalf("%v: %s", err, r.out)
	}
	for _, reg := range got.Regions {
		g := reg.StaleSlots[0]
		if reg.Removable != (g.Name != "beside") || g.DRAM != 128<<20 || (g.Name == "alone") != (reg.Index != nil && *reg.Index == 0) {
			t.Errorf("%+v", reg)
		}
	}
	if n := len(c.regions()); n != 3 {
		t.Errorf("looking removed something: %v", c.regions())
	}
}

// TestStaleAsNobody: one's own can be seen and removed, others' are denied.
func TestStaleAsNobody(t *testing.T) {
	c := hostWithGhosts(t)
	r := asNobody(t, c.host, "stale")
	if r.code != 0 || !strings.Contains(r.out, "foreign") || strings.Contains(r.out, "alone") || !strings.Contains(r.out, "denied: 2 regions") {
		t.Errorf("exit code %d:\n%s%s", r.code, r.out, r.err)
	}
	r = asNobody(t, c.host, "stale", "--remove", "--yes")
	if got := c.regions(); len(got) != 2 || strings.Contains(strings.Join(got, " "), "88") {
		t.Errorf("exit code %d, left: %v\n%s%s", r.code, got, r.out, r.err)
	}
	if r = asNobody(t, c.host, "stale"); r.code != 4 || !strings.Contains(r.out, "denied: 2 regions") {
		t.Errorf("with nothing that may be read: exit code %d, want 4:\n%s%s", r.code, r.out, r.err)
	}
}

// TestStaleAsks: nothing is removed on a terminal without a yes.
func TestStaleAsks(t *testing.T) {
	c := hostWithGhosts(t)
	for _, answer := range []string{"\n", "no\n", "\x04", "maybe\n"} {
		out := c.onTerminal(answer, "stale", "--remove")
		if !strings.Contains(out, "remove 2 regions? [y/N]") || !strings.Contains(out, "nothing was removed") || len(c.regions()) != 3 {
			t.Errorf("answer %q: %v\n%s", answer, c.regions(), out)
		}
	}
	out := c.onTerminal("yes\n", "stale", "--remove")
	if got := c.regions(); len(got) != 1 || got[0] != "77" {
		t.Errorf("answer yes: %v\n%s", got, out)
	}
	s := snapshot(t, c.host) // the one in use is as it was
	wantGhosts(t, s, fmt.Sprint("beside:", 130<<20))
	if err := c.truth().checkProcesses(s); err != nil {
		t.Error(err)
	}
}

// onTerminal runs ttmon on a terminal, answers its question, and returns what
// it printed.
func (c *scriptedHost) onTerminal(answer string, args ...string) string {
	c.Helper()
	cmd := c.host.Command(c.Context(), filepath.Join(bin, "ttmon"), args...)
	cmd.Env = append(os.Environ(), "TERM=xterm")
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: 100, Rows: 30})
	if err != nil {
		c.Fatal(err)
	}
	defer tty.Close()
	var out bytes.Buffer
	asked := false
	buf := make([]byte, 4096)
	for {
		n, err := tty.Read(buf)
		out.Write(buf[:n])
		if !asked && strings.Contains(out.String(), "[y/N]") {
			asked = true
			if _, err := io.WriteString(tty, answer); err != nil {
				c.Fatal(err)
			}
		}
		if err != nil {
			break // its end
		}
	}
	_ = cmd.Wait()
	return out.String()
}
