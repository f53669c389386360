package node

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/collect"
	"github.com/ttmon/ttmon/internal/handover"
	"github.com/ttmon/ttmon/internal/ledger"
	"github.com/ttmon/ttmon/internal/source/allocsock"
	"github.com/ttmon/ttmon/internal/version"
)

// handedState is what a successor gets beside descriptors and the ledger.
type handedState struct {
	Paused int64           `json:"paused"` // when clients began to wait: ns of the boot clock; 0: they did not
	Server allocsock.State `json:"server"`
	// Learned is what the collector found out; nil in one that never had a
	// collector before it.
	Learned *collect.Learned `json:"learned,omitempty"`
	// Uprobe are the accounts of watched allocators, from predecessors that did not
	// pass them as a file.
	Uprobe json.RawMessage `json:"uprobe,omitempty"`
}

// succession is a process that takes our place.
type succession struct {
	conn   *net.UnixConn
	stream *os.File
	copier *ledger.Copier
	full   chan struct{} // closed when changes come faster than they go: time to pause
	ready  chan error    // reports whether the successor has caught up
	done   chan error    // reports whether it has taken over
	keeper bool          // it only keeps connections
	// learned is asked for before the pause: the collector may be at work.
	learned *collect.Learned
	watched *exportedWatcher // nil: nothing is watched, or not handed over
}

// errHandedOver ends a daemon whose place another has taken.
var errHandedOver = errors.New("handed over")

// startSuccession starts to stream the state, while clients are served.
func (d *ttmond) startSuccession(conn *net.UnixConn) (*succession, error) {
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return nil, fmt.Errorf("making a pipe for a successor: %w", err)
	}
	defer unix.Close(pipe[0])
	_, _ = unix.FcntlInt(uintptr(pipe[1]), unix.F_SETPIPE_SZ, 1<<20) // larger is faster, no more
	w := os.NewFile(uintptr(pipe[1]), nameStream)
	if err := handover.SendFiles(conn, []handover.File{{Name: nameStream, FD: pipe[0]}}, handover.Timeout); err != nil {
		w.Close()
		return nil, err
	}
	s := &succession{conn: conn, stream: w, full: make(chan struct{}), ready: make(chan error, 1), done: make(chan error, 1)}
	s.learned = d.learned()
	s.copier = d.ledger.StartCopy(w, func() { close(s.full) })
	return s, nil
}

// learned is what the collector has found out; a keeper hands on what it got.
func (d *ttmond) learned() *collect.Learned {
	if d.collector == nil {
		return d.inherited.state.Learned
	}
	return d.collector.collector.Learned()
}

// copy sends everything once and signals ready when the successor has it.
func (s *succession) copy() {
	_ = s.stream.SetWriteDeadline(time.Now().Add(10 * handover.Timeout))
	err := s.copier.Send()
	if err == nil {
		err = handover.AwaitReady(s.conn)
	}
	s.ready <- err
}

// waitCaughtUp returns when it is time to pause: the successor has caught up, or
// never will, or changes come faster than they go.
func (s *succession) waitCaughtUp(ctx context.Context) {
	select {
	case err := <-s.ready:
		s.ready <- err
	case <-s.full:
	case <-ctx.Done():
	}
}

// end ends a succession, whatever became of it.
func (s *succession) end(err error) {
	s.watched.end(err == nil)
	s.copier.Cancel()
	s.stream.Close()
	s.done <- err
}

// finishHandover hands over the rest. The server has been stopped. After an error it can
// resume.
func (d *ttmond) finishHandover(s *succession, paused time.Time) (err error) {
	if err := <-s.ready; err != nil { // it was waited for, unless changes come too fast
		return err
	}
	if d.keeping.Load() {
		d.server.AcceptAll()
	}
	state, clients, err := d.server.Export()
	if err != nil {
		return err
	}
	files := d.files(s, clients)
	if s.watched != nil {
		files = append(files, s.watched.files...)
	}
	var rest errgroup.Group
	rest.Go(func() error {
		defer s.stream.Close() // or the successor would wait for more
		_ = s.stream.SetWriteDeadline(time.Now().Add(handover.PauseTimeout))
		w := bufio.NewWriterSize(s.stream, 64<<10)
		if err := s.copier.Finish(); err != nil {
			return err
		}
		if err := json.NewEncoder(w).Encode(handedState{Paused: bootTime(paused), Server: state, Learned: s.learned}); err != nil {
			return fmt.Errorf("handing over the state: %w", err)
		}
		return w.Flush()
	})
	err = handover.SendFiles(s.conn, files, handover.PauseTimeout)
	if err = errors.Join(err, rest.Wait()); err != nil {
		return err
	}
	err = handover.AwaitTaken(s.conn)
	return err
}

// files lists what a successor gets. They stay the daemon's.
func (d *ttmond) files(s *succession, clients []int) (files []handover.File) {
	add := func(name string, fd int) {
		if fd >= 0 {
			files = append(files, handover.File{Name: name, FD: fd})
		}
	}
	add(withPath(nameLock, d.cfg.API.Socket), d.inherited.lock)
	add(withPath(nameHandover, d.cfg.API.Socket), d.handoverFD)
	if !d.keeping.Load() && !s.keeper {
		add(withPath(nameAPI, d.cfg.API.Socket), d.inherited.api)
	}
	switch {
	case d.keeping.Load(): // it has no name any more; everybody on it was accepted
	case !s.keeper || !d.inherited.allocActivated:
		// A keeper gets it as well, though it has no name any more: who was
		// about to connect is accepted.
		add(withPath(nameAlloc, d.cfg.Alloc.Socket), d.server.Listener())
	}
	for _, fd := range clients {
		add(nameClient, fd)
	}
	return files
}

