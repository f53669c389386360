package uprobe

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
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

// arm sets the probes: for all processes, or, after detaching from one and with
// separate, for each of the others. Those where processes enqueue and wait are set
// only with waits.
func (l *library) arm(k *kernel, separate, waits bool) error {
	want, work := map[int]bool{0: true}, map[int]bool{0: true}
	if len(l.detached) > 0 && separate {
		want = l.without(l.detached)
	}
	if len(l.detached)+len(l.workFast) > 0 && separate {
		work = l.without(l.detached, l.workFast)
	}
	host := map[int]bool{0: true}
	switch {
	case !waits || !l.seesHost():
		host = nil
	case len(l.detached)+len(l.hostFast) > 0:
		// They are on the program's own path: ttmond detaches from one that hits them
		// too often even where others cannot have probes of their own.
		if host = nil; separate {
			host = l.without(l.detached, l.hostFast)
		}
	}
	learn := want
	if l.learned {
		learn = nil
	}
	return errors.Join(
		l.set(k.Hit, l.links, want, func(p probe) bool { return p.need != metalabi.Learning && !p.site.ofPages() && !p.site.ofHost() }),
		l.set(k.Hit, l.learn, learn, func(p probe) bool { return p.need == metalabi.Learning }),
		l.set(k.Worked, l.work, work, func(p probe) bool { return p.site.ofPages() }),
		l.set(k.Hosted, l.host, host, func(p probe) bool { return p.site.ofHost() }),
	)
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

// set makes links of some probes for the wanted processes, and ends others.
func (l *library) set(program *ebpf.Program, links map[int]link.Link, want map[int]bool, which func(probe) bool) error {
	var o link.UprobeMultiOptions
	for _, p := range l.probes {
		if which(p) {
			o.Addresses = append(o.Addresses, p.offset)
			o.Cookies = append(o.Cookies, p.cookie())
		}
	}
	for pid := range links {
		if !want[pid] {
			links[pid].Close()
			delete(links, pid)
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
	for _, links := range []map[int]link.Link{l.links, l.learn, l.work, l.host} {
		for _, x := range links {
			x.Close()
		}
		clear(links)
	}
	l.file.Close()
}
