package past

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/ttmon/ttmon/internal/book/ledger"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/node/api"
)

func TestMain(m *testing.M) { hermetic.Main(m) }

// host serves what is remembered.
type host struct {
	*testing.T
	address string
}

func serve(t *testing.T, m Memory) *host {
	t.Helper()
	o := api.Options{Feed: new(api.Feed), Ledger: ledger.New(ledger.Options{})}
	m.Serve(&o)
	web := httptest.NewServer(api.New(o).Handler())
	t.Cleanup(web.Close)
	return &host{t, web.URL}
}

func (h *host) get(path string) (status int, body string) {
	h.Helper()
	r, err := http.Get(h.address + path)
	if err != nil {
		h.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		h.Fatal(err)
	}
	return r.StatusCode, string(b)
}
