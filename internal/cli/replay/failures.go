package replay

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/book/failure"
	"github.com/ttmon/ttmon/internal/node/api/client"
)

// Failures are the requests for memory that failed while it was recorded, newest
// first.
func (r *Recording) Failures() (Failures, error) {
	list, err := r.Reader.Failures()
	slices.Reverse(list)
	return list, err
}

// End is when the recording ends.
func (r *Recording) End() time.Time {
	_, last, _ := r.Reader.Span()
	return last
}

// Failures are the failed allocations of a recording, newest first. They answer as a
// ttmond's client does.
type Failures []*failure.Record

// Failures are all of them, in short.
func (f Failures) Failures(context.Context) (list []failure.Summary, err error) {
	for _, r := range f {
		list = append(list, r.Summary())
	}
	return list, nil
}

// Failure is one by its ID; with "last" the newest, of a process if pid is not 0. body
// is its JSON. Where there is none the error is client.ErrNotFound.
func (f Failures) Failure(_ context.Context, id string, pid int) (r *failure.Record, body []byte, err error) {
	for _, r := range f {
		if (id == "last" || r.ID == id) && (pid == 0 || r.Process.PID == pid) {
			body, err := json.Marshal(r)
			return r, append(body, '\n'), err
		}
	}
	return nil, nil, client.ErrNotFound
}

// Close does nothing: the recording is its owner's.
func (Failures) Close() {}
