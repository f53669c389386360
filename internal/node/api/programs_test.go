package api

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/ttmon/ttmon/internal/book/launches"
)

// launcher sends a program of each process with its owner, as far as it may, and
// then nothing.
type launcher struct {
	owners map[int]int
	allow  func(pid, uid int) bool
	closed chan struct{}
	sent   bool
}

func (f *launcher) Next(ctx context.Context) (list []launches.Message, err error) {
	if f.sent {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	f.sent = true
	for pid, uid := range f.owners {
		if f.allow(pid, uid) {
			list = append(list, launches.Message{Batch: &launches.Batch{PID: pid, N: 1, Programs: []launches.Program{{Start: 1, Length: 2, Name: "x"}}}})
		}
	}
	return append(list, launches.Message{UpTo: 5}), nil
}

func (f *launcher) Close() { close(f.closed) }

// Programs are sent to the users of their processes and to root.
func TestPrograms(t *testing.T) {
	owners := map[int]int{7: anna, 8: bert, 9: anna, 10: -1} // of the last it is not known
	for name, c := range map[string]struct {
		who    caller
		hiding Hiding
		query  string
		status int
		sent   []int // pids
	}{
		"own processes":                {caller{uid: anna, exists: true}, Hiding{GID: -1}, "", 200, []int{7, 9}},
		"root":                         {caller{uid: 0, exists: true}, Hiding{GID: -1}, "", 200, []int{7, 8, 9, 10}},
		"one of them":                  {caller{uid: anna, exists: true}, Hiding{GID: -1}, "?pid=9&pid=8", 200, []int{9}},
		"where processes are hidden":   {caller{uid: bert, exists: true}, Hiding{Level: 2, GID: -1}, "", 200, []int{8}},
		"no user is known over TCP":    {caller{remote: true}, Hiding{GID: -1}, "", 403, nil},
		"something that is no process": {caller{uid: anna, exists: true}, Hiding{GID: -1}, "?pid=x", 400, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := &launcher{owners: owners, closed: make(chan struct{})}
			s := New(Options{
				Hiding:   func() Hiding { return c.hiding },
				Programs: func(allow func(pid, uid int) bool) Programs { f.allow = allow; return f },
			})
			web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				followed(s, s.opt.Programs, appendPrograms)(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, c.who)))
			}))
			defer web.Close()
			resp, err := http.Get(web.URL + c.query)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if resp.StatusCode != c.status {
				t.Fatalf("status %d", resp.StatusCode)
			}
			if c.status != 200 {
				return
			}
			in, got := bufio.NewScanner(resp.Body), map[int]bool{}
			for in.Scan() {
				m, err := launches.Parse(in.Bytes())
				if err != nil {
					t.Fatal(err)
				}
				if m.UpTo != 0 {
					break
				}
				got[m.Batch.PID] = true
			}
			for _, pid := range c.sent {
				if !got[pid] {
					t.Errorf("sent those of %v, not of %d", got, pid)
				}
			}
			if len(got) != len(c.sent) {
				t.Errorf("sent those of %v, want %v", got, c.sent)
			}
			resp.Body.Close() // it leaves
			<-f.closed
		})
	}
	if status, _ := serve(t, nil).get("/v1/programs"); status != http.StatusNotFound {
		t.Errorf("of nothing that is watched: %d", status)
	}
}
