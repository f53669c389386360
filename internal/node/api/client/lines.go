package client

import (
	"context"
	"fmt"

	"github.com/ttmon/ttmon/internal/book/runs"
	"github.com/ttmon/ttmon/internal/model/params"
)

// Lines asks for the lines of code of a process at its peak. Where none are known, or
// the process is another user's, the error is ErrNotFound.
func (c *Client) Lines(ctx context.Context, p *runs.Process) (lines runs.ProcessLines, err error) {
	err = c.read(ctx, "/v1/lines?"+params.Values(p.LinesQuery()).Encode(), fmt.Sprintf("the lines of code of process %d", p.PID), &lines)
	return lines, err
}
