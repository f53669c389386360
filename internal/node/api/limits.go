package api

import (
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"

	"github.com/ttmon/ttmon/internal/base/budget"
)

// Limits are the budgets of a server, by user. All callers over TCP count as one
// user.
type Limits struct {
	Connections budget.Limit
	Watchers    budget.Limit
	Viewers     budget.Limit // watchers over TCP: the pages that people leave open
	Followers   budget.Limit // of allocations, each with what its processes hold
	Queries     budget.Limit // those that take memory or time, under way at once
}

// DefaultLimits are good for everybody.
func DefaultLimits() Limits {
	return Limits{
		Connections: budget.Limit{PerUID: 64, All: 512, Reserve: 64},
		Watchers:    budget.Limit{PerUID: 32, All: 256, Reserve: 32},
		Viewers:     budget.Limit{PerUID: 256, All: 256},
		Followers:   budget.Limit{PerUID: 4, All: 16, Reserve: 4},
		Queries:     budget.Limit{PerUID: 2, All: 8, Reserve: 2},
	}
}

// Times that a client has: to say what it wants, to take the answer, to want
// something else.
const (
	readTimeout  = 10 * time.Second
	WriteTimeout = 5 * time.Second
	largeTimeout = 15 * time.Second // for answers of megabytes
	idleTimeout  = time.Minute
)

// Bounds of a request. net/http reads 4 KiB more of a head than its server is told.
const (
	maxHead   = 16<<10 - 4<<10
	maxFields = 64
	maxBody   = 1 << 20
)

// bounded refuses requests that are larger than any client of ours makes.
func bounded(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fields := 0
		for _, values := range r.Header {
			fields += len(values)
		}
		switch {
		case fields > maxFields:
			w.Header().Set("Connection", "close")
			Fail(w, http.StatusRequestHeaderFieldsTooLarge, "more than %d header fields", maxFields)
			return
		case r.ContentLength > maxBody:
			w.Header().Set("Connection", "close")
			Fail(w, http.StatusRequestEntityTooLarge, "a body of %d bytes exceeds %d", r.ContentLength, maxBody)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		h.ServeHTTP(w, r)
	})
}

type budgets struct{ connections, watchers, viewers, followers, queries *budget.Pool }

func (s *Server) newBudgets(l Limits) budgets {
	say := func(r budget.Refusal) {
		s.log.Warn("user reached a limit", "budget", r.Budget, "uid", r.UID, "used", r.Used, "used_by_all", r.All, "refused", r.Count)
	}
	return budgets{
		connections: budget.NewPool("api_connections", l.Connections, say),
		watchers:    budget.NewPool("api_watchers", l.Watchers, say),
		viewers:     budget.NewPool("api_viewers", l.Viewers, say),
		followers:   budget.NewPool("api_followers", l.Followers, say),
		queries:     budget.NewPool("api_queries", l.Queries, say),
	}
}

func (p budgets) states() []budget.State {
	return []budget.State{p.connections.State(), p.watchers.State(), p.viewers.State(), p.followers.State(), p.queries.State()}
}

// Budgets tells how far the budgets are used, for metrics and health.
func (s *Server) Budgets() []budget.State { return s.budgets.states() }

// watches takes a place among the watchers for as long as a call lasts; ok is
// false if the user has too many, who has been told.
func (s *Server) watches(w http.ResponseWriter, r *http.Request) (leave func(), ok bool) {
	pool := s.budgets.watchers
	if callerOf(r).remote {
		pool = s.budgets.viewers
	}
	return s.watchesOf(pool, w, r)
}

func (s *Server) watchesOf(pool *budget.Pool, w http.ResponseWriter, r *http.Request) (leave func(), ok bool) {
	uid := callerOf(r).user()
	if !pool.Acquire(uid, 1) {
		w.Header().Set("Retry-After", "10")
		Fail(w, http.StatusTooManyRequests, "too many of your clients are watching already")
		return nil, false
	}
	return func() { pool.Release(uid, 1) }, true
}

// limited answers a call that takes memory or time, if its user has not too
// many of them under way.
func (s *Server) limited(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		uid := callerOf(r).user()
		if !s.awaitTurn(r, uid) {
			w.Header().Set("Retry-After", "1")
			Fail(w, http.StatusTooManyRequests, "too many requests of this kind are being answered for you; try again in a second")
			return
		}
		defer s.budgets.queries.Release(uid, 1)
		h.ServeHTTP(&timed{ResponseWriter: w, limit: largeTimeout}, r)
	})
}

// queryTimeout is how long a large call waits for its turn: a page of graphs
// sends many at once.
const queryTimeout = 5 * time.Second

// awaitTurn waits, up to queryTimeout, for a slot for a query.
func (s *Server) awaitTurn(r *http.Request, uid int) bool {
	for end := time.Now().Add(queryTimeout); time.Now().Before(end); {
		if s.budgets.queries.Try(uid, 1) {
			return true
		}
		select {
		case <-r.Context().Done():
			return false
		case <-time.After(20 * time.Millisecond):
		}
	}
	return s.budgets.queries.Acquire(uid, 1)
}

// limitListener refuses connections of users who have too many, with status 429.
type limitListener struct {
	net.Listener
	pool *budget.Pool
}

const tooMany = "HTTP/1.1 429 Too Many Requests\r\nContent-Type: application/json\r\nRetry-After: 1\r\nConnection: close\r\n\r\n" +
	`{"error":"you have too many connections to ttmond; close some"}` + "\n"

func (l limitListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ECONNABORTED) {
				time.Sleep(50 * time.Millisecond) // one may be closed by then
				continue
			}
			return nil, err
		}
		who := identify(c)
		uid := who.user()
		if !l.pool.Acquire(uid, 1) {
			_ = c.SetWriteDeadline(time.Now().Add(10 * time.Millisecond))
			_, _ = io.WriteString(c, tooMany)
			c.Close()
			continue
		}
		return &limitedConn{UnixConn: c.(*net.UnixConn), who: who, give: sync.OnceFunc(func() { l.pool.Release(uid, 1) })}, nil
	}
}

type limitedConn struct {
	*net.UnixConn
	who  caller
	give func()
}

func (c *limitedConn) Close() error {
	c.give()
	return c.UnixConn.Close()
}
