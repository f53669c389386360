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
)

// Changes is a connection over which a ttmond tells every allocation and free
// of processes that it watches through the kernel.
type Changes struct {
	conn net.Conn
	in   *bufio.Reader
	stop func() bool
}

// maxLine bounds a line: a process with a million blocks is told in one.
const maxLine = maxBody

// FollowChanges connects, and returns when the daemon has begun to tell. It
// ends with ctx. A daemon that watches nothing, or does not know the question,
// gives ErrNotFound.
func FollowChanges(ctx context.Context, path string) (*Changes, error) {
	brief, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	conn, err := dial(brief, path)
	if err != nil {
		return nil, err
	}
	c := &Changes{conn: conn, in: bufio.NewReaderSize(conn, 64<<10)}
	c.stop = context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	if err := c.begin(ctx); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func (c *Changes) begin(ctx context.Context) error {
	if err := c.conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return err
	}
	if _, err := io.WriteString(c.conn, "GET /v1/allocations HTTP/1.1\r\nHost: ttmond\r\n\r\n"); err != nil {
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

// Next waits for the next line; io.EOF when the daemon ends.
func (c *Changes) Next() (b changes.Batch, err error) {
	var line []byte
	for {
		part, err := c.in.ReadSlice('\n')
		if line = append(line, part...); err == nil {
			return changes.Parse(line)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return b, err
		}
		if len(line) > maxLine {
			return b, errors.New("the daemon sent a line that is too long")
		}
	}
}

// Close ends it.
func (c *Changes) Close() {
	c.stop()
	c.conn.Close()
}
