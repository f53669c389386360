package replay

import (
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/failure"
)

// Failures are the requests for memory that failed while it was recorded, newest
// first.
func (r *Recording) Failures() ([]*failure.Record, error) {
	list, err := r.Reader.Failures()
	slices.Reverse(list)
	return list, err
}

// End is when the recording ends.
func (r *Recording) End() time.Time {
	_, last, _ := r.Reader.Span()
	return last
}
