package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"
	"time"
)

// ErrNotFound is the error of asking for what the daemon does not know.
var ErrNotFound = errors.New("not known to ttmond")

// ErrElsewhere is the error of asking ttmond for what ttmon-server keeps.
var ErrElsewhere = errors.New("no ttmon-server runs here (systemctl start ttmon-server)")

// maxBody is a bound that no answer of ttmond comes near.
const maxBody = 256 << 20

// transport connects to a socket.
func transport(path string) *http.Transport {
	return &http.Transport{
		DialContext:            func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx, path) },
		DisableCompression:     true,
		MaxResponseHeaderBytes: 64 << 10,
	}
}

// dial connects. Where many wait to be accepted, it waits with them.
func dial(ctx context.Context, path string) (net.Conn, error) {
	var d net.Dialer
	for {
		c, err := d.DialContext(ctx, "unix", path)
		if !errors.Is(err, syscall.EAGAIN) {
			return c, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// readBody reads an answer to its end.
func readBody(r *http.Response) ([]byte, error) {
	defer r.Body.Close()
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err == nil && len(body) > maxBody {
		err = fmt.Errorf("the answer has more than %d bytes", maxBody)
	}
	return body, err
}
