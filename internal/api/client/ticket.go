package client

import (
	"context"
	"encoding/json"
	"fmt"
)

// Ticket is the way of a user of this host to the page.
type Ticket struct {
	Ticket  string  `json:"ticket"`    // good once
	Expires float64 `json:"expires_s"` // when the ticket ends
}

// Ticket asks for one.
func (c *Client) Ticket(ctx context.Context) (t Ticket, err error) {
	status, body, err := c.ask(ctx, "POST", "/v1/ticket")
	switch {
	case err != nil:
		return t, c.failed(err)
	case status == 403:
		return t, fmt.Errorf("%w: %s", ErrForbidden, reason(body))
	case status != 200:
		return t, fmt.Errorf("the ttmond at %s: %s", c.path, reason(body))
	}
	if err := json.Unmarshal(body, &t); err != nil {
		return t, fmt.Errorf("reading the answer of the ttmond at %s: %w", c.path, err)
	}
	return t, nil
}

// Page asks for the address of the page; empty: it is not served here.
func (c *Client) Page(ctx context.Context) (string, error) {
	body, err := c.get(ctx, "/v1/version")
	if err != nil {
		return "", err
	}
	var answer struct{ Page string }
	if err := json.Unmarshal(body, &answer); err != nil {
		return "", fmt.Errorf("reading the answer of the server at %s: %w", c.path, err)
	}
	return answer.Page, nil
}
