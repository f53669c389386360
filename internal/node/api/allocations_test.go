package api

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/book/blocks/changes"
)

// sender sends processes with their owners, as far as it may, and then
// nothing.
type sender struct {
	owners map[int]int
	allow  func(pid, uid int) bool
	closed chan struct{}
	told   bool
}

func (f *sender) Next(ctx context.Context) (b changes.Batch, err error) {
	if f.told {
		<-ctx.Done()
		return b, ctx.Err()
	}
	f.told = true
	for pid, uid := range f.owners {
		if f.allow(pid, uid) {
			b.States = append(b.States, &changes.State{PID: pid})
		}
	}
	return b, nil
}

func (f *sender) Close() { close(f.closed) }

func TestAllocations(t *testing.T) {
	owners := map[int]int{7: anna, 8: bert, 9: anna}
	for name, c := range map[string]struct {
		who    caller
		hiding Hiding
		query  string
		status int
		told   []string // pids
	}{
		"own processes":                {caller{uid: anna, exists: true}, Hiding{GID: -1}, "", 200, []string{"7", "9"}},
		"root":                         {caller{uid: 0, exists: true}, Hiding{GID: -1}, "", 200, []string{"7", "8", "9"}},
		"one of them":                  {caller{uid: anna, exists: true}, Hiding{GID: -1}, "?pid=9&pid=8", 200, []string{"9"}},
		"where processes are hidden":   {caller{uid: bert, exists: true}, Hiding{Level: 2, GID: -1}, "", 200, []string{"8"}},
		"a member of the proc group":   {caller{uid: bert, gids: []int{5}, exists: true}, Hiding{Level: 2, GID: 5}, "", 200, []string{"8"}},
		"no user is known over TCP":    {caller{remote: true}, Hiding{GID: -1}, "", 403, nil},
		"something that is no process": {caller{uid: anna, exists: true}, Hiding{GID: -1}, "?pid=x", 400, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := &sender{owners: owners, closed: make(chan struct{})}
			s := New(Options{
				Hiding:  func() Hiding { return c.hiding },
				Changes: func(allow func(pid, uid int) bool) Changes { f.allow = allow; return f },
			})
			web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				followed(s, s.opt.Changes, changes.Append)(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, c.who)))
			}))
			defer web.Close()
			resp, err := http.Get(web.URL + c.query)
			if err != nil {
				t.Fatal(err)
			}
			if resp.StatusCode != c.status {
				t.Fatalf("status %d", resp.StatusCode)
			}
			if c.status != 200 {
				resp.Body.Close()
				return
			}
			in, got := bufio.NewScanner(resp.Body), map[string]bool{}
			for range c.told {
				if !in.Scan() {
					t.Fatalf("told only of %v", got)
				}
				_, pid, _ := strings.Cut(in.Text(), `"pid":`)
				got[pid[:1]] = true
			}
			for _, pid := range c.told {
				if !got[pid] {
					t.Errorf("received %v, not %s", got, pid)
				}
			}
			resp.Body.Close() // it leaves
			<-f.closed
		})
	}
	if status, _ := serve(t, nil).get("/v1/allocations"); status != http.StatusNotFound {
		t.Errorf("of nothing that is watched: %d", status)
	}
}

// A user has so many followers and no more, and leaves room for others.
func TestFollowersAreBounded(t *testing.T) {
	l := DefaultLimits()
	l.Followers.PerUID = 1
	s := New(Options{Limits: l, Changes: func(func(pid, uid int) bool) Changes { return &sender{closed: make(chan struct{})} }})
	ask := func(uid int) (*http.Response, func()) {
		t.Helper()
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			followed(s, s.opt.Changes, changes.Append)(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, caller{uid: uid, exists: true})))
		}))
		resp, err := http.Get(web.URL)
		if err != nil {
			t.Fatal(err)
		}
		return resp, func() { resp.Body.Close(); web.Close() }
	}
	first, leave := ask(anna)
	second, leaveToo := ask(anna)
	other, leaveThree := ask(bert)
	defer leaveThree()
	leaveToo()
	if first.StatusCode != 200 || second.StatusCode != 429 || other.StatusCode != 200 {
		t.Errorf("%d, %d, another's %d", first.StatusCode, second.StatusCode, other.StatusCode)
	}
	leave()
}
