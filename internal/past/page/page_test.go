package page

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/board/mesh"
	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/book/failure"
	"github.com/ttmon/ttmon/internal/book/ledger"
	"github.com/ttmon/ttmon/internal/field/wire"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/node/api"
	"github.com/ttmon/ttmon/internal/view/pagejson"
)

func TestMain(m *testing.M) { hermetic.Main(m) }

// failures keeps f1, of our own user.
type failures struct{ uid int }

func (f failures) List(func(uid int) bool) []failure.Summary { return nil }

func (f failures) Get(id string) (*failure.Record, bool) {
	l := blocks.NewList(blocks.Geometry{Pool: model.L1, Banks: 8, Capacity: 4096, Align: 64, Smallest: 64}, blocks.FromStart)
	r := &failure.Record{Schema: failure.Schema, ID: "f1", Kind: failure.NoRoom, Time: time.Now(), Count: 1, Pool: "l1", State: l, Process: failure.Process{PID: 7, UID: f.uid, Name: "python"}, Request: failure.Request{BankBytes: 8192}}
	r.Judge()
	return r, id == r.ID
}

func serve(t *testing.T, change func(*api.Options)) string {
	t.Helper()
	o := api.Options{Feed: new(api.Feed), Ledger: ledger.New(ledger.Options{}), Key: "key"}
	change(&o)
	Moments(nil).Serve(&o)
	web := httptest.NewServer(api.New(o).Handler())
	t.Cleanup(web.Close)
	return web.URL
}

// session signs in as the user who runs the server.
func session(t *testing.T, url string) string {
	t.Helper()
	r, err := http.Post(url+"/v1/session", "application/json", strings.NewReader(`{"ticket":"key"}`))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), `"session":"`)
	secret, _, _ := strings.Cut(rest, `"`)
	return secret
}

func get(t *testing.T, url, session string) (status int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set(api.SessionHeader, session)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(b)
}

// TestFailure: a viewer is shown what the call for the data shows them, and is refused as
// that refuses them.
func TestFailure(t *testing.T) {
	for _, tt := range []struct {
		name, path string
		uid        int
		status     int
	}{
		{"page", "/v1/failures/f1/page", os.Geteuid(), 200},
		{"file", "/v1/failures/f1/file", os.Geteuid(), 200},
		{"there is none", "/v1/failures/f3/page", os.Geteuid(), 404},
		{"no file", "/v1/failures/f3/file", os.Geteuid(), 404},
	} {
		t.Run(tt.name, func(t *testing.T) {
			url := serve(t, func(o *api.Options) { o.Failures = failures{tt.uid} })
			if status, body := get(t, url+tt.path, session(t, url)); status != tt.status {
				t.Errorf("status %d: %s", status, body)
			}
			if status, body := get(t, url+tt.path, ""); status != 404 {
				t.Errorf("who is not signed in: status %d: %s", status, body)
			}
		})
	}
}

// TestDescribedLinks: the table of links that is made of the answer about the topology is
// the one that the topology itself gives.
func TestDescribedLinks(t *testing.T) {
	end := func(device int, chip string, channel int) model.Port {
		return model.Port{ChipPlace: model.ChipPlace{Device: device, Name: chip}, Channel: channel}
	}
	snap := &model.Snapshot{Time: time.Now(), Devices: []model.Device{{Index: 0}, {Index: 1}}}
	top := &model.Topology{
		Links:   []model.Ethernet{{From: end(0, "a", 1), To: end(1, "b", 2)}, {From: end(0, "a", 3), To: end(1, "b", 4)}},
		Outside: []model.OutsideLink{{From: end(1, "b", 7), Remote: model.RemotePort{Own: 1 << 60, Chip: 1<<60 + 1, Channel: 5}}},
	}
	url := serve(t, func(o *api.Options) {
		o.Feed.Publish(snap)
		o.Topology = func(*model.Snapshot) *model.Topology { return top }
	})
	want := httptest.NewRecorder()
	api.Answer(want, http.StatusOK, pagejson.LinkTable(snap, top))
	status, body := get(t, url+"/v1/topology/links", "")
	if status != 200 || body != want.Body.String() {
		t.Errorf("status %d\n%s\nwant\n%s", status, body, want.Body)
	}
	if n := len(mesh.AllLinks(snap, top)); n != 3 {
		t.Errorf("%d links, so this test cannot fail", n)
	}
}

// upstream is a ttmond that answers with one snapshot to who watches.
type upstream struct{}

func (upstream) Viewer(context.Context, string) (api.Viewer, bool) {
	return api.Viewer{UID: 4711, Hiding: 2}, true
}

func (upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Has("said") {
		http.Error(w, "there are no words here", http.StatusNotFound)
		return
	}
	body := "event: snapshot\nid: 12\ndata: " + string(wire.Append(nil, &model.Snapshot{Time: time.Now(), Host: model.Host{Name: "theirs"}})) + "\n\n"
	w.WriteHeader(http.StatusOK)
	_, _ = io.WriteString(w, body[:100])
	_, _ = io.WriteString(w, body[100:])
}

// TestForwardedWatch: where /proc hides processes, ttmond answers with what a viewer may
// see; the words are added here.
func TestForwardedWatch(t *testing.T) {
	url := serve(t, func(o *api.Options) { o.Upstream = func() api.Upstream { return upstream{} } })
	status, body := get(t, url+"/v1/watch?said=1", "anyone")
	said, snapshot, found := strings.Cut(body, "\n\nevent: snapshot\nid: 12\ndata: {")
	if status != 200 || !found || !strings.HasPrefix(said, "event: said\nid: 12\ndata: {") || !strings.Contains(snapshot, `"theirs"`) || !strings.HasSuffix(snapshot, "}\n\n") {
		t.Errorf("status %d: %q", status, body)
	}
}
