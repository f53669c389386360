package client

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/ttmon/ttmon/internal/blocks/changes"
	"github.com/ttmon/ttmon/internal/launches"
)

// Changes is a connection over which a ttmond sends every allocation and free
// of processes that it watches through the kernel.
type Changes struct{ *lines }

// FollowChanges connects, and returns when the daemon has begun to send. It
// ends with ctx. A daemon that watches nothing, or does not know the question,
// gives ErrNotFound.
func FollowChanges(ctx context.Context, path string) (Changes, error) {
	c, err := followLines(ctx, path, "/v1/allocations")
	return Changes{c}, err
}

// Next waits for the next line; io.EOF when the daemon ends.
func (c Changes) Next() (b changes.Batch, err error) {
	line, err := c.next()
	if err != nil {
		return b, err
	}
	return changes.Parse(line)
}

// Programs is a connection over which a ttmond sends every program that runs on the
// chips of processes that it watches through the kernel.
type Programs struct{ *lines }

// FollowPrograms is FollowChanges for them.
func FollowPrograms(ctx context.Context, path string) (Programs, error) {
	c, err := followLines(ctx, path, "/v1/programs")
	return Programs{c}, err
}

// Next waits for the next line; io.EOF when the daemon ends.
func (p Programs) Next() (m launches.Message, err error) {
	line, err := p.next()
	if err != nil {
		return m, err
	}
	return launches.Parse(line)
}

// lines is a connection over which a daemon sends lines.
type lines struct {
	conn net.Conn
	in   *bufio.Reader
	stop func() bool
}

// maxLine bounds a line: one line holds all blocks of a process, which may be a million.
const maxLine = maxBody

func followLines(ctx context.Context, path, target string) (*lines, error) {
	brief, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	conn, err := dial(brief, path)
	if err != nil {
		return nil, err
	}
	c := &lines{conn: conn, in: bufio.NewReaderSize(conn, 64<<10)}
	c.stop = context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	if err := c.begin(ctx, target); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func (c *lines) begin(ctx context.Context, target string) error {
	if err := c.conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return err
	}
	if _, err := io.WriteString(c.conn, "GET "+target+" HTTP/1.1\r\nHost: ttmond\r\n\r\n"); err != nil {
		return err
	}
	h, err := readHead(c.in)
	switch {
	case err != nil:
		return err
	case h.status != 200:
		body := make([]byte, min(max(h.length, 0), 4<<10))
		n, _ := io.ReadFull(c.in, body)
		if h.status == 404 {
			return fmt.Errorf("%w: %s", ErrNotFound, reason(body[:n]))
		}
		return fmt.Errorf("HTTP status %d: %s", h.status, reason(body[:n]))
	case !h.chunked:
		return errors.New("the response is not chunked")
	}
	c.in = bufio.NewReaderSize(&pieces{in: c.in}, 64<<10)
	if err := c.conn.SetDeadline(time.Time{}); err != nil {
		return err
	}
	return ctx.Err() // that came meanwhile, and whose deadline is gone
}

// next waits for a line.
func (c *lines) next() (line []byte, err error) {
	for {
		part, err := c.in.ReadSlice('\n')
		if line = append(line, part...); err == nil {
			return line, nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
		if len(line) > maxLine {
			return nil, errors.New("the daemon sent a line that is too long")
		}
	}
}

// Close ends it.
func (c *lines) Close() {
	c.stop()
	c.conn.Close()
}
