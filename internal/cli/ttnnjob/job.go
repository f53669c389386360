// Package ttnnjob drives a ttnn program that does what it is told, one step at a
// time, and says after each what it holds by its own account: tt-metal's own
// allocator as a witness. ttmon selftest and the tests use it.
package ttnnjob

import (
	"bufio"
	"context"
	_ "embed" // job.py
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"
)

// Script is the program, for a Python that has ttnn.
//
//go:embed job.py
var Script []byte

// Held is what a job holds on each of its chips, in bytes by pool: "dram",
// "l1", "l1_small", "trace".
type Held map[string]uint64

// Reply is the answer to one step.
type Reply struct {
	PID   int    `json:"pid"`
	Error string `json:"error"`
	Held  Held   `json:"held"`
	Chips int    `json:"chips"` // opened
	View  Held   `json:"view"`  // of the allocator, with padding, over all banks
	Fits  bool   `json:"fits"`  // answer to "try", "ask" and "fix"
	// Message is what tt-metal says of a request that found no room.
	Message string  `json:"message"`
	At      uint64  `json:"at"`    // answer to "shard": the address, where all cores have the same
	Round   float64 `json:"round"` // answer to "spin": ns
	CB      uint64  `json:"cb"`    // answer to "end_capture": circular buffers, over all cores
	// CBCore is what they take of one core, of programs that have the same cores.
	CBCore uint64 `json:"cb_core"`
	Table  map[string]Table
	// Tensors is the answer to "tensors".
	Tensors []Tensor `json:"tensors"`
}

// Tensor is one on the device, as ttnn describes it.
type Tensor struct {
	Pool    string `json:"pool"`
	Address uint64 `json:"address"`
	Tensor  string `json:"tensor"` // [1,1,32,32] bfloat16 tile interleaved
}

// Table is the allocator's state of a pool. All bytes are of one bank.
type Table struct {
	Banks     uint64      `json:"banks"` // 0 where the release does not tell
	Capacity  uint64      `json:"capacity"`
	Allocated uint64      `json:"allocated"`
	Free      uint64      `json:"free"`
	Largest   uint64      `json:"largest"`
	Blocks    [][2]uint64 `json:"blocks"` // address from the pool's base, and size; by address
}

// Step is a command of job.py; see there.
type Step map[string]any

// Job is a running ttnn program that carries out steps.
type Job struct {
	PID  int
	Held Held // as of the last answer

	cmd     *exec.Cmd
	in      io.WriteCloser
	answers *bufio.Reader
	log     *os.File
	out     *os.File
	over    <-chan struct{} // closed when the context ends
	stop    func() bool     // to watch the context
	ended   bool
}

// Start starts a job with a command that runs the Script. It has opened no chip
// yet. dir is for its log. When ctx ends, a Do that waits for an answer returns
// with os.ErrDeadlineExceeded; the command is killed if it was made with ctx.
func Start(ctx context.Context, cmd *exec.Cmd, dir string) (j *Job, err error) {
	j = &Job{cmd: cmd}
	if j.log, err = os.CreateTemp(dir, "job-*.log"); err != nil {
		return nil, err
	}
	cmd.Stderr = j.log
	if j.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	// A pipe of our own: a child of the job may keep the other end open.
	out, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout, j.answers = write, bufio.NewReader(out)
	err = cmd.Start()
	write.Close()
	if err != nil {
		out.Close()
		return nil, err
	}
	j.stop = context.AfterFunc(ctx, func() { _ = out.SetReadDeadline(time.Now()) })
	j.out, j.over = out, ctx.Done()
	reply, err := j.Do(Step{"do": "ping"})
	if err != nil {
		_ = j.Kill()
		return nil, err
	}
	j.PID = reply.PID
	return j, nil
}

// Do makes a step and waits for the answer.
func (j *Job) Do(s Step) (r Reply, err error) {
	line, err := json.Marshal(s)
	if err != nil {
		return r, err
	}
	if _, err := j.in.Write(append(line, '\n')); err != nil {
		return r, fmt.Errorf("%s: %w\n%s", line, err, j.said())
	}
	answer, err := j.answers.ReadBytes('\n')
	if err != nil {
		return r, fmt.Errorf("%s: ttnn does not answer: %w\n%s", line, err, j.said())
	}
	if err := json.Unmarshal(answer, &r); err != nil {
		return r, fmt.Errorf("%s: %q: %w", line, answer, err)
	}
	j.Held = r.Held
	if r.Error != "" {
		return r, fmt.Errorf("%s: %s", line, r.Error)
	}
	return r, nil
}

// said is the end of what the job wrote to standard error.
func (j *Job) said() string {
	b, _ := os.ReadFile(j.log.Name())
	return string(b[max(0, len(b)-4000):])
}

// Kill kills the job (SIGKILL) and waits for its end.
func (j *Job) Kill() error {
	kill := j.cmd.Process.Kill
	if j.cmd.Cancel != nil { // it knows what else has to go
		kill = j.cmd.Cancel
	}
	if err := kill(); err != nil && !errors.Is(err, os.ErrProcessDone) && !errors.Is(err, unix.ESRCH) {
		return err
	}
	now := make(chan struct{})
	close(now)
	return j.wait(now)
}

// End lets the job close its chips and end. Once it has ended, End does
// nothing.
func (j *Job) End() error {
	if j.ended {
		return nil
	}
	j.in.Close()
	return j.wait(j.over)
}

// killWait is how long a job that was killed is waited for: the driver may not
// let it go.
const killWait = 20 * time.Second

// wait waits for the end of a job that is killed, at the latest, when over is closed.
func (j *Job) wait(over <-chan struct{}) error {
	defer j.log.Close()
	defer j.out.Close()
	defer j.stop()
	j.ended = true
	done := make(chan error, 1)
	go func() { done <- j.cmd.Wait() }()
	var err error
	select {
	case err = <-done:
	case <-over:
		select {
		case err = <-done:
		case <-time.After(killWait):
			return errors.New("ttnn was killed and does not end: it hangs in the kernel")
		}
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() < 0 {
		return nil // killed
	} else if ok {
		return fmt.Errorf("ttnn ended: %w\n%s", exit, j.said())
	}
	return err
}
