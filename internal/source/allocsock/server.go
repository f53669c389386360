package allocsock

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/base/budget"
	"github.com/ttmon/ttmon/internal/book/ledger"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/model/apitype"
)

// Options of a Server.
type Options struct {
	Ledger *ledger.Ledger // where events go; required
	// Listener is a listening Unix stream socket, which the server then owns; -1
	// for none (a server that only keeps connections alive).
	Listener int
	// Devices describes the chips of this host, for DEVICE_INFO; nil: none.
	// Clients wait for it, so it must return at once.
	Devices func() []DeviceInfo
	// Where is the address of the API, for a web client on the wrong socket; may
	// be empty.
	Where string
	// Store has the service manager keep the socket of a reporting client for the
	// case of a crash; nil: not supported. It must not block: EAGAIN means retry.
	Store func(fd int) error
	// Beat is called every BeatEvery while clients can be served, also when nothing
	// happens; nil: no watchdog.
	Beat      func()
	BeatEvery time.Duration
	// Limits are the budgets; the zero value is DefaultLimits for the limit of
	// open files.
	Limits Limits
	// Log is where the server writes; nil discards.
	Log *slog.Logger
	// Grace is how long a process may stay without a connection when its exit
	// cannot be watched; 0 is 2 s.
	Grace time.Duration
}

// Server is the allocation server. While Run is running, each connection has a
// goroutine of its own.
type Server struct {
	opt     Options
	log     *slog.Logger
	verbose bool // log every event
	since   Since

	pools pools
	count counts
	dumps dumpRing
	// lanes are where messages are read: root's, and those of all others.
	lanes      [2]lane
	textTurns  [2]sync.Mutex // one text at a time: root's, others'
	accepting  sync.Mutex    // held while a client is accepted
	languageOf func(pid int, name string) language

	running sync.WaitGroup // goroutines that return when closing is closed
	paused  atomic.Bool    // Run is to return, or does not run; with mu
	mu      sync.Mutex     // over all below, and what connections, reporters and users say it is over
	// closing is closed when Run is to return; nil while it does not run.
	closing    chan struct{}
	listener   *socket // nil: none
	conns      map[*conn]struct{}
	unclaimed  unclaimed
	reporters  map[model.ProcessID]*reporter
	users      map[int]*user
	usersSwept time.Time // when users without connections were last dropped
	unstored   []*conn   // wait to be stored by the service manager
	storing    bool
}

// counts are what Stats reports.
type counts struct {
	accepted, replies, dropped, rejected, skipped, bytes atomic.Uint64
	hurried, lostLines                                   atomic.Uint64
	open, ending                                         atomic.Int64
}

// lane is room for reading and decoding, for one connection at a time: none has
// buffers of its own. So root never waits for others, and these are one behind the
// other, however many cores there are. A user's connections take turns first, so
// that each user has one in the lane at most.
type lane struct {
	sync.Mutex
	buf    []byte
	events []ledger.Event
	recv   receiver
}

// laneOf is where messages of a user are read.
func (s *Server) laneOf(u *user) *lane {
	if budget.Privileged(u.uid) {
		return &s.lanes[0]
	}
	return &s.lanes[1]
}

// socket is a descriptor that Go's poller waits for.
type socket struct {
	fd   int
	file *os.File // closes fd
	raw  syscall.RawConn
}

// newSocket takes a descriptor over; it is closed if it cannot be waited for.
func newSocket(fd int) (*socket, error) {
	if err := unix.SetNonblock(fd, true); err != nil { // or Go does not poll it
		unix.Close(fd)
		return nil, fmt.Errorf("watching a descriptor: %w", err)
	}
	x := &socket{fd: fd, file: os.NewFile(uintptr(fd), "socket")}
	err := x.file.SetDeadline(time.Time{})
	if err == nil {
		x.raw, err = x.file.SyscallConn()
	}
	if err != nil {
		x.file.Close()
		return nil, fmt.Errorf("watching a descriptor: %w", err)
	}
	return x, nil
}

// interrupt ends all waits for a socket; with false they are possible again.
func (x *socket) interrupt(end bool) {
	if x == nil {
		return
	}
	at := time.Time{}
	if end {
		at = time.Unix(1, 0)
	}
	_ = x.file.SetDeadline(at)
}

