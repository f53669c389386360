package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/ttmon/ttmon/internal/model/apitype"
)

// Health asks how the daemon is doing. body is the whole answer.
func (c *Client) Health(ctx context.Context) (h apitype.Health, body []byte, err error) {
	status, body, err := c.ask(ctx, "GET", "/v1/health")
	switch {
	case err != nil:
		return h, nil, c.failed(err)
	case status != 200 && status != 503:
		return h, nil, fmt.Errorf("the ttmond at %s answers %d: %s", c.path, status, reason(body))
	}
	err = c.parse(body, "health", &h)
	return h, body, err
}

// ErrForbidden is the error of a call that is for others.
var ErrForbidden = errors.New("not allowed")

// Reload has the daemon read its configuration again, and returns what has
// come of it.
func (c *Client) Reload(ctx context.Context) (changes []string, err error) {
	status, body, err := c.ask(ctx, "POST", "/v1/reload")
	switch {
	case err != nil:
		return nil, c.failed(err)
	case status == 403:
		return nil, fmt.Errorf("%w: %s", ErrForbidden, reason(body))
	case status != 200:
		return nil, fmt.Errorf("the ttmond at %s: %s", c.path, reason(body))
	}
	var answer struct{ Changes []string }
	err = c.parse(body, "what has changed", &answer)
	return answer.Changes, err
}
