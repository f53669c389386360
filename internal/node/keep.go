package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/node/handover"
	"github.com/ttmon/ttmon/internal/node/unixsock"
)

// A stop closes no connection: an old client would die of it at its next report. A
// process of ours stays behind and serves them: the keeper. It gets everything as a
// successor does, and its configuration with it: there is no file that could be
// wrong, missing or in the way. If no keeper can be started, we keep them ourselves.
//
// That systemd could keep the connections is not enough: no process would read them,
// and a client whose reports fill its socket waits.

// keeperTries is how often a keeper is started: on a busy machine one may not
// be there as soon as clients can be made to wait.
const keeperTries = 5

// errNoKeeper is the error of a keeper that could not be started at all.
var errNoKeeper = errors.New("starting a keeper")

const (
	keepFD     = 3             // where a keeper finds us
	keepConfig = "TTMOND_KEEP" // the configuration, as JSON
)

// shutDown is called when the daemon is to end. It returns when it may.
func (d *ttmond) shutDown(ctx context.Context) error {
	_ = handover.Notify("STOPPING=1")
	d.unlink()
	clients := d.server.Stats().Connections
	d.log.Info("stopping", "connections", clients)
	switch {
	case clients == 0:
		return nil
	case !d.cfg.Alloc.Keeper:
		d.log.Warn("closing client connections; old clients may exit at their next report", "connections", clients)
		return nil
	}
	var err error
	for range keeperTries {
		var pid int
		_ = handover.Notify("EXTEND_TIMEOUT_USEC=60000000") // systemd would kill us otherwise, and everybody with us
		if pid, err = d.startKeeper(ctx); err == nil {
			d.log.Info("clients still connected; left a process to hold their connections",
				"connections", clients, "pid", pid)
			return errHandedOver
		}
		if errors.Is(err, errNoKeeper) || ctx.Err() != nil {
			break
		}
		d.log.Warn("cannot hand client connections to the holding process", "pid", pid, "err", err)
	}
	d.log.Error("cannot start a process to hold connections; staying until they close",
		"connections", clients, "err", err)
	return d.keep(ctx)
}

// unlink removes the sockets that are ours, so that new clients see that no daemon
// serves.
func (d *ttmond) unlink() {
	if !d.inherited.allocActivated && d.allocProblem.Load() == nil {
		removeOwn(d.cfg.Alloc.Socket)
	}
	if !d.inherited.apiActivated {
		removeOwn(d.cfg.API.Socket)
	}
}

// removeOwn removes a socket if it is ours.
func removeOwn(path string) {
	var st unix.Stat_t
	if unix.Lstat(path, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFSOCK && int(st.Uid) == os.Geteuid() {
		_ = os.Remove(path)
	}
}

// startKeeper starts a keeper and hands everything but the API to it.
func (d *ttmond) startKeeper(ctx context.Context) (pid int, err error) {
	conn, theirs, err := handover.Pair()
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	cmd, err := d.keeperCommand(theirs)
	if err == nil {
		err = cmd.Start()
	}
	theirs.Close()
	if err != nil {
		return 0, fmt.Errorf("%w: %w", errNoKeeper, err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // its end closes the connection
	}()
	pid = cmd.Process.Pid
	if err = d.handOver(ctx, conn, false); err != nil {
		_ = cmd.Process.Kill()
		<-ended
	}
	return pid, err
}

// handOver hands everything but the API to the process at the other end. The socket
// on which clients connect has no name any more; last: no process serves it after
// this, so who is about to connect is accepted.
func (d *ttmond) handOver(ctx context.Context, conn *net.UnixConn, last bool) error {
	learned := d.learned()
	return d.whileStopped(ctx, true, func(paused time.Time) error {
		if last {
			d.server.AcceptAll()
		}
		s, err := d.save(paused, learned, nil)
		if err != nil {
			return err
		}
		defer s.close()
		if !last && !d.inherited.allocActivated {
			s.add(withPath(nameAlloc, d.cfg.Alloc.Socket), d.server.Listener())
		}
		return handover.Send(conn, s.files)
	})
}

// keeperCommand is how a keeper is started: by the very file that we run,
// whatever has become of its name.
func (d *ttmond) keeperCommand(theirs *os.File) (*exec.Cmd, error) {
	cfg := d.cfg
	cfg.Log.Format = "text"
	b, err := json.Marshal(cfg)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("/proc/self/exe", "--keep")
	cmd.Args[0] = os.Args[0]
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		for _, name := range []string{"NOTIFY_SOCKET=", "WATCHDOG_", "LISTEN_", "FDSTORE="} {
			if strings.HasPrefix(v, name) {
				return true
			}
		}
		return false
	})
	cmd.Env = append(cmd.Env, keepConfig+"="+string(b))
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Dir = "/"
	if os.Getenv("JOURNAL_STREAM") != "" {
		cmd.Stderr = os.Stderr
	}
	return cmd, nil
}

// KeeperConfig is the configuration of a keeper: that of the daemon that
// started it.
func KeeperConfig() (c Config, err error) {
	if err := json.Unmarshal([]byte(os.Getenv(keepConfig)), &c); err != nil {
		return c, fmt.Errorf("reading the configuration from %s: %w", keepConfig, err)
	}
	c.keep = true
	return c, nil
}

// keep returns when no client is connected, or when the next ttmond, which asks for
// the connections, has them.
func (d *ttmond) keep(ctx context.Context) error {
	l, err := listenForNext(keeperPath(d.cfg))
	if err != nil {
		d.log.Error("cannot listen for next ttmond; it will not get the connections", "err", err)
		return d.waitForClients(ctx, nil)
	}
	taken := make(chan struct{})
	go d.answerNext(ctx, l, taken)
	defer l.Close()
	err = d.waitForClients(ctx, taken)
	if err == nil {
		_ = os.Remove(keeperPath(d.cfg)) // the lock is still ours
	}
	return err
}

// listenForNext listens for the next ttmond. Only our own user and root can use the
// socket.
func listenForNext(path string) (net.Listener, error) {
	fd, err := unixsock.Listen(unixsock.Options{Path: path, Mode: 0o600})
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	return listenerOf(fd)
}

// waitForClients returns when no client is connected.
func (d *ttmond) waitForClients(ctx context.Context, taken <-chan struct{}) error {
	for n := 0; d.server.Stats().Connections > 0; n++ {
		if n%50 == 0 {
			_ = handover.Notify("EXTEND_TIMEOUT_USEC=60000000")
		}
		select {
		case <-taken:
			return errHandedOver
		case <-ctx.Done():
			return nil
		case <-time.After(200 * time.Millisecond):
		}
	}
	return nil
}

// acceptRetry is how long the next try waits when there was no descriptor or memory
// for a connection.
const acceptRetry = 50 * time.Millisecond

// answerNext hands over to the first process that asks and can take over. That one of
// them cannot be accepted is no reason to exit: all clients would lose their
// connection.
func (d *ttmond) answerNext(ctx context.Context, l net.Listener, taken chan<- struct{}) {
	for ctx.Err() == nil {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			d.log.Warn("cannot accept successor; will retry", "err", err)
			time.Sleep(acceptRetry)
			continue
		}
		err = d.handOver(ctx, conn.(*net.UnixConn), true)
		conn.Close()
		switch {
		case err == nil:
			d.log.Info("handed over to new ttmond")
			close(taken)
			return
		case ctx.Err() == nil:
			d.log.Warn("takeover failed; continuing", "err", err)
		}
	}
}
