package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/base/version"
	"github.com/ttmon/ttmon/internal/book/ledger"
	"github.com/ttmon/ttmon/internal/collect"
	"github.com/ttmon/ttmon/internal/node/handover"
	"github.com/ttmon/ttmon/internal/source/allocsock"
)

// What one ttmond hands to the next is the same, whatever that is: the program that
// is executed in its place, the keeper of connections, or the ttmond after the
// keeper. It is a list of open files with names; two of them are files in memory,
// with the state and with the buffers.

// Names of those files. Those of sockets that we made carry the path, so that a
// successor with another configuration makes its own.
const (
	nameState   = "state"
	nameBuffers = "buffers"
	nameLock    = "lock"
	nameClient  = "client"
	nameCaller  = "caller" // who has asked for the restart, and gets its answer
	nameAlloc   = "alloc"  // in a socket unit: FileDescriptorName=alloc
	nameAPI     = "api"
)

func withPath(name, path string) string { return name + ":" + path }

// stateFormat is that of handedState. A program that cannot read one does not take
// over: raise it where a field gets another meaning.
const stateFormat = 1

// handedState is what a successor gets beside descriptors and buffers.
type handedState struct {
	Format int             `json:"format"`
	Paused int64           `json:"paused"` // when clients began to wait: ns of the boot clock
	Server allocsock.State `json:"server"`
	Ledger ledger.State    `json:"ledger"`
	// Learned is what the collector found out; nil in one that never had a
	// collector before it.
	Learned *collect.Learned `json:"learned,omitempty"`
	// Answer is what the one who asked for the restart is told when it has worked.
	Answer []byte `json:"answer,omitempty"`
}

// saved is everything that a successor gets. The files stay ours, but for the state.
type saved struct {
	files []handover.File
	state int
}

func (s *saved) close() { unix.Close(s.state) }

// save writes down what is known. The allocation server has been stopped, at paused.
// add are more files.
func (d *ttmond) save(paused time.Time, learned *collect.Learned, answer []byte, add ...handover.File) (*saved, error) {
	st := handedState{Format: stateFormat, Paused: bootTime(paused), Learned: learned, Answer: answer}
	var clients []int
	var err error
	if st.Server, clients, err = d.server.Export(); err != nil {
		return nil, err
	}
	var buffers int
	st.Ledger, buffers = d.ledger.Save()
	b, err := json.Marshal(st)
	if err != nil {
		return nil, fmt.Errorf("writing the state for a successor: %w", err)
	}
	s := &saved{files: add}
	if s.state, err = handover.MemoryFile("ttmond-state", b); err != nil {
		return nil, err
	}
	s.add(nameState, s.state)
	s.add(nameBuffers, buffers)
	s.add(withPath(nameLock, d.cfg.API.Socket), d.inherited.lock)
	for _, fd := range clients {
		s.add(nameClient, fd)
	}
	return s, nil
}

func (s *saved) add(name string, fd int) {
	if fd >= 0 {
		s.files = append(s.files, handover.File{Name: name, FD: fd})
	}
}

// addSockets adds those on which others connect, which have their names still.
func (d *ttmond) addSockets(s *saved) {
	api, alloc := withPath(nameAPI, d.cfg.API.Socket), withPath(nameAlloc, d.cfg.Alloc.Socket)
	if d.inherited.apiActivated {
		api = nameAPI
	}
	if d.inherited.allocActivated {
		alloc = nameAlloc
	}
	s.add(api, d.inherited.api)
	s.add(alloc, d.server.Listener())
}

// bootTime is a time on the clock that all processes share.
func bootTime(t time.Time) int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return 0
	}
	return ts.Nano() - time.Since(t).Nanoseconds()
}

// restore reads what a predecessor has written down, if it has, and assigns its
// files. What it cannot read is an error, and nothing has changed but the list.
func (s *inherited) restore(c Config, files *[]handover.File) error {
	fd := extractOne(files, nameState)
	if fd < 0 {
		return nil
	}
	defer unix.Close(fd)
	st, err := readState(fd)
	if err != nil {
		return err
	}
	l, err := ledger.Restore(ledger.Options{MaxBuffers: c.Alloc.MaxBuffers}, st.Ledger, extractOne(files, nameBuffers))
	if err != nil {
		return err
	}
	s.ledger, s.state, s.restored = l, st, true
	return nil
}

func readState(fd int) (st handedState, err error) {
	b, err := handover.ReadMemory(fd)
	if err != nil {
		return st, err
	}
	if err := json.Unmarshal(b, &st); err != nil {
		return handedState{}, fmt.Errorf("reading the state of the ttmond before: %w", err)
	}
	if st.Format != stateFormat {
		return handedState{}, fmt.Errorf("the state of the ttmond before has format %d, this one reads %d", st.Format, stateFormat)
	}
	return st, nil
}

// Checked is what a program says that could take over.
type Checked struct {
	Version string `json:"version"`
	Config  Config `json:"config"`
}

// Check reports whether a ttmond that is executed now, in the place of the one that
// has lent its state to this process, could go on.
func Check(c Config, out io.Writer) error {
	files := handover.Inherited()
	defer func() { handover.Close(files) }()
	s := inherited{}
	if err := s.restore(c, &files); err != nil {
		return err
	}
	if !s.restored {
		return errors.New("no state was given")
	}
	return json.NewEncoder(out).Encode(Checked{version.Version, c})
}

// assign takes the sockets that a predecessor, or systemd, has passed.
func (s *inherited) assign(c Config, files *[]handover.File) {
	s.clients = append(s.clients, handover.Extract(files, nameClient)...)
	s.watched = append(s.watched, extractWatched(files)...)
	s.caller = extractOne(files, nameCaller)
	take := func(to *int, activated *bool, name, path string) {
		if fd := extractOne(files, name); fd >= 0 {
			*to, *activated = fd, true
		} else if fd := extractOne(files, withPath(name, path)); fd >= 0 {
			*to = fd
		}
	}
	take(&s.api, &s.apiActivated, nameAPI, c.API.Socket)
	take(&s.alloc, &s.allocActivated, nameAlloc, c.Alloc.Socket)
	if fd := extractOne(files, withPath(nameLock, c.API.Socket)); fd >= 0 {
		s.lock = fd
	}
}

// reapInherited waits for children that this process had before the program was
// executed: a read of a device that does not return, or what a shell started before it
// became ttmond. No other process waits for them, and it is not for us to end them.
func reapInherited(log *slog.Logger) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/children", os.Getpid()))
	if err != nil {
		log.Debug("cannot list processes of previous ttmond", "err", err)
	}
	children := strings.Fields(string(b))
	for _, field := range children[:min(len(children), maxReaped)] { // each takes a thread
		if pid, err := strconv.Atoi(field); err == nil {
			go func() { _, _ = unix.Wait4(pid, nil, unix.WALL, nil) }()
		}
	}
}

// maxReaped is more children than there are reads that may not return.
const maxReaped = 64