// New returns a server that Run starts.
func New(o Options) (*Server, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Grace == 0 {
		o.Grace = 2 * time.Second
	}
	if o.Limits == (Limits{}) {
		o.Limits = DefaultLimits(descriptorLimit())
	}
	s := &Server{
		opt: o, log: o.Log, verbose: o.Log.Enabled(context.Background(), slog.LevelDebug),
		since: sinceNow(), languageOf: languageOf,
		conns: map[*conn]struct{}{}, unclaimed: unclaimed{}, reporters: map[model.ProcessID]*reporter{}, users: map[int]*user{},
	}
	s.paused.Store(true)
	for i := range s.lanes {
		s.lanes[i].buf = make([]byte, readSize+maxLine)
		s.lanes[i].events = make([]ledger.Event, 0, batchLen+8)
	}
	s.pools = newPools(o.Limits, s.logRefusal)
	if o.Listener >= 0 {
		var err error
		if s.listener, err = listen(o.Listener); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// descriptorLimit is how many descriptors this process may have.
func descriptorLimit() int {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return 1024
	}
	return int(min(l.Cur, 1<<20))
}

// Run serves until ctx is done. Everything stays open then, and clients that
// connect or write wait: call Run again to resume, or Export, or Close.
func (s *Server) Run(ctx context.Context) error {
	s.mu.Lock()
	s.closing = make(chan struct{})
	s.paused.Store(false)
	if s.listener != nil {
		s.spawn(s.accept)
	}
	for c := range s.conns {
		s.spawn(func() { s.serve(c) })
	}
	for _, p := range s.reporters {
		s.watchProcess(p)
	}
	s.storeSoon()
	if s.opt.Beat != nil {
		s.spawn(s.sendBeats)
	}
	s.mu.Unlock()
	<-ctx.Done()
	s.mu.Lock()
	close(s.closing)
	s.closing = nil
	s.paused.Store(true)
	s.interrupt(true)
	s.mu.Unlock()
	s.running.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.interrupt(false)
	return nil
}

// spawn starts a part of Run, unless that is to return. With mu.
func (s *Server) spawn(f func()) {
	if s.closing != nil {
		s.running.Go(f)
	}
}

// stopped is closed when Run is to return.
func (s *Server) stopped() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing == nil {
		return closed
	}
	return s.closing
}

var closed = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// stops reports whether Run is to return.
func (s *Server) stops() bool { return s.paused.Load() }

// interrupt ends the waits of all goroutines, or makes them possible again. With mu.
func (s *Server) interrupt(end bool) {
	s.listener.interrupt(end)
	for c := range s.conns {
		c.sock.interrupt(end)
	}
	for _, p := range s.reporters {
		p.exit.interrupt(end)
	}
}

// sendBeats notifies the watchdog that clients can be served.
func (s *Server) sendBeats() {
	stopped := s.stopped()
	tick := time.NewTicker(s.opt.BeatEvery)
	defer tick.Stop()
	for {
		s.passThrough()
		s.opt.Beat()
		select {
		case <-tick.C:
		case <-stopped:
			return
		}
	}
}

// passThrough returns when all that connections wait for has been free once.
func (s *Server) passThrough() {
	for _, l := range []sync.Locker{&s.lanes[0], &s.lanes[1], &s.mu} {
		l.Lock()
		l.Unlock() //lint:ignore SA2001 it was free
	}
}

// Ping returns when clients can be served, or an error if they cannot in time.
func (s *Server) Ping(ctx context.Context, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	passed := make(chan struct{})
	go func() {
		s.passThrough()
		for s.stops() && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		close(passed)
	}()
	select {
	case <-passed:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// Close closes everything. Old clients that are still connected may be killed
// by SIGPIPE at their next report; a successor that gets what Export returns avoids
// that. Run must have returned.
func (s *Server) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.sock.file.Close()
	}
	for _, p := range s.reporters {
		if p.exit != nil {
			p.exit.file.Close()
		}
	}
	clear(s.conns)
	clear(s.reporters)
	if s.listener != nil {
		s.listener.file.Close()
		s.listener = nil
	}
}

// Since is when this server, or the first of its predecessors, started to
// listen. It may have missed reports of a process older than that.
type Since struct {
	Time  time.Time `json:"time"`
	Ticks uint64    `json:"ticks"` // clock ticks after boot, like the start of a process
}

func sinceNow() Since {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic("BUG: no clock: " + err.Error())
	}
	const tick = 10 * time.Millisecond // USER_HZ is 100 on every architecture that has boards
	return Since{time.Now(), uint64(time.Duration(ts.Nano()) / tick)}
}

// Since may be called from any goroutine once Import has returned.
func (s *Server) Since() Since { return s.since }

// Stats may be called from any goroutine.
func (s *Server) Stats() apitype.AllocSocket {
	c := &s.count
	return apitype.AllocSocket{
		Connections: c.open.Load(), Accepted: c.accepted.Load(), Bytes: c.bytes.Load(),
		Replies: c.replies.Load(), Dropped: c.dropped.Load(),
		Rejected: c.rejected.Load(), Skipped: c.skipped.Load(),
		Ending: c.ending.Load(), HurriedEnds: c.hurried.Load(), LostLogLines: c.lostLines.Load(),
	}
}
