// Package remote is a source of snapshots for the screens: another ttmon,
// usually on another host behind ssh, that prints a snapshot as a line of
// JSON again and again.
//
// It stands where a collector stands otherwise, between the host and a screen.
package remote

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/ttmon/ttmon/internal/field/wire"
	"github.com/ttmon/ttmon/internal/model"
)

// maxLine is far more than a snapshot of a large host takes.
const maxLine = 16 << 20

// Source runs a command and reads snapshots from its standard output. When it
// ends, the next call of Next starts it again. Next is for one goroutine.
type Source struct {
	// Command is what to run; Again, if given, is run instead from the second
	// time on (without asking for a password, say).
	Command, Again []string

	run *process
}

// process is one run of the command.
type process struct {
	cmd     *exec.Cmd
	updated chan struct{} // has a value when latest or err changed
	done    chan struct{}

	mu     sync.Mutex
	latest *model.Snapshot
	err    error // how it ended
}

// Next returns the newest snapshot that was not returned before.
func (s *Source) Next(ctx context.Context) (*model.Snapshot, error) {
	if s.run == nil {
		command := s.Command
		if s.Again != nil {
			s.Command = s.Again
		}
		p, err := start(command)
		if err != nil {
			return nil, err
		}
		s.run = p
	}
	for {
		if snap, err := s.run.pop(); snap != nil {
			return snap, nil
		} else if err != nil {
			s.run = nil
			return nil, err
		}
		select {
		case <-s.run.updated:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// Close ends the command.
func (s *Source) Close() {
	if s.run != nil {
		s.run.cmd.Process.Kill()
		<-s.run.done
		s.run = nil
	}
}

func start(command []string) (*process, error) {
	p := &process{cmd: exec.Command(command[0], command[1:]...), updated: make(chan struct{}, 1), done: make(chan struct{})}
	var tail tail
	p.cmd.Stderr = &tail
	// What it leaves behind (a master connection) must not keep us waiting.
	p.cmd.WaitDelay = time.Second
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", command[0], err)
	}
	go p.read(out, &tail)
	return p, nil
}

// pop returns a snapshot once, and how the command ended after that.
func (p *process) pop() (*model.Snapshot, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	snap := p.latest
	p.latest = nil
	if snap != nil {
		return snap, nil
	}
	return nil, p.err
}

// publish passes on a snapshot.
func (p *process) publish(s *model.Snapshot) {
	p.mu.Lock()
	p.latest = s
	p.mu.Unlock()
	p.notify()
}

// setEnded passes on how the command ended. A snapshot that was not read yet stays.
func (p *process) setEnded(err error) {
	p.mu.Lock()
	p.err = err
	p.mu.Unlock()
	p.notify()
}

func (p *process) notify() {
	select {
	case p.updated <- struct{}{}:
	default:
	}
}

// read passes on snapshots until the command ends, and then how.
func (p *process) read(out io.Reader, said *tail) {
	defer close(p.done)
	lines := bufio.NewScanner(out)
	lines.Buffer(make([]byte, 64<<10), maxLine)
	var bad error
	for lines.Scan() {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		snap, err := wire.Decode(lines.Bytes())
		if err != nil {
			bad = fmt.Errorf("it printed something that is no snapshot: %w", err)
			p.cmd.Process.Kill()
			break
		}
		p.publish(snap)
	}
	io.Copy(io.Discard, out)
	err := p.cmd.Wait()
	switch {
	case bad != nil:
		err = bad
	case lines.Err() != nil:
		err = lines.Err()
	case said.last() != "":
		err = errors.New(said.last())
	case err == nil:
		err = errors.New("it ended")
	}
	p.setEnded(fmt.Errorf("%s: %w", p.cmd.Args[0], err))
}

// tail keeps the end of what the command said on its standard error.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

const maxTail = 4 << 10

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, b...)
	if n := len(t.buf) - maxTail; n > 0 {
		t.buf = append(t.buf[:0], t.buf[n:]...)
	}
	return len(b), nil
}

// last is the last line that says something.
func (t *tail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := strings.TrimSpace(string(t.buf))
	return strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
}
