// Package podres asks a node's kubelet which pods have been given which devices:
// the PodResources API, with what device plugins and dynamic resource allocation
// (DRA) have handed out.
//
// It is a source for ttmond alone, which asks every few seconds. The kubelet speaks
// gRPC on a Unix socket: one call is a request of HTTP/2 whose answer ends with a
// status, which takes net/http and not gRPC's own library
// (docs/decisions/0005-podresources.md). The test with the kubelet's own API module
// is in internal/lab/e2e/kube.
package podres

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"

	"github.com/ttmon/ttmon/internal/model"
)

// DefaultSocket is where the kubelet listens, on its host.
const DefaultSocket = "/var/lib/kubelet/pod-resources/kubelet.sock"

// maxAnswer is more than a node full of pods takes.
const maxAnswer = 16 << 20

// maxHeaders is more than any answer has before and after its message.
const maxHeaders = 64 << 10

// Client asks one kubelet.
type Client struct {
	path string
	http *http.Transport
}

// New returns a client for the socket at path. It does not connect yet.
func New(path string) *Client {
	var onlyHTTP2 http.Protocols
	onlyHTTP2.SetUnencryptedHTTP2(true)
	return &Client{path: path, http: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		},
		Protocols: &onlyHTTP2, DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: maxHeaders,
	}}
}

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
	frame := binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message)))
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://kubelet"+method, bytes.NewReader(append(frame, message...)))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/grpc")
	r.Header.Set("Te", "trailers")
	answer, err := c.http.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("HTTP status %d", answer.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, err
	case len(body) > maxAnswer:
		return nil, fmt.Errorf("an answer of more than %d bytes", maxAnswer)
	}
	return parseAnswer(answer, body)
}

// parseAnswer is the message of an answer that was read, or the error in it.
func parseAnswer(answer *http.Response, body []byte) ([]byte, error) {
	end := answer.Trailer
	if answer.Header.Get("Grpc-Status") != "" { // an error that comes without a message
		end = answer.Header
	}
	if status := end.Get("Grpc-Status"); status != "0" {
		text := end.Get("Grpc-Message")
		if plain, err := url.PathUnescape(text); err == nil {
			text = plain
		}
		return nil, fmt.Errorf("gRPC status %q: %s", status, text)
	}
	switch {
	case len(body) < 5 || body[0] != 0:
		return nil, fmt.Errorf("an answer of %d bytes that is no plain message", len(body))
	case uint64(binary.BigEndian.Uint32(body[1:])) != uint64(len(body)-5):
		return nil, fmt.Errorf("an answer of %d bytes that should have %d", len(body), uint64(binary.BigEndian.Uint32(body[1:]))+5)
	}
	return body[5:], nil
}
