package recording

import (
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/book/failure"
)

// maxFailures bounds the failures of a recording that are read: the last ones.
const maxFailures = 4096

// Failures are the requests for memory that failed, oldest first. Of one that was
// told several times it is what was told last. What is damaged is passed over.
func (r *Reader) Failures() (list []*failure.Record, err error) {
	at := map[string]*failure.Record{}
	err = r.Scan(func(kind Kind, _ int64, body []byte) error {
		if kind != KindFailure {
			return nil
		}
		x, bad := failure.Decode(body)
		if bad != nil {
			return nil // of a newer ttmon, or damaged
		}
		if at[x.ID] == nil && len(at) >= maxFailures {
			delete(at, oldest(at))
		}
		at[x.ID] = x
		return nil
	})
	for _, x := range at {
		list = append(list, x)
	}
	slices.SortFunc(list, func(a, b *failure.Record) int { return a.Time.Compare(b.Time) })
	return list, err
}

func oldest(at map[string]*failure.Record) (id string) {
	var first time.Time
	for k, x := range at {
		if id == "" || x.Time.Before(first) {
			id, first = k, x.Time
		}
	}
	return id
}
