// Package nsroot puts simulated files into their real places, in a private
// mount namespace, with everything else of the host left where it is.
//
// A directory such as /sys cannot be given new names. So a tmpfs takes its
// place on which every old entry is bound again, beside the new ones; the
// same is done for each directory on the way down to a new name. Nothing is
// ever read or copied: reading some files of /sys does things.
package nsroot

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Plan says what goes where.
type Plan struct {
	// Insert maps absolute paths of the host ("/sys/class/tenstorrent") to
	// what is to be seen there. The parent directories must exist.
	Insert map[string]string
	// Tops are the directories that may be replaced by a tmpfs: every
	// inserted path must lie below one.
	Tops []string
	// Open lists directories that are to be replaced too although nothing is
	// inserted below them yet, so that Show can add to them later.
	Open []string
	// Hide lists paths of the host that are not to be seen.
	Hide []string
	// Cover maps existing files or directories to what is bound over them.
	Cover map[string]string
	// Write holds small files to be put on the replaced directories.
	Write map[string]string
}

// Private keeps what is mounted from now on out of every other namespace.
func Private() error {
	err := private()
	if errors.Is(err, unix.EINVAL) { // no mount is at our root: we are in a chroot
		err = outsideChroot(private)
	}
	if err != nil {
		return fmt.Errorf("making the mounts private: %w", err)
	}
	return nil
}

func private() error { return unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, "") }

// outsideChroot runs f at the root of our own mount namespace: entering a
// namespace leads there. Only a thread of its own can, which ends with it. It
// is never the first one: that cannot end, and its root is what others see as
// the root of the process.
func outsideChroot(f func() error) error {
	failed := make(chan error)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			failed <- outsideChroot(f) // by another thread: this one is taken until then
			runtime.UnlockOSThread()
			return
		}
		failed <- atOutermostRoot(f) // and never unlocked: the thread is of no use to others
	}()
	return <-failed
}

// atOutermostRoot takes the thread out of a chroot for good.
func atOutermostRoot(f func() error) error {
	ns, err := unix.Open("/proc/self/ns/mnt", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(ns)
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return err
	}
	if err := unix.Setns(ns, unix.CLONE_NEWNS); err != nil {
		return err
	}
	return f()
}

// Assemble carries out the plan, using stage, an empty directory, on the way.
func (p Plan) Assemble(stage string) error {
	if err := unix.Mount("tmpfs", stage, "tmpfs", unix.MS_NOSUID, "mode=0755"); err != nil {
		return fmt.Errorf("mounting a tmpfs on %s: %w", stage, err)
	}
	for i, top := range p.Tops {
		at := fmt.Sprintf("%s/%d", stage, i)
		if err := p.replace(top, at); err != nil {
			return fmt.Errorf("assembling %s: %w", top, err)
		}
	}
	for i, top := range p.Tops {
		if err := unix.Mount(fmt.Sprintf("%s/%d", stage, i), top, "", unix.MS_MOVE, ""); err != nil {
			return fmt.Errorf("moving the new %s into place: %w", top, err)
		}
	}
	for _, target := range sortedKeys(p.Cover) {
		if err := bind(p.Cover[target], target); err != nil {
			return err
		}
	}
	return nil
}

// replace builds the new version of directory top at a tmpfs mounted on at.
func (p Plan) replace(top, at string) error {
	if err := os.Mkdir(at, 0o755); err != nil {
		return err
	}
	if err := unix.Mount("ttmon-sim", at, "tmpfs", unix.MS_NOSUID, "mode=0755"); err != nil {
		return fmt.Errorf("mounting a tmpfs: %w", err)
	}
	if err := p.fill(top, at); err != nil {
		return err
	}
	for _, file := range sortedKeys(p.Write) {
		if rest, ok := strings.CutPrefix(file, top+"/"); ok {
			if err := os.WriteFile(path.Join(at, rest), []byte(p.Write[file]), 0o444); err != nil {
				return err
			}
		}
	}
	return nil
}

