package api

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/book/ledger"
	"github.com/ttmon/ttmon/internal/field/wire"
	"github.com/ttmon/ttmon/internal/model"
)

// Options of a Server.
type Options struct {
	Feed   *Feed          // required
	Ledger *ledger.Ledger // required
	// Hiding returns how the host's /proc hides processes; nil: not at all. It is
	// called for every request, since /proc can be mounted again.
	Hiding func() Hiding
	// Dump makes a text of everything live, kind "remaining" or "kernels", as
	// a user may see it; all: as root may.
	Dump func(kind string, uid int, all bool) string
	// Dumps are those that clients asked for, newest first.
	Dumps func() []Dump
	// Health adds what the rest of the daemon knows about itself, and what is
	// wrong with it. It returns within a second.
	Health func(context.Context, *Health)
	// Reload reads the configuration again and tells what has come of it; nil:
	// there is none. Root and the daemon's own user may ask for it.
	Reload func() ([]string, error)
	// Restart has the daemon executed again, so that its program and its configuration
	// are read again; nil: it cannot. It returns what will change, and begin, which
	// must be called; the daemon that serves then sends the answer on conn. Root and the
	// daemon's own user may ask for it.
	Restart func(context.Context) (said []string, begin func(conn int, answer []byte), err error)
	// Interval is the time between two snapshots; nil: it is not known.
	Interval func() time.Duration
	// Demand asks for a snapshot before the next one is due. It does not wait, and
	// the collector makes it when it may. nil: there is no collector to ask.
	Demand func()
	Limits Limits // the zero value is DefaultLimits
	// ReadTimeout is how long a client may take to say what it wants; 0 is 10 s.
	ReadTimeout time.Duration
	// Place tells where a chip is that a reporter has a number of its own for;
	// nil: it is never known.
	Place func(id model.ProcessID, number int) (model.ChipPlace, bool)
	// Stale lists what dead processes left in accounting regions; false: it is
	// not known yet. Nil: it is never known.
	Stale func() ([]model.Leftover, bool)
	// Topology tells how the devices of a snapshot hang together; nil: it is
	// never known.
	Topology func(*model.Snapshot) *model.Topology
	// Blocks finds the allocators of a process; nil: none are watched.
	Blocks func(pid int) (BlocksOf, bool)
	// BlocksAt finds those of another time; nil: they are not kept.
	BlocksAt func(pid int, at time.Time) (BlocksOf, bool)
	// Changes begins to tell what happens to the blocks of processes: those of
	// which allow, given the owner, says yes; nil: nothing is watched.
	Changes func(allow func(pid, uid int) bool) Changes
	// Programs begins to send the programs that run on the chips of the processes
	// that allow permits; uid is -1 where it is not known. nil: none are watched.
	Programs func(allow func(pid, uid int) bool) Programs
	// More are calls that other packages have, about the past for instance: a program
	// without them links nothing that only they need.
	More []func(*Server) []Call
	// Said is a snapshot in words, in JSON, for the page; nil: there is none.
	Said func(*model.Snapshot) []byte
	// Prometheus answers its API below /prometheus; nil: there is none.
	Prometheus http.Handler
	// Now is the current time; nil: the clock's. A recording has its own.
	Now func() time.Time
	// Key is a ticket that is good as often as it is given, for the user that
	// runs the server; empty: none is.
	Key string
	// Address is where the page is served ("http://127.0.0.1:9108/"); nil or
	// empty: nowhere.
	Address func() string
	Version string
	// Name is the program's; empty: ttmond.
	Name string
	// Beside are calls that others answer at the same address.
	Beside []string
	// Stream is what followers get; nil: there are none.
	Stream *Stream
	// Upstream is the ttmond that is followed, nil while there is none; a nil
	// function: this process collects itself.
	Upstream func() Upstream
	// Elsewhere is what a caller is told who asks for what is not remembered here;
	// empty: there is no such call.
	Elsewhere string
	// Failures are the failed allocations that are kept; nil: none are.
	Failures Failures
	// Lines are the lines of code of a process that began at a time, at its peak;
	// nil: they are not known.
	Lines func(id model.ProcessID, began time.Time) (LinesOf, bool)
	// Recording tells that it is no host but a recording that is played.
	Recording bool
	Log       *slog.Logger // nil discards
}

