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
	"github.com/ttmon/ttmon/internal/metalabi"
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

	pids     map[int]bool // processes that have it mapped
	detached map[int]bool // those of them that ttmond has detached from
	// onHost says that the file has its path in our own root too. Others are
	// a container's: to hold on to them would keep its file system busy.
	onHost bool

	// workFast are those whose chips report too often for the probes of pages.
	workFast map[int]bool

	stale bool // its probes are to be set again
	set   int  // how many links it has

	// arming is held while probes are set or taken out, and before mu: the kernel
	// waits for all processors then, and events wait for mu. It is over all below
	// but for learned, hostArmed and hostFast.
	arming sync.Mutex
	closed bool

	// links are the probes of all processes (key 0), or, after detaching from one of
	// them, of each of the others. learn are those that show which chips allocators
	// stand for, and work those where chips report.
	links, learn, work map[int]link.Link
	learned            bool // learn is off

	// host are the probes where processes enqueue and wait, hostArmed since when
	// they are set (ns after boot; 0: they are not), hostFast the processes that
	// hit them too often.
	host      map[int]link.Link
	hostArmed uint64
	hostFast  map[int]bool
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
	return &library{
		path: path, uid: uid, file: f, pids: map[int]bool{}, detached: map[int]bool{}, workFast: map[int]bool{}, hostFast: map[int]bool{},
		links: map[int]link.Link{}, learn: map[int]link.Link{}, work: map[int]link.Link{}, host: map[int]link.Link{},
	}
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

// wanted are the processes that each kind of probes is for; 0 is all of them.
type wanted struct{ links, learn, work, host map[int]bool }

// wanted says which probes there should be: for all processes, or, after
// detaching from one and with separate, for each of the others. Those where
// processes enqueue and wait are set only with waits. With the source's mu.
func (l *library) wanted(separate, waits bool) (w wanted) {
	w.links, w.work, w.host = map[int]bool{0: true}, map[int]bool{0: true}, map[int]bool{0: true}
	if len(l.detached) > 0 && separate {
		w.links = l.without(l.detached)
	}
	if len(l.detached)+len(l.workFast) > 0 && separate {
		w.work = l.without(l.detached, l.workFast)
	}
	switch {
	case !waits || !l.seesHost():
		w.host = nil
	case len(l.detached)+len(l.hostFast) > 0:
		// They are on the program's own path: ttmond detaches from one that hits them
		// too often even where others cannot have probes of their own.
		if w.host = nil; separate {
			w.host = l.without(l.detached, l.hostFast)
		}
	}
	if !l.learned {
		w.learn = w.links
	}
	return w
}

// arm sets the probes. Those that are not wanted any more are taken out last: in
// between the kernel's part is told which of them count. With arming.
func (l *library) arm(k *kernel, w wanted) error {
	var singles uint32
	for _, x := range []struct {
		program *ebpf.Program
		kind    uint32
		links   map[int]link.Link
		want    map[int]bool
		which   func(probe) bool
	}{
		{k.Hit, uint32(watchSingleSINGLE_HIT), l.links, w.links, func(p probe) bool { return p.need != metalabi.Learning && !p.site.ofPages() && !p.site.ofHost() }},
		{k.Hit, uint32(watchSingleSINGLE_HIT), l.learn, w.learn, func(p probe) bool { return p.need == metalabi.Learning }},
		{k.Worked, uint32(watchSingleSINGLE_WORKED), l.work, w.work, func(p probe) bool { return p.site.ofPages() }},
		{k.Hosted, uint32(watchSingleSINGLE_HOSTED), l.host, w.host, func(p probe) bool { return p.site.ofHost() }},
	} {
		if len(x.want) > 0 && !x.want[0] {
			singles |= x.kind
		}
		if err := l.attach(x.program, x.links, x.want, x.which); err != nil {
			return err
		}
	}
	if err := k.Singles.Put(uint32(l.number), singles); err != nil {
		return fmt.Errorf("switching the probes of %s: %w", l.path, err)
	}
	detach(l.links, w.links)
	detach(l.learn, w.learn)
	detach(l.work, w.work)
	detach(l.host, w.host)
	return nil
}

// detach ends the links of processes that are not wanted.
func detach(links map[int]link.Link, want map[int]bool) {
	for pid := range links {
		if !want[pid] {
			links[pid].Close()
			delete(links, pid)
		}
	}
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

// attach makes links of some probes for the wanted processes.
func (l *library) attach(program *ebpf.Program, links map[int]link.Link, want map[int]bool, which func(probe) bool) error {
	var o link.UprobeMultiOptions
	all := uint64(l.number) << watchCookieCOOKIE_LIBRARY
	if !want[0] {
		all |= 1 << watchCookieCOOKIE_SINGLE
	}
	for _, p := range l.probes {
		if which(p) {
			o.Addresses = append(o.Addresses, p.offset)
			o.Cookies = append(o.Cookies, p.cookie()|all)
		}
	}
	if len(o.Addresses) == 0 {
		return nil
	}
	for _, pid := range slices.Sorted(maps.Keys(want)) {
		if links[pid] != nil {
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
		links[pid] = made
	}
	return nil
}

// Close removes the probes and closes the file.
func (l *library) Close() {
	l.arming.Lock()
	defer l.arming.Unlock()
	l.closed = true
	for _, links := range []map[int]link.Link{l.links, l.learn, l.work, l.host} {
		for _, x := range links {
			x.Close()
		}
		clear(links)
	}
	l.file.Close()
}
