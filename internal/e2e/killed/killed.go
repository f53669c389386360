// Package killed kills ttmond again and again while it has work, and looks for
// what it had answered before: how much of the history is lost, and whether any
// event is. A test and make bench use it.
package killed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/ttmon/ttmon/internal/sim"
)

// Options of a Loop.
type Options struct {
	Bin       string // directory of ttmond and ttmon-sim
	Boards    string
	Processes int           // that account for memory, spread over the boards
	Interval  time.Duration // of snapshots
	Rounds    int
}

// Result is what was found.
type Result struct {
	// Lost is, for each round, how much older the last sample of the history
	// is than the last snapshot that somebody was shown; Unseen, than the
	// moment of the kill.
	Lost, Unseen []time.Duration
	Opened       []time.Duration // until the history answered again
	Events       int             // that were answered
	Missing      []string        // of them, afterwards
}

// loop is a Loop that runs.
type loop struct {
	opt    Options
	dir    string
	host   *sim.Host
	load   *churn
	log    bytes.Buffer
	events map[uint64]string // that were answered
	result Result
}

// Loop starts ttmond on a simulated host, kills it at a random moment, and so
// on. Meanwhile processes come and go, each of which is two events.
func Loop(ctx context.Context, o Options) (Result, error) {
	dir, err := os.MkdirTemp("", "ttmon-killed-")
	if err != nil {
		return Result{}, err
	}
	defer os.RemoveAll(dir)
	config := fmt.Sprintf("[collect]\ninterval = '%v'\npatience = '20s'\n", o.Interval)
	if err := os.WriteFile(filepath.Join(dir, "ttmond.toml"), []byte(config), 0o600); err != nil {
		return Result{}, err
	}
	so := sim.Options{Boards: o.Boards, Exe: filepath.Join(o.Bin, "ttmon-sim")}
	l := &loop{opt: o, dir: dir, events: map[uint64]string{}}
	if l.host, err = sim.Start(so); err != nil {
		return Result{}, err
	}
	defer l.host.Close()
	if l.load, err = startChurn(l.host, o.Processes, 2*o.Interval); err != nil {
		return Result{}, err
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
		err = fmt.Errorf("%w\nlog of ttmond:\n%s", err, l.log.String())
	}
	return l.result, err
}

// daemon is a ttmond that runs.
type daemon struct {
	cmd   *exec.Cmd
	ended chan struct{}
	err   error // of its end, once it has ended
}

// start starts ttmond and waits until it answers, also from its history.
func (l *loop) start(ctx context.Context) (*daemon, error) {
	cmd := l.host.Command(context.Background(), filepath.Join(l.opt.Bin, "ttmond"), "--config", filepath.Join(l.dir, "ttmond.toml"), "--socket", l.socket(),
		"--alloc-socket", filepath.Join(l.dir, "alloc"), "--state-dir", filepath.Join(l.dir, "state"), "--listen", "off", "--no-uprobe")
	cmd.Stderr = &l.log
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	d := &daemon{cmd: cmd, ended: make(chan struct{})}
	go func() {
		defer close(d.ended)
		d.err = cmd.Wait()
	}()
	var noHistory, noSnapshot error
	err := l.until(ctx, d, func() bool {
		_, noHistory = l.samples(ctx)
		_, noSnapshot = l.snapshot(ctx)
		return noHistory == nil && noSnapshot == nil
	})
	if err != nil {
		_ = cmd.Process.Signal(syscall.SIGQUIT) // where it is goes into the log
		<-d.ended
		err = errors.Join(err, noHistory, noSnapshot)
	}
	return d, err
}

func (l *loop) socket() string { return filepath.Join(l.dir, "api") }

// until waits for something, for minutes if need be: the host is simulated on
// the machine that is overloaded. A ttmond that has ended is not waited for.
func (l *loop) until(ctx context.Context, d *daemon, holds func() bool) error {
	for limit := time.Now().Add(3 * time.Minute); !holds(); time.Sleep(5 * time.Millisecond) {
		select {
		case <-d.ended:
			return fmt.Errorf("ttmond has ended: %w", d.err)
		default:
		}
		if time.Now().After(limit) || ctx.Err() != nil {
			return errors.Join(errors.New("it does not answer"), ctx.Err())
		}
	}
	return nil
}

// round is one life of ttmond, and the look at what the next one knows of it.
func (l *loop) round(ctx context.Context) error {
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

// kill ends a ttmond as nothing can be done about.
func (d *daemon) kill() error {
	err := d.cmd.Process.Signal(syscall.SIGKILL)
	<-d.ended
	return err
}

// look asks for the newest snapshot, and for what happened.
func (l *loop) look(ctx context.Context) (time.Time, error) {
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
func (l *loop) check(ctx context.Context) error {
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
