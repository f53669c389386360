package client

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
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

// lines is an answer that a daemon sends line by line.
type lines struct {
	in     *bufio.Reader
	cancel context.CancelCauseFunc
}

// maxLine bounds a line: one line holds all blocks of a process, which may be a million.
const maxLine = maxBody

// beginTimeout is how long a daemon may take to begin to send.
const beginTimeout = 5 * time.Second

func followLines(ctx context.Context, path, target string) (*lines, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer time.AfterFunc(beginTimeout, func() { cancel(os.ErrDeadlineExceeded) }).Stop()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://ttmond"+target, http.NoBody)
	if err != nil {
		cancel(err)
		return nil, err
	}
	t := transport(path)
	t.DisableKeepAlives = true
	answer, err := t.RoundTrip(r)
	if err == nil && answer.StatusCode == http.StatusOK {
		return &lines{bufio.NewReaderSize(answer.Body, 64<<10), cancel}, nil
	}
	defer cancel(nil)
	if err != nil {
		return nil, err
	}
	body, err := readBody(answer)
	switch {
	case err != nil:
		return nil, err
	case answer.StatusCode == http.StatusNotFound:
		return nil, fmt.Errorf("%w: %s", ErrNotFound, reason(body))
	}
	return nil, fmt.Errorf("HTTP status %d: %s", answer.StatusCode, reason(body))
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
func (c *lines) Close() { c.cancel(nil) }
