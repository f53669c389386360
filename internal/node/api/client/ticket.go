package client

import (
	"context"
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
	err = c.parse(body, "a ticket", &t)
	return t, err
}

// Page asks for the address of the page; empty: it is not served here.
func (c *Client) Page(ctx context.Context) (string, error) {
	var answer struct{ Page string }
	err := c.read(ctx, "/v1/version", "the address of the page", &answer)
	return answer.Page, err
}
