package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ttmon/ttmon/internal/base/exit"
)

// openTimeout is how long a browser may take to come.
const openTimeout = time.Minute

// openBrowser opens an address in the browser, without its being an argument of a
// program: those are for every user to read in /proc, and it has a ticket in it. The
// browser is sent to a port of this program, which sends it on, once, if it is this
// user's.
func openBrowser(address string) error {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return exit.With(exit.Internal, "opening the browser: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
	defer cancel()
	d := &redirect{path: "/" + rand.Text(), to: address, uid: os.Getuid(), done: make(chan struct{})}
	server := http.Server{Handler: d, ConnContext: withPeer, ReadTimeout: 5 * time.Second, WriteTimeout: 5 * time.Second, IdleTimeout: time.Second}
	stopped := make(chan struct{})
	defer func() {
		brief, cancel := context.WithTimeout(context.Background(), time.Second) // for the answer to be read
		defer cancel()
		_ = server.Shutdown(brief)
		_ = server.Close()
		<-stopped
	}()
	go func() {
		defer close(stopped)
		_ = server.Serve(l) // where it fails, no browser comes
	}()
	cmd := exec.Command("xdg-open", "http://"+l.Addr().String()+d.path)
	if err := cmd.Start(); err != nil {
		return exit.With(exit.Internal, "opening the browser: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case <-d.done:
			return nil
		case err := <-ended:
			if err != nil {
				return exit.With(exit.Internal, "opening the browser: xdg-open: %w", err)
			}
			ended = nil // the browser runs by itself
		case <-ctx.Done():
			return exit.With(exit.Internal, "opening the browser: none has come within %v", openTimeout)
		}
	}
}

// redirect sends the first browser of a user on to an address.
type redirect struct {
	path, to string
	uid      int
	once     sync.Once
	done     chan struct{} // closed when a browser was sent on
}

// ServeHTTP implements http.Handler.
func (d *redirect) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	peer, _ := r.Context().Value(peerKey{}).(net.Conn)
	uid, err := userOf(peer)
	if r.URL.Path != d.path || err != nil || uid != d.uid {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	first := false
	d.once.Do(func() { first = true })
	if !first {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	w.Header().Set("Location", d.to)
	w.Header().Set("Referrer-Policy", "no-referrer")
	w.WriteHeader(http.StatusSeeOther)
	_ = http.NewResponseController(w).Flush()
	close(d.done)
}

type peerKey struct{}

func withPeer(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, peerKey{}, c)
}

// userOf returns the user whose socket is at the other end of a connection from this
// host, as the kernel lists it.
func userOf(c net.Conn) (int, error) {
	if c == nil {
		return 0, errors.New("no connection")
	}
	there, here := procAddress(c.RemoteAddr()), procAddress(c.LocalAddr())
	for _, name := range []string{"/proc/net/tcp", "/proc/net/tcp6"} { // a browser's socket may be of either family
		b, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(b)) {
			f := strings.Fields(line)
			if len(f) > 7 && strings.HasSuffix(f[1], there) && strings.HasSuffix(f[2], here) {
				return strconv.Atoi(f[7])
			}
		}
	}
	return 0, fmt.Errorf("the kernel does not list the socket of %v", c.RemoteAddr())
}

// procAddress is an IPv4 address as /proc/net/tcp has it, and the end of it in tcp6.
func procAddress(a net.Addr) string {
	t, ok := a.(*net.TCPAddr)
	if !ok || t.IP.To4() == nil {
		return "none"
	}
	ip := t.IP.To4()
	return fmt.Sprintf("%02X%02X%02X%02X:%04X", ip[3], ip[2], ip[1], ip[0], t.Port) // a number of this machine: little-endian
}
