package httpguard

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"
)

// Listener bounds the connections of a server. When there is no room, a new
// connection takes the place of one that is of no use: the one that has waited
// longest for its first request to arrive, or else the one that is idle longest,
// or else the one whose client has stopped reading. So connections that are
// opened and left alone do not keep others out. Where all are in use, the new
// one is closed.
type Listener struct {
	net.Listener
	max int

	mu      sync.Mutex
	conns   map[*conn]struct{}
	refused uint64
	evicted uint64
}

// stuckAfter is how long a write waits until its connection may be replaced.
const stuckAfter = 2 * time.Second

// NewListener returns a listener of at most n connections at a time.
func NewListener(l net.Listener, n int) *Listener {
	return &Listener{Listener: l, max: n, conns: make(map[*conn]struct{}, n)}
}

// phase is what a connection is doing. Lower ones are replaced first.
type phase int

const (
	waiting phase = iota // for its first request
	idle                 // between two requests
	serving
)

// conn is an accepted connection.
type conn struct {
	net.Conn
	l *Listener

	// Guarded by l.mu.
	phase   phase
	since   time.Time // when the phase began
	writing time.Time // when the write under way began; zero: none is
}

// Accept returns the next connection for which there is room.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		raw, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c, victim := l.admit(raw)
		if victim != nil {
			_ = victim.Close()
		}
		if c != nil {
			return c, nil
		}
		_ = raw.Close()
	}
}

// admit makes room for a connection; nil: there is none.
func (l *Listener) admit(raw net.Conn) (c, victim *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if len(l.conns) >= l.max {
		if victim = l.leastUseful(now); victim == nil {
			l.refused++
			return nil, nil
		}
		delete(l.conns, victim)
		l.evicted++
	}
	c = &conn{Conn: raw, l: l, since: now}
	l.conns[c] = struct{}{}
	return c, victim
}

// leastUseful finds the connection to replace; nil: all are in use. The caller
// holds mu.
func (l *Listener) leastUseful(now time.Time) *conn {
	var found *conn
	for c := range l.conns {
		if c.phase == serving && (c.writing.IsZero() || now.Sub(c.writing) < stuckAfter) {
			continue
		}
		if found == nil || c.phase < found.phase || c.phase == found.phase && c.age().Before(found.age()) {
			found = c
		}
	}
	return found
}

// age is since when the connection has been of no use.
func (c *conn) age() time.Time {
	if c.phase == serving {
		return c.writing
	}
	return c.since
}

func (c *conn) enter(p phase) {
	c.l.mu.Lock()
	c.phase, c.since = p, time.Now()
	c.l.mu.Unlock()
}

func (c *conn) setWriting(at time.Time) {
	c.l.mu.Lock()
	c.writing = at
	c.l.mu.Unlock()
}

// Write notes how long it waits: a client that does not read is replaced first.
func (c *conn) Write(b []byte) (int, error) {
	c.setWriting(time.Now())
	defer c.setWriting(time.Time{})
	return c.Conn.Write(b)
}

// Close gives the connection's place back.
func (c *conn) Close() error {
	c.l.mu.Lock()
	delete(c.l.conns, c)
	c.l.mu.Unlock()
	return c.Conn.Close()
}

// Stats are the figures of a listener.
type Stats struct {
	Max, Open int
	Refused   uint64 // connections closed because all others were in use
	Evicted   uint64 // connections replaced by newer ones
}

// Stats returns the present figures.
func (l *Listener) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Stats{l.max, len(l.conns), l.refused, l.evicted}
}

type connKey struct{}

// Attach has a server report what its connections are doing. It belongs to the
// construction of the server, whose Handler is set already.
func Attach(s *http.Server) {
	handler, state := s.Handler, s.ConnState
	s.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		return context.WithValue(ctx, connKey{}, unwrap(c))
	}
	s.ConnState = func(c net.Conn, st http.ConnState) {
		if own := unwrap(c); own != nil && st == http.StateIdle {
			own.enter(idle)
		}
		if state != nil {
			state(c, st)
		}
	}
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, _ := r.Context().Value(connKey{}).(*conn); c != nil {
			c.enter(serving)
		}
		handler.ServeHTTP(w, r)
	})
}

// unwrap finds our connection below TLS; nil: it is another's.
func unwrap(c net.Conn) *conn {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	own, _ := c.(*conn)
	return own
}
