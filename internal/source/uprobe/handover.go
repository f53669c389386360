package uprobe

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/source/metalabi"
	"github.com/ttmon/ttmon/internal/source/uprobe/pages"
)

// A daemon that takes over gets the accounts, and descriptors of the ring and the
// probes, which stay active meanwhile: events wait in the ring until the successor
// reads it, so not one is lost.

// File is a descriptor for a successor.
type File struct {
	Name string
	FD   int
}

// handed is the state, as JSON.
type handed struct {
	Format    int    // of this state
	Kernel    int    // the format of the maps and events of the program in the kernel
	Object    string // that program; another one of the same format is replaced
	Processes []handedProcess
	Libraries []handedLibrary
}

// format is that of the state. One of another format is not read: what it
// leaves out would count as known.
const format = 8

// kernelFormat is that of the maps and the events of bpf/watch.c: of what the program
// of one release leaves to that of the next. Raise it where a structure changes, or gets
// another meaning (TestKernelFormat knows the sizes). Then an upgrade attaches again, and
// programs that run are met in the middle of their lives.
const kernelFormat = 2

type handedProcess struct {
	Process    *blocks.Process
	Lists      []handedList
	Allocators map[uint64]int // by address, the position in Process
	Settled    []int          // those whose chips are all known
	Providers  map[uint64]uint64
	Programs   map[uint64]int // by address, the position in Process
	Child      bool
	Unplaced   bool
	Parent     uint32
	Lost16     uint16
	Taught     uint64
	PerCore    bool `json:"per_core,omitzero"`
	Trouble    model.Doubt
	Changes    uint64
	Numbers    [2]uint64         // of lists and allocators, that were given last
	Allocated  map[uint64]uint64 // the numbers of allocators, by address
	Work       *pages.Process    `json:",omitempty"`
	Fast       [numGroups]bool   // groups of probes that it hits more often than may be looked
	Numbered   map[uint32]uint64 // its chips, by the numbers that it has for them
}

type handedList struct {
	At              uint64 // address in the process
	Allocator, List int    // positions in the process and the allocator
	Used            bool
	Learned         map[uint64]int
	ID              uint32
}

type handedLibrary struct {
	Dev, Inode uint64
	Path       string
	UID        int
	Number     uint8
	Armed      uint64
	PIDs       []int
	Left       [numGroups][]int
	HostArmed  uint64
	OnHost     bool
	Learned    bool
	Err        string
	// Probes are the places in it: to read them again takes a while for each library.
	Probes []handedProbe
}

type handedProbe struct {
	Site            kind
	Offset          uint64
	Learning        bool
	Pointer, SizeAt uint16
	Ticks, Table    uint16 // of a profiler
}

func object() string {
	sum := sha256.Sum256(_WatchBytes)
	return hex.EncodeToString(sum[:])
}

// Export stops reading and returns what a successor needs. The files stay
// ours. done must be called: with false the source resumes, with true it reads
// nothing any more, because the ring is the successor's.
func (s *Source) Export() (state []byte, files []File, done func(taken bool), err error) {
	resume := s.park()
	unlock := s.lockProbes()
	select {
	case <-s.ended: // its descriptors are closed, or are about to be
		unlock()
		resume()
		return nil, nil, nil, errors.New("it does not watch any more")
	default:
	}
	h := handed{Format: format, Kernel: kernelFormat, Object: object()}
	for _, pid := range slices.Sorted(maps.Keys(s.accounts.processes)) {
		h.Processes = append(h.Processes, s.accounts.processes[pid].export())
	}
	add := func(name string, fd int) { files = append(files, File{name, fd}) }
	for name, m := range s.kernel.maps() {
		add(name, (*m).FD())
	}
	add("hit", s.kernel.Hit.FD())
	add("worked", s.kernel.Worked.FD())
	add("hosted", s.kernel.Hosted.FD())
	for i, l := range s.kernel.lifecycle {
		add(fmt.Sprint("fate ", i), linkFD(l))
	}
	for id, l := range s.libraries {
		n := len(h.Libraries)
		h.Libraries = append(h.Libraries, l.export(id))
		add(fmt.Sprint("library ", n), int(l.file.Fd()))
		for g, links := range l.links {
			for pid, x := range links {
				add(linkName(n, g, pid), linkFD(x))
			}
		}
	}
	state, err = json.Marshal(h)
	done = func(taken bool) {
		unlock()
		if !taken {
			resume()
		}
	}
	if err != nil {
		done(false)
		return nil, nil, nil, err
	}
	return state, files, done, nil
}