// Dump is a text that a client of the allocation socket asked for.
type Dump struct {
	Time time.Time `json:"time"`
	Kind string    `json:"kind"`
	PID  int       `json:"pid"`
	UID  int       `json:"uid"`
	Text string    `json:"text"`
}

// Server answers API calls.
type Server struct {
	opt     Options
	log     *slog.Logger
	started time.Time
	budgets budgets
	calls   []Call
	// description is the calls in OpenAPI, made once: it costs milliseconds, and anybody
	// may ask for it.
	description func() []byte
	sessions    sessions
	topologies  topologies
	within      http.Handler // the calls without a limit, for those that need another
	viewers     viewers

	mu       sync.Mutex
	hiding   Hiding // as of hidingAt
	hidingAt time.Time
}

// New returns a server.
func New(o Options) *Server {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Hiding == nil {
		o.Hiding = func() Hiding { return Hiding{GID: -1} }
	}
	if o.Name == "" {
		o.Name = "ttmond"
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Limits == (Limits{}) {
		o.Limits = DefaultLimits()
	}
	if o.ReadTimeout == 0 {
		o.ReadTimeout = readTimeout
	}
	s := &Server{opt: o, log: o.Log, started: time.Now()}
	s.budgets = s.newBudgets(o.Limits)
	s.calls = s.offeredCalls()
	s.within = s.handedOn(s.routes(func(c *Call) http.Handler { return c.Serve }))
	s.description = sync.OnceValue(func() []byte { return openAPI(s.calls) })
	return s
}

// Serve answers on l until ctx is done. It closes l.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	web := &http.Server{
		Handler:           s.onBehalf(s.handler()),
		ReadHeaderTimeout: s.opt.ReadTimeout / 2,
		ReadTimeout:       s.opt.ReadTimeout,
		WriteTimeout:      largeTimeout, // calls set their own
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHead,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelError), // handlers that panicked
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, callerKey{}, c.(*limitedConn).who)
		},
	}
	var stopped sync.WaitGroup
	stopped.Add(1)
	stop := context.AfterFunc(ctx, func() {
		defer stopped.Done()
		brief, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
		defer cancel()
		_ = web.Shutdown(brief) // what takes longer is closed below
	})
	err := web.Serve(limitListener{l, s.budgets.connections})
	if !stop() {
		stopped.Wait()
	}
	_ = web.Close()
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("serving the API: %w", err)
}

// grace is how long answers may take to end once the server stops.
const grace = 500 * time.Millisecond

type callerKey struct{}

// identify asks the kernel who is at the other end.
func identify(c net.Conn) (who caller) {
	conn, ok := c.(*net.UnixConn)
	if !ok {
		return who
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return who
	}
	_ = raw.Control(func(fd uintptr) {
		cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		if err != nil {
			return
		}
		who = caller{uid: int(cred.Uid), pid: int(cred.Pid), gids: []int{int(cred.Gid)}, exists: true}
		who.gids = append(who.gids, peerGroups(int(fd))...)
	})
	return who
}

// callerOf returns the caller of a request.
func callerOf(r *http.Request) caller {
	return callerIn(r.Context())
}

func callerIn(ctx context.Context) caller {
	who, _ := ctx.Value(callerKey{}).(caller)
	return who
}

// Owns reports whether the caller of a request sees what belongs to a user.
func (s *Server) Owns(r *http.Request, uid int) bool { return callerOf(r).owns(uid) }

// Latest is the last snapshot; nil: there is none yet.
func (s *Server) Latest() *model.Snapshot { return s.opt.Feed.Latest() }

// Now is the current time, of the recording where one is served.
func (s *Server) Now() time.Time { return s.opt.Now() }

// Interval is the time between two snapshots; 0: it is not known.
func (s *Server) Interval() time.Duration {
	if s.opt.Interval == nil {
		return 0
	}
	return s.opt.Interval()
}

// UserOf is the user whose request to a Server has a context; -1 where that is
// not known.
func UserOf(ctx context.Context) int { return callerIn(ctx).user() }

