// Package client asks a ttmond over its Unix socket.
//
// It is a source of snapshots for ttmon, next to reading the host directly.
package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/book/callsite"
	"github.com/ttmon/ttmon/internal/field/wire"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/model/apitype"
)

// SystemSocket is where ttmond listens by default.
const SystemSocket = "/run/ttmon/ttmond.sock"

// SocketPaths lists where a ttmond may listen, best first: root's, then the user's own.
func SocketPaths(getenv func(string) string) []string {
	return append([]string{SystemSocket}, userSockets(getenv, "ttmond.sock")...)
}

// ServerPaths lists where a ttmon-server may listen, best first: beside the
// ttmond at daemon, where one was named, or the system's, then the user's own.
func ServerPaths(daemon string, getenv func(string) string) []string {
	if daemon != "" {
		return []string{filepath.Join(filepath.Dir(daemon), "server.sock")}
	}
	return append([]string{apitype.ServerSocket}, userSockets(getenv, "server.sock")...)
}

// userSockets lists where a daemon of the user's own may listen. It was perhaps started
// where $XDG_RUNTIME_DIR was set and is not here, or the other way round.
func userSockets(getenv func(string) string, name string) (paths []string) {
	add := func(dir string) {
		path := filepath.Join(dir, "ttmon", name)
		if filepath.IsAbs(dir) && !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	add(getenv("XDG_RUNTIME_DIR"))
	if os.Geteuid() == 0 {
		return paths // the system's are root's own
	}
	add("/run/user/" + strconv.Itoa(os.Geteuid()))
	state := getenv("XDG_STATE_HOME")
	if home := getenv("HOME"); !filepath.IsAbs(state) && home != "" {
		state = filepath.Join(home, ".local/state")
	}
	add(state)
	return paths
}

// Client talks to one ttmond. It keeps its connection and makes a new one
// when the daemon has been restarted.
type Client struct {
	path string
	http *http.Transport
}

// New returns a client of the ttmond at a socket. It does not connect yet.
func New(path string) *Client { return &Client{path: path, http: transport(path)} }

// Path is the socket.
func (c *Client) Path() string { return c.path }

// Close ends the connection.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Snapshot asks for a snapshot of now.
func (c *Client) Snapshot(ctx context.Context) (*model.Snapshot, error) {
	s, _, err := c.SnapshotEvery(ctx, 0)
	return s, err
}

// SnapshotEvery asks for a snapshot for a caller that looks so often. late: it is older
// than befits that, because ttmond could not make a new one in time.
func (c *Client) SnapshotEvery(ctx context.Context, every time.Duration) (s *model.Snapshot, late bool, err error) {
	a, err := c.good(ctx, "/v1/snapshot?interval="+every.String())
	if err != nil {
		return nil, false, err
	}
	if s, err = wire.Decode(a.body); err != nil {
		return nil, false, fmt.Errorf("reading the snapshot of the ttmond at %s: %w", c.path, err)
	}
	s.Source = model.Daemon
	return s, a.header.Get(apitype.LateHeader) != "", nil
}

// Buffers asks for the largest live buffers of a process. One that does not
// report has none: ErrNotFound.
func (c *Client) Buffers(ctx context.Context, pid int, startTicks uint64, limit int) (list apitype.Buffers, err error) {
	target := fmt.Sprintf("/v1/processes/%d/buffers?limit=%d", pid, limit)
	if startTicks != 0 {
		target += fmt.Sprintf("&start=%d", startTicks)
	}
	err = c.read(ctx, target, fmt.Sprintf("the buffers of process %d", pid), &list)
	return list, err
}

// Stale asks for what dead processes left in accounting regions.
func (c *Client) Stale(ctx context.Context) (*wire.Stale, error) {
	body, err := c.get(ctx, "/v1/stale")
	if err != nil {
		return nil, err
	}
	return wire.DecodeStale(body)
}

// Blocks asks for the allocators of a process, with every block. Of one that is
// not watched nothing is known: ErrNotFound.
func (c *Client) Blocks(ctx context.Context, pid int) (*blocks.Process, []callsite.Site, error) {
	var answer struct {
		Process *blocks.Process
		Sites   []callsite.Site
	}
	err := c.read(ctx, fmt.Sprintf("/v1/processes/%d/blocks", pid), fmt.Sprintf("the blocks of process %d", pid), &answer)
	if err == nil && answer.Process == nil {
		err = fmt.Errorf("the ttmond at %s sent no blocks of process %d", c.path, pid)
	}
	return answer.Process, answer.Sites, err
}

// read asks for something and reads the JSON of it.
func (c *Client) read(ctx context.Context, target, what string, to any) error {
	body, err := c.get(ctx, target)
	if err != nil {
		return err
	}
	return c.parse(body, what, to)
}

// parse reads the JSON of an answer.
func (c *Client) parse(body []byte, what string, to any) error {
	if err := json.Unmarshal(body, to); err != nil {
		return fmt.Errorf("reading %s from %s: %w", what, c.path, err)
	}
	return nil
}

// get sends a request and returns the body of its answer.
func (c *Client) get(ctx context.Context, target string) ([]byte, error) {
	a, err := c.good(ctx, target)
	return a.body, err
}

// good sends a request. An answer that is none of success is an error.
func (c *Client) good(ctx context.Context, target string) (answer, error) {
	a, err := c.send(ctx, http.MethodGet, target)
	switch {
	case err != nil:
		return answer{}, c.failed(err)
	case a.status == 404:
		return answer{}, fmt.Errorf("%w: %s", ErrNotFound, reason(a.body))
	case a.status == 410:
		return answer{}, fmt.Errorf("%w: %s", ErrElsewhere, reason(a.body))
	case a.status == 403: // the reason is all that helps
		return answer{}, errors.New(reason(a.body))
	case a.status != 200:
		return answer{}, fmt.Errorf("the ttmond at %s answers %d: %s", c.path, a.status, reason(a.body))
	}
	return a, nil
}

// failed says that a call got no answer, and why.
func (c *Client) failed(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return &dialError{path: c.path, err: op}
	}
	return fmt.Errorf("the daemon at %s does not respond: %w", c.path, err)
}

// dialError names the socket once, where net's own names it twice.
type dialError struct {
	path string
	err  *net.OpError
}

func (e *dialError) Error() string {
	cause := error(e.err)
	if errno, ok := errors.AsType[syscall.Errno](cause); ok {
		cause = errno
	}
	return fmt.Sprintf("cannot connect to %s: %v", e.path, cause)
}

func (e *dialError) Unwrap() error { return e.err }

// reason is the sentence in an error's body.
func reason(body []byte) string {
	var e struct{ Error string }
	if json.Unmarshal(body, &e) == nil && e.Error != "" {
		return e.Error
	}
	return strconv.Quote(string(body[:min(len(body), 80)]))
}

// answer is what a daemon sent, read to its end.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// ask is send for callers that need no header.
func (c *Client) ask(ctx context.Context, method, target string) (status int, body []byte, err error) {
	a, err := c.send(ctx, method, target)
	return a.status, a.body, err
}

// send sends a request, and again on a new connection if the old one was closed by a
// restart of the daemon.
func (c *Client) send(ctx context.Context, method, target string) (answer, error) {
	q, err := http.NewRequestWithContext(ctx, method, "http://ttmond"+target, http.NoBody)
	if err != nil {
		return answer{}, err
	}
	r, err := c.http.RoundTrip(q)
	if err != nil {
		return answer{}, err
	}
	body, err := readBody(r)
	return answer{r.StatusCode, r.Header, body}, err
}
