package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/ttmon/ttmon/internal/lab/sim"
)

// killOptions say what is killed how often.
type killOptions struct {
	Bin       string // directory of ttmond and ttmon-sim
	Boards    string
	Processes int           // that account for memory, spread over the boards
	Interval  time.Duration // of snapshots
	Rounds    int
}

// killResult is what was found.
type killResult struct {
	// Lost is, for each round, how much older the last sample of the history
	// is than the last snapshot that a client was shown; Unseen, than the
	// moment of the kill.
	Lost, Unseen []time.Duration
	Opened       []time.Duration // until the history answered again
	Events       int             // that were answered
	Missing      []string        // of them, afterwards
}

// killer is a killLoop that runs.
type killer struct {
	opt    killOptions
	dir    string
	host   *sim.Host
	load   *churn
	logs   [2]bytes.Buffer   // of ttmond and ttmon-server
	events map[uint64]string // that were answered
	result killResult
}

// killLoop starts ttmond on a simulated host, kills it at a random moment, and so
// on. Meanwhile processes come and go, each of which is two events.
func killLoop(ctx context.Context, o killOptions) (killResult, error) {
	dir, err := os.MkdirTemp("", "ttmon-killed-")
	if err != nil {
		return killResult{}, err
	}
	defer os.RemoveAll(dir)
	config := fmt.Sprintf("[collect]\ninterval = '%v'\ntimeout = '20s'\n", o.Interval)
	if err := os.WriteFile(filepath.Join(dir, "ttmond.toml"), []byte(config), 0o600); err != nil {
		return killResult{}, err
	}
	so := sim.Options{Boards: o.Boards, Exe: filepath.Join(o.Bin, "ttmon-sim")}
	l := &killer{opt: o, dir: dir, events: map[uint64]string{}}
	if l.host, err = sim.Start(so); err != nil {
		return killResult{}, err
	}
	defer l.host.Close()
	if l.load, err = startChurn(l.host, o.Processes, 2*o.Interval); err != nil {
		return killResult{}, err
	}
	for range o.Rounds {
		if err == nil {
			err = l.round(ctx)
		}
	}
	err = errors.Join(err, l.load.end())
	if err == nil {
		err = l.check(ctx)
	}
	if err != nil {
		err = fmt.Errorf("%w\nlog of both:\n%s", err, l.logs[0].String()+l.logs[1].String())
	}
	return l.result, err
}

// daemons are a ttmond and the ttmon-server that follows it.
type daemons struct {
	cmds  []*exec.Cmd
	ended chan struct{} // closed when both have ended
	first chan struct{} // closed when one has
	err   error         // of the end, once both have ended
}

// start starts both and waits until the server answers, also from its history.
func (l *killer) start(ctx context.Context) (*daemons, error) {
	d := &daemons{ended: make(chan struct{}), first: make(chan struct{})}
	config, daemon := filepath.Join(l.dir, "ttmond.toml"), filepath.Join(l.dir, "ttmond")
	for i, line := range [][]string{
		{"ttmond", "--config", config, "--socket", daemon, "--alloc-socket", filepath.Join(l.dir, "alloc"), "--state-dir", filepath.Join(l.dir, "backlog"), "--no-uprobe"},
		{"ttmon-server", "--config", config, "--daemon", daemon, "--socket", l.socket(), "--state-dir", filepath.Join(l.dir, "state"), "--listen", "off"},
	} {
		cmd := l.host.Command(context.Background(), filepath.Join(l.opt.Bin, line[0]), line[1:]...)
		cmd.Stderr = &l.logs[i]
		if err := cmd.Start(); err != nil {
			d.wait()
			return nil, errors.Join(err, d.kill())
		}
		d.cmds = append(d.cmds, cmd)
	}
	d.wait()
	var noHistory, noSnapshot error
	err := l.until(ctx, d, func() bool {
		_, noHistory = l.samples(ctx)
		_, noSnapshot = l.snapshot(ctx)
		return noHistory == nil && noSnapshot == nil
	})
	if err != nil {
		for _, cmd := range d.cmds {
			_ = cmd.Process.Signal(syscall.SIGQUIT) // where it is goes into the log
		}
		<-d.ended
		err = errors.Join(err, noHistory, noSnapshot)
	}
	return d, err
}

// wait waits for the end of both, in the background.
func (d *daemons) wait() {
	var all sync.WaitGroup
	once := sync.OnceFunc(func() { close(d.first) })
	errs := make([]error, len(d.cmds))
	for i, cmd := range d.cmds {
		all.Go(func() {
			errs[i] = cmd.Wait()
			once()
		})
	}
	go func() {
		all.Wait()
		d.err = errors.Join(errs...)
		close(d.ended)
	}()
}

// socket is the server's.
func (l *killer) socket() string { return filepath.Join(l.dir, "api") }

// until waits for something, for minutes if need be: the host is simulated on
// the machine that is overloaded. One that has ended is not waited for.
func (l *killer) until(ctx context.Context, d *daemons, holds func() bool) error {
	for limit := time.Now().Add(3 * time.Minute); !holds(); time.Sleep(5 * time.Millisecond) {
		select {
		case <-d.first:
			return errors.New("ttmond or ttmon-server has ended")
		default:
		}
		if time.Now().After(limit) || ctx.Err() != nil {
			return errors.Join(errors.New("it does not answer"), ctx.Err())
		}
	}
	return nil
}

// round is one life of both, and the look at what the next one knows of it.
func (l *killer) round(ctx context.Context) error {
	d, err := l.start(ctx)
	if err != nil {
		return err
	}
	var last time.Time // of the newest snapshot that was shown
	end := time.Now().Add(2*l.opt.Interval + rand.N(3*l.opt.Interval))
	for err == nil && (time.Now().Before(end) || last.IsZero()) {
		last, err = l.look(ctx)
	}
	killed := time.Now()
	if e := d.kill(); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	begun := time.Now()
	if d, err = l.start(ctx); err != nil {
		return err
	}
	l.result.Opened = append(l.result.Opened, time.Since(begun))
	found, err := l.samples(ctx)
	if err == nil {
		var newest time.Time
		for _, at := range found {
			if !at.After(last) {
				newest = at
			}
		}
		l.result.Lost, l.result.Unseen = append(l.result.Lost, last.Sub(newest)), append(l.result.Unseen, killed.Sub(newest))
	}
	return errors.Join(err, d.kill())
}

// kill ends both as nothing can be done about.
func (d *daemons) kill() (err error) {
	for _, cmd := range d.cmds {
		err = errors.Join(err, cmd.Process.Signal(syscall.SIGKILL))
	}
	<-d.ended
	return err
}

// look asks for the newest snapshot, and for what happened.
func (l *killer) look(ctx context.Context) (time.Time, error) {
	at, err := l.snapshot(ctx)
	if err != nil {
		return at, err
	}
	list, err := l.happened(ctx)
	for _, e := range list {
		l.events[e.Seq] = e.Text
	}
	return at, err
}

// check looks for all events that were ever answered.
func (l *killer) check(ctx context.Context) error {
	d, err := l.start(ctx)
	if err != nil {
		return err
	}
	list, err := l.happened(ctx)
	there := map[uint64]string{}
	for _, e := range list {
		there[e.Seq] = e.Text
	}
	l.result.Events = len(l.events)
	for seq, text := range l.events {
		if there[seq] != text {
			l.result.Missing = append(l.result.Missing, fmt.Sprintf("%d %s (now: %q)", seq, text, there[seq]))
		}
	}
	return errors.Join(err, d.kill())
}
