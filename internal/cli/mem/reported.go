package mem

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/model/apitype"
	"github.com/ttmon/ttmon/internal/node/api/client"
	"github.com/ttmon/ttmon/internal/view/lines"
)

// shownBuffers is how many buffers of a reporter are listed.
const shownBuffers = 500

// reported asks ttmond for the buffers that a process reports over the allocation
// socket; nil: it reports none. Nothing is known of the allocator that they are from.
func (q Question) reported(ctx context.Context, c *client.Client) (*apitype.Buffers, error) {
	list, err := c.Buffers(ctx, q.PID, 0, shownBuffers)
	switch {
	case errors.Is(err, client.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &list, nil
}

// appendReported prints the buffers of a reporter.
func (a *Answer) appendReported(dst []byte, o lines.Options) []byte {
	p := lines.Printer{Options: o, Buf: dst}
	r := a.Reported
	p.Lines(lines.Plain(fmt.Sprintf("process %d  %s", r.PID, words.Escape(title(a.Snapshot, r.PID)))))
	p.Newline()
	t := &lines.Table{Indent: 2, Columns: lines.Heads(">Dev", "Pool", ">Size", ">Age", ">At")}
	for _, b := range r.Buffers {
		device, at := words.Nothing, "another user's"
		if b.Index != nil {
			device = strconv.Itoa(*b.Index) + b.Chip
		}
		if b.ID != nil {
			at = fmt.Sprintf("%#x", *b.ID)
		}
		pool := b.Pool
		if known, ok := model.PoolNamed(b.Pool); ok {
			pool = words.PoolName(known)
		}
		t.Add(device, pool, words.Bytes(b.Size), words.Duration(a.Time.Sub(b.Born)), at)
	}
	p.Table(t)
	p.Newline()
	p.Sentence(a.reportedNote(), 0)
	return p.Buf
}

// reportedNote says how many there are, and why there is no more to see.
func (a *Answer) reportedNote() string {
	r := a.Reported
	note := fmt.Sprintf("%d buffers, %s", r.Total, words.Bytes(r.TotalBytes))
	if left := r.Total - len(r.Buffers); left > 0 {
		note += fmt.Sprintf(" (the largest %d are listed)", len(r.Buffers))
	}
	return note + ". The process reports them over the allocation socket, which says nothing of banks and holes: there is no map, and what would fit is not known."
}
