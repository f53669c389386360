// Package follow is a ttmon-server's host that is a ttmond's: it reads ttmond's
// stream, resumes it when either of the two was away, and hands calls on that
// only ttmond can answer.
package follow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ttmon/ttmon/internal/field/wire"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/model/params"
	"github.com/ttmon/ttmon/internal/node/api"
	"github.com/ttmon/ttmon/internal/node/eventlog/watch"
	"github.com/ttmon/ttmon/internal/node/stream"
	"github.com/ttmon/ttmon/internal/past/server"
)

// Times.
const (
	answerWithin = 10 * time.Second
	silence      = 30 * time.Second // beyond five intervals: the connection is dead
	retryFirst   = 100 * time.Millisecond
	retryMost    = 2 * time.Second
	lateAfter    = 10 * time.Second // without a connection: health says so
)

// Host follows one ttmond.
type Host struct {
	path  string
	log   *slog.Logger
	http  *http.Client
	proxy *proxy

	state atomic.Pointer[stream.State]

	mu    sync.Mutex
	since time.Time // since when there is no connection; zero: there is one
	why   error     // why there is none

	// What the loop of snapshots alone uses: the last one, and which ttmond made it.
	last     *model.Snapshot
	instance string
	decoder  wire.Decoder
}

// New returns the host of the ttmond at a socket.
func New(path string, log *slog.Logger) *Host {
	h := &Host{path: path, log: log, since: time.Now()}
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{Timeout: answerWithin}).DialContext(ctx, "unix", path)
		},
		ResponseHeaderTimeout: answerWithin, MaxIdleConnsPerHost: 4, IdleConnTimeout: time.Minute, DisableCompression: true,
	}
	h.http = &http.Client{Transport: transport}
	h.proxy = newProxy(transport, h.http)
	return h
}

// State implements server.Host.
func (h *Host) State() (stream.State, bool) {
	if st := h.state.Load(); st != nil {
		return *st, true
	}
	return stream.State{}, false
}

// Check implements server.Host.
func (h *Host) Check(health *api.Health) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if away := time.Since(h.since); !h.since.IsZero() && away > lateAfter {
		health.Problems = append(health.Problems, api.Problem{
			Part: "ttmond", Reason: fmt.Sprintf("does not answer at %s for %v: %v", h.path, away.Round(time.Second), h.why),
		})
	}
}

// Away is how long there has been no connection.
func (h *Host) Away() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.since.IsZero() {
		return 0
	}
	return time.Since(h.since)
}

// Serve implements server.Host.
func (h *Host) Serve(o *api.Options) { o.Upstream = h.Upstream }

// Upstream is the ttmond that is followed.
func (h *Host) Upstream() api.Upstream { return h.proxy }

// Run implements server.Host.
func (h *Host) Run(ctx context.Context, sink server.Sink) error {
	var both sync.WaitGroup
	both.Go(func() {
		h.again(ctx, h.lost, func() (bool, error) { return h.snapshots(ctx, sink) })
	})
	both.Go(func() {
		from, err := sink.Resume(ctx)
		if err != nil {
			return // ctx is done
		}
		h.again(ctx, func(error) {}, func() (bool, error) { return h.events(ctx, sink, &from) })
	})
	both.Wait()
	return nil
}

// again calls try until ctx is done, at once where it had been connected.
func (h *Host) again(ctx context.Context, lost func(error), try func() (connected bool, err error)) {
	wait := retryFirst
	for ctx.Err() == nil {
		connected, err := try()
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			lost(err)
		}
		if connected {
			wait = retryFirst
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
			wait = min(2*wait, retryMost)
		}
	}
}

// open opens the stream and reads its first frame.
func (h *Host) open(ctx context.Context, q *stream.Query) (hello stream.Hello, body io.ReadCloser, in *stream.Reader, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://ttmond"+stream.Path+"?"+params.Values(q).Encode(), nil)
	if err != nil {
		return hello, nil, nil, err
	}
	answer, err := h.http.Do(r)
	if err != nil {
		return hello, nil, nil, err
	}
	if answer.StatusCode != http.StatusOK {
		defer answer.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 512))
		return hello, nil, nil, fmt.Errorf("HTTP status %s: %.200q", answer.Status, text)
	}
	in = stream.NewReader(answer.Body)
	kind, frame, err := in.Next()
	if err == nil && kind != stream.KindHello {
		err = fmt.Errorf("the stream begins with %q", kind)
	}
	if err == nil {
		err = json.Unmarshal(frame, &hello)
	}
	if err == nil && hello.Stream != stream.Version {
		err = fmt.Errorf("ttmond %s sends version %d of the stream, ttmon-server reads %d: upgrade the older of the two", hello.Version, hello.Stream, stream.Version)
	}
	if err != nil {
		answer.Body.Close()
		return hello, nil, nil, err
	}
	return hello, answer.Body, in, nil
}

