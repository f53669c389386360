package node

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/base/version"
	"github.com/ttmon/ttmon/internal/collect"
	"github.com/ttmon/ttmon/internal/node/daemon"
	"github.com/ttmon/ttmon/internal/node/handover"
	"github.com/ttmon/ttmon/internal/node/unixsock"
)

// There is one way in which a running ttmond changes, whether its configuration is
// another or its release: the program is executed again, in the same process. What
// it has open stays open, and it resumes where it was. Before anything stops, the
// program that is to come reads the state in a child, and the configuration; if it
// cannot, nothing has happened.

// No caller can say which program: one who may ask, such as root of a container that
// was given the socket, may have fewer rights than we have.

// program is what is executed: what we are, under the name at which the next release
// will be.
func program() string {
	own, err := os.Executable()
	if err != nil {
		own = "/proc/self/exe"
	}
	called, err := exec.LookPath(os.Args[0]) // a symbolic link, perhaps
	if err == nil {
		called, err = filepath.Abs(called)
	}
	if err != nil || !sameFile(own, called) {
		return own
	}
	return called
}

func sameFile(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// request is a restart that was checked.
type request struct {
	conn    int // on which the next one answers; -1: no client waits
	answer  []byte
	learned *collect.Learned
}

// restartEvery is the least time between two restarts: clients wait at each.
const restartEvery = 250 * time.Millisecond

// errBusy means that a restart has begun already.
var errBusy = errors.New("another restart is under way")

// restart checks whether our program could go on in our place. It returns what will
// change, and begin, which does it: it must be called, or no other restart begins.
func (d *ttmond) restart(ctx context.Context) (said []string, begin func(conn int, answer []byte), err error) {
	if !d.restarting.TryLock() {
		return nil, nil, errBusy
	}
	defer func() {
		if err != nil {
			d.restarting.Unlock()
		}
	}()
	select {
	case <-time.After(time.Until(d.started.Add(restartEvery))):
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	found, err := d.try(ctx)
	if err != nil {
		return nil, nil, err
	}
	return d.changes(found), func(conn int, answer []byte) { d.next <- request{conn: conn, answer: answer} }, nil
}

// checkTimeout is how long the program that is to come may take to say that it can.
const checkTimeout = 10 * time.Second

// try has the program read the state, in a child, while clients are served.
func (d *ttmond) try(ctx context.Context) (found Checked, err error) {
	learned := d.learned()
	cmd := exec.Command(d.program, append([]string{"--check-state"}, os.Args[1:]...)...)
	var lent func()
	if err := d.whileStopped(ctx, false, func(paused time.Time) error {
		s, err := d.save(paused, learned, nil)
		if err != nil {
			return err
		}
		defer s.close()
		var few []handover.File
		for _, f := range s.files {
			if f.Name == nameState || f.Name == nameBuffers {
				few = append(few, f)
			}
		}
		lent, err = handover.Lend(cmd, few)
		return err
	}); err != nil {
		return found, fmt.Errorf("writing the state down: %w", err)
	}
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	err = cmd.Start()
	lent()
	if err == nil {
		late := time.AfterFunc(checkTimeout, func() { _ = cmd.Process.Kill() })
		err = cmd.Wait()
		late.Stop()
	}
	if err == nil {
		err = json.Unmarshal(out.Bytes(), &found)
	}
	if err != nil {
		return found, fmt.Errorf("%s cannot take over: %w: %s", d.program, err, bytes.TrimSpace(complaint.Bytes()))
	}
	return found, nil
}

// changes says in what the next one differs, a sentence for each.
func (d *ttmond) changes(found Checked) (said []string) {
	if found.Version != version.Version {
		said = append(said, fmt.Sprintf("version %s, was %s", found.Version, version.Version))
	}
	was := d.configured
	daemon.EachDifference(&was, &found.Config, func(name string, _, _ reflect.Value) {
		said = append(said, name+" has changed")
	})
	return said
}

// reload executes ttmond again, for a signal.
func (d *ttmond) reload(ctx context.Context) {
	said, begin, err := d.restart(ctx)
	if err != nil {
		d.log.Error("reload failed; continuing as before", "err", err)
		return
	}
	for _, text := range said {
		d.log.Info("reloading", "change", text)
	}
	begin(-1, nil)
}

// become continues as another program. It returns only if it cannot, or if stop is done;
// then clients are served as before, but nothing else runs any more.
func (d *ttmond) become(ctx, stop context.Context, next request) error {
	_ = handover.Notify("EXTEND_TIMEOUT_USEC=60000000")
	watched := d.watcher.export() // before clients have to wait
	defer watched.end(false)
	d.logs.Flush()
	return d.whileStopped(ctx, true, func(paused time.Time) error {
		s, err := d.save(paused, next.learned, next.answer)
		if err != nil {
			return err
		}
		defer s.close()
		d.addSockets(s)
		s.add(nameCaller, next.conn)
		if watched != nil {
			s.files = append(s.files, watched.files...)
		}
		if err := stop.Err(); err != nil {
			return err // a signal to stop, which the next one would not hear of
		}
		var ignore []os.Signal
		if !daemon.OnTerminal() { // where SIGHUP asks for this
			ignore = append(ignore, syscall.SIGHUP)
		}
		err = handover.Exec(d.program, os.Args, s.files, ignore...)
		// What was checked a moment ago cannot be executed any more. What we are can.
		d.log.Error("cannot execute the new ttmond; continuing with this one", "err", err)
		return handover.Exec("/proc/self/exe", os.Args, s.files, ignore...)
	})
}

// learned is what the collector has found out; a keeper hands on what it got.
func (d *ttmond) learned() *collect.Learned {
	if d.collector == nil {
		return d.inherited.state.Learned
	}
	return d.collector.collector.Learned()
}

// pause is something that is done while the allocation server does not run.
type pause struct {
	do   func(paused time.Time) error
	last bool // if it works the server does not run any more
	done chan error
}

// whileStopped stops the allocation server, does something, and has the server go on,
// unless that has worked and is the last: then another serves.
func (d *ttmond) whileStopped(ctx context.Context, last bool, do func(paused time.Time) error) error {
	p := &pause{do, last, make(chan error, 1)}
	select {
	case d.pauses <- p:
		return <-p.done
	case <-ctx.Done():
		return ctx.Err()
	}
}

// errHandedOver ends a daemon whose place another has taken.
var errHandedOver = errors.New("handed over")

// serve runs the allocation server until the daemon ends or another serves.
func (d *ttmond) serve(ctx context.Context) error {
	for {
		runCtx, interrupt := context.WithCancel(ctx)
		asked := make(chan *pause, 1)
		go func() {
			select {
			case p := <-d.pauses:
				asked <- p
				interrupt()
			case <-runCtx.Done():
				close(asked)
			}
		}()
		err := d.server.Run(runCtx)
		paused := time.Now()
		interrupt()
		p := <-asked
		if p == nil {
			return err
		}
		if err == nil {
			err = p.do(paused)
		}
		p.done <- err
		if err == nil && p.last {
			d.inherited.lock = -1
			return errHandedOver
		}
	}
}

// confirm tells those who wait for us that we serve: a predecessor in another process,
// and the caller who asked for the restart. Until the predecessor has agreed nothing has been
// read.
func (d *ttmond) confirm() error {
	if from := d.inherited.from; from != nil {
		err := handover.Take(from)
		from.Close()
		d.inherited.from = nil
		if err != nil {
			return fmt.Errorf("taking over: %w", err)
		}
		_ = os.Remove(keeperPath(d.cfg)) // it listens no more, and the lock is ours
		unixsock.WritePID(d.inherited.lock)
	}
	if at := d.inherited.state.Paused; d.inherited.restored && at != 0 {
		d.pause.Store(max(bootTime(time.Now())-at, 1))
	}
	return nil
}

// answerCaller tells the caller who asked for the restart what has come of it.
func (d *ttmond) answerCaller() {
	if fd := d.inherited.caller; fd >= 0 {
		_ = unix.Sendto(fd, d.inherited.state.Answer, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, nil)
		unix.Close(fd)
		d.inherited.caller = -1
	}
}
