package client

import (
	"context"
	"net/url"
	"strconv"

	"github.com/ttmon/ttmon/internal/book/failure"
)

// Failures asks for the failed allocations that are kept, newest first.
func (c *Client) Failures(ctx context.Context) ([]failure.Summary, error) {
	var answer failure.List
	err := c.read(ctx, "/v1/failures", "failed allocations", &answer)
	return answer.Failures, err
}

// Failure asks for one of them by its ID; with "last" for the newest, of a process
// if pid is not 0. body is the answer as it came. Where there is none the error is
// ErrNotFound.
func (c *Client) Failure(ctx context.Context, id string, pid int) (r *failure.Record, body []byte, err error) {
	target := "/v1/failures/" + url.PathEscape(id)
	if pid != 0 {
		target += "?pid=" + strconv.Itoa(pid)
	}
	if body, err = c.get(ctx, target); err != nil {
		return nil, nil, err
	}
	r, err = failure.Decode(body)
	return r, body, err
}
