package client

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/ttmon/ttmon/internal/book/blocks/changes"
	"github.com/ttmon/ttmon/internal/book/launches"
)

type (
	// Changes is a connection over which a ttmond sends every allocation and free
	// of processes that it watches through the kernel.
	Changes = lines[changes.Batch]
	// Programs is one over which it sends every program that runs on their chips.
	Programs = lines[launches.Message]
)

// FollowChanges connects, and returns when the daemon has begun to send. It
// ends with ctx. A daemon that watches nothing, or does not know the question,
// gives ErrNotFound.
func FollowChanges(ctx context.Context, path string) (*Changes, error) {
	return followLines(ctx, path, "/v1/allocations", changes.Parse)
}

// FollowPrograms is FollowChanges for programs.
func FollowPrograms(ctx context.Context, path string) (*Programs, error) {
	return followLines(ctx, path, "/v1/programs", launches.Parse)
}

// lines is an answer that a daemon sends line by line.
type lines[T any] struct {
	in     *bufio.Reader
	parse  func([]byte) (T, error)
	cancel context.CancelCauseFunc
}

// maxLine bounds a line: one line holds all blocks of a process, which may be a million.
const maxLine = maxBody

// beginTimeout is how long a daemon may take to begin to send.
const beginTimeout = 5 * time.Second

func followLines[T any](ctx context.Context, path, target string, parse func([]byte) (T, error)) (*lines[T], error) {
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
		return &lines[T]{bufio.NewReaderSize(answer.Body, 64<<10), parse, cancel}, nil
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

// Next waits for the next line; io.EOF when the daemon ends.
func (c *lines[T]) Next() (x T, err error) {
	var line []byte
	for {
		part, err := c.in.ReadSlice('\n')
		if line = append(line, part...); err == nil {
			return c.parse(line)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return x, err
		}
		if len(line) > maxLine {
			return x, errors.New("the daemon sent a line that is too long")
		}
	}
}

// Close ends it.
func (c *lines[T]) Close() { c.cancel(nil) }