// lockProbes takes mu at a moment when no probe is set or taken out.
func (s *Source) lockProbes() (unlock func()) {
	for {
		s.mu.Lock()
		all := maps.Clone(s.libraries)
		s.mu.Unlock()
		for _, l := range all {
			l.arming.Lock()
		}
		s.mu.Lock()
		unlock = func() {
			s.mu.Unlock()
			for _, l := range all {
				l.arming.Unlock()
			}
		}
		if maps.Equal(all, s.libraries) {
			return unlock
		}
		unlock() // one was added or dropped meanwhile
	}
}

// maps are those that a successor takes over, by name.
func (k *kernel) maps() map[string]**ebpf.Map {
	return map[string]**ebpf.Map{
		"events": &k.Events, "processes": &k.Processes, "threads": &k.Threads, "lists": &k.Lists, "nameless": &k.Nameless, "users": &k.Users, "turn": &k.Turn, "pythons": &k.Pythons,
		"work": &k.Work, "wanted": &k.Wanted, "hosts": &k.Hosts, "singles": &k.Singles, "jumps": &k.Jumps, "lives": &k.Lives,
	}
}

// linkName is the name of a descriptor of the probes of a library.
func linkName(library, group, pid int) string { return fmt.Sprint("links ", library, group, pid) }

func linkFD(l link.Link) int {
	if x, ok := l.(interface{ FD() int }); ok {
		return x.FD()
	}
	return -1
}

func (p *process) export() handedProcess {
	h := handedProcess{
		Process: &p.Process, Allocators: map[uint64]int{}, Providers: p.providers,
		Child: p.child, Unplaced: p.unplaced, Parent: p.parent, Lost16: p.lost16, Taught: p.taught, Trouble: p.trouble,
		PerCore: p.perCore, Changes: p.changes, Numbers: [2]uint64{p.numbers.list, p.numbers.allocator}, Allocated: map[uint64]uint64{},
		Work: p.work, Fast: p.fast, Numbered: p.numbered,
	}
	h.Programs = map[uint64]int{}
	for at, x := range p.programs {
		h.Programs[at] = slices.Index(p.Programs, x)
	}
	for at, a := range p.allocators {
		i := slices.Index(p.Allocators, a.Allocator)
		h.Allocators[at], h.Allocated[at] = i, a.number
		if a.settled {
			h.Settled = append(h.Settled, i)
		}
	}
	for at, l := range p.lists {
		a := slices.Index(p.Allocators, l.allocator.Allocator)
		h.Lists = append(h.Lists, handedList{at, a, slices.Index(l.allocator.Lists, l.List), l.used, l.learned, l.id})
	}
	return h
}