func (s *Server) Viewpoint(r *http.Request) Viewpoint {
	who := callerOf(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now(); now.Sub(s.hidingAt) > hidingAge {
		s.hiding, s.hidingAt = s.opt.Hiding(), now
	}
	return s.hiding.viewpoint(who)
}

// hidingAge is how long the answer about /proc holds: its mount options
// hardly ever change.
const hidingAge = 2 * time.Second

// offeredCalls are those that are answered here, by this process or the one it follows.
func (s *Server) offeredCalls() []Call {
	list := s.presentCalls()
	for _, calls := range s.opt.More {
		list = append(list, calls(s)...)
	}
	return slices.DeleteFunc(list, func(c Call) bool { return c.Serve == nil && !(c.Live && s.opt.Upstream != nil) })
}

// handler has the calls answered; those that only ttmond can answer, by the ttmond that
// is followed, while there is one.
func (s *Server) handler() http.Handler {
	own := s.routes(func(c *Call) http.Handler {
		query := s.limited(c.Serve)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if c.Cheap || c.Follows && r.URL.Query().Get("follow") != "" {
				c.Serve(&timed{ResponseWriter: w, limit: WriteTimeout}, r)
				return
			}
			query.ServeHTTP(w, r)
		})
	})
	if s.opt.Prometheus != nil {
		own.Handle("/prometheus/", s.limited(http.StripPrefix("/prometheus", s.opt.Prometheus)))
	}
	return bounded(s.handedOn(own))
}

// routes are the calls that this process answers, each by what handle makes of it.
func (s *Server) routes(handle func(*Call) http.Handler) *http.ServeMux {
	own := new(http.ServeMux)
	own.HandleFunc("/", s.unknown)
	for i := range s.calls {
		if c := &s.calls[i]; c.Serve != nil {
			own.Handle(c.route(), handle(c))
		}
	}
	return own
}

// unknown answers calls that there are not, or not here.
func (s *Server) unknown(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method != "GET" && r.Method != "HEAD":
		Fail(w, http.StatusMethodNotAllowed, "%s takes no %s; see /v1/version", r.URL.Path, r.Method)
	case s.opt.Elsewhere != "":
		Fail(w, http.StatusGone, "there is no %s here: %s", r.URL.Path, s.opt.Elsewhere)
	default:
		Fail(w, http.StatusNotFound, "there is no %s; see /v1/version", r.URL.Path)
	}
}

// Fail answers with an error.
func Fail(w http.ResponseWriter, status int, format string, args ...any) {
	Answer(w, status, map[string]string{"error": fmt.Sprintf(format, args...)})
}

// Answer writes a JSON document.
func Answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("BUG: " + err.Error())
	}
	_, _ = w.Write(wire.Harmless(b.Bytes())) // the client has left
}

// answerList writes a JSON document with a list in it, item by item, so that
// there is never more of it in memory than a few. head is an object.
func answerList[T any](w http.ResponseWriter, head map[string]any, name string, items iter.Seq[T]) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	b := bufio.NewWriterSize(w, 32<<10)
	begin, err := json.Marshal(head)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	_, _ = b.Write(wire.Harmless(begin[:len(begin)-1]))
	fmt.Fprintf(b, ",%q:[", name)
	comma := ""
	for item := range items {
		text, err := json.Marshal(item)
		if err != nil {
			panic("BUG: " + err.Error())
		}
		_, _ = b.WriteString(comma)
		if _, err := b.Write(wire.Harmless(text)); err != nil {
			return // the client has left, or does not read
		}
		comma = ","
	}
	_, _ = b.WriteString("]}\n")
	_ = b.Flush()
}

// peerGroups returns the supplementary groups of the peer (SO_PEERGROUPS,
// Linux 4.13).
func peerGroups(fd int) []int {
	const soPeerGroups = 59
	buf := make([]uint32, 64)
	for {
		n, err := getsockopt(fd, unix.SOL_SOCKET, soPeerGroups, buf)
		if errors.Is(err, unix.ERANGE) && len(buf) < 1<<17 {
			buf = make([]uint32, 4*len(buf))
			continue
		}
		if err != nil {
			return nil
		}
		groups := make([]int, n)
		for i := range groups {
			groups[i] = int(buf[i])
		}
		return groups
	}
}
