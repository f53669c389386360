package client

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/ttmon/ttmon/internal/runs"
)

// Lines asks for the lines of code of a process at its peak. Where none are known, or
// the process is another user's, the error is ErrNotFound.
func (c *Client) Lines(ctx context.Context, p *runs.Process) (lines runs.ProcessLines, err error) {
	body, err := c.get(ctx, "/v1/lines?"+p.LinesQuery().Encode())
	if err != nil {
		return lines, err
	}
	if err := json.Unmarshal(body, &lines); err != nil {
		return lines, fmt.Errorf("reading the lines of code of process %d from %s: %w", p.PID, c.path, err)
	}
	return lines, nil
}
