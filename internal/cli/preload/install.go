package preload

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Library is a libttmon.so that a program can be started with.
type Library struct {
	Path string
	file *os.File // of one without a name: it exists while we run
}

// Close closes a library that exists only while we run.
func (l *Library) Close() {
	if l.file != nil {
		l.file.Close()
	}
}

// Lasting reports whether it still exists after we exit.
func (l *Library) Lasting() bool { return l.file == nil }

// ErrArch means that there is no library for this architecture.
var ErrArch = errors.New("libttmon is for amd64 and arm64 only")

// soname is the name by which a program that was linked with the library looks for it.
const soname = "libttmon.so.1"

// Install writes the library to the user's cache, into a directory whose name is
// derived from its content: programs that outlive us still find it, and a newer ttmon
// does not change it under them. Where that is impossible, it is a file without a name,
// which exists while we run.
func Install() (*Library, error) {
	if len(library) == 0 {
		return nil, ErrArch
	}
	sum := sha256.Sum256(library)
	if dir, err := os.UserCacheDir(); err == nil {
		if dir, ok := trusted(filepath.Join(dir, "ttmon", fmt.Sprintf("libttmon-%x", sum[:8]))); ok && loadable(dir) {
			if path, err := ensureCached(dir, soname); err == nil {
				return &Library{Path: path}, nil
			}
		}
	}
	return Temporary()
}

// trusted returns dir without links, and reports whether no user but us and root
// could put another file into it, or lead us elsewhere: root with another user's
// HOME (sudo -E) would load what that user puts there. Directories that do not
// exist yet will be ours.
func trusted(dir string) (string, bool) {
	there, missing := filepath.Clean(dir), ""
	for there != "/" && there != "." && !exists(there) {
		there, missing = filepath.Dir(there), filepath.Join(filepath.Base(there), missing)
	}
	real, err := filepath.EvalSymlinks(there)
	if err != nil || !filepath.IsAbs(real) || !oursAlone(there) || !oursAlone(real) {
		return "", false
	}
	return filepath.Join(real, missing), true
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// oursAlone reports whether a path and all directories above it are root's or ours,
// and no other user may change them.
func oursAlone(path string) bool {
	for ; ; path = filepath.Dir(path) {
		var st unix.Stat_t
		if unix.Lstat(path, &st) != nil || st.Uid != 0 && st.Uid != uint32(os.Geteuid()) {
			return false
		}
		others := uint32(0o022)
		if os.Geteuid() != 0 && st.Gid == uint32(os.Getegid()) { // a group for each user, and a umask of 002
			others = 0o002
		}
		isLink := st.Mode&unix.S_IFMT == unix.S_IFLNK                    // its mode says nothing
		if !isLink && st.Mode&others != 0 && st.Mode&unix.S_ISVTX == 0 { // with the sticky bit what is ours stays in its place
			return false
		}
		if path == "/" {
			return true
		}
	}
}

// loadable reports whether LD_PRELOAD can name a file below dir: it has no way to
// quote its separators, and the file must be executable there.
func loadable(dir string) bool {
	if !filepath.IsAbs(dir) || strings.ContainsAny(dir, ": \t\n$") {
		return false
	}
	var st unix.Statfs_t
	for unix.Statfs(dir, &st) != nil && dir != "/" {
		dir = filepath.Dir(dir)
	}
	return st.Flags&unix.ST_NOEXEC == 0
}

// ensureCached makes sure that the file exists, is ours and has our bytes.
func ensureCached(dir, name string) (string, error) {
	path := filepath.Join(dir, name)
	if isIntact(path) {
		return path, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	f, err := os.CreateTemp(dir, ".libttmon-*")
	if err != nil {
		return "", err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(library)
	if err := errors.Join(err, f.Chmod(0o755), f.Close()); err != nil {
		return "", err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return "", err
	}
	if !isIntact(path) {
		return "", fmt.Errorf("%s belongs to another user", path)
	}
	return path, nil
}

// isIntact reports whether a file is one that only we could have written, and
// has the right content.
func isIntact(path string) bool {
	var st unix.Stat_t
	if unix.Lstat(path, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || st.Mode&0o022 != 0 {
		return false
	}
	if st.Uid != uint32(os.Geteuid()) && st.Uid != 0 || st.Size != int64(len(library)) {
		return false
	}
	b, err := os.ReadFile(path)
	return err == nil && bytes.Equal(b, library)
}

// Temporary returns a library without a name, which leaves nothing behind: it
// exists until it is closed.
func Temporary() (*Library, error) {
	if len(library) == 0 {
		return nil, ErrArch
	}
	fd, err := unix.MemfdCreate("libttmon", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("unpacking libttmon.so: %w", err)
	}
	f := os.NewFile(uintptr(fd), "libttmon")
	if _, err := f.Write(library); err != nil {
		f.Close()
		return nil, fmt.Errorf("unpacking libttmon.so: %w", err)
	}
	return &Library{Path: fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), fd), file: f}, nil
}
