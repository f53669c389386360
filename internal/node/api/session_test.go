package api

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/book/ledger"
	"github.com/ttmon/ttmon/internal/model"
)

// overTCP serves an API without anybody telling who asks.
func overTCP(t *testing.T, change func(*Options)) (s *Server, url string) {
	t.Helper()
	o := Options{Feed: new(Feed), Ledger: ledger.New(ledger.Options{}), Dumps: func() []Dump { return nil }}
	if change != nil {
		change(&o)
	}
	s = New(o)
	web := httptest.NewServer(s.Handler())
	t.Cleanup(web.Close)
	return s, web.URL
}

// ask asks as a session, and decodes the answer.
func ask(t *testing.T, method, url, session, body string) (int, map[string]any) {
	t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set(SessionHeader, session)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	tree := map[string]any{}
	_ = json.Unmarshal(b, &tree)
	http.DefaultClient.CloseIdleConnections()
	return answer.StatusCode, tree
}

func TestTicketIsGoodOnce(t *testing.T) {
	s, url := overTCP(t, nil)
	who := caller{uid: 4711, exists: true}
	secret, ok := put(&s.sessions.tickets, session{who, time.Now().Add(time.Minute)}, maxTickets, time.Now())
	if !ok {
		t.Fatal("no ticket")
	}
	status, tree := ask(t, "POST", url+"/v1/session", "", `{"ticket":"`+secret+`"}`)
	token, _ := tree["session"].(string)
	if status != http.StatusOK || token == "" || token == secret {
		t.Fatalf("status %d, %v", status, tree)
	}
	if status, tree := ask(t, "POST", url+"/v1/session", "", `{"ticket":"`+secret+`"}`); status != http.StatusForbidden {
		t.Errorf("the second time: status %d, %v", status, tree)
	}
	if _, tree := ask(t, "GET", url+"/v1/me", token, ""); tree["uid"] != float64(4711) || !strings.HasPrefix(tree["text"].(string), "Signed in as 4711: ") {
		t.Errorf("the session is %v", tree)
	}
	if _, tree := ask(t, "GET", url+"/v1/me", "", ""); tree["uid"] != nil {
		t.Errorf("without a session one is %v", tree)
	}
	if _, tree := ask(t, "GET", url+"/v1/me", token+"x", ""); tree["uid"] != nil {
		t.Errorf("with a wrong session one is %v", tree)
	}
}

func TestTicketsEnd(t *testing.T) {
	s, url := overTCP(t, nil)
	late := session{caller{uid: 1, exists: true}, time.Now().Add(-time.Second)}
	s.sessions.tickets = map[string]session{"old": late}
	s.sessions.live = map[string]session{"old": late}
	if status, _ := ask(t, "POST", url+"/v1/session", "", `{"ticket":"old"}`); status != http.StatusForbidden {
		t.Errorf("an old ticket: status %d", status)
	}
	if _, tree := ask(t, "GET", url+"/v1/me", "old", ""); tree["uid"] != nil {
		t.Errorf("an old session is %v", tree)
	}
	for _, body := range []string{"", "{}", `{"ticket":""}`, `{"ticket":1}`, strings.Repeat("x", 1<<16)} {
		if status, _ := ask(t, "POST", url+"/v1/session", "", body); status != http.StatusForbidden && status != http.StatusBadRequest {
			t.Errorf("%.20q: status %d", body, status)
		}
	}
}

func TestTicketsAreBounded(t *testing.T) {
	var m map[string]session
	now := time.Now()
	for i := range maxTickets + 1 {
		_, ok := put(&m, session{caller{uid: 1}, now.Add(time.Minute)}, maxTickets, now)
		if ok != (i < maxTickets) {
			t.Fatalf("ticket %d: %v", i, ok)
		}
	}
	if _, ok := put(&m, session{caller{uid: 2}, now.Add(time.Minute)}, maxTickets, now); !ok {
		t.Error("another user gets none")
	}
	if _, ok := put(&m, session{caller{uid: 1}, now.Add(time.Hour)}, maxTickets, now.Add(2*time.Minute)); !ok {
		t.Error("old ones still count")
	}
}

