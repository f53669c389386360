package server

import (
	"os"
	"slices"

	"github.com/ttmon/ttmon/internal/book/failure"
)

// recordedFailures are those of a recording. A user who may read its
// file may read them: so may a viewer with the page's address.
type recordedFailures []*failure.Record

// openFailures reads those of a recording.
func (r *replayed) openFailures() (err error) {
	r.failures, err = r.past.Failures()
	for _, f := range r.failures {
		f.Process.UID = os.Geteuid()
	}
	return err
}

// List implements api.Failures.
func (f recordedFailures) List(allow func(uid int) bool) []failure.Summary {
	list := []failure.Summary{}
	for _, x := range slices.Backward(f) {
		if allow(x.Process.UID) {
			list = append(list, x.Summary())
		}
	}
	return list
}

// Get implements api.Failures.
func (f recordedFailures) Get(id string) (*failure.Record, bool) {
	i := slices.IndexFunc(f, func(x *failure.Record) bool { return x.ID == id })
	if i < 0 {
		return nil, false
	}
	c := *f[i]
	return &c, true
}
