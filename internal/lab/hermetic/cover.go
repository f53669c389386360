package hermetic

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// directory is one that is empty inside, with its mode.
type directory struct{ path, mode string }

// covered are the directories that are empty inside.
var covered = []directory{
	{"/dev/shm", "1777"},
	{"/tmp", "1777"},
	{"/run", "0755"},
}

// cover hides the machine's directories and control groups.
func cover() error {
	if os.Geteuid() == 0 { // no other user can change a group
		if err := mountGroups(); err != nil {
			return err
		}
	}
	if err := coverState(); err != nil {
		return err
	}
	return empty(covered, keptEntries())
}

// coverState hides what ttmond and ttmon-server keep on the machine, and shows all
// else below /var/lib: a daemon that a test starts without --state-dir, as systemd
// does, keeps its state there.
func coverState() error {
	const dir = "/var/lib"
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var kept []string
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "ttmon") {
			kept = append(kept, filepath.Join(dir, e.Name()))
		}
	}
	return empty([]directory{{dir, "0755"}}, kept)
}

// CoverTmp gives a test that is Alone a /tmp in which no other test writes. The
// paths in keep stay visible, as does what all tests need.
func CoverTmp(t testing.TB, keep ...string) {
	t.Helper()
	kept := keptEntries()
	for _, path := range keep {
		if entry, ok := coveredEntry(path); ok && !slices.Contains(kept, entry) {
			kept = append(kept, entry)
		}
	}
	tmp := slices.DeleteFunc(slices.Clone(covered), func(d directory) bool { return d.path != "/tmp" })
	kept = slices.DeleteFunc(kept, func(path string) bool { return filepath.Dir(path) != "/tmp" })
	if err := empty(tmp, kept); err != nil {
		t.Fatal(err)
	}
}

// empty mounts an empty file system on each directory, and shows the kept
// entries on it again.
func empty(directories []directory, kept []string) error {
	type shown struct {
		path string
		fd   int
	}
	var again []shown
	for _, path := range kept {
		fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("opening %s: %w", path, err)
		}
		defer unix.Close(fd)
		again = append(again, shown{path, fd})
	}
	cwd, err := os.Getwd()
	if err != nil {
		return err
	}
	for _, c := range directories {
		if err := unix.Mount("hermetic", c.path, "tmpfs", unix.MS_NOSUID, "mode="+c.mode); err != nil {
			return fmt.Errorf("mounting an empty %s: %w", c.path, err)
		}
	}
	for _, s := range again {
		if err := makeMountPoint(s.fd, s.path); err != nil {
			return err
		}
		if err := unix.Mount(fmt.Sprintf("/proc/self/fd/%d", s.fd), s.path, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("showing %s again: %w", s.path, err)
		}
	}
	return os.Chdir(cwd) // perhaps one of those
}

// coverShm is cover for a test that uses the files of the others.
func coverShm() error {
	c := covered[0]
	if err := unix.Mount("hermetic", c.path, "tmpfs", unix.MS_NOSUID, "mode="+c.mode); err != nil {
		return fmt.Errorf("mounting an empty %s: %w", c.path, err)
	}
	return nil
}

// makeMountPoint creates a mount point for fd: a directory or a file.
func makeMountPoint(fd int, path string) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return os.Mkdir(path, 0o755)
	}
	return os.WriteFile(path, nil, 0o600)
}

// keptEntries lists what must stay visible of the covered directories: where
// the test binary and its results are, the source tree, the go command with its
// caches, and the files of host name resolution.
func keptEntries() (entries []string) {
	needed := []string{os.Getenv("HOME"), os.Getenv("XDG_CACHE_HOME")}
	for _, name := range []string{"GOROOT", "GOPATH", "GOCACHE", "GOMODCACHE"} {
		needed = append(needed, os.Getenv(name))
	}
	needed = append(needed, filepath.SplitList(os.Getenv("PATH"))...)
	if exe, err := os.Executable(); err == nil {
		needed = append(needed, exe)
	}
	if cwd, err := os.Getwd(); err == nil {
		needed = append(needed, cwd)
	}
	if resolver, err := filepath.EvalSymlinks("/etc/resolv.conf"); err == nil {
		needed = append(needed, resolver)
	}
	for _, path := range needed {
		if entry, ok := coveredEntry(path); ok && !slices.Contains(entries, entry) {
			entries = append(entries, entry)
		}
	}
	return entries
}

// coveredEntry returns the entry of a covered directory that leads to a path,
// if one does.
func coveredEntry(path string) (entry string, ok bool) {
	for _, c := range covered {
		if rest, ok := strings.CutPrefix(filepath.Clean(path), c.path+"/"); ok {
			first, _, _ := strings.Cut(rest, "/")
			return filepath.Join(c.path, first), true
		}
	}
	return "", false
}
