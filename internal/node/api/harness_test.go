package api_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/ttmon/ttmon/internal/book/ledger"
	"github.com/ttmon/ttmon/internal/node/api"
)

// overTCP serves an API, with calls of other packages, without the kernel saying who asks.
func overTCP(t *testing.T, feed *api.Feed, change func(*api.Options)) (s *api.Server, url string) {
	t.Helper()
	o := api.Options{Feed: feed, Ledger: ledger.New(ledger.Options{}), Dumps: func() []api.Dump { return nil }, Dump: func(string, int, bool) string { return "" }}
	change(&o)
	s = api.New(o)
	web := httptest.NewServer(s.Handler())
	t.Cleanup(web.Close)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	return s, web.URL
}

// get asks as a session.
func get(t *testing.T, url, session, path string) (status int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+path, nil)
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