// snapshots follows the snapshots of one connection.
func (h *Host) snapshots(ctx context.Context, sink server.Sink) (connected bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	hello, body, in, err := h.open(ctx, &stream.Query{Only: stream.OnlySnapshots})
	if err != nil {
		return false, err
	}
	defer body.Close()
	dead := time.AfterFunc(silence, cancel)
	defer dead.Stop()
	h.found(&hello)
	for {
		kind, frame, err := in.Next()
		if err == nil {
			dead.Reset(silence + 5*h.every())
			err = h.handleFrame(ctx, kind, frame, in, &hello, sink)
		}
		if err != nil {
			return true, err
		}
	}
}

func (h *Host) every() time.Duration {
	st, _ := h.State()
	return st.Every()
}

// handleFrame takes in a frame, which in has read last.
func (h *Host) handleFrame(ctx context.Context, kind stream.Kind, frame []byte, in *stream.Reader, hello *stream.Hello, sink server.Sink) error {
	switch kind {
	case stream.KindState:
		st := new(stream.State)
		if err := json.Unmarshal(frame, st); err != nil {
			return fmt.Errorf("reading the state of ttmond: %w", err)
		}
		h.state.Store(st)
	case stream.KindSnapshot:
		s, err := h.decoder.Decode(frame)
		if err != nil {
			return fmt.Errorf("reading a snapshot of ttmond: %w", err)
		}
		body := in.Keep() // as it is, for the journal and the page
		if s.Source != model.Daemon {
			s.Source, body = model.Daemon, nil
		}
		h.bridge(ctx, s, hello.Instance, sink)
		sink.Snapshot(s, body)
	}
	return nil
}

// bridge finds what happened while ttmond itself was restarted: it compares the
// last snapshot of one ttmond with the first of the next.
func (h *Host) bridge(ctx context.Context, s *model.Snapshot, instance string, sink server.Sink) {
	before := h.last
	changed := before != nil && h.instance != instance
	h.last, h.instance = s, instance
	if !changed || s.Time.Sub(before.Time) > time.Hour {
		return
	}
	var w watch.Watcher
	w.Next(before)
	if list := w.Next(s); len(list) > 0 {
		sink.Events(ctx, list)
	}
}

// events follows the events of one connection. from is the last one that is kept.
func (h *Host) events(ctx context.Context, sink server.Sink, from *model.EventOrigin) (connected bool, err error) {
	hello, body, in, err := h.open(ctx, &stream.Query{Only: stream.OnlyEvents, Log: from.Log, After: from.Seq})
	if err != nil {
		return false, err
	}
	defer body.Close()
	if hello.Log != from.Log {
		*from = model.EventOrigin{Log: hello.Log}
	}
	if from.Seq+1 < hello.First && from.Seq > 0 {
		sink.Events(ctx, []model.Event{{
			Time: time.Now(), Kind: model.EventTTMond, Level: model.Warning,
			Text: fmt.Sprintf("%d events are missing: ttmond had dropped them before ttmon-server was back", hello.First-1-from.Seq),
		}})
	}
	for {
		kind, frame, err := in.Next()
		if err != nil {
			return true, err
		}
		if kind != stream.KindEvent {
			continue
		}
		var e model.Event
		if err := json.Unmarshal(frame, &e); err != nil || e.Seq <= from.Seq {
			return true, errors.Join(err, errors.New("an event of ttmond is out of order"))
		}
		from.Seq = e.Seq
		e.From, e.Volatile = &model.EventOrigin{Log: hello.Log, Seq: e.Seq}, false
		sink.Events(ctx, []model.Event{e})
	}
}

func (h *Host) found(hello *stream.Hello) {
	h.mu.Lock()
	first := !h.since.IsZero()
	h.since, h.why = time.Time{}, nil
	h.mu.Unlock()
	if first {
		h.log.Info("following ttmond", "socket", h.path, "version", hello.Version)
	}
}

// errClosed is the end of a stream: ttmond stopped, or was replaced.
var errClosed = errors.New("ttmond closed the connection")

func (h *Host) lost(why error) {
	h.mu.Lock()
	first := h.since.IsZero() || h.why == nil
	if h.since.IsZero() {
		h.since = time.Now()
	}
	if errors.Is(why, io.EOF) || errors.Is(why, io.ErrUnexpectedEOF) {
		why = errClosed
	}
	h.why = why
	h.mu.Unlock()
	if first {
		h.log.Warn("cannot follow ttmond; will retry", "socket", h.path, "err", why)
	}
}