// fill makes every entry of the host's directory src again below dst, and the
// inserted ones beside them.
func (p Plan) fill(src, dst string) error {
	entries, err := os.ReadDir(src)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		from, to := path.Join(src, e.Name()), path.Join(dst, e.Name())
		switch _, inserted := p.Insert[from]; {
		case inserted || slices.Contains(p.Hide, from):
		case p.leadsTo(from):
			err = os.Mkdir(to, 0o755)
			if err == nil {
				err = p.fill(from, to)
			}
		default:
			err = again(e, from, to)
		}
		if err != nil {
			return err
		}
	}
	for _, target := range sortedKeys(p.Insert) {
		if path.Dir(target) == src {
			if err := insert(p.Insert[target], path.Join(dst, path.Base(target))); err != nil {
				return err
			}
		} else if rest, ok := strings.CutPrefix(target, src+"/"); ok {
			// A directory on the way that the host does not have.
			first, _, _ := strings.Cut(rest, "/")
			if _, err := os.Lstat(path.Join(dst, first)); errors.Is(err, fs.ErrNotExist) {
				if err := os.Mkdir(path.Join(dst, first), 0o755); err != nil {
					return err
				}
				if err := p.fill(path.Join(src, first), path.Join(dst, first)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// leadsTo reports whether dir is to be replaced: something is inserted below
// it, or may be later.
func (p Plan) leadsTo(dir string) bool {
	for _, open := range p.Open {
		if open == dir || strings.HasPrefix(open, dir+"/") {
			return true
		}
	}
	for target := range p.Insert {
		if strings.HasPrefix(target, dir+"/") {
			return true
		}
	}
	return false
}

// again makes one entry of the host appear at to.
func again(e os.DirEntry, from, to string) error {
	switch {
	case from == "/dev/ptmx" && e.Type()&fs.ModeCharDevice != 0:
		return terminalMaker(to)
	case e.Type()&fs.ModeSymlink != 0:
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return os.Symlink(target, to)
	case e.IsDir():
		if err := os.Mkdir(to, 0o755); err != nil {
			return err
		}
	default:
		if err := touch(to); err != nil {
			return err
		}
	}
	err := bind(from, to)
	if errors.Is(err, unix.ENOENT) {
		return nil // gone since we listed it
	}
	return err
}

// terminalMaker makes the node that new terminals come from. Bound like others
// it would not work: the kernel looks for pts beside it, in the directory that
// a bound file comes from.
func terminalMaker(to string) error {
	if unix.Mknod(to, unix.S_IFCHR|0o666, int(unix.Mkdev(5, 2))) == nil && unix.Chmod(to, 0o666) == nil {
		return nil
	}
	_ = os.Remove(to)
	return os.Symlink("pts/ptmx", to) // in a user namespace nodes cannot be made
}

// insert makes what is at source, a file or a directory, appear at to.
func insert(source, to string) error {
	st, err := os.Stat(source)
	if err != nil {
		return err
	}
	if st.IsDir() {
		err = os.Mkdir(to, 0o755)
	} else {
		err = touch(to)
	}
	if err != nil {
		return err
	}
	return bind(source, to)
}

// Show makes the directory source appear at path, whose parent must have been
// replaced.
func Show(source, path string) error {
	if err := insert(source, path); err != nil {
		return fmt.Errorf("showing %s: %w", path, err)
	}
	return nil
}

// Remove ends what Show or an insertion made appear.
func Remove(path string) error {
	if err := unix.Unmount(path, unix.MNT_DETACH); err != nil {
		return fmt.Errorf("hiding %s: %w", path, err)
	}
	return os.Remove(path)
}

func touch(name string) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o444)
	if err != nil {
		return err
	}
	return f.Close()
}

func bind(from, to string) error {
	if err := unix.Mount(from, to, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("binding %s onto %s: %w", from, filepath.Clean(to), err)
	}
	return nil
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
