package follow

import (
	"bytes"
	"log"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// elsewhere sends all calls to a server, as if it were ttmond.
type elsewhere struct{ host string }

func (e elsewhere) RoundTrip(r *http.Request) (*http.Response, error) {
	r.URL.Host = e.host
	return http.DefaultTransport.RoundTrip(r)
}

// TestProxyCallsAreBounded: viewers who are not signed in do not take all the
// connections that ttmond gives this program, and what they do is not logged.
func TestProxyCallsAreBounded(t *testing.T) {
	var logged bytes.Buffer
	before := log.Writer()
	log.SetOutput(&logged)
	t.Cleanup(func() { log.SetOutput(before) })
	release, came := make(chan struct{}), make(chan struct{}, 100)
	ttmond := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		came <- struct{}{}
		<-release
		w.Header().Set("Content-Length", "10") // and then less: an answer that breaks off
		_, _ = w.Write([]byte("x"))
	}))
	defer ttmond.Close()
	p := newProxy(elsewhere{ttmond.Listener.Addr().String()}, http.DefaultClient)
	server := httptest.NewServer(p)
	defer server.Close()
	var all sync.WaitGroup
	for range calls.PerUID {
		all.Go(func() {
			if r, err := http.Get(server.URL + "/v1/topology"); err == nil {
				r.Body.Close()
			}
		})
	}
	for range calls.PerUID {
		<-came
	}
	r, err := http.Get(server.URL + "/v1/topology")
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	if r.StatusCode != http.StatusTooManyRequests {
		t.Errorf("one call more: status %d", r.StatusCode)
	}
	if !p.calls.Try(0, 1) {
		t.Error("there is no room for root")
	}
	close(release)
	all.Wait()
	if logged.Len() > 0 {
		t.Errorf("logged: %s", logged.String())
	}
}
