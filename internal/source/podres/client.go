// Package podres asks a node's kubelet which pods have been given which devices:
// the PodResources API, with what device plugins and dynamic resource allocation
// (DRA) have handed out.
//
// It is a source for ttmond alone, which asks every few seconds. The kubelet speaks
// gRPC on a Unix socket. One call of it is a few frames of HTTP/2, which http2.go
// writes and reads, so that ttmond links neither gRPC nor net/http with its TLS
// (docs/decisions/0005-podresources.md). The test with the kubelet's own API module
// is in internal/e2e/kube.
package podres

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/url"
	"time"

	"github.com/ttmon/ttmon/internal/model"
)

// DefaultSocket is where the kubelet listens, on its host.
const DefaultSocket = "/var/lib/kubelet/pod-resources/kubelet.sock"

// maxAnswer is more than a node full of pods takes.
const maxAnswer = 16 << 20

// Client asks one kubelet.
type Client struct{ path string }

// New returns a client for the socket at path. It does not connect yet.
func New(path string) *Client { return &Client{path: path} }

// List is all that pods have been given.
func (c *Client) List(ctx context.Context) ([]model.PodClaim, error) {
	b, err := c.call(ctx, "/v1.PodResourcesLister/List", nil)
	if err != nil {
		return nil, fmt.Errorf("asking the kubelet at %s which pods have devices: %w", c.path, err)
	}
	list, err := parseList(b)
	if err != nil {
		return nil, fmt.Errorf("reading what the kubelet at %s says: %w", c.path, err)
	}
	return list, nil
}

// call makes one unary call of gRPC.
func (c *Client) call(ctx context.Context, method string, message []byte) ([]byte, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "unix", c.path)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	frame := binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message)))
	x := newExchange(conn)
	if err := x.post(method, append(frame, message...)); err != nil {
		return nil, ended(ctx, err)
	}
	if err := x.answer(); err != nil {
		return nil, ended(ctx, err)
	}
	return x.message()
}

// ended is why a call failed: its time was over, if it was.
func ended(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// message is what the kubelet answered, or the error that it told.
func (x *exchange) message() ([]byte, error) {
	if x.status != "200" {
		return nil, fmt.Errorf("HTTP status %q", x.status)
	}
	if x.grpcStatus != "0" {
		text := x.grpcMessage
		if plain, err := url.PathUnescape(text); err == nil {
			text = plain
		}
		return nil, fmt.Errorf("gRPC status %q: %s", x.grpcStatus, text)
	}
	body := x.body
	switch {
	case len(body) < 5 || body[0] != 0:
		return nil, fmt.Errorf("an answer of %d bytes that is no plain message", len(body))
	case uint64(binary.BigEndian.Uint32(body[1:])) != uint64(len(body)-5):
		return nil, fmt.Errorf("an answer of %d bytes that should have %d", len(body), uint64(binary.BigEndian.Uint32(body[1:]))+5)
	}
	return body[5:], nil
}
