package uprobe

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/source/metalabi"
)

// fileID is a file whatever its name.
type fileID struct{ dev, inode uint64 }

// library is one file of tt-metal, and the probes in it.
type library struct {
	path   string // as the process that was seen first calls it
	uid    int    // the user of that process, for whom it counts
	number uint8  // for the kernel's part
	file   *os.File
	probes []probe
	err    error  // why it is not watched
	armed  uint64 // since when it is, ns after boot

	pids map[int]bool // processes that have it mapped
	// left are those of them that have lost the probes of a group.
	left [numGroups]map[int]bool
	// onHost says that the file has its path in our own root too. Others are
	// a container's: to hold on to them would keep its file system busy.
	onHost bool

	stale bool // its probes are to be set again
	set   int  // how many links it has

	// arming is held while probes are set or taken out, and before mu: the kernel
	// waits for all processors then, and events wait for mu. It is over all below
	// but for learned and hostArmed.
	arming sync.Mutex
	closed bool

	// links are the probes of each group: of all processes (key 0), or, after
	// detaching from one of them, of each of the others.
	links     [numGroups]map[int]link.Link
	learned   bool   // groupChips is off
	hostArmed uint64 // since when groupHost is set (ns after boot; 0: it is not)
}

// group are probes that are set and taken out together. From a process that hits those
// of a group too often ttmond takes them out; from the allocators' that is all of them.
type group uint8

const (
	groupAllocators group = iota
	groupChips            // those that show which chips allocators stand for
	groupPages            // where chips report
	groupHost             // where processes enqueue and wait
	numGroups
)

// group is that of a probe.
func (p *probe) group() group {
	switch {
	case p.need == metalabi.Learning:
		return groupChips
	case p.site.ofPages():
		return groupPages
	case p.site.ofHost():
		return groupHost
	}
	return groupAllocators
}

