package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"

	"github.com/ttmon/ttmon/internal/failure"
)

// Failures asks for the failed allocations that are kept, newest first.
func (c *Client) Failures(ctx context.Context) ([]failure.Summary, error) {
	body, err := c.get(ctx, "/v1/failures")
	if err != nil {
		return nil, err
	}
	var answer failure.List
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, fmt.Errorf("reading the failed allocations of the ttmond at %s: %w", c.path, err)
	}
	return answer.Failures, nil
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
