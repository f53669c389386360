package unixhttp

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"
)

// Server answers on a socket.
type Server struct {
	Handler Handler
	// ConnContext adds to the context of a connection's requests; may be nil.
	ConnContext func(context.Context, net.Conn) context.Context
	HeadTimeout time.Duration // for the head of a request
	BodyTimeout time.Duration // for head and body
	// WriteTimeout is for an answer whose handler sets no deadline of its own.
	WriteTimeout time.Duration
	IdleTimeout  time.Duration // between two requests
	// Grace is how long answers may take to end once the server stops.
	Grace time.Duration
	Log   *slog.Logger
}

// conns are the connections of a server that serves.
type conns struct {
	mu      sync.Mutex
	all     map[*conn]bool // whether it is answering
	stopped bool
	done    sync.WaitGroup
}

// Serve answers on l until ctx is done. It closes l, and returns when every
// connection has ended or the grace is over.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	open := &conns{all: map[*conn]bool{}}
	requests, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		l.Close()
		cancel()
		open.stop()
	})
	defer stop()
	defer open.end(s.Grace)
	for {
		raw, err := l.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			l.Close()
			cancel()
			open.stop()
			return fmt.Errorf("accepting: %w", err)
		}
		c := newConn(s, raw, open)
		if !open.add(c) {
			raw.Close()
			continue
		}
		go c.serve(requests)
	}
}

// add keeps a new connection; false: the server has stopped.
func (o *conns) add(c *conn) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.stopped {
		return false
	}
	o.all[c] = false
	o.done.Add(1)
	return true
}

func (o *conns) remove(c *conn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.all, c)
	o.done.Done()
}

// set reports whether a connection is answering; false: the server has stopped, and
// no further request is to be read.
func (o *conns) set(c *conn, answering bool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all[c] = answering
	return !o.stopped
}

// stop ends the connections that are idle. Those that answer end by themselves.
func (o *conns) stop() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stopped = true
	for c, answering := range o.all {
		if !answering {
			c.raw.Close()
		}
	}
}

// end waits for the connections that still answer, and closes those that take too
// long.
func (o *conns) end(grace time.Duration) {
	ended := make(chan struct{})
	go func() {
		o.done.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return
	case <-time.After(grace):
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for c := range o.all {
		c.raw.Close()
	}
}
