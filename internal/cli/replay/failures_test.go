package replay

import (
	"errors"
	"testing"

	"github.com/ttmon/ttmon/internal/book/failure"
	"github.com/ttmon/ttmon/internal/node/api/client"
)

func TestFailuresByName(t *testing.T) {
	all := Failures{{ID: "f3"}, {ID: "f2"}, {ID: "f1"}}
	for i, pid := range []int{30, 20, 20} {
		all[i].Process.PID = pid
	}
	for _, c := range []struct {
		name string
		id   string
		pid  int
		want string // "": none
	}{
		{"the newest", "last", 0, "f3"},
		{"the newest of a process", "last", 20, "f2"},
		{"by its ID", "f1", 0, "f1"},
		{"of a process without one", "last", 10, ""},
		{"an ID that is not there", "f9", 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, body, err := all.Failure(t.Context(), c.id, c.pid)
			switch {
			case c.want == "" && !errors.Is(err, client.ErrNotFound):
				t.Errorf("error %v, want %v", err, client.ErrNotFound)
			case c.want != "" && (err != nil || r.ID != c.want || len(body) == 0):
				t.Errorf("%+v, %d bytes, %v; want %s", r, len(body), err, c.want)
			}
		})
	}
	list, err := all.Failures(t.Context())
	if err != nil || len(list) != 3 || list[0].ID != (failure.Summary{ID: "f3"}).ID {
		t.Errorf("%+v, %v", list, err)
	}
}
