package setting_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/collect/assess"
	"github.com/ttmon/ttmon/internal/collect/assess/setting"
)

func TestFiles(t *testing.T) {
	for name, c := range map[string]struct {
		root string
		uid  int
		env  map[string]string
		want []string
	}{
		"root":             {"", 0, map[string]string{"HOME": "/h"}, []string{"/etc/ttmon/ttmond.toml"}},
		"a user":           {"", 7, map[string]string{"HOME": "/h"}, []string{"/h/.config/ttmon/ttmond.toml", "/etc/ttmon/ttmond.toml"}},
		"XDG":              {"", 7, map[string]string{"HOME": "/h", "XDG_CONFIG_HOME": "/x"}, []string{"/x/ttmon/ttmond.toml", "/etc/ttmon/ttmond.toml"}},
		"a relative XDG":   {"", 7, map[string]string{"HOME": "/h", "XDG_CONFIG_HOME": "x"}, []string{"/h/.config/ttmon/ttmond.toml", "/etc/ttmon/ttmond.toml"}},
		"no home":          {"", 7, nil, []string{"/etc/ttmon/ttmond.toml"}},
		"a mounted host":   {"/mnt", 7, map[string]string{"HOME": "/h"}, []string{"/mnt/etc/ttmon/ttmond.toml"}},
		"mounted, as root": {"/mnt/", 0, nil, []string{"/mnt/etc/ttmon/ttmond.toml"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := setting.Files(c.root, c.uid, func(k string) string { return c.env[k] }); !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestRead(t *testing.T) {
	margin := assess.Default()
	margin.HotMargin = 12
	for name, c := range map[string]struct {
		text string
		want assess.Thresholds
		err  string
	}{
		"one of them":         {"state_dir = \"/x\"\n[conditions]\nhot_margin_c = 12\n[uprobe]\nenabled = false\n", margin, ""},
		"another section":     {"[alloc]\nmode = \"0660\"\n", assess.Default(), ""},
		"empty":               {"", assess.Default(), ""},
		"not TOML":            {"[conditions\n", assess.Default(), "ttmond.toml"},
		"not a number":        {"[conditions]\nhot_margin_c = \"warm\"\n", assess.Default(), "ttmond.toml"},
		"no threshold":        {"[conditions]\nhot_margin_c = 900\n", assess.Default(), "conditions.hot_margin_c is 900"},
		"larger than allowed": {strings.Repeat("#\n", 1<<20), assess.Default(), "not a regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "ttmond.toml")
			if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := setting.Read(filepath.Join(dir, "missing.toml"), file)
			if got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
			if (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("error %v, want %q", err, c.err)
			}
		})
	}
}

// TestReadFirst: the user's own file decides, whatever the system's says.
func TestReadFirst(t *testing.T) {
	dir := t.TempDir()
	own, system := filepath.Join(dir, "own.toml"), filepath.Join(dir, "system.toml")
	for file, text := range map[string]string{own: "[conditions]\nhot_margin_c = 1\n", system: "[conditions]\nhot_margin_c = 2\n"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := setting.Read(own, system); err != nil || got.HotMargin != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}