// open opens the file that a process has mapped. Through map_files it is that
// very file, whatever has happened to its name; where that is forbidden, the
// file that has the name now must be the same. It may be a device under the
// name of a library, which is never opened.
func open(m mapping) (*os.File, error) {
	root := "/proc/" + strconv.Itoa(m.pid)
	f, err := openRegular(fmt.Sprintf("%s/map_files/%x-%x", root, m.start, m.end))
	if err == nil || errors.Is(err, errNotRegular) {
		return f, err
	}
	if f, err = openRegular(root + "/root" + m.path); err != nil {
		return nil, err
	}
	st, err := stat(f)
	if err == nil && st.Ino != m.inode {
		err = &replacedError{m.path}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// replacedError says that a process runs a file that is no longer there.
type replacedError struct{ path string }

func (e *replacedError) Error() string {
	return e.path + " was replaced while the process ran"
}

func stat(f *os.File) (st unix.Stat_t, err error) {
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return st, fmt.Errorf("reading the identity of %s: %w", f.Name(), err)
	}
	return st, nil
}

// emptyLibrary is a file without probes.
func emptyLibrary(f *os.File, path string, uid int) *library {
	l := &library{path: path, uid: uid, file: f, pids: map[int]bool{}}
	for g := range numGroups {
		l.left[g], l.links[g] = map[int]bool{}, map[int]link.Link{}
	}
	return l
}

// newLibrary finds the functions in a file, by some time. It is not watched yet.
// blocked is a read of it that does not end.
func newLibrary(f *os.File, path string, uid int, by time.Time) (l *library, blocked *hostfs.Batch) {
	l = emptyLibrary(f, path, uid)
	r, err := newGuardedReader(f, by)
	if err != nil {
		l.err = err
		return l, nil
	}
	l.probes, l.err = findProbes(r)
	if blocked = r.close(); l.err != nil {
		return l, blocked
	}
	var here unix.Stat_t
	mine, err := stat(f)
	l.onHost = err == nil && unix.Stat(path, &here) == nil && here.Dev == mine.Dev && here.Ino == mine.Ino
	return l, nil
}

// wanted are the processes that each group of probes is for; 0 is all of them.
type wanted [numGroups]map[int]bool

// wanted says which probes there should be: for all processes, or, after
// detaching from one and with separate, for each of the others. Those where
// processes enqueue and wait are set only with waits. With the source's mu.
func (l *library) wanted(separate, waits bool) (w wanted) {
	for _, g := range []group{groupAllocators, groupPages, groupHost} {
		some := len(l.left[groupAllocators])+len(l.left[g]) > 0
		switch {
		case g == groupHost && (!waits || !l.seesHost()):
		case some && separate:
			w[g] = l.without(l.left[groupAllocators], l.left[g])
		case some && g == groupHost:
			// They are on the program's own path: ttmond detaches from one that hits them
			// too often even where others cannot have probes of their own.
		default:
			w[g] = map[int]bool{0: true}
		}
	}
	if !l.learned {
		w[groupChips] = w[groupAllocators]
	}
	return w
}

// arm sets the probes. Those that are not wanted any more are taken out last: in
// between the kernel's part is told which of them count. With arming.
func (l *library) arm(k *kernel, w wanted) error {
	var singles uint32
	for g, x := range [numGroups]struct {
		program *ebpf.Program
		single  watchSingle
	}{
		groupAllocators: {k.Hit, watchSingleSINGLE_HIT}, groupChips: {k.Hit, watchSingleSINGLE_HIT},
		groupPages: {k.Worked, watchSingleSINGLE_WORKED}, groupHost: {k.Hosted, watchSingleSINGLE_HOSTED},
	} {
		if len(w[g]) > 0 && !w[g][0] {
			singles |= uint32(x.single)
		}
		if err := l.attach(x.program, group(g), w[g]); err != nil {
			return err
		}
	}
	if err := k.Singles.Put(uint32(l.number), singles); err != nil {
		return fmt.Errorf("switching the probes of %s: %w", l.path, err)
	}
	for g, links := range l.links {
		for pid := range links {
			if !w[g][pid] {
				links[pid].Close()
				delete(links, pid)
			}
		}
	}
	return nil
}

// without are the processes but for some.
func (l *library) without(some ...map[int]bool) map[int]bool {
	out := maps.Clone(l.pids)
	for _, set := range some {
		for pid := range set {
			delete(out, pid)
		}
	}
	return out
}

// attach makes links of the probes of a group for the wanted processes.
func (l *library) attach(program *ebpf.Program, g group, want map[int]bool) error {
	var o link.UprobeMultiOptions
	all := uint64(l.number) << watchCookieCOOKIE_LIBRARY
	if !want[0] {
		all |= 1 << watchCookieCOOKIE_SINGLE
	}
	for _, p := range l.probes {
		if p.group() == g {
			o.Addresses = append(o.Addresses, p.offset)
			o.Cookies = append(o.Cookies, p.cookie()|all)
		}
	}
	if len(o.Addresses) == 0 {
		return nil
	}
	for _, pid := range slices.Sorted(maps.Keys(want)) {
		if l.links[g][pid] != nil {
			continue
		}
		// By its descriptor: no user can put another file under that name.
		x, err := link.OpenExecutable(fmt.Sprintf("/proc/self/fd/%d", l.file.Fd()))
		if err != nil {
			return fmt.Errorf("opening %s: %w", l.path, err)
		}
		o.PID = uint32(pid)
		made, err := x.UprobeMulti(nil, program, &o)
		if errors.Is(err, unix.ESRCH) {
			continue // it has ended
		}
		if err != nil {
			return fmt.Errorf("attaching to %s: %w", l.path, err)
		}
		l.links[g][pid] = made
	}
	return nil
}

// Close removes the probes and closes the file.
func (l *library) Close() {
	l.arming.Lock()
	defer l.arming.Unlock()
	l.closed = true
	for _, links := range l.links {
		for _, x := range links {
			x.Close()
		}
		clear(links)
	}
	l.file.Close()
}