// Blocks are for their owner: a viewer without a session has none, and a user
// of the host those of its own.
func TestBlocksNeedASession(t *testing.T) {
	s, url := overTCP(t, func(o *Options) {
		o.Blocks = func(int) (BlocksOf, bool) { return BlocksOf{Process: &blocks.Process{}, UID: 4711}, true }
	})
	for token, uid := range map[string]int{"owner": 4711, "other": 4712, "root": 0} {
		_, _ = put(&s.sessions.live, session{}, 1, time.Now())
		s.sessions.live[token] = session{caller{uid: uid, exists: true, remote: true}, time.Now().Add(time.Minute)}
	}
	for token, want := range map[string]int{"owner": 200, "other": 403, "root": 200, "": 403, "made-up": 403} {
		t.Run(token, func(t *testing.T) {
			if status, tree := ask(t, "GET", url+"/v1/processes/1/blocks", token, ""); status != want {
				t.Errorf("as %q: status %d, want %d: %v", token, status, want, tree)
			}
		})
	}
}

func TestNothingChangesOverTCP(t *testing.T) {
	s, url := overTCP(t, func(o *Options) {
		o.Reload = func() ([]string, error) { t.Error("the configuration was read again"); return nil, nil }
	})
	s.sessions.live = map[string]session{"root": {caller{uid: 0, exists: true, remote: true}, time.Now().Add(time.Minute)}}
	if status, _ := ask(t, "POST", url+"/v1/reload", "root", ""); status != http.StatusForbidden {
		t.Errorf("reload: status %d", status)
	}
	if status, _ := ask(t, "POST", url+"/v1/ticket", "root", ""); status != http.StatusForbidden {
		t.Errorf("a ticket for a session: status %d", status)
	}
}

