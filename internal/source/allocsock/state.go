package allocsock

import (
	"fmt"
	"math"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/book/ledger"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/model/apitype"
)

// State is the state of a server apart from its descriptors and the ledger:
// that of each connection. It is encoded as JSON, so that a newer server can
// read an older one's and the other way round.
type State struct {
	Since Since               `json:"since"`
	Conns []connState         `json:"conns"`
	Procs []procState         `json:"procs"`
	Dumps []Dump              `json:"dumps"`
	Stats apitype.AllocSocket `json:"stats"` // the counters; the gauges are made again
}

// connState is one connection. Its descriptor is the socket with the cookie,
// a number that the kernel gives and that is the same in every process.
type connState struct {
	Cookie  uint64    `json:"cookie"`
	Since   time.Time `json:"since"`
	Proc    int       `json:"proc"` // index into Procs; -1 for none
	Pending []byte    `json:"pending,omitempty"`
	Out     []byte    `json:"out,omitempty"`
	Ended   bool      `json:"ended,omitempty"`
	Finish  bool      `json:"finish,omitempty"`
	Warned  bool      `json:"warned,omitempty"`
	Orphan  bool      `json:"orphan,omitempty"` // the process that connected has exited
	Mode    mode      `json:"mode"`
	Size    int       `json:"size"`
	Guessed bool      `json:"guessed,omitempty"`
	Reading reading   `json:"reading"`
	SentPID int32     `json:"sent_pid"`
	Asked   bool      `json:"asked,omitempty"`
}

// procState is one process that reports.
type procState struct {
	Key     model.ProcessID `json:"key"`
	UID     int             `json:"uid"`
	Name    string          `json:"name"`
	SentPID int             `json:"sent_pid"`
}

// Export returns the state and the sockets of all clients. Run must have
// returned. The descriptors stay the server's: the receiver gets duplicates.
func (s *Server) Export() (State, []int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := State{Since: s.since, Dumps: s.Dumps(), Stats: s.Stats()}
	index := map[*reporter]int{}
	for _, p := range s.reporters {
		index[p] = len(st.Procs)
		st.Procs = append(st.Procs, procState{p.key, p.uid, p.name, p.sentPID})
	}
	fds := make([]int, 0, len(s.conns))
	for c := range s.conns {
		cookie, err := unix.GetsockoptUint64(c.sock.fd, unix.SOL_SOCKET, unix.SO_COOKIE)
		if err != nil {
			return State{}, nil, fmt.Errorf("naming a connection: %w", err)
		}
		cs := connState{
			Cookie: cookie, Since: c.since, Proc: -1, Pending: c.pending, Out: c.replies.out,
			Ended: c.ended, Finish: c.replies.finish, Warned: c.warned, Orphan: c.owner != nil && c.owner.ended,
			Mode: c.dec.mode, Size: c.dec.size, Guessed: c.dec.guessed, Reading: c.dec.reading,
			SentPID: c.dec.sentPID, Asked: c.dec.blankAnswered,
		}
		if i, ok := index[c.owner]; ok {
			cs.Proc = i
		}
		st.Conns = append(st.Conns, cs)
		fds = append(fds, c.sock.fd)
	}
	return st, fds, nil
}

// Import adds the connections of a predecessor before the first Run. The ledger
// has been restored already. Descriptors are the server's from now on, whether
// or not the state has them: after a daemon was killed they may be all there
// is.
func (s *Server) Import(st State, fds []int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st.Since.Ticks != 0 {
		s.since = st.Since
	}
	procs := make([]*reporter, len(st.Procs))
	for i, ps := range st.Procs {
		procs[i] = s.importProc(ps)
	}
	states := map[uint64]connState{}
	for _, cs := range st.Conns {
		states[cs.Cookie] = cs
	}
	for _, fd := range fds {
		if err := s.importConn(fd, states, procs); err != nil {
			return err
		}
	}
	for _, p := range procs {
		s.findExit(p)
	}
	s.dumps.list = append(s.dumps.list, st.Dumps...)
	slices.Reverse(s.dumps.list)
	s.count.restore(st.Stats)
	return nil
}

