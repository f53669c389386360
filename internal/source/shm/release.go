package shm

import (
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/hostfs/proc"
	"github.com/ttmon/ttmon/internal/model"
)

type releaseReading = model.Reading[string]

// releases caches the release of each libtt_metal.so, per inode: finding it
// takes a directory listing in a process's root, and it does not change while a
// process maps the file. Afterwards the inode's number may be reused for
// another file, such as the next release.
type releases struct {
	guard *proc.Guard
	known map[inode]releaseReading
	last  meaning // the processes of a host mostly run one release
	// failures counts the releases that could not be found out: each is tried
	// again the next time.
	failures int
}

// meaning is what a release's figures in a region of a layout mean.
type meaning struct {
	layout  Layout
	release releaseReading
	doubts  []model.Doubt // about every program of the release; shared
	bound   model.Bound   // that they leave
	cb      model.CBMeaning
	v3      bool // the release is known to write layout 3
}

// meaningOf returns what the figures of p in a region of a layout mean.
func (r *releases) meaningOf(l Layout, p *process) *meaning {
	release := r.releaseOf(p)
	if m := &r.last; m.doubts != nil && m.layout == l && m.release == release {
		return m
	}
	doubts := releaseDoubts(l, release)
	r.last = meaning{l, release, slices.Clip(doubts), model.WorstBound(doubts), cbMeaning(l, release), knownV3(release)}
	return &r.last
}

const notWheel = "its libtt_metal.so is not from a ttnn package"

// releaseOf returns the release that p runs. A ttnn wheel is in
// …/site-packages/ttnn/build/lib, beside
// …/site-packages/ttnn-<version>.dist-info.
func (r *releases) releaseOf(p *process) model.Reading[string] {
	lib := p.maps.lib
	if lib.path == "" {
		return model.Missing[string](model.Absent, "it maps no libtt_metal.so")
	}
	if v, ok := r.known[lib.inode]; ok {
		return v
	}
	site, ok := sitePackages(lib.path)
	if !ok {
		v := model.Missing[string](model.Absent, notWheel)
		r.known[lib.inode] = v
		return v
	}
	var names []string
	var listErr error
	_, err := r.guard.RunIn(p.Process, func(dir hostfs.Dir) { names, listErr = namesInRoot(dir, site) })
	if err == nil {
		err = listErr
	}
	if err != nil {
		r.failures++
		return model.Missing[string](hostfs.Status(err), "the directory of its ttnn package could not be read")
	}
	v := distInfo(names)
	r.known[lib.inode] = v
	return v
}

// dropUnused drops the libraries that no process maps.
func (r *releases) dropUnused(procs map[int]*process) {
	maps.DeleteFunc(r.known, func(lib inode, _ releaseReading) bool {
		for _, p := range procs {
			if p.maps.lib.inode == lib {
				return false
			}
		}
		return true
	})
}

// namesInRoot lists a directory as a process sees it.
func namesInRoot(dir hostfs.Dir, path string) (names []string, err error) {
	fd, err := proc.OpenInRoot(dir, path)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	return hostfs.NamesAt(fd)
}

// sitePackages is the package directory a library lies in.
func sitePackages(lib string) (dir string, ok bool) {
	for dir = path.Dir(lib); len(dir) > 1; dir = path.Dir(dir) {
		if base := path.Base(dir); base == "site-packages" || base == "dist-packages" {
			return dir, true
		}
	}
	return "", false
}

// distInfo finds the one ttnn-<version>.dist-info among names.
func distInfo(names []string) model.Reading[string] {
	version := ""
	for _, name := range names {
		v, ok := strings.CutPrefix(name, "ttnn-")
		if !ok {
			continue
		}
		if v, ok = strings.CutSuffix(v, ".dist-info"); !ok || !plainVersion(v) {
			continue
		}
		if version != "" {
			return model.Missing[string](model.Absent, "several ttnn packages lie beside its libtt_metal.so")
		}
		version = v
	}
	if version == "" {
		return model.Missing[string](model.Absent, notWheel)
	}
	return model.Value(version)
}

// plainVersion reports whether v is safe to show: a file name can hold
// anything.
func plainVersion(v string) bool {
	if v == "" || len(v) > 40 {
		return false
	}
	for _, c := range v {
		switch {
		case c >= '0' && c <= '9', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '.', c == '+', c == '_':
		default:
			return false
		}
	}
	return true
}

// atLeast compares the leading numbers of a version; ok is false if it has
// none. Pre-releases count as the release they lead to.
func atLeast(version string, major, minor int) (yes, ok bool) {
	a, rest, found := strings.Cut(version, ".")
	b, _, _ := strings.Cut(rest, ".")
	x, err1 := strconv.Atoi(a)
	y, err2 := strconv.Atoi(b)
	if !found || err1 != nil || err2 != nil {
		return false, false
	}
	return x > major || x == major && y >= minor, true
}

// Milestones of tt-metal's accounting.
const (
	firstMajor, firstMinor   = 0, 70 // the first release that accounts at all
	threadMajor, threadMinor = 0, 72 // from here on, of one thread only
	partlyMajor, partlyMinor = 0, 78 // from here on, most ops do not report their circular buffers
	lastV3Major, lastV3Minor = 0, 81 // the newest release known to write layout 3
)

// before reports whether a version is known to be lower.
func before(version string, major, minor int) bool {
	reached, ok := atLeast(version, major, minor)
	return ok && !reached
}

// releaseDoubts are the doubts about every program of a release. Layout 4
// counts all threads.
func releaseDoubts(l Layout, release model.Reading[string]) (list []model.Doubt) {
	if l.Version < 4 && !before(release.V, threadMajor, threadMinor) {
		list = append(list, model.Doubt{Kind: model.OtherThreads, Release: release.V})
	}
	return append(list, model.Doubt{Kind: model.GraphCapture, Release: release.V})
}

// cbMeaning is what a release counts as circular buffers.
func cbMeaning(l Layout, release model.Reading[string]) model.CBMeaning {
	if partly, ok := atLeast(release.V, partlyMajor, partlyMinor); l.CB == model.CBCached && ok && partly {
		return model.CBPartly
	}
	return l.CB
}

// knownV3 reports whether a release is known to write layout 3.
func knownV3(release model.Reading[string]) bool {
	v, ok := release.Get()
	if !ok {
		return false
	}
	first, ok := atLeast(v, firstMajor, firstMinor)
	later, _ := atLeast(v, lastV3Major, lastV3Minor+1)
	return ok && first && !later
}