func (h *handedProcess) restore() (*process, error) {
	p := &process{uid: -1}
	p.reset()
	p.Process = *h.Process
	p.child, p.unplaced, p.parent, p.lost16, p.taught, p.trouble = h.Child, h.Unplaced, h.Parent, h.Lost16, h.Taught, h.Trouble
	p.perCore = h.PerCore
	p.changes, p.numbers.list, p.numbers.allocator = h.Changes, h.Numbers[0], h.Numbers[1]
	if h.Providers != nil {
		p.providers = h.Providers
	}
	if h.Numbered != nil {
		p.numbered = h.Numbered
	}
	p.fast = h.Fast
	if p.work = h.Work; p.work != nil {
		p.work.Restore()
	}
	for at, i := range h.Programs {
		if i < 0 || i >= len(p.Programs) {
			return nil, fmt.Errorf("process %d has no program %d", p.PID, i)
		}
		p.programs[at] = p.Programs[i]
	}
	byPosition := map[int]*allocator{}
	for at, i := range h.Allocators {
		if i < 0 || i >= len(p.Allocators) {
			return nil, fmt.Errorf("process %d has no allocator %d", p.PID, i)
		}
		a := &allocator{Allocator: p.Allocators[i], number: h.Allocated[at], settled: slices.Contains(h.Settled, i)}
		p.allocators[at], byPosition[i] = a, a
	}
	for _, l := range h.Lists {
		a := byPosition[l.Allocator]
		if a == nil || l.List < 0 || l.List >= len(a.Lists) {
			return nil, fmt.Errorf("process %d has no list %d of allocator %d", p.PID, l.List, l.Allocator)
		}
		if l.Learned == nil {
			l.Learned = map[uint64]int{}
		}
		p.lists[l.At] = &list{List: a.Lists[l.List], allocator: a, used: l.Used, learned: l.Learned, id: l.ID}
	}
	return p, nil
}

func (l *library) export(id fileID) handedLibrary {
	h := handedLibrary{
		Dev: id.dev, Inode: id.inode, Path: l.path, UID: l.uid, Number: l.number, Armed: l.armed, OnHost: l.onHost, Learned: l.learned,
		PIDs: slices.Sorted(maps.Keys(l.pids)), HostArmed: l.hostArmed,
	}
	for g, left := range l.left {
		h.Left[g] = slices.Sorted(maps.Keys(left))
	}
	if l.err != nil {
		h.Err = l.err.Error()
	}
	for _, p := range l.probes {
		h.Probes = append(h.Probes, handedProbe{p.site, p.offset, p.need == metalabi.Learning, p.size.pointer, p.size.offset, p.work.ticks, p.work.table})
	}
	return h
}

// restore makes the library of which a file was handed over. It is not read again:
// everybody waits for a successor, and a user can have many libraries, on a disk that is
// slow.
func (h *handedLibrary) restore(f *os.File) *library {
	l := emptyLibrary(f, h.Path, h.UID)
	l.armed, l.onHost, l.learned = h.Armed, h.OnHost, h.Learned
	for _, p := range h.Probes {
		need := metalabi.Required
		switch {
		case p.Learning:
			need = metalabi.Learning
		case p.Site.ofHost():
			need = metalabi.OnDemand
		}
		l.probes = append(l.probes, probe{site: p.Site, offset: p.Offset, need: need, size: field{p.Pointer, p.SizeAt}, work: profiler{p.Ticks, p.Table}})
	}
	if h.Err != "" {
		l.err = errors.New(h.Err)
	}
	return l
}

// descriptors are those of a predecessor, by name. close closes what pop did not
// take.
type descriptors map[string]int

func (g descriptors) pop(name string) (int, error) {
	fd, ok := g[name]
	if !ok {
		return -1, fmt.Errorf("it gave no %q", name)
	}
	delete(g, name)
	return fd, nil
}

func (g descriptors) close() {
	for _, fd := range g {
		unix.Close(fd)
	}
}

// OpenFrom resumes where a predecessor stopped, and closes the files. If it cannot
// (another release's program is in the kernel), the error says why, and the caller
// uses Open.
func OpenFrom(o Options, state []byte, files []File) (*Source, error) {
	fds := descriptors{}
	for _, f := range files {
		fds[f.Name] = f.FD
	}
	defer fds.close()
	var h handed
	if err := json.Unmarshal(state, &h); err != nil {
		return nil, fmt.Errorf("reading the predecessor's accounts: %w", err)
	}
	if h.Format != format {
		return nil, fmt.Errorf("the predecessor's accounts have format %d, not %d", h.Format, format)
	}
	if h.Kernel != kernelFormat {
		return nil, fmt.Errorf("the maps of the predecessor's program in the kernel have format %d, not %d", h.Kernel, kernelFormat)
	}
	k, err := fds.kernel()
	if err == nil && h.Object != object() {
		err = k.replace()
	}
	if err != nil {
		return nil, fmt.Errorf("taking over the predecessor's maps and probes: %w", err)
	}
	s := newSource(o, k)
	if err := s.importState(&h, fds); err != nil {
		s.close()
		return nil, fmt.Errorf("taking over the predecessor's accounts: %w", err)
	}
	return s, nil
}