// importProc watches a process again. With mu.
func (s *Server) importProc(ps procState) *reporter {
	p := &reporter{key: ps.Key, uid: ps.UID, name: ps.Name, sentPID: ps.SentPID, conns: map[*conn]struct{}{}}
	p.ledger = s.opt.Ledger.Open(ledger.Info{ProcessID: ps.Key, UID: ps.UID, Name: ps.Name}, time.Now())
	s.pools.reporters.Force(p.uid, 1)
	s.reporters[p.key] = p
	if ps.Key.PID == 0 || ps.Key.StartTicks&syntheticBit != 0 {
		return p // it is found by its connection
	}
	if fd, err := unix.PidfdOpen(ps.Key.PID, 0); err == nil {
		if start, _ := readStat(ps.Key.PID); start == ps.Key.StartTicks {
			s.pools.descriptors.Force(p.uid, 1)
			s.setExit(p, fd)
			return p
		}
		unix.Close(fd)
	}
	p.leaves = exited
	return p
}

// importConn adds one connection of a predecessor. With mu.
func (s *Server) importConn(fd int, states map[uint64]connState, procs []*reporter) error {
	unix.CloseOnExec(fd)
	x, err := newSocket(fd)
	if err != nil {
		return err
	}
	cookie, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_COOKIE)
	if err != nil {
		return fmt.Errorf("taking over a connection: %w", err)
	}
	cs, known := states[cookie]
	if known && cs.Cookie == 0 {
		x.file.Close() // it came twice
		return nil
	}
	states[cookie] = connState{}
	c := &conn{sock: x, since: time.Now()}
	if known {
		c.since, c.pending, c.ended, c.warned = cs.Since, cs.Pending, cs.Ended, cs.Warned
		c.replies.out, c.replies.finish = cs.Out, cs.Finish
		c.dec = decoder{
			mode: cs.Mode, size: cs.Size, guessed: cs.Guessed, reading: cs.Reading, sentPID: cs.SentPID, blankAnswered: cs.Asked,
		}
	}
	if c.ended {
		c.applied.Store(math.MaxInt64)
	}
	c.dec.sanitize()
	if c.cred, err = credentials(fd); err != nil {
		return err
	}
	s.pools.descriptors.Force(int(c.cred.Uid), 1)
	s.addConn(c)
	s.pools.unread.Force(int(c.cred.Uid), int64(len(c.replies.out)))
	switch {
	case !known:
		// The position in the stream is unknown: search for a header.
		c.dec.mode = start
	case cs.Orphan:
		s.unclaimed.remove(c)
		c.owner = s.ignoredReporter()
	case cs.Proc >= 0 && cs.Proc < len(procs):
		s.setOwner(c, procs[cs.Proc])
	}
	return nil
}

// findExit finds a process that its number does not tell by one of its connections.
// With mu.
func (s *Server) findExit(p *reporter) {
	if p.exit != nil || p.leaves != "" {
		return
	}
	for c := range p.conns { // any will do
		pidfd, gone := openPIDFD(c.sock.fd, p.key.PID)
		if gone {
			p.leaves = exited
		}
		if pidfd >= 0 {
			s.pools.descriptors.Force(p.uid, 1)
			s.setExit(p, pidfd)
		}
		return
	}
}

// restore sets the counters to those of the predecessor.
func (c *counts) restore(s apitype.AllocSocket) {
	c.accepted.Store(s.Accepted)
	c.bytes.Store(s.Bytes)
	c.replies.Store(s.Replies)
	c.dropped.Store(s.Dropped)
	c.rejected.Store(s.Rejected)
	c.skipped.Store(s.Skipped)
}