// receiveState takes over on a connection to a daemon, up to the point where it has paused
// and waits for our confirmation.
func (s *inherited) receiveState(c Config, conn *net.UnixConn) error {
	if err := handover.RequestTakeover(conn); err != nil {
		return err
	}
	first, err := handover.ReceiveFiles(conn, handover.Timeout)
	if err != nil {
		return err
	}
	stream := extractOne(&first, nameStream)
	handover.Close(first)
	if stream < 0 {
		return errors.New("it gave no stream")
	}
	_ = unix.SetNonblock(stream, true)
	f := os.NewFile(uintptr(stream), nameStream)
	defer f.Close()
	var taken []handover.File
	var both errgroup.Group
	in := bufio.NewReaderSize(f, ledger.ReadBuffer)
	_ = f.SetReadDeadline(time.Now().Add(10 * handover.Timeout))
	err = s.ledger.ReadState(in, func() error {
		if err := handover.SendReady(conn); err != nil {
			return err
		}
		_ = f.SetReadDeadline(time.Now().Add(handover.Timeout))
		// Descriptors come beside the stream; either may have to wait.
		both.Go(func() (err error) {
			taken, err = handover.ReceiveFiles(conn, handover.Timeout)
			return err
		})
		return nil
	})
	if err == nil {
		if err = json.NewDecoder(in).Decode(&s.state); err != nil {
			err = fmt.Errorf("reading the state of the connections: %w", err)
		}
	}
	if err != nil {
		conn.Close() // ends the other half
	}
	if err = errors.Join(err, both.Wait()); err != nil {
		handover.Close(taken)
		return err
	}
	s.from, s.restored = conn, true
	return s.assignFiles(c, &taken)
}

// assignFiles assigns the descriptors of a predecessor.
func (s *inherited) assignFiles(c Config, files *[]handover.File) error {
	defer func() { handover.Close(*files) }()
	s.clients = handover.Extract(files, nameClient)
	s.watched = extractWatched(files)
	s.alloc = extractOne(files, withPath(nameAlloc, c.Alloc.Socket))
	s.api = extractOne(files, withPath(nameAPI, c.API.Socket))
	if s.lock = extractOne(files, withPath(nameLock, c.API.Socket)); s.lock < 0 {
		return fmt.Errorf("pid %d gave no lock for %s", s.fromHello.PID, c.API.Socket)
	}
	fd := extractOne(files, withPath(nameHandover, c.API.Socket))
	if fd < 0 {
		return fmt.Errorf("pid %d gave no socket for a successor", s.fromHello.PID)
	}
	f := os.NewFile(uintptr(fd), nameHandover)
	defer f.Close()
	l, err := net.FileListener(f)
	if err != nil {
		return fmt.Errorf("listening for a successor: %w", err)
	}
	s.successors = l.(*net.UnixListener)
	return nil
}

// acceptRetry is how long a successor waits for the next try when there was no
// descriptor or memory for its connection.
const acceptRetry = 50 * time.Millisecond

// awaitSuccessors answers processes that want to take over. That one of them cannot
// be accepted is no reason to exit: all clients would lose their connection.
func (d *ttmond) awaitSuccessors(ctx context.Context) error {
	l := d.inherited.successors
	defer context.AfterFunc(ctx, func() { _ = l.SetDeadline(time.Now()) })()
	for {
		conn, err := l.AcceptUnix()
		switch {
		case err == nil:
			d.answerSuccessor(ctx, conn)
			conn.Close()
			continue
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("waiting for a successor: %w", err)
		}
		d.log.Warn("cannot accept successor; will retry", "err", err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(acceptRetry):
		}
	}
}

func (d *ttmond) answerSuccessor(ctx context.Context, conn *net.UnixConn) {
	hello := handover.Hello{Version: version.Version, Keeper: d.keeping.Load()}
	if err := handover.SendHello(conn, hello); err != nil {
		d.log.Debug("connection is not a takeover request", "err", err)
		return
	}
	switch err := d.succeed(ctx, conn, false); {
	case err == nil:
		d.log.Info("handed over to new ttmond")
	case ctx.Err() == nil:
		d.log.Warn("takeover failed; continuing", "err", err)
	}
}

// succeed hands over to the process at the other end.
func (d *ttmond) succeed(ctx context.Context, conn *net.UnixConn, keeper bool) error {
	d.succeeding.Lock()
	defer d.succeeding.Unlock()
	s, err := d.startSuccession(conn)
	if err != nil {
		return err
	}
	s.keeper = keeper
	select {
	case d.successors <- s:
	case <-ctx.Done():
		s.end(ctx.Err())
		return ctx.Err()
	}
	s.copy()
	return <-s.done
}

// bootTime is a time on the clock that all processes share.
func bootTime(t time.Time) int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return 0
	}
	return ts.Nano() - time.Since(t).Nanoseconds()
}
