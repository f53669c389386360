package remotewrite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/prometheus/prompb"

	"github.com/ttmon/ttmon/internal/view/prom"
)

// Options of a Sender.
type Options struct {
	URL      string
	V2       bool // protocol 2.0
	Interval time.Duration
	External map[string]string // labels of every series
	Dir      string            // of the buffer
	MaxBytes int64             // of the buffer
	Headers  map[string]string
	Client   *http.Client
	// Authorize adds credentials to a request; nil: none.
	Authorize func(*http.Request) error
	Log       *slog.Logger
}

// Sender samples and sends.
type Sender struct {
	opt   Options
	build *builder
	spool *spool
	wake  chan struct{}
	retry time.Duration
	last  time.Time
	full  atomic.Bool // the disk does not take the buffer

	sent, failed atomic.Uint64
}

var errDamaged = errors.New("a buffered request is damaged")

// New returns a sender with what one before it left in its buffer.
func New(o Options) *Sender {
	return &Sender{opt: o, build: newBuilder(o.External), spool: openSpool(o.Dir, o.MaxBytes), wake: make(chan struct{}, 1), retry: time.Second}
}

// Name is the engine, without secrets.
func (s *Sender) Name() string {
	u, err := url.Parse(s.opt.URL)
	if err != nil {
		return "remote write"
	}
	return u.Host
}

// Latest calls each with the time of the latest snapshot and a walk over its
// samples, which ends with the call; or not, if there is none.
type Latest func(each func(at time.Time, walk func(prom.Emit)))

// Enqueue adds the samples of the latest snapshot, if it is time.
func (s *Sender) Enqueue(latest Latest) {
	var at time.Time
	var made *prompb.WriteRequest
	latest(func(now time.Time, walk func(prom.Emit)) {
		if d := now.Sub(s.last); d < 0 || d >= s.opt.Interval-50*time.Millisecond {
			at, made = now, s.build.build(now.UnixMilli(), walk)
		}
	})
	if at.IsZero() {
		return
	}
	s.last = at
	body, err := encode(made)
	if err != nil {
		s.opt.Log.Error("cannot build remote write request", "err", err)
		return
	}
	err = s.spool.put(at.UnixMilli(), body)
	if was := s.full.Swap(err != nil); err != nil && !was {
		s.opt.Log.Warn("remote write is buffered in memory only", "to", s.Name(), "err", err)
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Run sends until ctx is done. What is not sent by then stays in the buffer.
func (s *Sender) Run(ctx context.Context) {
	pause, failing := s.retry, false
	for {
		ms, body, ok := s.spool.first()
		if !ok {
			select {
			case <-ctx.Done():
				return
			case <-s.wake:
			}
			continue
		}
		err := s.send(ctx, body)
		if ctx.Err() != nil && err != nil {
			return
		}
		_, hopeless := errors.AsType[refusal](err)
		switch {
		case err == nil:
			if failing {
				queued, _, _ := s.spool.stats()
				s.opt.Log.Info("remote write resumed", "to", s.Name(), "buffered", queued)
			}
			pause, failing = s.retry, false
			s.sent.Add(1)
			s.spool.done(ms, false)
			continue
		case hopeless || errors.Is(err, errDamaged):
			if !failing {
				s.opt.Log.Error("remote write rejected; dropping samples", "to", s.Name(), "err", err)
			}
			failing = true
			s.failed.Add(1)
			s.spool.done(ms, true)
			continue
		case !failing:
			s.opt.Log.Warn("remote write failed; buffering", "to", s.Name(), "err", err)
			failing = true
		}
		s.failed.Add(1)
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
			pause = min(2*pause, 30*time.Second)
		}
	}
}

// refusal is an answer that a retry does not fix.
type refusal struct{ error }

func (s *Sender) send(ctx context.Context, body []byte) (err error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	kind, version := "application/x-protobuf", "0.1.0"
	if s.opt.V2 {
		kind, version = "application/x-protobuf;proto=io.prometheus.write.v2.Request", "2.0.0"
		if body, err = encode2(body); err != nil {
			return err
		}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.opt.URL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", kind)
	r.Header.Set("Content-Encoding", "snappy")
	r.Header.Set("X-Prometheus-Remote-Write-Version", version)
	r.Header.Set("User-Agent", "ttmond")
	for k, v := range s.opt.Headers {
		r.Header.Set(k, v)
	}
	if s.opt.Authorize != nil {
		if err := s.opt.Authorize(r); err != nil {
			return err
		}
	}
	a, err := s.opt.Client.Do(r)
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err
		}
		return err
	}
	defer a.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(a.Body, 300))
	if a.StatusCode/100 == 2 {
		return nil
	}
	err = fmt.Errorf("%s: %s", a.Status, strings.TrimSpace(string(text)))
	if a.StatusCode/100 == 4 && a.StatusCode != http.StatusTooManyRequests && a.StatusCode != http.StatusRequestTimeout &&
		a.StatusCode != http.StatusUnauthorized && a.StatusCode != http.StatusForbidden && a.StatusCode != http.StatusNotFound {
		return refusal{err} // bad data; a wrong password or address may be fixed
	}
	return err
}

// Stats are figures about a Sender.
type Stats struct {
	Queued       int
	Bytes        int64
	Sent, Failed uint64
	Dropped      uint64
	MaxBytes     int64
}

// Stats returns figures.
func (s *Sender) Stats() Stats {
	queued, bytes, dropped := s.spool.stats()
	return Stats{queued, bytes, s.sent.Load(), s.failed.Load(), dropped, s.opt.MaxBytes}
}