func (g descriptors) kernel() (k *kernel, err error) {
	k = &kernel{}
	defer func() {
		if err != nil {
			k.Close()
		}
	}()
	for name, m := range k.maps() {
		fd, err := g.pop(name)
		if err != nil {
			return k, err
		}
		if *m, err = ebpf.NewMapFromFD(fd); err != nil {
			return k, err
		}
	}
	for name, p := range map[string]**ebpf.Program{"hit": &k.Hit, "worked": &k.Worked, "hosted": &k.Hosted} {
		fd, err := g.pop(name)
		if err != nil {
			return k, err
		}
		if *p, err = ebpf.NewProgramFromFD(fd); err != nil {
			return k, err
		}
	}
	for i := range 3 {
		fd, err := g.pop(fmt.Sprint("fate ", i))
		if err != nil {
			return k, err
		}
		l, err := link.NewFromFD(fd)
		if err != nil {
			return k, err
		}
		k.lifecycle = append(k.lifecycle, l)
	}
	return k, nil
}

// replace has everything that is attached jump to our program, in the place of that of
// another release. Not an event is missed meanwhile.
func (k *kernel) replace() (err error) {
	next := &kernel{lifecycle: k.lifecycle}
	over := map[string]*ebpf.Map{}
	for name, m := range k.maps() {
		over[name] = *m
	}
	err = next.load(over, func(maps map[string]*ebpf.MapSpec) {
		for name, m := range over {
			maps[name].MaxEntries = m.MaxEntries()
		}
	})
	if err != nil {
		k.Close()
		return err
	}
	k.lifecycle = nil // they are attached still
	k.Close()
	*k = *next
	return nil
}

func (s *Source) importState(h *handed, fds descriptors) error {
	if len(h.Libraries) > 0 {
		if err := s.openRing(); err != nil {
			return err
		}
	}
	for i := range h.Processes {
		p, err := h.Processes[i].restore()
		if err != nil {
			return err
		}
		s.accounts.processes[uint32(p.PID)] = p
		s.accounts.charge(p)
	}
	_ = s.kernel.Turn.Lookup(uint32(0), &s.kernel.turns)
	_ = s.kernel.Turn.Lookup(uint32(1), &s.kernel.pageTurns)
	for i := range h.Libraries {
		if err := s.importLibrary(i, &h.Libraries[i], fds); err != nil {
			return err
		}
	}
	return nil
}

func (s *Source) importLibrary(i int, l *handedLibrary, fds descriptors) error {
	fd, err := fds.pop(fmt.Sprint("library ", i))
	if err != nil {
		return err
	}
	lib := l.restore(os.NewFile(uintptr(fd), l.Path))
	s.slots.Force(l.UID, 1)
	lib.number = l.Number
	s.numbers[l.Number] = true
	id := fileID{l.Dev, l.Inode}
	s.libraries[id] = lib
	for _, pid := range l.PIDs {
		s.use(pid, id)
	}
	for g, left := range l.Left {
		for _, pid := range left {
			lib.left[g][pid] = true
		}
		for _, pid := range append(l.PIDs, 0) {
			if err := fds.link(linkName(i, g, pid), lib.links[g], pid); err != nil {
				return err
			}
		}
	}
	lib.hostArmed = l.HostArmed
	s.arm(lib) // the predecessor may have been about to, and the configuration may have changed
	return nil
}

// link takes over a link, if the predecessor passed it.
func (g descriptors) link(name string, to map[int]link.Link, pid int) error {
	fd, err := g.pop(name)
	if err != nil {
		return nil
	}
	to[pid], err = link.NewFromFD(fd)
	return err
}
