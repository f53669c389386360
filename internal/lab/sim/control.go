package sim

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"

	"github.com/ttmon/ttmon/internal/lab/sim/control"
)

// listener answers on a host's control socket: one JSON request a line, one
// JSON answer a line.
type listener struct {
	net.Listener
	host  *control.Host
	mu    sync.Mutex
	conns map[net.Conn]bool
}

type request struct {
	Args []string `json:"args"`
}

type response struct {
	Output string `json:"output,omitempty"`
	Error  string `json:"error,omitempty"`
	PID    int    `json:"pid"` // of the host, for those who want to join it
}

func listen(path string, h *control.Host) (*listener, error) {
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("listening for commands: %w", err)
	}
	c := &listener{Listener: l, host: h, conns: make(map[net.Conn]bool)}
	go c.accept()
	return c, nil
}

func (c *listener) accept() {
	for {
		conn, err := c.Accept()
		if err != nil {
			return
		}
		c.mu.Lock()
		c.conns[conn] = true
		c.mu.Unlock()
		go c.talk(conn)
	}
}

func (c *listener) talk(conn net.Conn) {
	defer func() {
		conn.Close()
		c.mu.Lock()
		delete(c.conns, conn)
		c.mu.Unlock()
	}()
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		var q request
		a := response{PID: os.Getpid()}
		if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
			a.Error = "not a request: " + err.Error()
		} else if out, err := c.host.Do(q.Args); err != nil {
			a.Error = err.Error()
		} else {
			a.Output = out
		}
		if json.NewEncoder(conn).Encode(a) != nil {
			return
		}
	}
}

func (c *listener) close() {
	c.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.conns {
		conn.Close()
	}
}

// Ctl sends one command to the host that listens on a control socket and
// returns what it prints.
func Ctl(socket string, args ...string) (string, error) {
	a, err := call(socket, args)
	return a.Output, err
}

func call(socket string, args []string) (a response, err error) {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return a, fmt.Errorf("no simulated host answers on %s: %w", socket, err)
	}
	defer conn.Close()
	if err := json.NewEncoder(conn).Encode(request{args}); err != nil {
		return a, fmt.Errorf("asking the simulated host: %w", err)
	}
	if err := json.NewDecoder(conn).Decode(&a); err != nil {
		return a, fmt.Errorf("the simulated host ended without an answer: %w", err)
	}
	if a.Error != "" {
		return a, errors.New(a.Error)
	}
	return a, nil
}

// Ctl sends a command to the host: see ttmon-sim ctl --help.
func (h *Host) Ctl(args ...string) (string, error) { return Ctl(h.Control, args...) }
