package umd

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/hostfs"
)

// MockPathVar is the environment variable that makes tt-metal simulate the host
// of a descriptor. Its path is in the process's own mount namespace: below
// /proc/<pid>/root.
const MockPathVar = "TT_METAL_MOCK_CLUSTER_DESC_PATH"

const (
	dumpDir    = "/tmp" // where UMD writes what it found: /tmp/umd_*/cluster_descriptor.yaml
	dumpPrefix = "umd_"
	dumpName   = "cluster_descriptor.yaml"

	maxDescriptor = 256 << 10 // bytes; a Galaxy's has 20 kB
	maxDumps      = 64        // of the newest: every user may write to /tmp
	// maxPoll is how many bytes of dumps one Poll reads: some 0.1 s at the
	// most. The rest is for the next ones.
	maxPoll = maxDescriptor
)

// Found is a descriptor and where it was.
type Found struct {
	Path       string
	Descriptor *Descriptor
}

// Finder finds cluster descriptors: those that the user named, and those that
// UMD left in /tmp. It reads a file again only after it changed. The zero
// Finder reads this host. It is not safe for concurrent use.
type Finder struct {
	Root  hostfs.Root
	Paths []string // of the user; a missing one is an error
	// Trust reports whether a user's files in /tmp are trusted: any user can
	// create one there. Nil: all are.
	Trust func(uid int) bool

	read map[string]stamp
}

// stamp identifies a state of a file.
type stamp struct {
	inode, size uint64
	uid         int
	sec         int64
	nsec        uint32
}

// Poll returns the descriptors that are new or changed since the last call: the
// user's first, then UMD's, newest first. Files that cannot be read are in err;
// the rest is returned.
func (f *Finder) Poll() (fresh []Found, err error) {
	now := map[string]stamp{}
	for _, p := range f.Paths {
		st, statErr := f.statNamed(p)
		if statErr != nil {
			err = errors.Join(err, fmt.Errorf("reading the cluster descriptor: %w", statErr))
			continue
		}
		now[p] = st
	}
	tmp, noTmp := f.Root.OpenDir(dumpDir)
	var dumps []string
	if noTmp == nil {
		defer tmp.Close()
		dumps = f.dumps(tmp, now)
	}
	left := uint64(maxPoll)
	for _, p := range append(slices.Clone(f.Paths), dumps...) {
		st, there := now[p]
		if !there || f.read[p] == st {
			continue
		}
		var d *Descriptor
		var readErr error
		if slices.Contains(f.Paths, p) {
			d, readErr = readNamed(f.Root, p)
		} else {
			if st.size <= maxDescriptor { // a larger one is not parsed
				if st.size > left {
					delete(now, p) // for the next Poll
					continue
				}
				left -= st.size
			}
			d, readErr = f.readDump(tmp, p, st)
		}
		if readErr != nil {
			err = errors.Join(err, readErr)
			continue
		}
		fresh = append(fresh, Found{p, d})
	}
	f.read = now
	return fresh, err
}

// dumps lists UMD's files, newest first, and records their stamps.
func (f *Finder) dumps(tmp hostfs.Dir, stamps map[string]stamp) (paths []string) {
	var buf [16 << 10]byte
	tmp.Each(buf[:], func(name []byte) bool {
		if strings.HasPrefix(string(name), dumpPrefix) {
			p := path.Join(string(name), dumpName)
			st, err := tmp.StatHere(p)
			if err == nil && isFile(st) && (f.Trust == nil || f.Trust(int(st.Uid))) {
				p = path.Join(dumpDir, p)
				paths, stamps[p] = append(paths, p), stampOf(st)
			}
		}
		return true
	})
	slices.SortFunc(paths, func(a, b string) int {
		x, y := stamps[a], stamps[b]
		return cmp.Or(cmp.Compare(y.sec, x.sec), cmp.Compare(y.nsec, x.nsec), cmp.Compare(a, b))
	})
	return paths[:min(len(paths), maxDumps)]
}

// statNamed stats a path that the user named.
func (f *Finder) statNamed(p string) (stamp, error) {
	st, err := f.Root.Stat(p)
	if err != nil {
		return stamp{}, err
	}
	if !isFile(st) {
		return stamp{}, fmt.Errorf("%s: %w", p, errNotFile)
	}
	return stampOf(st), nil
}

func isFile(st unix.Stat_t) bool { return st.Mode&unix.S_IFMT == unix.S_IFREG }

func stampOf(st unix.Stat_t) stamp {
	return stamp{st.Ino, uint64(st.Size), int(st.Uid), st.Mtim.Sec, uint32(st.Mtim.Nsec)}
}

// readDump reads one of UMD's files, if it is still the trusted one. Any user
// may write to its directory: a link, or a mount in the way, is not followed.
func (f *Finder) readDump(tmp hostfs.Dir, p string, trusted stamp) (*Descriptor, error) {
	buf := make([]byte, min(trusted.size, maxDescriptor)+1)
	n, st, err := tmp.ReadHere(strings.TrimPrefix(p, dumpDir+"/"), buf)
	switch {
	case err != nil:
	case int(st.Uid) != trusted.uid:
		err = fs.ErrPermission
	case n > int(trusted.size) && n <= maxDescriptor:
		err = errGrows // the next Poll sees more of it
	}
	if err != nil {
		return nil, fmt.Errorf("reading the cluster descriptor: %w", &fs.PathError{Op: "read", Path: p, Err: err})
	}
	return parseFile(p, buf[:n])
}

var (
	errNotFile = errors.New("not a regular file")
	errGrows   = errors.New("it is being written")
)

// readNamed reads a descriptor at a path that the user named, following links.
func readNamed(root hostfs.Root, p string) (*Descriptor, error) {
	b, err := root.Read(p, maxDescriptor+1)
	if err != nil {
		return nil, fmt.Errorf("reading the cluster descriptor: %w", err)
	}
	return parseFile(p, b)
}

func parseFile(p string, b []byte) (*Descriptor, error) {
	if len(b) > maxDescriptor {
		return nil, fmt.Errorf("reading the cluster descriptor: %s is larger than %d kB", p, maxDescriptor>>10)
	}
	d, err := Parse(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p, err)
	}
	return d, nil
}
