// Package ttnnjob drives a ttnn program that does what it is told, one step at a
// time, and says after each what it holds by its own account: tt-metal's own
// allocator as a witness. ttmon selftest and the tests use it.
package ttnnjob

import (
	"bufio"
	_ "embed" // job.py
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
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
	Round   float64 `json:"round"` // answer to "spin": ns
	CB      uint64  `json:"cb"`    // answer to "end_capture": circular buffers, over all cores
	// CBCore is what they take of one core, of programs that have the same cores.
	CBCore uint64 `json:"cb_core"`
	Table  map[string]Table
}

// Table is what the allocator knows of a pool. All bytes are of one bank.
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

// Job is a ttnn program that does what it is told.
type Job struct {
	PID  int
	Held Held // as of the last answer

	cmd     *exec.Cmd
	in      io.WriteCloser
	answers *bufio.Reader
	log     *os.File
	ended   bool
}

// Start starts a job with a command that runs the Script. It has opened no chip
// yet. dir is for its log.
func Start(cmd *exec.Cmd, dir string) (j *Job, err error) {
	j = &Job{cmd: cmd}
	if j.log, err = os.CreateTemp(dir, "job-*.log"); err != nil {
		return nil, err
	}
	cmd.Stderr = j.log
	if j.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	j.answers = bufio.NewReader(out)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
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
	if err := j.cmd.Process.Kill(); err != nil {
		return err
	}
	return j.wait()
}

// End lets the job close its chips and end. Once it has ended, End does
// nothing.
func (j *Job) End() error {
	if j.ended {
		return nil
	}
	j.in.Close()
	return j.wait()
}

func (j *Job) wait() error {
	defer j.log.Close()
	j.ended = true
	err := j.cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() < 0 {
		return nil // killed
	} else if ok {
		return fmt.Errorf("ttnn ended: %w\n%s", exit, j.said())
	}
	return err
}
