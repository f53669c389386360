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

// MockPathVar names the environment variable that makes tt-metal pretend to
// run on the host of a descriptor. Its path is one of the process's own mount
// namespace: below /proc/<pid>/root.
const MockPathVar = "TT_METAL_MOCK_CLUSTER_DESC_PATH"

const (
	dumpDir    = "/tmp" // where UMD writes what it found: /tmp/umd_*/cluster_descriptor.yaml
	dumpPrefix = "umd_"
	dumpName   = "cluster_descriptor.yaml"

	maxDescriptor = 256 << 10 // bytes; a Galaxy's has 20 kB
	maxDumps      = 64        // of the newest: /tmp is everybody's
	// maxPoll is how many bytes of dumps one Poll reads: some 0.1 s at the
	// most. The rest is for the next ones.
	maxPoll = maxDescriptor
)

// Found is a descriptor and where it was.
type Found struct {
	Path       string
	Descriptor *Descriptor
}

// Finder looks for cluster descriptors: those that the user named, and those
// that UMD left in /tmp. It reads a file again only after it changed. The zero
// Finder looks at this host. It is not safe for concurrent use.
type Finder struct {
	Root  hostfs.Root
	Paths []string // of the user; a missing one is an error
	// Trust tells whose files in /tmp are believed: everybody can put one
	// there. Nil: all are.
	Trust func(uid int) bool

	read map[string]stamp
}

// stamp tells two states of a file apart.
type stamp struct {
	inode, size uint64
	uid         int
	sec         int64
	nsec        uint32
}

// Poll returns the descriptors that are new or changed since the last call:
// the user's first, then UMD's, newest first. What cannot be read is in err,
// and does not hinder the rest.
func (f *Finder) Poll() (fresh []Found, err error) {
	now := map[string]stamp{}
	for _, p := range f.Paths {
		st, statErr := f.stat(p)
		if statErr != nil {
			err = errors.Join(err, fmt.Errorf("reading the cluster descriptor: %w", statErr))
			continue
		}
		now[p] = st
	}
	dumps := f.dumps(now)
	left := uint64(maxPoll)
	for _, p := range append(slices.Clone(f.Paths), dumps...) {
		st, there := now[p]
		if !there || f.read[p] == st {
			continue
		}
		load := Read
		if slices.Contains(f.Paths, p) {
			load = readNamed
		} else if st.size <= maxDescriptor { // a larger one is not parsed
			if st.size > left {
				delete(now, p) // for the next Poll
				continue
			}
			left -= st.size
		}
		d, readErr := load(f.Root, p)
		if readErr != nil {
			err = errors.Join(err, readErr)
			continue
		}
		fresh = append(fresh, Found{p, d})
	}
	f.read = now
	return fresh, err
}

// dumps lists UMD's files, newest first, and notes their stamps.
func (f *Finder) dumps(stamps map[string]stamp) (paths []string) {
	tmp, err := f.Root.OpenDir(dumpDir)
	if err != nil {
		return nil
	}
	defer tmp.Close()
	var buf [16 << 10]byte
	tmp.Each(buf[:], func(name []byte) bool {
		if strings.HasPrefix(string(name), dumpPrefix) {
			p := path.Join(dumpDir, string(name), dumpName)
			if st, err := f.stat(p); err == nil && (f.Trust == nil || f.Trust(st.uid)) {
				paths, stamps[p] = append(paths, p), st
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

func (f *Finder) stat(p string) (stamp, error) {
	st, err := f.Root.Stat(p)
	if err != nil {
		return stamp{}, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return stamp{}, fmt.Errorf("%s: %w", p, errNotFile)
	}
	return stamp{st.Ino, uint64(st.Size), int(st.Uid), st.Mtim.Sec, uint32(st.Mtim.Nsec)}, nil
}

var errNotFile = errors.New("not a regular file")

// readNamed reads a descriptor at a path of the user's own, links and all.
func readNamed(root hostfs.Root, p string) (*Descriptor, error) {
	b, err := root.Read(p, maxDescriptor+1)
	if err != nil {
		return nil, fmt.Errorf("reading the cluster descriptor: %w", err)
	}
	return parseFile(p, b)
}

// Read reads a descriptor at a path that somebody else chose. A link as its
// last part is not followed, and only a regular file is waited for.
func Read(root hostfs.Root, p string) (*Descriptor, error) {
	dir, err := root.OpenDir(path.Dir(p))
	if err != nil {
		return nil, fmt.Errorf("reading the cluster descriptor: %w", err)
	}
	defer dir.Close()
	for size := 64 << 10; ; size *= 8 {
		buf := make([]byte, min(size, maxDescriptor+1))
		n, err := dir.Read(path.Base(p), buf)
		if err != nil {
			return nil, fmt.Errorf("reading the cluster descriptor: %w", &fs.PathError{Op: "read", Path: p, Err: err})
		}
		if n < len(buf) || n > maxDescriptor {
			return parseFile(p, buf[:n])
		}
	}
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
