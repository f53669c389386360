// Package setting reads the thresholds of conditions where they are set:
// [conditions] in ttmond.toml. ttmond reads that file itself; ttmon and
// ttmon-server use this package, so that they judge as a ttmond of this host
// would when none runs.
package setting

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pelletier/go-toml/v2"

	"github.com/ttmon/ttmon/internal/collect/assess"
)

// System is the file of a ttmond that runs as root.
const System = "/etc/ttmon/ttmond.toml"

// maxFile bounds what is read: no configuration is larger.
const maxFile = 1 << 20

// Files are where a ttmond of this host finds its configuration: the user's own
// file comes before the system's. root is that of a host which is mounted
// somewhere; a user's own file says nothing about it.
func Files(root string, uid int, getenv func(string) string) []string {
	system := filepath.Join("/", root, System)
	if root != "" || uid == 0 {
		return []string{system}
	}
	if dir := getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return []string{filepath.Join(dir, "ttmon", "ttmond.toml"), system}
	}
	if home := getenv("HOME"); filepath.IsAbs(home) {
		return []string{filepath.Join(home, ".config", "ttmon", "ttmond.toml"), system}
	}
	return []string{system}
}

// Read reads the thresholds from the first of the files that exists and that
// this user may read; without one they are the defaults. With an error they are
// the defaults, too.
func Read(files ...string) (assess.Thresholds, error) {
	for _, file := range files {
		t, err := readFile(file)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			continue
		}
		if err != nil {
			return assess.Default(), fmt.Errorf("reading the thresholds in %s: %w", file, err)
		}
		return t, nil
	}
	return assess.Default(), nil
}

// readFile reads the section of one file.
func readFile(file string) (assess.Thresholds, error) {
	c := struct {
		Conditions assess.Thresholds `toml:"conditions"`
	}{assess.Default()}
	st, err := os.Stat(file)
	switch {
	case err != nil:
		return c.Conditions, err
	case !st.Mode().IsRegular() || st.Size() > maxFile: // a pipe would never return
		return c.Conditions, fmt.Errorf("not a regular file of at most %d bytes", maxFile)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return c.Conditions, err
	}
	if err := toml.Unmarshal(b, &c); err != nil {
		return c.Conditions, err
	}
	return c.Conditions, c.Conditions.Check()
}