// A user of the host gets a ticket on the socket, where the kernel says who it is.
func TestTicketOnTheSocket(t *testing.T) {
	h := serve(t, func(o *Options) { o.Address = func() string { return "http://127.0.0.1:1/" } })
	r, err := h.client.Post("http://ttmond/v1/ticket", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	var tree map[string]any
	if err := json.NewDecoder(r.Body).Decode(&tree); err != nil {
		t.Fatal(err)
	}
	if len(tree["ticket"].(string)) < 20 || tree["address"] != "http://127.0.0.1:1/" {
		t.Error(tree)
	}
	if me := h.tree("/v1/me"); me["uid"] != float64(os.Geteuid()) {
		t.Errorf("the kernel says %v", me)
	}
}

// What a viewer may see is decided of each snapshot. A page that was opened before it was
// known how the host hides processes does not hide them for ever, and one that was opened
// before they were hidden does not show them for ever.
func TestHidingChangesUnderAStream(t *testing.T) {
	for _, call := range []string{"/v1/watch", "/v1/watch?said=1"} {
		t.Run(call, func(t *testing.T) {
			feed, level := new(Feed), atomic.Int32{}
			level.Store(2)
			s, url := overTCP(t, func(o *Options) {
				o.Feed, o.Hiding, o.Said = feed, func() Hiding { return Hiding{int(level.Load()), -1} }, hostNamed
			})
			publish := func() {
				feed.Publish(&model.Snapshot{Processes: []model.Process{{PID: 7, UID: model.Value(0), Name: model.Value("train")}}})
			}
			publish()
			r, err := http.Get(url + call)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Body.Close()
			in := bufio.NewReader(r.Body)
			// until publishes snapshots until the process is shown with its name, or without.
			until := func(named bool) {
				t.Helper()
				for end := time.Now().Add(time.Minute); time.Now().Before(end); {
					line, err := in.ReadString('\n')
					if err != nil {
						t.Fatal(err)
					}
					if !strings.HasPrefix(line, "data: ") || !strings.Contains(line, `"processes"`) {
						continue
					}
					if strings.Contains(line, `"train"`) == named {
						return
					}
					publish()
				}
				t.Fatalf("it never came to this: the name is shown: %v", named)
			}
			until(false)
			for _, step := range []struct {
				level int32
				named bool
			}{{0, true}, {2, false}} {
				level.Store(step.level)
				s.mu.Lock()
				s.hidingAt = time.Time{} // as if it had been asked for long ago
				s.mu.Unlock()
				publish()
				until(step.named)
			}
		})
	}
}

// hostNamed is all that is said of a snapshot.
func hostNamed(s *model.Snapshot) []byte { return []byte(`{"host": "` + s.Host.Name + `"}`) }

// The pieces of a packed stream make one whole, whenever a viewer begins.
func TestPackedStream(t *testing.T) {
	feed := new(Feed)
	feed.Publish(&model.Snapshot{Host: model.Host{Name: "first"}})
	_, url := overTCP(t, func(o *Options) { o.Feed, o.Said = feed, hostNamed })
	r, err := http.Get(url + "/v1/watch?said=1") // unpacks by itself
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if !r.Uncompressed {
		t.Error("the stream is not packed")
	}
	read := func(until string) string {
		var got []byte
		b := make([]byte, 4096)
		for !strings.Contains(string(got), until) {
			n, err := r.Body.Read(b)
			got = append(got, b[:n]...)
			if err != nil {
				t.Fatalf("%v after %q", err, got)
			}
		}
		return string(got)
	}
	if got := read(`"first"`); !strings.HasPrefix(got, "event: said\nid: 1\ndata: {") || !strings.Contains(got, "\n\nevent: snapshot\nid: 1\ndata: {") {
		t.Errorf("%.300q", got)
	}
	feed.Publish(&model.Snapshot{Host: model.Host{Name: "second"}})
	if got := read(`"second"`); !strings.Contains(got, "event: said\nid: 2\n") {
		t.Errorf("%.300q", got)
	}
	http.DefaultClient.CloseIdleConnections()
}

// TestSessionsOfRoot: when users have all the sessions that they may have, root still
// gets one, and a user learns why there is none.
func TestSessionsOfRoot(t *testing.T) {
	s, url := overTCP(t, nil)
	now := time.Now()
	for i := range maxAllSessions {
		_, _ = put(&s.sessions.live, session{caller{uid: 1000 + i, exists: true}, now.Add(time.Hour)}, maxSessions, now)
	}
	ticket := func(uid int) string {
		secret, ok := put(&s.sessions.tickets, session{caller{uid: uid, exists: true}, now.Add(time.Hour)}, maxTickets, now)
		if !ok {
			t.Fatal("no ticket")
		}
		return `{"ticket":"` + secret + `"}`
	}
	users := ticket(5)
	for range 2 { // a ticket that got no session is not used up
		if status, tree := ask(t, "POST", url+"/v1/session", "", users); status != http.StatusTooManyRequests || !strings.Contains(tree["error"].(string), "too many sessions") {
			t.Errorf("a user: status %d, %v", status, tree)
		}
	}
	status, tree := ask(t, "POST", url+"/v1/session", "", ticket(0))
	token, _ := tree["session"].(string)
	if status != http.StatusOK || token == "" {
		t.Fatalf("root: status %d, %v", status, tree)
	}
	if status, _ := ask(t, "DELETE", url+"/v1/session", token, ""); status != http.StatusOK {
		t.Errorf("signing out: status %d", status)
	}
	if _, tree := ask(t, "GET", url+"/v1/me", token, ""); tree["uid"] != nil {
		t.Errorf("after signing out: %v", tree)
	}
}

// TestAnswersAreHarmless: what users choose reaches no terminal as it is.
func TestAnswersAreHarmless(t *testing.T) {
	const name = "a\u202eb\u009bc\x7f\U000e0041"
	s, url := overTCP(t, func(o *Options) {
		o.Dumps = func() []Dump { return []Dump{{Text: name}} }
	})
	root, _ := put(&s.sessions.live, session{caller{uid: 0, exists: true}, time.Now().Add(time.Minute)}, maxSessions, time.Now())
	r, err := http.NewRequest("GET", url+"/v1/dumps", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set(SessionHeader, root)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range string(b) {
		if c != '\n' && !unicode.IsPrint(c) {
			t.Errorf("%q has %q in it", b, c)
		}
	}
	var tree struct{ Dumps []Dump }
	if err := json.Unmarshal(b, &tree); err != nil || len(tree.Dumps) != 1 || tree.Dumps[0].Text != name {
		t.Errorf("%+v, %v", tree, err)
	}
}

// TestHealthHidesPaths: where the libraries of users lie is for root.
func TestHealthHidesPaths(t *testing.T) {
	const path = "/home/alice/secret/libtt_metal.so"
	list := []WatchLibrary{{Path: path}}
	s, url := overTCP(t, func(o *Options) {
		o.Health = func(_ context.Context, h *Health) { h.Uprobe = &Watch{Libraries: list} }
	})
	root, _ := put(&s.sessions.live, session{caller{uid: 0, exists: true, remote: true}, time.Now().Add(time.Minute)}, maxSessions, time.Now())
	of := func(session string) any {
		_, tree := ask(t, "GET", url+"/v1/health", session, "")
		return tree["uprobe"].(map[string]any)["libraries"].([]any)[0].(map[string]any)["path"]
	}
	if got := of(""); got != "libtt_metal.so" {
		t.Errorf("a client without a name reads %v", got)
	}
	if got := of(root); got != path {
		t.Errorf("root reads %v", got)
	}
}
