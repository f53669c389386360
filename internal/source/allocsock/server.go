package allocsock

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/api/apitype"
	"github.com/ttmon/ttmon/internal/ledger"
	"github.com/ttmon/ttmon/internal/model"
)

// Options of a Server.
type Options struct {
	Ledger *ledger.Ledger // where events go; required
	// Listener is a listening Unix stream socket, which the server then owns; -1
	// for none (a server that only keeps connections alive).
	Listener int
	// Devices describes the chips of this host, for DEVICE_INFO; nil: none.
	// The server calls it from its loop, so it must return at once.
	Devices func() []DeviceInfo
	// Where is the address of the API, for a web client on the wrong socket; may
	// be empty.
	Where string
	// Store has the service manager keep the socket of a reporting client for the
	// case of a crash; nil: not supported. It must not block: EAGAIN means retry.
	Store func(fd int) error
	// Beat is called by the loop every BeatEvery, also when nothing happens; nil:
	// no watchdog. It must not block.
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

// Server is the allocation server. One goroutine, in Run, owns all of its
// connections.
type Server struct {
	opt      Options
	log      *slog.Logger
	epoll    int
	wakeFD   int // eventfd that interrupts the wait
	listener int
	stopping atomic.Bool
	verbose  bool // log every event
	since    Since

	// Owned by the loop while Run is running.
	watched   []watch // by descriptor
	conns     map[*conn]struct{}
	unclaimed unclaimed
	reporters map[model.ProcessID]*reporter
	buf       []byte   // what is being decoded; no connection has one of its own
	replies   []byte   // room for replies that are sent at once; a connection keeps only what it did not take
	rooms     [][]byte // for what could not be decoded in time; see keepPending
	recv      receiver
	scratch   [2 * size144]byte // for one reply
	events    []ledger.Event
	now       time.Time
	clock     time.Time               // when the present step began
	work      [numWorks]time.Duration // of the present turn
	stepTime  time.Duration           // see there
	hotWindow time.Duration           // see there
	turn      uint64                  // counts up
	users     map[int]*user
	ready     [64]unix.EpollEvent // of the user who is being served
	settling  []settling          // wait for the rest of something, by time
	graces    []*reporter         // wait for a new connection
	dying     []*reporter         // have exited, and what they sent is still read
	dyingFrom int
	emptied   uint64  // times that no client was left to be accepted
	hot       []*user // have connections that are swept instead of waited for
	resuming  []*user // have connections to continue with
	turnOf    []*user // to be served in this turn
	pause     time.Duration
	lastSweep time.Time
	acceptAt  time.Time // when to accept again after running out of descriptors
	unstored  []*conn   // wait to be stored by the service manager
	storeAt   time.Time
	nextBeat  time.Time
	stats     []byte // the answer to askStats in statsTurn
	statsTurn uint64

	hasPosted, hasNewcomers bool
	othersSpent             time.Duration // in this turn, for all but root
	usersSwept              time.Time     // when users without connections were last dropped

	pools     pools
	loopStats loopStats
	count     counts
	dumps     dumpRing

	compositions map[*composition]struct{} // texts that are being made
	textTurns    [2]sync.Mutex             // one text at a time: root's, others'
	closing      chan struct{}             // closed when Run is to return
	helpers      sync.WaitGroup            // goroutines that return when closing is closed
	languageOf   func(pid int, name string) language
	postedMu     sync.Mutex
	posted       []func() // for the loop to call
}

// counts are what Stats reports.
type counts struct {
	accepted, replies, dropped, rejected, skipped, bytes, sweeps, wakes atomic.Uint64
	hurried, lostLines                                                  atomic.Uint64
	open, hot, dying                                                    atomic.Int64
}

// watch is what a descriptor in the epoll set stands for.
type watch struct {
	conn     *conn
	reporter *reporter
	user     *user // the descriptor is the set of its connections
}

// bufLen is the size of the read buffer: a read returns as many messages as a
// client can have queued, and they stay in the cache while they are decoded.
const bufLen = 256 << 10

// New returns a server that Run starts.
func New(o Options) (*Server, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Grace == 0 {
		o.Grace = 2 * time.Second
	}
	s := &Server{
		opt: o, log: o.Log, listener: -1,
		conns: map[*conn]struct{}{}, users: map[int]*user{}, compositions: map[*composition]struct{}{},
		languageOf: languageOf,

		unclaimed: unclaimed{},
		reporters: map[model.ProcessID]*reporter{},
		buf:       make([]byte, bufLen+maxLine),
		replies:   make([]byte, 0, 2*maxOut),
		events:    make([]ledger.Event, 0, batchLen+8),
		now:       time.Now(),
		nextBeat:  time.Now(),
		since:     sinceNow(),
		pause:     minPause,
		stepTime:  stepTime,
		hotWindow: hotWindow,

		verbose: o.Log.Enabled(context.Background(), slog.LevelDebug),
	}
	if o.Limits == (Limits{}) {
		s.opt.Limits = DefaultLimits(descriptorLimit())
	}
	s.pools = newPools(s.opt.Limits, s.logRefusal)
	var err error
	if s.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, fmt.Errorf("making an epoll set: %w", err)
	}
	if s.wakeFD, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		unix.Close(s.epoll)
		return nil, fmt.Errorf("making an eventfd: %w", err)
	}
	if err := s.watch(s.wakeFD, unix.EPOLLIN, watch{}); err != nil {
		s.Close()
		return nil, err
	}
	if o.Listener >= 0 {
		if err := s.listen(o.Listener); err != nil {
			s.Close()
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
// connect or write wait: call Run again to resume, or HandOver, or Close.
func (s *Server) Run(ctx context.Context) error {
	// The loop measures the processor time of its thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	s.stopping.Store(false)
	s.closing = make(chan struct{})
	var waking sync.WaitGroup
	waking.Add(1)
	stop := context.AfterFunc(ctx, func() {
		defer waking.Done()
		s.stopping.Store(true)
		s.wake()
	})
	err := s.loop()
	if stop() {
		waking.Done()
	}
	waking.Wait()
	close(s.closing)
	s.helpers.Wait()
	s.runPosted(true)
	s.abandonTexts()
	return err
}

// wake interrupts the wait of the loop. The server may have been closed
// already.
func (s *Server) wake() {
	s.postedMu.Lock()
	defer s.postedMu.Unlock()
	s.interrupt()
}

// interrupt is wake; the caller holds postedMu.
func (s *Server) interrupt() {
	if s.wakeFD >= 0 {
		one := [8]byte{1}
		_, _ = unix.Write(s.wakeFD, one[:])
	}
}

// Close closes everything. Old clients that are still connected may be killed
// by SIGPIPE at their next report; HandOver avoids that.
func (s *Server) Close() {
	for c := range s.conns {
		unix.Close(c.fd)
	}
	for _, p := range s.reporters {
		if p.pidfd >= 0 {
			unix.Close(p.pidfd)
		}
	}
	for _, u := range s.users {
		if u.set >= 0 {
			unix.Close(u.set)
			u.set = -1
		}
	}
	clear(s.conns)
	clear(s.reporters)
	s.postedMu.Lock()
	defer s.postedMu.Unlock()
	for _, fd := range []int{s.listener, s.wakeFD, s.epoll} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
	s.listener, s.wakeFD, s.epoll = -1, -1, -1
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

// Ping returns when the loop has completed a turn, or an error if it has not in
// time.
func (s *Server) Ping(ctx context.Context, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	round := make(chan struct{})
	s.post(func() { close(round) })
	select {
	case <-round:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Stats may be called from any goroutine.
func (s *Server) Stats() apitype.AllocSocket {
	c := &s.count
	return apitype.AllocSocket{
		Connections: c.open.Load(), Swept: c.hot.Load(), Accepted: c.accepted.Load(), Bytes: c.bytes.Load(),
		Replies: c.replies.Load(), Dropped: c.dropped.Load(),
		Rejected: c.rejected.Load(), Skipped: c.skipped.Load(),
		Sweeps: c.sweeps.Load(), Wakes: c.wakes.Load(),
	}
}
