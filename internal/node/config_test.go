package node

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ttmon/ttmon/internal/node/daemon"
)

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ttmond.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestConfigOrder(t *testing.T) {
	path := write(t, "state_dir = \"/x\"\n[alloc]\nsocket = \"/file.sock\"\nmode = \"0660\"\n[collect]\ninterval = \"250ms\"\n")
	c, err := Configure(Options{File: path, AllocSocket: "/flag.sock", Verbose: true})
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.StateDir, want.Alloc.Socket, want.Alloc.Mode, want.Log.Level = "/x", "/flag.sock", "0660", "debug"
	want.Collect.Interval = daemon.Duration{Duration: 250 * time.Millisecond}
	if diff := cmp.Diff(want, c, cmp.AllowUnexported(Config{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What is printed can be read again, and is then the same.
func TestConfigPrinted(t *testing.T) {
	c := Default()
	var b bytes.Buffer
	if err := c.Print(&b); err != nil {
		t.Fatal(err)
	}
	again, err := Configure(Options{File: write(t, b.String())})
	if err != nil {
		t.Fatalf("%v\n%s", err, b.String())
	}
	if diff := cmp.Diff(c, again, cmp.AllowUnexported(Config{})); diff != "" {
		t.Errorf("(-printed +read):\n%s", diff)
	}
	if !strings.Contains(b.String(), "# ") {
		t.Error("it explains nothing")
	}
}

func TestConfigMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"[alloc]\nsokcet = \"/x\"\n":                                    "line 2: unknown key alloc.sokcet (did you mean alloc.socket?)",
		"[alloc]\nsocket = 5\n":                                         "line 2",
		"[alloc\n":                                                      "line 1",
		"[alloc]\nmode = \"0999\"\n":                                    "alloc.mode: \"0999\"",
		"[alloc]\nmode = \"0\"\n":                                       "alloc.mode",
		"[alloc]\ngroup = \"no such group\"\n":                          "no such group",
		"[alloc]\nmax_buffers = 0\n":                                    "alloc.max_buffers",
		"[alloc]\nmax_buffers = 9223372036854775807\n":                  "alloc.max_buffers",
		"[alloc]\nsocket = \"/tmp/" + strings.Repeat("x", 115) + "\"\n": "alloc.socket",
		"[api]\nsocket = \"/tmp/" + strings.Repeat("x", 94) + "\"\n":    "98 bytes",
		"[alloc]\nsocket = \"\"\n":                                      "alloc.socket",
		"[api]\nsocket = \"/tmp/tt_allocation_server.sock\"\n":          "both",
		"[uprobe]\nmax_blocks = -1\n":                                   "uprobe.max_blocks",
		"[collect]\ninterval = \"1ms\"\n":                               "collect.interval",
		"[collect]\ninterval = \"often\"\n":                             "line 2",
		"root = \"/nonexistent\"\n":                                     "root: stat /nonexistent: no such file or directory",
		"[log]\nlevel = \"loud\"\n":                                     "log.level: \"loud\"",
		"[log]\nformat = \"xml\"\n":                                     "log.format: \"xml\"",
	} {
		t.Run(text, func(t *testing.T) {
			_, err := Configure(Options{File: write(t, text)})
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: error %v, want one with %q", text, err, want)
			}
		})
	}
	if _, err := Configure(Options{File: "/no/such/file"}); err == nil || !strings.Contains(err.Error(), "/no/such/file") {
		t.Errorf("missing file: %v", err)
	}
}
