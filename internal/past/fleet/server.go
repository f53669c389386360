package fleet

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ttmon/ttmon/internal/field/metric"
	"github.com/ttmon/ttmon/internal/field/wire"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/node/api/client"
	"github.com/ttmon/ttmon/internal/past/fleet/answer"
	"github.com/ttmon/ttmon/internal/past/fleet/query"
)

const (
	keepFor    = 5 * time.Second  // how long an answer is given to others
	askTimeout = 20 * time.Second // for all questions of an answer
	maxKept    = 64               // answers: one for each metric, and for each set of hosts in view
	maxAsking  = 4                // answers that are made at a time
	// MaxCells is how many hosts may be asked about device by device at once.
	MaxCells = 100
	usual    = "temperature.asic"
)

// Options of a Server.
type Options struct {
	Prometheus *client.Prometheus
	// Label tells hosts apart; empty: host, or instance where there is none.
	Label string
	// Page is the address of a host's own page: {instance} and {host} stand for
	// its labels. Empty: UsualPage.
	Page string
}

// UsualPage is where a ttmond that is scraped serves its page, unless it has TLS
// or hides behind something.
const UsualPage = "http://{instance}/"

// checkPage reports whether a template makes addresses of pages, one for each host.
func checkPage(page string) error {
	u, err := url.Parse(strings.NewReplacer("{instance}", "host:1", "{host}", "host").Replace(page))
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("%q does not give an address such as https://{host}:9108/", page)
	case !strings.Contains(page, "{instance}") && !strings.Contains(page, "{host}"):
		return fmt.Errorf("%q is the same for every host: use {instance} or {host}", page)
	}
	return nil
}

// Server answers for a fleet. Its methods may be called by any goroutine.
type Server struct {
	opt Options

	asking chan struct{} // a place for each answer that is being made

	mu   sync.Mutex
	kept map[string]*kept
}

// kept is the last answer to one question. A viewer who asks while it is being
// made waits for it: the engine gets one query.
type kept struct {
	mu     sync.Mutex
	at     time.Time
	plain  []byte
	packed []byte
	err    error
}

var labelName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

// New checks the options.
func New(o Options) (*Server, error) {
	if o.Label != "" && !labelName.MatchString(o.Label) {
		return nil, fmt.Errorf("%q is not a label name", o.Label)
	}
	if o.Page == "" {
		o.Page = UsualPage
	}
	if err := checkPage(o.Page); err != nil {
		return nil, err
	}
	return &Server{opt: o, asking: make(chan struct{}, maxAsking), kept: map[string]*kept{}}, nil
}

// Handler answers /v1/fleet, /v1/fleet/cells and /v1/fleet/links.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/fleet", s.fleet)
	mux.HandleFunc("GET /v1/fleet/cells", s.cells)
	mux.HandleFunc("GET /v1/fleet/links", s.links)
	return mux
}

func (s *Server) fleet(w http.ResponseWriter, r *http.Request) {
	m, ok := column(w, r)
	if !ok {
		return
	}
	s.answer(w, r, m.Name, func(a *answer.Querier) (any, error) { return a.Fleet(m, time.Now()) })
}

func (s *Server) cells(w http.ResponseWriter, r *http.Request) {
	m, ok := column(w, r)
	if !ok {
		return
	}
	hosts := slices.Compact(slices.Sorted(slices.Values(r.URL.Query()["host"])))
	if len(hosts) == 0 || len(hosts) > MaxCells {
		fail(w, http.StatusBadRequest, fmt.Sprintf("host: name 1 to %d hosts; %d are named", MaxCells, len(hosts)))
		return
	}
	s.answer(w, r, m.Name+"\x00"+strings.Join(hosts, "\x00"), func(a *answer.Querier) (any, error) { return a.Cells(m, hosts) })
}

// links answers with every link between hosts, or with those of one.
func (s *Server) links(w http.ResponseWriter, r *http.Request) {
	host := r.URL.Query().Get("host")
	s.answer(w, r, "\x00links\x00"+host, func(a *answer.Querier) (any, error) { return a.Links(host, time.Now()) })
}

// column is the field that a request names.
func column(w http.ResponseWriter, r *http.Request) (metric.Column[*model.Device], bool) {
	name := cmp.Or(r.URL.Query().Get("metric"), usual)
	col, ok := metric.Find(metric.Devices(), name)
	if ok {
		_, _, ok = col.Query("1m")
	}
	if !ok {
		fail(w, http.StatusBadRequest, fmt.Sprintf("metric: %q is not kept over time; /v1/metrics lists those that are", name))
	}
	return col, ok
}

// answer writes what ask returns, or the same that another viewer was given a
// moment ago.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, key string, ask func(*answer.Querier) (any, error)) {
	plain, packed, err := s.of(key).get(r.Context(), s, ask)
	if err != nil {
		fail(w, http.StatusBadGateway, err.Error())
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		plain = packed
	}
	_, _ = w.Write(plain) // the client has left
}

// of finds the place of an answer. Where there are too many, all are dropped: they
// are only a few seconds old.
func (s *Server) of(name string) *kept {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.kept[name]; k != nil {
		return k
	}
	if len(s.kept) >= maxKept {
		s.kept = map[string]*kept{}
	}
	k := &kept{}
	s.kept[name] = k
	return k
}

func (k *kept) get(ctx context.Context, s *Server, ask func(*answer.Querier) (any, error)) (plain, packed []byte, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if time.Since(k.at) <= keepFor {
		return k.plain, k.packed, k.err
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	select {
	case s.asking <- struct{}{}:
		defer func() { <-s.asking }()
	case <-ctx.Done():
		return nil, nil, fmt.Errorf("waiting for the engine's answers to other viewers: %w", ctx.Err())
	}
	q, err := query.New(ctx, s.opt.Prometheus, s.opt.Label)
	var reply any
	if err == nil {
		reply, err = ask(&answer.Querier{Query: q, Page: s.opt.Page})
	}
	if err != nil && ctx.Err() == context.Canceled {
		return nil, nil, err // this viewer has left; the next one asks
	}
	k.at, k.err = time.Now(), err
	if err == nil {
		if k.plain, err = json.Marshal(reply); err != nil {
			panic("BUG: " + err.Error())
		}
		k.plain = wire.Harmless(k.plain)
		k.packed = pack(k.plain)
	}
	return k.plain, k.packed, k.err
}

func pack(b []byte) []byte {
	var out bytes.Buffer
	z, _ := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	_, _ = z.Write(b)
	_ = z.Close()
	return out.Bytes()
}

func fail(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	b, _ := json.Marshal(map[string]string{"error": text})
	_, _ = w.Write(append(wire.Harmless(b), '\n'))
}
