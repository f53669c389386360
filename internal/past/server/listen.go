package server

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/prometheus/exporter-toolkit/web"

	"github.com/ttmon/ttmon/internal/past/httpguard"
	"github.com/ttmon/ttmon/internal/view/prom"
	page "github.com/ttmon/ttmon/internal/view/web"
)

// Bounds of the TCP listener.
const (
	maxHTTPConns    = 512 // a page that is open has two
	maxHTTPRequests = 448 // under way at once, apart from scrapes
	maxScrapes      = 4
	httpReadTimeout = 5 * time.Second
	httpIdleTimeout = time.Minute
)

// listen serves HTTP until ctx is done. An address that is taken is tried
// again and again: a predecessor may be about to leave it.
func (s *Server) listen(ctx context.Context) error {
	address := s.cfg.Listen.Address
	if address == listenOff {
		return nil
	}
	l, err := bind(ctx, address, s.log)
	if err != nil {
		return nil // ctx is done
	}
	bound := l.Addr().String()
	s.bound.Store(&bound)
	s.log.Info("serving HTTP", "address", bound, "page", s.pageAddress())
	limited := httpguard.NewListener(l, maxHTTPConns)
	s.http.Store(limited)
	if err := serveHTTP(ctx, limited, s.routes(), s.cfg.Listen, s.log); err != nil {
		s.log.Error("HTTP listener failed", "address", address, "err", err)
	}
	return nil
}

// serveHTTP answers on l until ctx is done, with the guards of the configuration.
func serveHTTP(ctx context.Context, l net.Listener, h http.Handler, c Listen, log *slog.Logger) error {
	host, _, _ := net.SplitHostPort(c.Address)
	server := &http.Server{
		Handler:           httpguard.Guard(httpguard.Reserve(h, maxHTTPRequests, isMonitoring), httpguard.Options{OnlyLocal: loopback(host), Page: isPage}),
		ReadHeaderTimeout: httpReadTimeout,
		ReadTimeout:       2 * httpReadTimeout,
		IdleTimeout:       httpIdleTimeout,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	httpguard.Attach(server)
	defer context.AfterFunc(ctx, func() {
		brief, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
		defer cancel()
		if server.Shutdown(brief) != nil {
			_ = server.Close()
		}
	})()
	off, file := false, c.WebConfig
	quiet := slog.New(slog.DiscardHandler) // it would repeat what we say
	err := web.Serve(l, server, &web.FlagConfig{WebSystemdSocket: &off, WebConfigFile: &file, WebListenAddresses: &[]string{c.Address}}, quiet)
	if err != nil && !errors.Is(err, http.ErrServerClosed) && ctx.Err() == nil {
		return err
	}
	return nil
}

// bind listens on an address, however long that takes.
func bind(ctx context.Context, address string, log *slog.Logger) (net.Listener, error) {
	wait, said := 100*time.Millisecond, false
	for {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
		if err == nil {
			return l, nil
		}
		if wait > time.Second && !said {
			log.Warn("cannot listen for HTTP; will retry", "err", fmt.Errorf("listening: %w", err))
			said = true
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(wait):
			wait = min(2*wait, 10*time.Second)
		}
	}
}

// isMonitoring reports whether a path is what those ask for who watch over the host:
// they are answered while others take all they can. It costs little.
func isMonitoring(path string) bool { return path == "/metrics" || strings.HasPrefix(path, "/-/") }

// isPage reports whether a path is a file of the page, and nothing that costs.
func isPage(path string) bool {
	for _, costly := range []string{"/api/", "/prometheus/", "/metrics", "/-/"} {
		if strings.HasPrefix(path, costly) {
			return false
		}
	}
	return true
}

// pageAddress is where browsers find the page; empty: nowhere.
func (s *Server) pageAddress() string {
	bound := s.bound.Load()
	if bound == nil {
		return ""
	}
	host, _, _ := net.SplitHostPort(s.cfg.Listen.Address)
	_, port, _ := net.SplitHostPort(*bound)
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		host = s.hostName()
	}
	scheme := "http"
	if s.cfg.Listen.tls() {
		scheme = "https"
	}
	return scheme + "://" + net.JoinHostPort(host, port) + "/"
}

// routes is what the listener serves.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", s.metrics())
	mux.HandleFunc("GET /-/healthy", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ttmon-server is alive\n")) })
	mux.HandleFunc("GET /-/ready", func(w http.ResponseWriter, _ *http.Request) {
		if s.recorder.page(prom.Text) == nil {
			http.Error(w, "there is no snapshot yet", http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("ttmon-server is ready\n"))
	})
	api := s.api.Handler()
	mux.Handle("/api/v1/", http.StripPrefix("/api", api))
	mux.Handle("/prometheus/", api)
	s.cfg.Fleet.serve(mux)
	mux.Handle("/", page.Handler())
	return mux
}

// metrics answers scrapes. It only formats the last collection.
func (s *Server) metrics() http.Handler {
	slots := make(chan struct{}, maxScrapes)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		format := prom.Negotiate(r.Header.Get("Accept"))
		b := s.recorder.page(format)
		if b == nil {
			http.Error(w, "there is no snapshot that is current", http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", format.ContentType())
		if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			select {
			case slots <- struct{}{}:
			case <-r.Context().Done():
				return
			}
			b = zipped(b)
			<-slots
			w.Header().Set("Content-Encoding", "gzip")
		}
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(10 * time.Second))
		_, _ = w.Write(b)
	})
}

func zipped(b []byte) []byte {
	var out bytes.Buffer
	z, _ := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	_, _ = z.Write(b)
	_ = z.Close()
	return out.Bytes()
}
