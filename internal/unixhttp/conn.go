package unixhttp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime/debug"
	"time"
)

// conn is one connection: one request after another.
type conn struct {
	s    *Server
	raw  net.Conn
	open *conns
	in   *reader
	br   *bufio.Reader
	bw   *bufio.Writer
}

func newConn(s *Server, raw net.Conn, open *conns) *conn {
	c := &conn{s: s, raw: raw, open: open, in: &reader{raw: raw}}
	c.br = bufio.NewReaderSize(c.in, 4<<10)
	c.bw = bufio.NewWriterSize(raw, 4<<10)
	return c
}

func (c *conn) serve(ctx context.Context) {
	defer c.open.remove(c)
	defer c.raw.Close()
	if c.s.ConnContext != nil {
		ctx = c.s.ConnContext(ctx, c.raw)
	}
	wait := c.s.HeadTimeout
	for c.one(ctx, wait) {
		wait = c.s.IdleTimeout
	}
}

// one answers one request; false: the connection is done.
func (c *conn) one(ctx context.Context, wait time.Duration) bool {
	if !c.open.set(c, false) {
		return false
	}
	c.in.left = maxHead
	_ = c.raw.SetReadDeadline(time.Now().Add(wait))
	if _, err := c.br.Peek(1); err != nil {
		return false
	}
	if !c.open.set(c, true) {
		return false
	}
	begin := time.Now()
	_ = c.raw.SetReadDeadline(begin.Add(c.s.HeadTimeout))
	r, err := readRequest(c.br)
	if err != nil {
		c.refuse(err)
		return false
	}
	c.in.left = r.Length
	_ = c.raw.SetReadDeadline(begin.Add(c.s.BodyTimeout))
	return c.answer(ctx, r)
}

// answer calls the handler; false: the connection is done.
func (c *conn) answer(ctx context.Context, r *Request) (more bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r.ctx = ctx
	w := c.response(r)
	if r.Length > 0 && hasToken(r.Header.Values("Expect"), "100-continue") {
		w.put("HTTP/1.1 100 Continue\r\n\r\n")
		_ = c.bw.Flush()
	}
	if r.Length == 0 && c.br.Buffered() == 0 {
		defer c.in.watch(cancel)()
	}
	defer func() {
		if p := recover(); p != nil {
			c.s.Log.Error("handler panicked", "path", r.URL.Path, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			more = false
		}
	}()
	c.s.Handler.Serve(w, r)
	if w.finish() != nil || w.close {
		return false
	}
	_, err := io.Copy(io.Discard, r.Body)
	return err == nil
}

func (c *conn) response(r *Request) *response {
	_ = c.raw.SetWriteDeadline(time.Now().Add(c.s.WriteTimeout))
	return &response{bw: c.bw, deadline: c.raw.SetWriteDeadline, header: Header{}, noBody: r.Method == "HEAD", old: r.old, close: r.close, left: -1}
}

// refuse tells the client why its request was not read, if it made one.
func (c *conn) refuse(err error) {
	status, reason := 0, ""
	var told *refusal
	switch {
	case errors.As(err, &told):
		status, reason = told.status, told.reason
	case errors.Is(err, errTooLarge):
		status, reason = StatusHeaderTooLarge, fmt.Sprintf("a request head has at most %d bytes", maxHead)
	default:
		return // it left, or said nothing in time
	}
	w := c.response(&Request{close: true})
	w.header.Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, reason+"\n")
	_ = w.finish()
}

// reader is what comes from a connection, as far as the present request may go.
type reader struct {
	raw  net.Conn
	left int64
	// ahead is a byte that watch met: the begin of the next request.
	ahead    byte
	hasAhead bool
}

func (x *reader) Read(p []byte) (n int, err error) {
	switch {
	case len(p) == 0:
		return 0, nil
	case x.left <= 0:
		return 0, errTooLarge
	case x.hasAhead:
		x.hasAhead, p[0] = false, x.ahead
		n = 1
	default:
		n, err = x.raw.Read(p[:min(int64(len(p)), x.left)])
	}
	x.left -= int64(n)
	return n, err
}

// watch calls left when the client closes its end. end stops watching; what came
// meanwhile is read later.
func (x *reader) watch(left func()) (end func()) {
	_ = x.raw.SetReadDeadline(time.Time{})
	done, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		var b [1]byte
		n, err := x.raw.Read(b[:])
		if n == 1 {
			x.ahead, x.hasAhead = b[0], true
			return
		}
		select {
		case <-over:
		default:
			if err != nil {
				left()
			}
		}
	}()
	return func() {
		close(over)
		_ = x.raw.SetReadDeadline(time.Unix(1, 0))
		<-done
	}
}
