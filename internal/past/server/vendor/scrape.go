package vendor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	"github.com/ttmon/ttmon/internal/model"
)

// Times of the exporter: it reads its chips about every 5 s.
const (
	every        = 10 * time.Second
	answerWithin = 5 * time.Second
)

// Scraper asks one exporter.
type Scraper struct {
	url  string
	http *http.Client
	log  *slog.Logger
	last atomic.Pointer[answer]
}

// answer is the last one, or why there is none.
type answer struct {
	sample *sample
	at     time.Time
	err    error
}

// Check reports whether an address is one that may be asked: the exporter's on this
// host, over HTTP. Values of another host's exporter would be those of other boards.
func Check(address string) error {
	u, err := url.Parse(address)
	if err != nil {
		return err
	}
	ip, _ := netip.ParseAddr(u.Hostname())
	switch {
	case u.Scheme != "http":
		return fmt.Errorf("%q does not begin with http://", address)
	case u.Hostname() != "localhost" && !ip.IsLoopback():
		return fmt.Errorf("%q is not on this host: its values would be of other boards", address)
	}
	return nil
}

// New makes a scraper of an exporter's address.
func New(address string, log *slog.Logger) *Scraper {
	return &Scraper{url: address, log: log, http: &http.Client{
		Timeout: answerWithin,
		Transport: &http.Transport{
			DialContext:    (&net.Dialer{Timeout: answerWithin}).DialContext,
			MaxIdleConns:   1,
			ReadBufferSize: 64 << 10,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return errors.New("it redirects") },
	}}
}

// Run asks until ctx is done.
func (s *Scraper) Run(ctx context.Context) {
	for {
		s.scrape(ctx)
		select {
		case <-ctx.Done():
			return
		case <-time.After(every):
		}
	}
}

func (s *Scraper) scrape(ctx context.Context) {
	sample, err := s.get(ctx)
	if ctx.Err() != nil {
		return
	}
	before := s.last.Load()
	s.last.Store(&answer{sample, time.Now(), err})
	switch {
	case err != nil && (before == nil || before.err == nil):
		s.log.Warn("cannot read tt-telemetry; will retry", "url", s.url, "err", err)
	case err == nil && before != nil && before.err != nil:
		s.log.Info("reading tt-telemetry again", "url", s.url)
	}
}

func (s *Scraper) get(ctx context.Context) (*sample, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "text/plain;version=0.0.4")
	res, err := s.http.Do(r)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("HTTP status %s", res.Status)
	}
	return parse(res.Body, time.Now())
}

// Add returns the snapshot with what the exporter last said. The snapshot itself is
// not changed.
func (s *Scraper) Add(snap *model.Snapshot) *model.Snapshot {
	a := s.last.Load()
	if a == nil {
		return snap
	}
	own := *snap
	own.Devices = slices.Clone(snap.Devices)
	for i := range own.Devices {
		own.Devices[i].Chips = slices.Clone(own.Devices[i].Chips)
	}
	switch {
	case a.err != nil:
		for i := range own.Devices {
			noRemote(&own.Devices[i], model.Absent, "tt-telemetry does not answer: "+a.err.Error())
		}
	case snap.Time.Sub(a.at) > oldest:
		for i := range own.Devices {
			noRemote(&own.Devices[i], model.Stale, "tt-telemetry did not answer lately")
		}
	default:
		a.sample.fill(&own)
	}
	return &own
}
